"""What can't be read, can't be known, or never ends."""

from __future__ import annotations

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import ALWAYS, OUTSIDE, REFUSE

RULES = (
    Rule(
        "text.unreadable",
        OUTSIDE,
        "The text is not a complete shell command, so what it does can't be told.",
        matches=("if true; then", "echo 'unfinished", "for x in a; do echo $x"),
        passes=("if true; then ls; fi", "echo 'finished'", "for x in a; do echo $x; done"),
    ),
    Rule(
        "text.unreadable-code",
        OUTSIDE,
        "The inline code can't be parsed, so what it does can't be told.",
        matches=(
            "python -c 'def ('",
            "python3 -c 'print \"x'",
            "python3 - <<'E'\nif x\nE",
        ),
        passes=("python -c 'print(1)'", "python3 -c 'import os; print(os.name)'", "python app.py"),
    ),
    Rule(
        "text.too-complex",
        OUTSIDE,
        "The command is nested or multiplied beyond what can be checked.",
        matches=(
            "echo " + "$(" * 60 + "id" + ")" * 60,
            "( " * 120 + "ls" + " )" * 120,
            "echo " + "{a,b}" * 20,
        ),
        passes=("echo $(echo $(id))", "((ls) && (id))", "echo {a,b}{c,d}"),
    ),
    Rule(
        "text.hidden-characters",
        OUTSIDE,
        "The text holds a NUL character, which programs read differently.",
        matches=("rm a\0b", "echo \0", "ls\0 -la"),
        passes=("rm ab", "echo '\\0'", "tr '\\0' '\\n'"),
    ),
    Rule(
        "text.unknown-program",
        OUTSIDE,
        "Which program runs is decided only when the command runs.",
        matches=("$CMD --now", "'' x", '"$(pick_one)" x', "/bin/r? file", "eval $THING"),
        passes=("cmd=ls; $cmd -l", "$(npm bin)/eslint src", "$PYTHON -m pytest", "[ -f x ]"),
    ),
    Rule(
        "process.fork-bomb",
        ALWAYS,
        "It starts copies of itself without end and brings the machine down.",
        severity=REFUSE,
        human_only=True,
        matches=(
            ":(){ :|:& };:",
            "b() { b | b & }; b",
            "while true; do ./x & done",
            "perl -e 'fork while fork'",
            "python3 -c 'import os\nwhile True: os.fork()'",
        ),
        passes=(
            "f() { echo hi; }; f; f",
            "while true; do ./x & sleep 1; done",
            "walk() { for d in *; do [ -d $d ] && walk $d; done; }; walk",
        ),
    ),
)

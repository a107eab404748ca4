"""Hostile sizes and nestings end with a question."""

from __future__ import annotations

import time

import pytest
from tests.corpus import each

from hermes.safety.shell import detect_dangerous_command

SIZE = 100_000
HOSTILE = {
    "open parentheses": "(" * SIZE,
    "closed parentheses": "(" * (SIZE // 2) + ")" * (SIZE // 2),
    "open substitutions": "$(" * (SIZE // 2),
    "closed substitutions": "echo " + "$(" * (SIZE // 3) + "id" + ")" * (SIZE // 3),
    "quoted substitutions": "echo " + '"$(echo ' * (SIZE // 9) + ')"' * (SIZE // 9),
    "single quotes": "'" * (SIZE + 1),
    "double quotes": '"' * (SIZE + 1),
    "backticks": "`" * SIZE,
    "open braces": "{" * SIZE,
    "braces side by side": "echo " + "{a,b}" * (SIZE // 5),
    "braces in braces": "echo " + "{a," * (SIZE // 5) + "}" * (SIZE // 5),
    "a wide range": "echo {1..999999}",
    "a huge range": "echo {1..99999999999999999999999}",
    "defaults in defaults": "echo " + "${x:-" * (SIZE // 6) + "}" * (SIZE // 6),
    "pipes": "|" * SIZE,
    "redirections": "<" * SIZE,
    "array openings": "a=(" * (SIZE // 3),
    "wrappers": "sudo " * (SIZE // 5),
    "evals": "eval " * (SIZE // 5),
    "unknown programs": "$a " * (SIZE // 3),
    "doubling variables": "a=aaaaaaaaaa;" + "a=$a$a;" * 1000 + "$a",
    "loops in loops": "for i in 1 2 3 4 5 6; do " * 12 + "rm $i;" + " done;" * 12,
    "one-word lines": "a\n" * (SIZE // 2),
    "closing words": "esac\n" * (SIZE // 5),
    "redirected lines": "a>b\n" * (SIZE // 4),
    "many words": '"a" ' * (SIZE // 4),
    "nested shells": "sh -c 'sh -c \"echo a\"'\n" * (SIZE // 24),
    "long inline code": "python3 - <<'E'\n" + "f(x)\n" * (SIZE // 5) + "E\n",
    "deep inline code": "python3 -c '" + "(" * 50_000 + "'",
}


@each("kind", HOSTILE)
def test_hostile_text_ends_with_a_question(kind: str) -> None:
    assert detect_dangerous_command(HOSTILE[kind]).action == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "awk '" + "a" * 7_900 + " |'",
        "awk '" + '"a"' * 2_600 + " |'",
        "awk '" + "print a > x;" * 6_000 + "'",
        "node -e '" + "while(1) " * 10_000 + "fork'",
        "node -e '" + "curl " * 15_000 + "'",
        "perl -e '"
        + "".join(f"$a{n}=$a{n + 1}" + f".$a{n + 1}" * 150 + ";" for n in range(6))
        + "'",
        "emacs --eval '" + '(delete-file "x")' * 5_000 + "'",
    ],
)
def test_hostile_inline_code_takes_no_longer_than_a_blink(command: str) -> None:
    begun = time.process_time()

    detect_dangerous_command(command)

    assert time.process_time() - begun < 3


def test_functions_that_call_each_other_end() -> None:
    chain = "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}; " for n in range(60)) + "f0"

    assert detect_dangerous_command(chain).action in ("allow", "ask")


def test_a_long_ordinary_script_passes() -> None:
    lines = [
        f'echo "step {n}" && mkdir -p build/{n} && cp src/{n}.py build/{n}/' for n in range(800)
    ]

    assert detect_dangerous_command("\n".join(lines)).action == "allow"


def test_a_long_heredoc_is_data() -> None:
    body = "Never run `rm -rf /` (or $(rm -rf ~)); if in doubt, for all cases, ask.\n" * 800

    command = f"cat > notes.md <<'EOF'\n{body}EOF\nls notes.md"

    assert detect_dangerous_command(command).action == "allow"


def test_a_sed_script_full_of_escapes_is_read_in_good_time() -> None:
    script = "s/" + r"\([0-9][0-9]*\)\." * 40 + "/x/p"

    assert detect_dangerous_command(f"sed -n '{script}' log").action == "allow"
    assert detect_dangerous_command(f"sed -n '{script}; s/a/rm -rf b/e' log").action == "ask"

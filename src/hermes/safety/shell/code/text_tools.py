"""Text filters and editors that can start a shell or write files: awk, sed, pagers, vim, emacs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import literal
from hermes.safety.shell.file_flow import remember_text
from hermes.safety.shell.file_operands import READERS
from hermes.safety.shell.output_model import reads_nothing
from hermes.safety.shell.path_classes import is_null
from hermes.safety.shell.path_rules import judge_reads, judge_write
from hermes.safety.shell.scope import ANYTHING, DECODED, HOLE, NETWORK, UNKNOWN, Stream, expand_home
from hermes.safety.shell.words import unescape

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command


def _shell(text: str, command: Command, judge: Judge, fed: Stream | None = None) -> None:
    judge.run_text(text, command.origin.vague(), command.scope.copy(), fed)


def _write(path: str, command: Command, judge: Judge) -> None:
    word = literal(expand_home(path, command.scope), command)
    judge_write(word, command.text, command.scope, judge)


# awk: calls and redirections by pattern, with constant names filled in

_TEXT = r"\"(?:[^\"\\]|\\.)*\""
_AWK_STEPS = re.compile(
    rf"\bsystem\s*\((?P<run>(?:{_TEXT}|[^)\"]){{0,300}}+)\)|"
    rf"\bprintf?\b(?P<text>(?:{_TEXT}|[^;}}\n\"|>]){{0,300}}+)(?P<sign>>>?|\|&?)(?P<target>(?:{_TEXT}|[^;}}\n\"])*)|"
    rf"(?<![\w$])(?P<fed>\(?(?:{_TEXT}|[\w$]+)(?:[ ]*{_TEXT}|[ ]+[\w$]+){{0,20}}\)?)"
    r"\s*\|&?\s*getline|"
    rf"\bgetline\s*\w*\s*<\s*(?P<read>(?:{_TEXT}|[^;}}\n\")])*)"
)
_LONGEST_AWK = 8_000
_AWK_PART = re.compile(rf"({_TEXT})|ENVIRON\[\"(\w+)\"\]|(\d+)|([^\s()]+)")


def _awk(command: Command, judge: Judge) -> Stream | None:
    scripts = command.values("-e", "--source")
    if not scripts and not command.values("-f", "--file", "-E", "--exec"):
        scripts = command.operands[:1]
    for script in scripts:
        text = script.text
        if len(text) > _LONGEST_AWK and re.search(r"[>|]|\bsystem\b", text):
            judge.blame("text.too-complex", command)
            continue
        if "/inet" in text and re.search(r"/inet[46]?/", text):
            judge.blame("network.raw-socket", command)
        for step in _AWK_STEPS.finditer(text):
            if not judge.step():
                return None
            _awk_step(step, command, judge)
    return None


def _awk_value(text: str, command: Command) -> str:
    """The text of an expression, with a stand-in for each variable and field."""
    out = []
    for string, variable, number, _name in _AWK_PART.findall(text):
        known = unescape(string[1:-1]) if string else number or HOLE
        out.append(command.scope.lookup(variable).text if variable else known)
    return "".join(out)[:20_000]


def _awk_step(step: re.Match[str], command: Command, judge: Judge) -> None:
    if step["run"] is not None or step["fed"] is not None:
        _shell(_awk_value(step["run"] or step["fed"] or "", command), command, judge)
    elif step["read"] is not None:
        path = expand_home(_awk_value(step["read"], command), command.scope)
        judge_reads([literal(path, command)], command, judge)
    else:
        # Without anything to print it prints the line that was read.
        text = _awk_value(step["text"], command) if step["text"].strip() else HOLE
        target = _awk_value(step["target"], command)
        if step["sign"][0] == "|":
            _shell(target, command, judge, ANYTHING if HOLE in text else Stream(text + "\n"))
            return
        path = expand_home(target, command.scope)
        _write(path, command, judge)
        again = re.findall(rf">\s*{re.escape(step['target'].strip())}", step.string)
        if not text and len(again) == 1 and step["sign"] == ">" and not is_null(path):
            judge.blame("delete.emptied", command)
        remember_text(path, text + "\n", command.scope, append=step["sign"] == ">>")


# sed and pagers

_SED_COMMAND = re.compile(
    r"(?:^|[;{}\n]|\d|\$|/[IM]?)[ \t]*+(?:([ewWrR])(?:\s+(\S[^\n]*)|$)|s(.)((?:\\.|"
    r"(?!\3)[^\\])*)\3((?:\\.|(?!\3)[^\\])*)\3([gpiImM0-9]*)([ew])\s*([^\n;]*))",
    re.S,
)
_SED_NOTHING = re.compile(r"\s*(?:1,\$)?\s*d\s*;?\s*\Z")
_SED_FILLED = re.compile(r"(?<!\\)&|\\\d")


def _sed(command: Command, judge: Judge) -> Stream | None:
    scripts = command.values("-e", "--expression")
    if not scripts and not command.values("-f", "--file"):
        scripts = command.operands[:1]
    in_place = any(flag.startswith(("-i", "--in-place")) for flag in command.flags)
    for script in scripts:
        if in_place and _SED_NOTHING.match(script.text):
            judge.blame("delete.emptied", command)
        for match in _SED_COMMAND.finditer(script.text):
            letter, argument, flag = match[1], match[2], match[7]
            if letter == "e" or flag == "e":
                text = _SED_FILLED.sub(HOLE, match[5]) if flag else argument
                _shell(text or HOLE, command, judge)
            elif (letter in ("w", "W") and argument) or flag == "w":
                path = argument or match[8]
                _write(path, command, judge)
                if reads_nothing(command, READERS["sed"](command)) and not is_null(path):
                    judge.blame("delete.emptied", command)
    return None


def _pager(command: Command, judge: Judge) -> Stream | None:
    for word in command.words[1:]:
        if word.text.startswith("+!"):
            _shell(word.text[2:], command, judge)
    return None


# Editors

_EX_SHELL = re.compile(
    r"^[\s:%\d,.$']*(?:silent!?\s+|exe(?:cute)?\s+[\"']?|norm\w*\s+:?)*(?:r(?:ead)?\s*|"
    r"w(?:rite)?\s*|terminal\s+|term\s+)?!\s*(.+)$"
)
_EX_EMPTIES = re.compile(
    r"^[\s:]*(?:silent!?\s+)?(?:(?:%|,|1,\$|0,\$)\s*d(?:e(?:l(?:e(?:te?)?)?)?)?[\s_\"a-z]*|"
    r"(?:norm(?:al)?!?\s+)?ggdG\s*|g/\^/d\s*|v/\\n/d\s*)$"
)
_EX_WRITE = re.compile(r"^[\s:%\d,.$]*(?:w(?:rite)?|sav(?:eas)?)!?\s+([^!\s]\S*)")
_EX_LANGUAGE = re.compile(r"^\s*:?(py(?:thon)?3?|pyx?|lua|ruby|perl)\s+(.+)$", re.S)
_EX_CALL = re.compile(r"\b(?:system(?:list)?|writefile|delete|fs_unlink|fs_rmdir|fs\.rm)\s*\(")


def _editor(command: Command, judge: Judge) -> Stream | None:
    words, stdin = command.words, command.stdin
    texts = [word.text[1:] for word in words if len(word.text) > 1 and word.text[0] == "+"]
    for index, word in enumerate(words):
        if word.text in ("-c", "--cmd", "-S", "-sc", "-esc", "-Esc"):
            texts += [following.text for following in words[index + 1 : index + 2]]
    if stdin is not None and (command.name in ("ed", "ex") or command.has("-s", "-es")):
        texts += (stdin.text or "").splitlines()
        if stdin.text is None and stdin.tags & {NETWORK, DECODED, UNKNOWN}:
            judge.blame("remote-code.unknown-input", command)
    for text in texts:
        for line in text.split("|") if "!" not in text else [text]:
            _ex(line, command, judge)
    return None


def _ex(line: str, command: Command, judge: Judge) -> None:
    if _EX_EMPTIES.match(line):
        judge.blame("delete.emptied", command)
    if match := _EX_SHELL.match(line):
        _shell(match[1].rstrip("\"'"), command, judge)
    if match := _EX_WRITE.match(line):
        _write(match[1], command, judge)
    if match := _EX_LANGUAGE.match(line):
        from hermes.safety.shell.code.interpreters import judge_code

        language = "python" if match[1].startswith("py") else match[1]
        judge_code(match[2], language, command, judge)
    if _EX_CALL.search(line):
        judge.blame("remote-code.unknown-input", command)


TEXT_TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("less", "more", "most"), _pager),
    **dict.fromkeys(
        ("vim", "vi", "nvim", "view", "gvim", "ex", "ed", "vimdiff", "rvim", "lvim"), _editor
    ),
}

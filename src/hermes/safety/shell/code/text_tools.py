"""Text filters and editors that can start a shell or write files: awk, sed, pagers, vim, emacs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import literal, run_words
from hermes.safety.shell.delete_targets import kind_of_delete
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
    rf"\bsystem\s*\((?P<run>(?:{_TEXT}|[^)\"])*)\)|"
    rf"\bprintf?\b(?P<text>(?:{_TEXT}|[^;}}\n\"|>])*)(?P<sign>>>?|\|&?)(?P<target>(?:{_TEXT}|[^;}}\n\"])*)|"
    rf"(?<![\w$])(?P<fed>\(?(?:{_TEXT}|[\w$]+)(?:[ ]*{_TEXT}|[ ]+[\w$]+){{0,20}}\)?)"
    r"\s*\|&?\s*getline|"
    rf"\bgetline\s*\w*\s*<\s*(?P<read>(?:{_TEXT}|[^;}}\n\")])*)"
)
_AWK_SET = re.compile(
    rf"(?<!\w)([A-Za-z_]\w*)\s*=\s*((?:{_TEXT}|ENVIRON\[{_TEXT}\]|[\w.]+)"
    rf"(?:[ ]*{_TEXT}|[ ]+[\w.]+){{0,20}})\s*[;}}\n,)]"
)
_LONGEST_AWK = 8_000
_AWK_PART = re.compile(rf"({_TEXT})|ENVIRON\[\"(\w+)\"\]|([A-Za-z_]\w*)|(\d+)|(\S)")
_AWK_GIVEN = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)


def _awk(command: Command, judge: Judge) -> Stream | None:
    scripts = command.values("-e", "--source")
    given = command.values("-v", "--assign")
    if not scripts and not command.values("-f", "--file", "-E", "--exec"):
        scripts, given = command.operands[:1], [*given, *command.operands[1:]]
    constants: dict[str, str] = {}
    for word in given:
        if match := _AWK_GIVEN.match(word.text):
            constants[match[1]] = unescape(match[2])
    for script in scripts:
        text = script.text
        if len(text) > _LONGEST_AWK and re.search(r"[>|]|\bsystem\b", text):
            judge.blame("text.too-complex", command)
            continue
        for name, value in _AWK_SET.findall(text):
            known = constants.setdefault(name, _awk_value(value, constants, command))
            if known != _awk_value(value, constants, command):
                constants[name] = HOLE
        if "/inet" in text and re.search(r"/inet[46]?/", text):
            judge.blame("network.raw-socket", command)
        for step in _AWK_STEPS.finditer(text):
            if not judge.step():
                return None
            _awk_step(step, constants, command, judge)
    return None


def _awk_value(text: str, constants: dict[str, str], command: Command) -> str:
    out = []
    for string, variable, name, number, sign in _AWK_PART.findall(text):
        if string:
            out.append(unescape(string[1:-1]))
        elif variable:
            out.append(command.scope.lookup(variable).text)
        elif name or number:
            out.append(number or constants.get(name, HOLE))
        elif sign not in "()":
            out.append(HOLE)
    return "".join(out)[:20_000]


def _awk_step(
    step: re.Match[str], constants: dict[str, str], command: Command, judge: Judge
) -> None:
    def value(group: str) -> str:
        return _awk_value(step[group], constants, command)

    if step["run"] is not None:
        _shell(value("run"), command, judge)
    elif step["fed"] is not None:
        _shell(value("fed"), command, judge)
    elif step["read"] is not None:
        word = literal(expand_home(value("read"), command.scope), command)
        judge_reads([word], command, judge)
    else:
        # Without anything to print it prints the line that was read.
        text = value("text") if step["text"].strip() else HOLE
        target = value("target")
        if step["sign"][0] == "|":
            _shell(target, command, judge, ANYTHING if HOLE in text else Stream(text + "\n"))
            return
        path = expand_home(target, command.scope)
        _write(path, command, judge)
        again = re.findall(rf">\s*{re.escape(step['target'].strip())}", step.string)
        alone = len(again) == 1
        if not text and alone and step["sign"] == ">" and not is_null(path):
            judge.blame("delete.emptied", command)
        remember_text(path, text + "\n", command.scope, append=step["sign"] == ">>")


# sed and pagers

_SED_COMMAND = re.compile(
    r"(?:^|[;{}\n]|\d|\$|/[IM]?)\s*(?:([ewWrR])(?:\s+(\S[^\n]*)|$)|s(.)((?:\\.|"
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
        for found in _SED_COMMAND.finditer(script.text):
            letter, argument, flag = found[1], found[2], found[7]
            if letter == "e" or flag == "e":
                text = _SED_FILLED.sub(HOLE, found[5]) if flag else argument
                _shell(text or HOLE, command, judge)
            elif (letter in ("w", "W") and argument) or flag == "w":
                path = argument or found[8]
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
_STRING = r"['\"]([^'\"]*)['\"]"
_EX_CALL = re.compile(r"\b(system(?:list)?|writefile|delete|fs_unlink|fs_rmdir|fs\.rm)\s*\(([^)]*)")
_LISP = re.compile(
    r"(shell-command|call-process|start-process|process-lines|process-file|delete-directory|"
    r"delete-file|write-region|f-delete|eshell-command|with-temp-file|write-file|append-to-file|"
    r"copy-file|rename-file|make-symbolic-link)[\w-]*"
)
_LISP_FETCHES = re.compile(
    r"\(url-(?:retrieve|insert|copy-file)|\(base64-decode|\(request\b|\(plz\b|"
    r"\((?:load|load-file|find-file|insert-file-contents)\s+\"https?://|\b(?:curl|wget)\b[^)]{0,200}https?:"
)
_LISP_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


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
    for name, args in _EX_CALL.findall(line):
        strings = re.findall(_STRING, args)
        if name.startswith("system"):
            _shell(strings[0] if strings else HOLE, command, judge)
        elif name == "writefile":
            _write(strings[-1] if strings else HOLE, command, judge)
            if args.startswith(("[]", "['']", '[""]')):
                judge.blame("delete.emptied", command)
        elif "expr" not in args:
            listed = "glob" in line or "readdir(" in line or "v:val" in line
            recursive = len(strings) > 1 or "recursive" in line
            _delete(strings[0] if strings else HOLE, command, judge, recursive, listed)


def _delete(path: str, command: Command, judge: Judge, recursive: bool, listed: bool) -> None:
    word = literal(expand_home(path, command.scope), command)
    word.glob = "*" in word.text
    rule = kind_of_delete([word], command.scope, recursive=recursive, found=listed)
    if rule:
        judge.blame(rule, command)
    judge_write(word, command.text, command.scope, judge)


def _emacs(command: Command, judge: Judge) -> Stream | None:
    for word in command.words[1:]:
        text = word.text
        if "(" not in text:
            continue
        if _LISP_FETCHES.search(text) and re.search(r"\((?:eval|load|byte-compile)", text):
            judge.blame("remote-code.pipe", command)
        for found in _LISP.finditer(text):
            if not judge.step(20):
                return None
            rest = text[found.end() : found.end() + 400].partition("\n")[0]
            strings = [part.replace('\\"', '"') for part in _LISP_STRING.findall(rest)]
            first, name = (strings[0] if strings else HOLE), found[1]
            if "delete" in name:
                listed = "dolist" in text or "'delete" in text or "(quote delete" in text
                listed = listed or "(function delete" in text
                recursive = name != "delete-file" and bool(
                    re.search(r"\s(?:t|:recursive|'force|'?always|\(quote always\))(?!\w)", rest)
                )
                _delete(first, command, judge, recursive, listed)
            elif "shell" in name or "-shell-" in found[0]:
                _shell(first, command, judge)
            elif "process" in name:
                words = strings[1:] if name == "start-process" else strings
                run_words([literal(part, command) for part in words], command, judge)
            elif strings:
                _write(strings[0] if name in _FIRST else strings[-1], command, judge)
    return None


_FIRST = ("with-temp-file", "write-file")
TEXT_TOOLS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("less", "more", "most"), _pager),
    **dict.fromkeys(
        ("vim", "vi", "nvim", "view", "gvim", "ex", "ed", "vimdiff", "rvim", "lvim"), _editor
    ),
    **dict.fromkeys(("emacs", "emacsclient", "xemacs"), _emacs),
}

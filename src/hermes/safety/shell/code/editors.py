"""Editors by the commands that they are given: vim and ed by line, emacs by its Lisp."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.delete_targets import kind_of_delete
from hermes.safety.shell.inner_command import literal, run_words
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import HOLE, expand_home
from hermes.safety.shell.stream import DECODED, NETWORK, UNKNOWN, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command

_EX_SHELL = re.compile(
    r"^[\s:%\d,.$']*(?:silent!?\s+|exe(?:cute)?\s+[\"']?|norm\w*\s+:?)*(?:r(?:ead)?\s*|"
    r"w(?:rite)?\s*|terminal\s+|term\s+)?!\s*(.+)$"
)
# Every line deleted, none left.
_EX_NOTHING = re.compile(
    r"^[\s:]*(?:silent!?\s+)?(?:(?:%|,|1,\$|0,\$)\s*d(?:e(?:l(?:e(?:te?)?)?)?)?[\s_\"a-z]*|"
    r"(?:norm(?:al)?!?\s+)?ggdG\s*|g/\^/d\s*|v/\\n/d\s*)$"
)
_EX_SYSTEM = re.compile(r"\bsystem(?:list)?\s*\(\s*['\"]([^'\"]*)['\"]")
_EX_WRITE = re.compile(r"^[\s:%\d,.$]*(?:w(?:rite)?|sav(?:eas)?)!?\s+([^!\s]\S*)")
_EX_LANGUAGE = re.compile(r"^\s*:?(py(?:thon)?3?|pyx?|lua|ruby|perl)\s+(.+)$", re.S)
# Functions of the editor itself, in its own language or through Lua.
_EX_DELETE = re.compile(
    r"(?:\bcall\b|\becho\b|\beval\b|=|vim\.fn\.|['\",(]|^)\s*(?:vim\.fn\.)?"
    r"delete\(\s*([^,)]*(?:\([^)]*\))?)\s*(?:,\s*['\"](\w+)['\"])?\s*\)"
)
_EX_LUA_DELETE = re.compile(
    r"(?:vim\.fs\.rm|vim\.(?:loop|uv)\.fs_(?:unlink|rmdir))\(\s*([^,)]*)([^)]*)"
)
_EX_WRITEFILE = re.compile(r"\bwritefile\(\s*(\[[^\]]*\]|[^,]*),\s*([^,)]*(?:\([^)]*\))?)")
_EX_CONSTANT = re.compile(r"(?:vim\.fn\.)?(?:expand|fnamemodify)?\(?\s*['\"]([^'\"]*)['\"]\s*\)?\Z")
_LISP_CALL = re.compile(
    r"\((shell-command(?:-to-string)?|call-process-shell-command|async-shell-command|call-process|"
    r"start-process|process-lines|process-file|delete-directory|delete-file|dired-delete-file|"
    r"write-region|"
    r"f-delete|eshell-command)\b([^()]*(?:\([^()]*\)[^()]*)*)\)"
)
_LISP_EACH = re.compile(
    r"(?:#?'|\((?:quote|function) )delete-(?:file|directory)\b|\(dolist\b.*\(delete-", re.S
)
_LISP_WRITES = re.compile(
    r'\((?:with-temp-file|write-file)\s+"([^"]+)"|'
    r'\(append-to-file\s+(?:"(?:[^"\\]|\\.)*"|\S+)\s+\S+\s+"([^"]+)"|'
    r'\((?:copy-file|rename-file|make-symbolic-link)\s+"[^"]*"\s+"([^"]+)"'
)
_LISP_FETCHES = re.compile(
    r"\(url-(?:retrieve|insert|copy-file)|\(base64-decode|\(request\b|\(plz\b|"
    r"\((?:load|load-file|find-file|insert-file-contents)\s+\"https?://|\b(?:curl|wget)\b[^)]*https?:"
)
_LISP_EVALUATES = re.compile(r"\((?:eval|load|byte-compile)(?:-[a-z-]+)?[\s)]")
_LISP_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LISP_SHELLS = ("shell-command", "call-process-shell", "async-shell", "eshell")


def _editor(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, word in enumerate(words):
        text = word.text
        if text in ("-c", "--cmd", "-S", "-sc", "-esc", "-Esc") and index + 1 < len(words):
            _ex(words[index + 1].text, command, judge)
        elif text.startswith("+") and len(text) > 1:
            _ex(text[1:], command, judge)
    if command.stdin is not None and (command.name in ("ed", "ex") or command.has("-s", "-es")):
        if command.stdin.text is not None:
            for line in command.stdin.text.splitlines():
                _ex(line, command, judge)
        elif command.stdin.tags & {NETWORK, DECODED, UNKNOWN}:
            judge.blame("remote-code.unknown-input", command)
    return None


def _ex(text: str, command: Command, judge: Judge) -> None:
    for line in text.split("|") if "!" not in text else [text]:
        if _EX_NOTHING.match(line):
            judge.blame("delete.emptied", command)
        if "delete" in line or "writefile" in line or "vim." in line:
            _functions(line, command, judge)
        found = _EX_SHELL.match(line)
        if found:
            _shell(found.group(1).rstrip("\"'"), command, judge)
        for call in _EX_SYSTEM.finditer(line):
            _shell(call.group(1), command, judge)
        written = _EX_WRITE.match(line)
        if written:
            _write(written.group(1), command, judge)
        language = _EX_LANGUAGE.match(line)
        if language:
            _language(language.group(1), language.group(2), command, judge)


def _language(name: str, text: str, command: Command, judge: Judge) -> None:
    if name.startswith("py"):
        from hermes.safety.shell.code.python_calls import judge_source

        judge_source(text, command, judge)
    else:
        from hermes.safety.shell.code.scripts import judge_script

        judge_script(text, command, judge, name)


def _functions(line: str, command: Command, judge: Judge) -> None:
    """What the functions of vim itself delete or write."""
    listed = "glob(" in line or "readdir(" in line or "v:val" in line
    for found in _EX_DELETE.finditer(line):
        # Without flags one file, with them a folder and all that is in it.
        _delete(found.group(1), command, judge, recursive=bool(found.group(2)), listed=listed)
    for found in _EX_LUA_DELETE.finditer(line):
        recursive = "recursive" in found.group(2)
        _delete(found.group(1), command, judge, recursive=recursive, listed=listed)
    for found in _EX_WRITEFILE.finditer(line):
        _write(_constant(found.group(2)), command, judge)
        if found.group(1).strip("[] '\"") == "":
            judge.blame("delete.emptied", command)


def _constant(text: str) -> str:
    found = _EX_CONSTANT.match(text.strip())
    return found.group(1) if found else HOLE


def _delete(
    text: str, command: Command, judge: Judge, *, recursive: bool, listed: bool = False
) -> None:
    word = literal(expand_home(_constant(text), command.scope), command)
    word.glob = "*" in word.text
    rule = kind_of_delete([word], command.scope, recursive=recursive, found=listed)
    if rule:
        judge.blame(rule, command)
    judge_write(word, command.text, command.scope, judge)


def _emacs(command: Command, judge: Judge) -> Stream | None:
    for word in command.words[1:]:
        if "(" in word.text:
            if _LISP_FETCHES.search(word.text) and _LISP_EVALUATES.search(word.text):
                judge.blame("remote-code.pipe", command)
            if _LISP_EACH.search(word.text):
                judge.blame("delete.each", command)
            for paths in _LISP_WRITES.findall(word.text):
                _write("".join(paths), command, judge)
            for found in _LISP_CALL.finditer(word.text):
                _lisp(found.group(1), found.group(2), command, judge)
    return None


def _lisp(name: str, rest: str, command: Command, judge: Judge) -> None:
    strings = [text.replace('\\"', '"') for text in _LISP_STRING.findall(rest)]
    if "delete" in name:
        recursive = name != "delete-file" and bool(
            re.search(r"\s(?:t|:recursive|'force|'?always|\(quote always\))(?!\w)", rest)
        )
        _delete(f'"{strings[0]}"' if strings else rest, command, judge, recursive=recursive)
    elif name == "write-region":
        _write(strings[-1] if strings else HOLE, command, judge)
    elif name.startswith(_LISP_SHELLS):
        _shell(strings[0] if strings else HOLE, command, judge)
    else:
        words = strings[1:] if name == "start-process" else strings
        run_words([literal(text, command) for text in words], command, judge)


def _write(path: str, command: Command, judge: Judge) -> None:
    word = literal(expand_home(path, command.scope), command)
    judge_write(word, command.text, command.scope, judge)


def _shell(text: str, command: Command, judge: Judge) -> None:
    judge.run_text(text, command.origin.vague(), command.scope.copy())


EDITORS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(
        ("vim", "vi", "nvim", "view", "gvim", "ex", "ed", "vimdiff", "rvim", "lvim"), _editor
    ),
    **dict.fromkeys(("emacs", "emacsclient", "xemacs"), _emacs),
}

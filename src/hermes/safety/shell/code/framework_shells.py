"""Framework shells and task files: code inside an application, recipes of make, just, task and npm
scripts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.code.scripts import judge_script
from hermes.safety.shell.code.sql import judge_statements
from hermes.safety.shell.file_flow import code_at, code_in
from hermes.safety.shell.inner_command import run_words
from hermes.safety.shell.scope import names
from hermes.safety.shell.shells import note_stream
from hermes.safety.shell.stream import ANYTHING, NETWORK, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.word_builder import Word


_SQL = "sql"
_OPTIONS = names("-c --command -e --eval --execute --code -r")
# Program, its subcommands, and what they read.
_TABLE = (
    ("manage.py manage django-admin", "shell shell_plus", "python"),
    ("manage.py manage django-admin rails drush drupal", "dbshell dbconsole db sql:cli sqlc", _SQL),
    ("flask quart", "shell", "python"),
    ("rails hanami spree", "console c runner r", "ruby"),
    ("artisan", "tinker", "php"),
    ("wp drush craft", "eval shell php:eval php-eval ev php exec php:cli", "php"),
    ("wp drush", "query sql:query sqlq sql-query", _SQL),
    ("console artisan", "dbal:run-sql doctrine:query:sql doctrine:query:dql run-sql", _SQL),
    ("prisma", "execute", _SQL),
)
_INTERACTIVE = {
    "iex": "elixir",
    "irb": "ruby",
    "pry": "ruby",
    "psysh": "php",
    "console": "ruby",
    "bpython": "python",
    "ptpython": "python",
}
_SUBCOMMANDS: dict[str, dict[str, str]] = {}
for _programs, _subs, _language in _TABLE:
    for _program in _programs.split():
        _SUBCOMMANDS.setdefault(_program, {}).update(dict.fromkeys(_subs.split(), _language))
# Files that an interpreter is given and that are programs of their own.
FRONTS = names("manage.py artisan console craft please drush wp occ spark yii magento flask rails")


def run_application(command: Command, judge: Judge) -> Stream | None:
    """Judge the code that a framework's tool is given to run."""
    language = _INTERACTIVE.get(command.name, "")
    given: list[Word] = []
    subs = _SUBCOMMANDS.get(command.name, {})
    operands = command.operands
    for index, word in enumerate(operands[:3]):
        if word.text in subs:
            language = subs[word.text]
            given = operands[index + 1 : index + 2]
            break
    if not language:
        return None
    words = command.words
    for index, word in enumerate(words):
        option, equals, value = word.text.partition("=")
        if option in _OPTIONS:
            given.append(
                word.part(value) if equals else (words[index + 1 : index + 2] or [word])[0]
            )
    given = [word for word in given if word.text not in ("-", "/dev/stdin")]
    for word in given:
        _judge(word.text, language, command, judge)
    stdin = command.stdin
    if stdin is not None and not given:
        note_stream(stdin, command, judge)
        if stdin.text is not None:
            _judge(stdin.text, language, command, judge)
    return None


def _judge(text: str, language: str, command: Command, judge: Judge) -> None:
    if language == _SQL:
        judge_statements(text, command, judge)
    elif language == "python":
        from hermes.safety.shell.code.python_calls import judge_source

        judge_source(text, command, judge)
    else:
        judge_script(text, command, judge, language)


APPLICATIONS: dict[str, Callable[[Command, Judge], Stream | None]] = dict.fromkeys(
    [*_SUBCOMMANDS, *_INTERACTIVE], run_application
)


_SHELL_CALL = re.compile(r"\$\(shell ([^)]*)\)")
_DEFINED = re.compile(r"^\s*(?:export\s+)?(\w+)\s*(?::|\?|\+|::)?=\s*(.*)$")
_USED = re.compile(r"\$[({](\w+)[)}]|\{\{\s*\.?(\w+)\s*\}\}")
_STDIN = ("-", "/dev/stdin", "/dev/fd/0")
_STEPS_OF_A_LINE = 4
_TASK_LINE = re.compile(
    r"^\s*(?:-\s+)?(?:(?:cmd|sh|run|script|command)\s*:\s*)?[|>]?-?\s*(.+?)\s*$"
)
_YAML_KEY = re.compile(r"^\s*[\w-]+\s*:\s*$")


def _run(line: str, command: Command, judge: Judge) -> None:
    line = line.strip().lstrip("@-+ ").replace("$$", "$")
    if line and judge.step(_STEPS_OF_A_LINE):
        judge.run_text(line, command.origin.vague(), command.scope.copy())


def _fill(line: str, defined: dict[str, str]) -> str:
    return _USED.sub(
        lambda found: defined.get(found.group(1) or found.group(2), found.group()), line
    )


def _make_lines(text: str) -> list[str]:
    """The recipes of a makefile: what a tab starts, or what follows the `;` of a rule."""
    defined: dict[str, str] = {}
    lines = []
    for line in text.replace("\\\n", " ").splitlines():
        found = _DEFINED.match(line) if not line.startswith("\t") else None
        if found:
            defined[found.group(1)] = found.group(2)
            lines += _SHELL_CALL.findall(found.group(2))
            continue
        recipe = line if line.startswith("\t") else line.partition(";")[2]
        lines.append(_fill(recipe, defined))
        lines += _SHELL_CALL.findall(line)
    return lines


def _just_lines(text: str) -> list[str]:
    defined = dict(re.findall(r"^(\w+)\s*:=\s*['\"]?([^'\"\n]*)", text, re.M))
    return [_fill(line, defined) for line in text.splitlines() if line[:1] in (" ", "\t")]


def _task_lines(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        found = _TASK_LINE.match(line)
        if found and not _YAML_KEY.match(line):
            lines.append(found.group(1).strip("'\""))
    return [line for line in lines if not re.match(r"[\w-]+:\s", line)]


def _npm_lines(text: str) -> list[str]:
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return []
    return [line for line in scripts.values() if isinstance(line, str)]


def _known(
    command: Command, judge: Judge, names: tuple[str, ...], options: tuple[str, ...]
) -> list[str]:
    """The texts of the task files that a command names, or takes by their usual names."""
    written: list[Stream | None] = []
    words = command.words
    given = [words[at + 1] for at, word in enumerate(words[:-1]) if word.text in options]
    given += [w.part(w.text.partition("=")[2]) for w in words if w.text.split("=")[0] in options]
    streams: list[Stream | None] = []
    for word in given:
        if word.text in _STDIN:
            streams.append(command.stdin)
        elif word.process is not None:
            streams.append(word.process)
        else:
            written.append(code_in(word, command.scope))
    for stream in streams:
        if stream is not None and (stream.text is None or NETWORK in stream.tags):
            judge.blame("remote-code.unknown-input", command)
    if not given:
        written += [code_at(name, command.scope) for name in names]
    return [known.text for known in (*written, *streams) if known is not None and known.text]


def _make(command: Command, judge: Judge) -> Stream | None:
    for value in command.values("--eval", "-E"):
        for line in re.split(r"[\n;]", value.text):
            head, colon, tail = line.partition(":")
            recipe = tail if colon and "=" not in head else line
            for found in _SHELL_CALL.findall(recipe):
                _run(found, command, judge)
            if "$(shell" not in recipe:
                _run(recipe, command, judge)
    for word in command.operands:
        for found in _SHELL_CALL.findall(word.text):
            _run(found, command, judge)
        name, equals, program = word.text.partition("=")
        if equals and name in ("SHELL", "CC", "MAKE"):
            _run(program, command, judge)
    usual = ("Makefile", "makefile", "GNUmakefile")
    for text in _known(command, judge, usual, ("-f", "--file", "--makefile")):
        for line in _make_lines(text):
            _run(line, command, judge)
    if command.scope.elevated:
        judge.blame("system.elevated-script", command)
    return ANYTHING


def _just(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, word in enumerate(words):
        if word.text in ("-c", "--command"):
            return run_words(words[index + 1 :], command, judge)
    for text in _known(command, judge, ("justfile", "Justfile"), ("-f", "--justfile")):
        for line in _just_lines(text):
            _run(line, command, judge)
    return None


def _task(command: Command, judge: Judge) -> Stream | None:
    usual = ("Taskfile.yml", "Taskfile.yaml")
    for text in _known(command, judge, usual, ("-t", "--taskfile")):
        for line in _task_lines(text):
            _run(line, command, judge)
    return None


def judge_npm_scripts(command: Command, judge: Judge) -> None:
    """Judge the scripts of a `package.json` that this very text has written."""
    known = code_at("package.json", command.scope)
    for line in _npm_lines((known.text or "") if known is not None else ""):
        _run(line, command, judge)


RECIPES: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
    "just": _just,
    **dict.fromkeys(("task", "go-task"), _task),
}

"""Shells of frameworks: code that runs inside an application, or SQL for its database.

`rails console`, `manage.py shell`, `artisan tinker` and their like are interpreters with the
application's models at hand; each takes code as an argument, by an option or through a pipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.scripts import judge_script
from hermes.safety.shell.interpreters.sql import judge_statements
from hermes.safety.shell.shells import note_stream
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.stream import Stream
    from hermes.safety.shell.word_building import Word

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
        from hermes.safety.shell.interpreters.python_source import judge_source

        judge_source(text, command, judge)
    else:
        judge_script(text, command, judge, language)


APPLICATIONS: dict[str, Callable[[Command, Judge], Stream | None]] = dict.fromkeys(
    [*_SUBCOMMANDS, *_INTERACTIVE], run_application
)

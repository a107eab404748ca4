"""The programs that run SQL or a language like it, and where each of them takes it from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.sql import judge_statements
from hermes.safety.shell.script_files import source_of
from hermes.safety.shell.stream import ANYTHING, NETWORK, Stream
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.word_building import Word

_READ = re.compile(r"^\s*(?:\.read|\\i|source)\s+(\S+)", re.M)


def _database(
    options: str, *, operands: int | None = None
) -> Callable[[Command, Judge], Stream | None]:
    """A database shell: SQL comes by these options, as operands from some position, or by pipe."""
    given_by = tuple(options.split())

    def run(command: Command, judge: Judge) -> Stream | None:
        given: list[Word] = []
        words = command.words
        for index, word in enumerate(words[1:], 1):
            for name in given_by:
                if word.text == name or _ends_cluster(word.text, name):
                    given.extend(words[index + 1 : index + 2])
                elif word.text.startswith(name + "=") or (
                    len(name) == 2 and word.text.startswith(name)
                ):
                    given.append(word.part(word.text[len(name) :].lstrip("=")))
        if operands is not None:
            given.extend(command.operands[operands:])
        for word in given:
            _text(word.text, command, judge)
        for path in _files(command):
            source = source_of(path, command)
            if source is not None:
                _text(source, command, judge)
        if command.stdin is not None:
            if command.stdin.text is not None:
                _text(command.stdin.text, command, judge)
            elif not given and NETWORK in command.stdin.tags:
                judge.blame("remote-code.pipe", command)
        return None

    return run


def _files(command: Command) -> list[str]:
    """The script files that a database shell would read its statements from."""
    given = [word.text for word in command.values("-f", "--file", "-i", "--input-file", "-init")]
    for word in command.operands:
        given += _READ.findall(word.text)
    if command.stdin is not None and command.stdin.path:
        given.append(command.stdin.path)
    return given


def _ends_cluster(text: str, name: str) -> bool:
    """Whether an option such as `-c` closes a cluster of letters, as in `-Atc`."""
    return len(name) == 2 and re.fullmatch(r"-[A-Za-z]+", text) is not None and text[-1] == name[1]


_MONGO = re.compile(
    r"\._?dropDatabase\s*\(|\.drop\s*\(|\.dropUser\s*\(|\.(?:deleteMany|remove|"
    r"deleteOne)\s*\(\s*(?:\{\s*\})?\s*\)"
    r"|\.updateMany\s*\(\s*\{\s*\}|\.dropIndexes\s*\(|\.shutdownServer\s*\("
)
_REDIS = re.compile(
    r"^\s*(?:FLUSHALL|FLUSHDB|SHUTDOWN|CONFIG\s+SET|SLAVEOF|REPLICAOF|MODULE\s+LOAD|DEBUG|"
    r"UNLINK\s+\S*\*|SCRIPT\s+FLUSH)"
    r"\b|redis\.p?call\(\s*[\"'](?:flushall|flushdb|shutdown|config)\b",
    re.I | re.M,
)


_MEMCACHED = re.compile(r"^\s*(?:flush_all|shutdown)\b|^DELETE /\S* HTTP/", re.M)


def _text(text: str, command: Command, judge: Judge) -> None:
    if command.name in ("mongo", "mongosh", "arangosh"):
        if _MONGO.search(text):
            judge.blame("database.drop", command)
    elif command.name in ("redis-cli", "valkey-cli"):
        if _REDIS.search(text):
            judge.blame("database.drop", command)
    else:
        judge_statements(text, command, judge)


def _redis(command: Command, judge: Judge) -> Stream | None:
    line = " ".join(word.text for word in command.operands)
    if not line and command.stdin is not None:
        line = command.stdin.text or ""
    if _REDIS.search(line):
        judge.blame("database.drop", command)
    words = line.split()
    if command.found and words[:1] and words[0].lower() in ("del", "unlink"):
        judge.blame("database.empty", command)
    return ANYTHING


def _socket(command: Command, judge: Judge) -> Stream | None:
    """A bare connection: the text that is sent is what the service at its end obeys."""
    text = command.stdin.text if command.stdin is not None else None
    if text and (_REDIS.search(text) or _MEMCACHED.search(text)):
        judge.blame("database.drop", command)
    return None


DATABASES: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "psql": _database("-c --command"),
    "pgcli": _database("-c --command"),
    "mysql": _database("-e --execute"),
    "mariadb": _database("-e --execute"),
    "mycli": _database("-e --execute"),
    "sqlite3": _database("-cmd", operands=1),
    "sqlite": _database("-cmd", operands=1),
    "litecli": _database("-e --execute"),
    "duckdb": _database("-c -s -cmd", operands=1),
    "sqlcmd": _database("-Q -q"),
    "bq": _database("--query", operands=1),
    "cockroach": _database("-e --execute"),
    "clickhouse-client": _database("-q --query"),
    "clickhouse": _database("-q --query"),
    "cqlsh": _database("-e --execute"),
    "usql": _database("-c --command"),
    "snowsql": _database("-q --query"),
    "mongo": _database("--eval"),
    "mongosh": _database("--eval"),
    "arangosh": _database("--javascript.execute-string"),
    **dict.fromkeys(
        names(
            "sqlplus sql isql tsql osql bteq beeline hive impala-shell presto trino spark-sql vsql "
            "ysqlsh edgedb gel surreal cypher-shell ksql questdb mssql-cli mclient exaplus hdbsql "
            "db2 nuosql fbsql firebird spanner-cli athenacli steampipe"
        ),
        _database("-e -q -c -Q --query --execute --command --eval --sql", operands=0),
    ),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet"), _socket),
    "redis-cli": _redis,
    "valkey-cli": _redis,
    "turso": _database("", operands=3),
    "wrangler": _database("--command"),
}

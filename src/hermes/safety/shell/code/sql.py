"""SQL and its relatives, by statement; the programs that run it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import literal
from hermes.safety.shell.path_classes import lies_outside
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import ANYTHING, NETWORK, Stream, names
from hermes.safety.shell.script_files import source_of
from hermes.safety.shell.verdict import INSIDE, OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word


_TOKEN = re.compile(
    r"/\*!\d*|\*/|/\*.*?\*/|--[^\n]*|#[^\n]*|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|"
    r"\[[^\]\n]*\]|"
    r"\$(\w*)\$.*?\$\1\$|[A-Za-z_\ue000\ue001][\w.\ue000\ue001$]*|\d+(?:\.\d+)?|<>|!=|<=|>=|\S",
    re.S,
)
_META = re.compile(r"^[ \t]*+(?:\\!|\.(?:shell|system)\b|system\b|!)\s*(.+)$", re.M)
_DROPPED = names(
    "TABLE DATABASE SCHEMA COLLECTION KEYSPACE TABLESPACE VIEW MATERIALIZED INDEX USER ROLE "
    "SEQUENCE TYPE "
    "EXTENSION FUNCTION PROCEDURE TRIGGER OWNED COLUMN CONSTRAINT PARTITION STREAM TABLES "
    "TEMPORARY FOREIGN "
    "BUCKET SERVER LOGIN CATALOG DICTIONARY"
)


# The database is a file, which undo covers in the workspace.
_FILE_DATABASES = names("sqlite3 sqlite litecli duckdb")


def judge_statements(text: str, command: Command, judge: Judge) -> None:
    """Report statements that drop, empty or rewrite whole tables, or leave the database."""
    for match in _META.finditer(text):
        if (
            text.lstrip().startswith(("\\", ".", "system", "!"))
            or match.group().lstrip()[:1] in "\\."
        ):
            judge.run_text(match.group(1), command.origin.vague(), command.scope.copy())
    kind = None
    if command.name in _FILE_DATABASES:
        outside = any(lies_outside(word, command.scope) for word in command.operands[:1])
        kind = OUTSIDE if outside else INSIDE
    for statement in _statements(text):
        rule = kind_of_statement(statement)
        if rule:
            judge.blame(rule, command, kind)
        _judge_escapes(statement, command, judge)


def _statements(text: str) -> list[list[str]]:
    result: list[list[str]] = [[]]
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == ";":
            result.append([])
        elif token.startswith("/*!") or (
            token == "*/" or token.startswith(("/*", "--")) or (token[0] == "#" and len(token) > 1)
        ):
            continue
        elif token[0] == "$" and len(token) > 4 and token.endswith("$"):
            # The body of a DO block or function is SQL again.
            result.extend(_statements(token.strip("$")))
        else:
            result[-1].append(token)
    return [statement for statement in result if statement]


_STARTS = names("AS ( ) BEGIN THEN ANALYZE DO LOOP ELSE")


def kind_of_statement(tokens: list[str]) -> str | None:
    """The rule that one statement meets."""
    words = [token.upper() for token in tokens]
    if words[0] in ("EXPLAIN", "DESCRIBE", "DESC") and "ANALYZE" not in words:
        return None
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        starts = index == 0 or words[index - 1] in _STARTS
        if word == "DROP" and (following in _DROPPED or words[0] == "ALTER"):
            return "database.drop"
        if word == "REMOVE" and not index and following in _DROPPED | {"NAMESPACE"}:
            return "database.drop"
        # A graph without a condition: all of its nodes.
        if word == "DELETE" and "MATCH" in words[:index] and "WHERE" not in words:
            return "database.empty"
        if word == "PG_TERMINATE_BACKEND" and "FROM" in words:
            return "process.kill-all"
        if word == "TRUNCATE" and starts and following != "(":
            return "database.empty"
        if (
            word == "DELETE"
            and starts
            and (following == "FROM" or index == 0)
            and not _limited(words[index:])
        ):
            return "database.empty"
        altered = word in ("DELETE", "UPDATE") and words[:2] == ["ALTER", "TABLE"]
        if altered and not _limited(words[index:]):
            return "database.empty"
        if word == "UPDATE" and starts and "SET" in words[index:] and not _limited(words[index:]):
            return "database.rewrite"
    return None


def _limited(words: list[str]) -> bool:
    """Whether a statement has a WHERE that really chooses rows."""
    if "WHERE" not in words:
        # DELETE … USING or LIMIT without WHERE still takes rows nobody chose.
        return False
    condition = words[words.index("WHERE") + 1 :]
    for stop in ("RETURNING", "ORDER", "LIMIT"):
        if stop in condition:
            condition = condition[: condition.index(stop)]
    condition = [word for word in condition if word not in ("(", ")")]
    parts: list[list[str]] = [[]]
    for word in condition:
        if word == "OR":
            parts.append([])
        else:
            parts[-1].append(word)
    return not any(_always(part) for part in parts)


def _always(words: list[str]) -> bool:
    """Whether a condition holds for every row: `1=1`, `true`, `id = id`, `NOT false`."""
    terms: list[list[str]] = [[]]
    for word in words:
        if word == "AND":
            terms.append([])
        else:
            terms[-1].append(word)
    return all(_true(term) for term in terms)


def _true(term: list[str]) -> bool:
    if not term:
        return True
    if len(term) == 1:
        return term[0] == "TRUE" or (term[0].isdigit() and term[0] != "0")
    if term[0] == "NOT":
        return term[1:] in (["FALSE"], ["0"])
    if len(term) == 3 and term[1] in ("=", "<=", ">=", "LIKE", "IS"):
        return term[0] == term[2] or (term[1] == "LIKE" and term[2] == "'%'")
    if len(term) == 4 and term[1:3] == ["=", "="]:
        return term[0] == term[3]
    if len(term) == 3 and term[1] in ("<>", "!=", "<", ">"):
        return _constant(term[0]) and _constant(term[2]) and term[0] != term[2]
    return term[1:] == ["IS", "NOT", "NULL"] and term[0] in ("ID", "ROWID", "1")


def _constant(text: str) -> bool:
    return text[:1] == "'" or text.isdigit()


def _judge_escapes(tokens: list[str], command: Command, judge: Judge) -> None:
    words = [token.upper() for token in tokens]
    for index, word in enumerate(words[:-1]):
        value = tokens[index + 1].strip("'\"")
        if word == "PROGRAM" and "COPY" in words:
            judge.run_text(value, command.origin.vague(), command.scope.copy())
        elif word in ("OUTFILE", "DUMPFILE") or (
            word == "TO" and words[0] == "COPY" and tokens[index + 1].startswith("'")
        ):
            judge_write(literal(value, command), command.text, command.scope, judge)
        elif "XP_CMDSHELL" in word or (word == "SYS_EVAL"):
            judge.blame("remote-code.unknown-input", command)


_READ = re.compile(r"^[ \t]*+(?:\.read|\\i|source)\s+(\S+)", re.M)


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
    r"^[ \t]*+(?:FLUSHALL|FLUSHDB|SHUTDOWN|CONFIG\s+SET|SLAVEOF|REPLICAOF|MODULE\s+LOAD|DEBUG|"
    r"UNLINK\s+\S*\*|SCRIPT\s+FLUSH)"
    r"\b|redis\.p?call\(\s*[\"'](?:flushall|flushdb|shutdown|config)\b",
    re.I | re.M,
)


_MEMCACHED = re.compile(r"^[ \t]*+(?:flush_all|shutdown)\b|^DELETE /\S* HTTP/", re.M)


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

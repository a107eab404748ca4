"""SQL and its relatives, by statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.opening import literal
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

_TOKEN = re.compile(
    r"/\*!\d*|\*/|/\*.*?\*/|--[^\n]*|#[^\n]*|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|"
    r"\[[^\]\n]*\]|"
    r"\$(\w*)\$.*?\$\1\$|[A-Za-z_\ue000\ue001][\w.\ue000\ue001$]*|\d+(?:\.\d+)?|<>|!=|<=|>=|\S",
    re.S,
)
_META = re.compile(r"^\s*(?:\\!|\.(?:shell|system)\b|system\b|!)\s*(.+)$", re.M)
_DROPPED = names(
    "TABLE DATABASE SCHEMA COLLECTION KEYSPACE TABLESPACE VIEW MATERIALIZED INDEX USER ROLE "
    "SEQUENCE TYPE "
    "EXTENSION FUNCTION PROCEDURE TRIGGER OWNED COLUMN CONSTRAINT PARTITION STREAM TABLES "
    "TEMPORARY FOREIGN "
    "BUCKET SERVER LOGIN CATALOG DICTIONARY"
)


def judge_statements(text: str, command: Command, judge: Judge) -> None:
    """Report statements that drop, empty or rewrite whole tables, or leave the database."""
    for found in _META.finditer(text):
        if (
            text.lstrip().startswith(("\\", ".", "system", "!"))
            or found.group().lstrip()[:1] in "\\."
        ):
            judge.run_text(found.group(1), command.origin.vague(), command.scope.copy())
    for statement in _statements(text):
        rule = kind_of_statement(statement)
        if rule:
            judge.blame(rule, command)
        _judge_escapes(statement, command, judge)


def _statements(text: str) -> list[list[str]]:
    result: list[list[str]] = [[]]
    for found in _TOKEN.finditer(text):
        token = found.group()
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


def kind_of_statement(tokens: list[str]) -> str | None:
    """The rule that one statement meets."""
    words = [token.upper() for token in tokens]
    if words[0] in ("EXPLAIN", "DESCRIBE", "DESC") and "ANALYZE" not in words:
        return None
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        starts = index == 0 or words[index - 1] in (
            "AS",
            "(",
            ")",
            "BEGIN",
            "THEN",
            "ANALYZE",
            "DO",
            "LOOP",
            "ELSE",
        )
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

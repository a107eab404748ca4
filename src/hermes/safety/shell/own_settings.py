"""Edits of Hermes' own configuration: which keys a script visibly changes.

The file holds the model's name next to the approvals. A change of the first is a question, a
change of the second is refused; so is whatever can't be read for certain.
"""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

# Whatever says what may happen, who is asked, and whose code is loaded.
_GATE = re.compile(
    r"approv|permission|safety|allow|deny|trust|gate|polic|yolo|secur|sandbox|profile|mode(?!l)|"
    r"hook|plugin|mcp|redact|audit|smart|include|import|enabled|disabled|network|terminal|hosts|"
    r"osv|<<|[*&]\w|!",
    re.I,
)
_GATE_KEYS = names(
    "approvals permissions permission mode profile smart command_allowlist allowlist allow deny "
    "trust policy safety security sandbox yolo hooks plugins mcp mcp_servers audit redaction "
    "enabled disabled network terminal allow_private allow_hosts deny_hosts osv"
)
_IN_PLACE = names(
    "put set delete del merge edit update replace unset append -i -I --in-place --inplace inplace "
    "-w --write --fix --overwrite --set"
)
_KEY = r"[A-Za-z_][\w.-]*"
# One substitution that names its key on both sides: `s/^model: .*/model: x/`.
_SUBSTITUTION = re.compile(
    r"\s*(?:\d+)?s(?P<sign>[/|#,@~])(?P<anchor>\^?)"
    r"(?P<lead>(?:\(?(?:\\s|\[\[:space:\]\]|[ ])[*+]?\)?|"
    r"\\\(\s*\*\\\))*)(?P<key>"
    + _KEY
    + r")(?P<rest>:(?:(?!(?P=sign))[^\\\n]|\\[.s/\"'])*)(?P=sign)"
    r"(?:\\1|[ ])*(?P<new>"
    + _KEY
    + r"):(?:(?!(?P=sign))[^\\\n\"'{\[]|\"[^\"\\\n]*\"|'[^'\n]*'|\\/)*"
    r"(?P=sign)[gI1-9]*\s*(?:;|\Z)"
)
# One line of a key taken out: `/^theme:/d`.
_TAKEN_OUT = re.compile(r"\s*/\^\s*(?P<key>" + _KEY + r"):(?:[^/\\\n]|\\.)*/d\s*(?:;|\Z)")
_PATH = re.compile(
    r"\s*\.(?P<key>" + _KEY + r")\s*\|?=\s*"
    r"(?:\"[^\"\\]*\"|-?[\w.]+|(?:str)?env\(\s*\w+\s*\))\s*(?:\||\Z)"
)
_DELETED = re.compile(r"\s*del\(\s*\.(?P<key>" + _KEY + r")\s*\)\s*(?:\||\Z)")


def is_settings(path: str) -> bool:
    """Whether a file of Hermes' holds more than what it may do."""
    return posixpath.basename(path) in ("config.yaml", "config.yml")


def edits_other_keys(command: Command) -> bool:
    """Whether an edit in place names each key that it changes, and none is about the gate."""
    name = command.name
    if not all(word.known for word in command.words):
        return False
    if name in ("sed", "gsed"):
        # What is printed no more is lost, and what stands in a file can't be seen.
        if any(flag.startswith(("-f", "--file", "-s", "-n", "--q")) for flag in command.flags):
            return False
        scripts = [word.text for word in command.values("-e", "--expression")]
        scripts = scripts or _script(command)
        return _names_keys(scripts, (_SUBSTITUTION, _TAKEN_OUT))
    if name == "perl":
        scripts = [text for flag, text in _pairs(command) if flag.endswith("e")]
        return _names_keys(scripts, (_SUBSTITUTION,)) and not any(
            flag.startswith(("-M", "-m")) for flag in command.args
        )
    if name == "yq":
        return _names_keys(_script(command), (_PATH, _DELETED))
    return False


def edits_in_place(command: Command) -> bool:
    """Whether a program that nobody here knows says that it changes the files it is given."""
    return not _IN_PLACE.isdisjoint(command.args)


def _script(command: Command) -> list[str]:
    texts = [word.text for word in command.operands]
    return texts[1:2] if texts[:1] in (["eval"], ["e"], [""]) else texts[:1]


def _pairs(command: Command) -> list[tuple[str, str]]:
    args = command.args
    return [
        (flag, text)
        for flag, text in pairwise(args)
        if flag.startswith("-") and not flag.startswith("--")
    ]


def _names_keys(scripts: list[str], forms: tuple[re.Pattern[str], ...]) -> bool:
    if not scripts:
        return False
    for script in scripts:
        at = 0
        while at < len(script):
            found = next((m for form in forms if (m := form.match(script, at))), None)
            if found is None or found.end() == at or not _is_other(found):
                return False
            at = found.end()
    return True


def _is_other(found: re.Match[str]) -> bool:
    groups = found.groupdict()
    key = groups["key"]
    if _GATE.search(re.sub(r"\.\*|\[\^[^\]]*\]\*|\[\[:space:\]\]\*?", "", found.group())):
        return False
    if groups.get("new") not in (None, key):
        return False
    # Unanchored, a key also fits the end of a longer one.
    anchored = groups.get("anchor", "^") == "^"
    return anchored or not any(gate.endswith(key) for gate in _GATE_KEYS)

"""Requests that delete something, however their client spells the method."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_METHOD = re.compile(
    r"--?(?:X|request|(?:http-)?method|verb)(?:[=:]|\Z)|-[a-zA-Z]*X(?:delete\Z|\Z)", re.I
)
_CLIENTS = names("http https xh xhs httpie curlie ht hurl restish curl-impersonate")
_INDEX = re.compile(
    r":(?:9200|9201|5984|8983|6333|8086|2379)/[^/]*/?(?:\?.*)?\Z|:6443/|/api/v1/namespaces/"
)
_NEAR = re.compile(
    r"(?:https?://)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|host\.docker\.internal|"
    r"[\w-]+\.(?:local|localhost|test))?(?::\d+)?(?:/|\Z)"
)
_DELETING_PATH = re.compile(
    r"_delete_by_query|/delete[-_]?(?:series|all)\b|/(?:truncate|flushall)\b"
)
_REF = re.compile(r"git/refs?/|/branches/|force[-_]?(?:push|update)", re.I)
_FORCED = re.compile(r"force[\"']?\s*[=:]\s*[\"']?true", re.I)
_MUTATION = re.compile(r"mutation\b.*\b(?:delete|remove|archive|destroy|purge)[A-Z]\w*", re.S)


def _method(command: Command) -> str:
    """The method of a request, however its client spells that."""
    words = command.args
    for index, text in enumerate(words):
        if not text.startswith("-"):
            continue
        if not _METHOD.match(text):
            continue
        if text.lower().endswith("xdelete"):
            return "DELETE"
        _, sign, value = text.partition("=" if "=" in text else ":")
        return (value if sign else "".join(words[index + 1 : index + 2])).upper()
    if command.name in _CLIENTS:
        return next((word.text.upper() for word in command.operands if word.text.isalpha()), "")
    return ""


def deletes_by_request(command: Command) -> bool:
    """Whether a remote service is asked to delete something, or to overwrite a branch."""
    args = command.args
    if command.name in ("gh", "glab", "curl", "xh", "http") and any(
        _MUTATION.search(arg) for arg in args
    ):
        return True
    if any(_DELETING_PATH.search(arg) and "/" in arg and ":" in arg for arg in args):
        return True
    method = _method(command)
    if method in ("PATCH", "PUT", "POST"):
        line = " ".join(args)
        return bool(_REF.search(line) and _FORCED.search(line))
    if method != "DELETE":
        return False
    addresses = [
        arg for arg in args if not arg.startswith("-") and ("/" in arg or ":" in arg or "." in arg)
    ]
    if command.args[:1] in (["api"], ["rest"], ["raw-request"]):
        return True
    # Search engines and clusters keep much behind one short path, wherever they run.
    if any(_INDEX.search(address) for address in addresses):
        return True
    return not any(_NEAR.match(address) for address in addresses)

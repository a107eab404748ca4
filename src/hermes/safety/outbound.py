"""What carries words away from this machine: sends, posts, pushes, addresses that hold a message.

A conversation that has read what strangers wrote may have been told to send something somewhere.
From then on a person is asked before anything goes out; what only fetches goes on as before.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry

# Characters behind the host of an address, or of a name below a domain, that can hold a message.
_LONG, _LONG_HOST = 120, 60
_URL = re.compile(r"\b(?:https?|ftp|wss?)://(?P<host>[^\s/?#'\"`)\]>]+)(?P<rest>[^\s'\"`>]*)", re.I)
_LOOPBACK = re.compile(r"(?:[^@]*@)?(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?\Z", re.I)
_WITH_DATA = re.compile(
    r"-(?:d|F|T)|--(?:data(?:-\w+)?|json|form(?:-string)?|upload-file|post-(?:data|file)|"
    r"body-(?:data|file)|method=(?!GET|HEAD)\w+|request=(?!GET|HEAD)\w+)(?:=.*)?",
    re.S,
)
_METHOD = re.compile(r"(?:POST|PUT|PATCH|DELETE)\Z", re.I)
_HTTP = frozenset(("curl", "wget", "http", "https", "httpie", "xh", "aria2c"))
_SENDERS = frozenset((
    "mail", "mailx", "mutt", "sendmail", "msmtp", "swaks", "nc", "ncat", "netcat", "socat",
    "telnet", "ftp", "lftp", "tftp", "wscat", "websocat", "nslookup", "dig",
))  # fmt: skip
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!\\|//)|rsync://|s3://|gs://")
_COPIERS = frozenset(("scp", "rsync", "sftp", "rclone"))
# The words after the program that send something, at any place among the first few.
_SENDING = {
    "git": ("push", "send-email", "request-pull"),
    "hg": ("push",),
    "svn": ("commit", "ci"),
    "gh": ("create", "comment", "edit", "upload", "api", "merge", "close", "review", "set"),
    "glab": ("create", "note", "update", "upload", "api", "merge"),
    "npm": ("publish",),
    "pnpm": ("publish",),
    "yarn": ("publish",),
    "cargo": ("publish",),
    "twine": ("upload",),
    "docker": ("push",),
    "podman": ("push",),
    "aws": ("cp", "sync", "mv", "publish", "send-message", "put-object"),
    "gsutil": ("cp", "rsync", "mv"),
    "az": ("upload",),
}


def carried_away(
    entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext
) -> Iterator[str]:
    """Each way in which a call would carry words away, as the end of a sentence."""
    from hermes.safety.acts import acts_of

    for act in acts_of(entry, arguments, context):
        if act.kind == "fetch":
            yield from _of_address(act.value)
        elif act.kind == "execute":
            from hermes.safety.shell.recent import verdict_on

            verdict = verdict_on(act.value, cwd=act.cwd or context.cwd)
            for words in (*verdict.commands, *verdict.inside):
                yield from _of_command(words)


def _of_address(text: str) -> Iterator[str]:
    for found in _URL.finditer(text):
        host = found["host"]
        if not _LOOPBACK.match(host) and (len(found["rest"]) > _LONG or len(host) > _LONG_HOST):
            yield f"it calls an address of {host[-_LONG_HOST:]} that can hold a message"


def _of_command(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    program, rest = os.path.basename(words[0]), words[1:]
    here = [word for word in rest if _URL.match(word)]
    if here and all(_LOOPBACK.match(_URL.match(word)["host"]) for word in here):  # type: ignore[index]
        return
    yield from _of_address(" ".join(words))
    if program in _HTTP and any(_WITH_DATA.match(w) or _METHOD.match(w) for w in rest):
        yield f"{program} sends data"
    elif program in _SENDERS and rest:
        yield f"{program} sends what it is given"
    elif program in _COPIERS and any(_REMOTE.match(word) for word in rest):
        yield f"{program} copies to another machine"
    elif any(word in _SENDING.get(program, ()) for word in rest[:4]):
        yield f"{program} sends to a server"

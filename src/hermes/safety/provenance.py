"""Whose words a conversation has read: its owner's, or those of strangers.

Web pages, the answers of MCP servers, what a command fetched, files from outside of the workspace
and downloads may say anything, and a model that reads them may do as they say. `source_of` names
where such words come from; `Heard` keeps that for each conversation until it ends.
"""

from __future__ import annotations

import os
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING

from hermes.core.home import home_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry

_RIGHTS = ("network:", "web:", "browser:", "mcp:", "email:read", "message:read")
# What came with the system or was put there by its administrator.
_SYSTEM = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/dev",
           "/opt", "/nix/store", "/System", "/Library")  # fmt: skip
_FETCHERS = frozenset((
    "curl", "wget", "http", "https", "httpie", "xh", "aria2c", "axel", "lynx", "w3m", "links",
    "elinks", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "lftp", "tftp", "sftp", "scp",
    "ssh", "gh", "glab", "svn", "yt-dlp", "youtube-dl", "rclone", "wscat", "websocat", "grpcurl",
))  # fmt: skip
_INTERPRETERS = re.compile(r"(?:python|pypy|node|deno|bun|perl|ruby|php|lua|Rscript)[\d.]*\Z")
_URL = re.compile(r"\b(?:https?|ftp|wss?)://([^\s/'\"`)\]>]+)", re.I)
_LOOPBACK = re.compile(r"(?:[^@]*@)?(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?\Z", re.I)
_DOWNLOADS = "downloads"
# In the home folder: what came in past the gate and was reviewed. Large results are not that.
_OURS = ("memories", "skills", "config.yaml")
# So many are named; that there are more changes nothing.
_MOST = 20


class Heard:
    """Where the untrusted words of each conversation came from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: dict[str, list[str]] = {}
        self._keepers: dict[str, Callable[[str], object]] = {}

    def keep(self, session: str, known: Iterable[str], on_new: Callable[[str], object]) -> None:
        """Go on with what a conversation had heard before, and have what is new told."""
        for source in known:
            self.note(session, source)
        self._keepers[session] = on_new

    def note(self, session: str, source: str) -> None:
        """A conversation reads something of that source."""
        with self._lock:
            sources = self._sources.setdefault(session, [])
            if source in sources or len(sources) >= _MOST:
                return
            sources.append(source)
        keeper = self._keepers.get(session)
        if keeper is not None:
            keeper(source)

    def sources(self, context: ToolContext) -> tuple[str, ...]:
        """What the conversation of a call has read."""
        if not self._sources:
            return ()
        return tuple(self._sources.get(conversation_of(context), ()))

    def end(self, session: str) -> None:
        """Forget a conversation that has ended."""
        with self._lock:
            self._sources.pop(session, None)
            self._keepers.pop(session, None)


def conversation_of(context: ToolContext) -> str:
    """What a call's words are heard by: its session, or its task where there is none."""
    return context.session_id or context.task_id


def source_of(
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    places: Mapping[tuple[str, str], str] | None,
    context: ToolContext,
) -> str:
    """Where the words come from that a call brings in; empty when they are nobody else's."""
    acts = entry.acts
    if acts and (callable(acts) or not {"fetch", "execute"}.isdisjoint(acts.values())):
        for source in _of_acts(entry, arguments, context):
            return source
    if said := declared_source(entry):
        return said
    if not places:
        return ""
    for (kind, _), place in places.items():
        if kind == "read" and is_foreign(place, context.workspace):
            return place
    return ""


@lru_cache(maxsize=512)
def declared_source(entry: ToolEntry) -> str:
    """The same, of whatever a tool brings in; empty when that depends on the call."""
    if entry.origin == "mcp":
        return f"{entry.owner or entry.toolset}, an MCP server"
    strangers = entry.untrusted or entry.effect == "network"
    if strangers or any(right.startswith(_RIGHTS) for right in entry.permissions):
        return entry.name
    return ""


def is_foreign(place: str, workspace: str) -> bool:
    """Whether a file may be anybody's: outside of the workspace, or downloaded."""
    # A place has no links in it: a folder that it is below has none either.
    base = workspace if _below(place, workspace) else os.path.realpath(workspace)
    inside = _below(place, base)
    parts = place[len(base) :] if inside else place
    if _DOWNLOADS in parts.casefold().split("/")[:-1]:
        return True
    return not (
        inside
        or any(_below(place, os.path.realpath(home_path(name))) for name in _OURS)
        or any(_below(place, folder) for folder in _SYSTEM)
    )


def _of_acts(entry: ToolEntry, arguments: Mapping[str, Any], context: ToolContext) -> Iterator[str]:
    from hermes.safety.acts import acts_of

    for act in acts_of(entry, arguments, context):
        if act.kind == "fetch":
            yield _shortened(act.value)
        elif act.kind == "execute":
            from hermes.safety.shell.recent import verdict_on

            where = act.cwd or context.cwd
            for words in verdict_on(act.value, cwd=where).commands:
                yield from _of_command(words, where, context.workspace)


def _of_command(words: Sequence[str], cwd: str, workspace: str) -> Iterator[str]:
    if not words:
        return
    program = os.path.basename(words[0])
    line = " ".join(words)
    hosts = _URL.findall(line)
    away = [host for host in hosts if not _LOOPBACK.match(host)]
    if (
        (program in _FETCHERS and (away or not hosts))
        or (program == "git" and "clone" in words[1:4])
        or (away and _INTERPRETERS.match(program))
    ):
        yield _shortened(line)
    for word in words[1:]:
        path = os.path.join(cwd, os.path.expanduser(word))
        # A word without a slash may be a link that leads out.
        if os.path.exists(path) and is_foreign(os.path.realpath(path), workspace):
            yield os.path.realpath(path)


def _below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(os.path.join(folder, ""))


def _shortened(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= 160 else f"{shown[:159]}…"

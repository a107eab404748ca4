"""Taint: untrusted text in a conversation, and the calls it may not trigger unasked (persistence,
sending).
"""

from __future__ import annotations

import os
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.json_text import to_json
from hermes.core.paths import hermes_home, home_path, is_below
from hermes.safety.approvals import call_grant
from hermes.safety.call_effects import effects_of
from hermes.safety.paths import PathRefusedError
from hermes.safety.policy import Ruling
from hermes.safety.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolEntry
    from hermes.core.protocols import CallEffects
    from hermes.safety.shell.verdict import Verdict


_UNTRUSTED_RIGHTS = ("network:", "web:", "browser:", "mcp:", "email:read", "message:read")
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
_REVIEWED = ("memories", "skills", "config.yaml")
# So many are named; that there are more changes nothing.
_MAX_SOURCES = 20


class TaintLog:
    """The untrusted sources of each conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: dict[str, list[str]] = {}
        self._keepers: dict[str, Callable[[str], object]] = {}

    def keep(self, session: str, known: Iterable[str], on_new: Callable[[str], object]) -> None:
        """Restore the sources of a conversation, and report new ones to `on_new`."""
        for source in known:
            self.note(session, source)
        self._keepers[session] = on_new

    def note(self, session: str, source: str) -> None:
        """A conversation reads something of that source."""
        with self._lock:
            sources = self._sources.setdefault(session, [])
            if source in sources or len(sources) >= _MAX_SOURCES:
                return
            sources.append(source)
        keeper = self._keepers.get(session)
        if keeper is not None:
            keeper(source)

    def sources(self, context: ToolContext) -> tuple[str, ...]:
        """The untrusted sources that the conversation of a call has read."""
        if not self._sources:
            return ()
        return tuple(self._sources.get(conversation_key(context), ()))

    def end(self, session: str) -> None:
        """Forget a conversation that has ended."""
        with self._lock:
            self._sources.pop(session, None)
            self._keepers.pop(session, None)


def conversation_key(context: ToolContext) -> str:
    """The conversation of a call: its session, or its task without a session."""
    return context.session_id or context.task_id


def untrusted_source(entry: ToolEntry, ruling: Ruling, context: ToolContext) -> str:
    """The untrusted source of the text that a call brings in; empty when there is none."""
    if ruling.effects is not None:
        for source in _of_effects(ruling.effects, context):
            return source
    if said := declared_source(entry):
        return said
    for (kind, _), place in (ruling.paths or {}).items():
        if kind == "read" and is_untrusted_path(place, context.workspace):
            return place
    return ""


@lru_cache(maxsize=512)
def declared_source(entry: ToolEntry) -> str:
    """The untrusted source of all results of a tool; empty when it depends on the call."""
    if entry.origin == "mcp":
        return f"{entry.owner or entry.toolset}, an MCP server"
    strangers = entry.untrusted or entry.effect == "network"
    if strangers or any(right.startswith(_UNTRUSTED_RIGHTS) for right in entry.permissions):
        return entry.name
    return ""


def is_untrusted_path(place: str, workspace: str) -> bool:
    """Whether a file may be anybody's: outside of the workspace, or downloaded."""
    # A place has no links in it: a folder that it is below has none either.
    base = workspace if is_below(place, workspace) else os.path.realpath(workspace)
    inside = is_below(place, base)
    parts = place[len(base) :] if inside else place
    if _DOWNLOADS in parts.casefold().split("/")[:-1]:
        return True
    return not (
        inside
        or any(is_below(place, os.path.realpath(home_path(name))) for name in _REVIEWED)
        or any(is_below(place, folder) for folder in _SYSTEM)
    )


def _of_effects(effects: CallEffects, context: ToolContext) -> Iterator[str]:
    for act in effects.acts:
        if act.kind == "fetch":
            yield _shortened(act.value)
        elif act.kind == "execute":
            for words in effects.verdict(act).commands:
                yield from _sources_of_words(words, effects.cwd(act), context.workspace)


def _sources_of_words(words: Sequence[str], cwd: str, workspace: str) -> Iterator[str]:
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
        if os.path.exists(path) and is_untrusted_path(os.path.realpath(path), workspace):
            yield os.path.realpath(path)


def _shortened(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= 160 else f"{shown[:159]}…"


# Characters behind the host of an address, or of a name below a domain, that can hold a message.
_MESSAGE_CHARS, _MESSAGE_HOST_CHARS = 120, 60
_URL_WITH_REST = re.compile(
    r"\b(?:https?|ftp|wss?)://(?P<host>[^\s/?#'\"`)\]>]+)(?P<rest>[^\s'\"`>]*)", re.I
)
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


def outbound_effects(effects: CallEffects) -> Iterator[str]:
    """Each way in which a call would carry words away, as the end of a sentence."""
    for act in effects.acts:
        if act.kind == "fetch":
            yield from _outbound_of_url(act.value)
        elif act.kind == "execute":
            verdict = effects.verdict(act)
            for words in (*verdict.commands, *verdict.inside):
                yield from _outbound_of_words(words)


def _outbound_of_url(text: str) -> Iterator[str]:
    for found in _URL_WITH_REST.finditer(text):
        host = found["host"]
        if not _LOOPBACK.match(host) and (
            len(found["rest"]) > _MESSAGE_CHARS or len(host) > _MESSAGE_HOST_CHARS
        ):
            yield f"it calls an address of {host[-_MESSAGE_HOST_CHARS:]} that can hold a message"


def _outbound_of_words(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    program, rest = os.path.basename(words[0]), words[1:]
    here = [word for word in rest if _URL_WITH_REST.match(word)]
    if here and all(_LOOPBACK.match(_URL_WITH_REST.match(word)["host"]) for word in here):  # type: ignore[index]
        return
    yield from _outbound_of_url(" ".join(words))
    if program in _HTTP and any(_WITH_DATA.match(w) or _METHOD.match(w) for w in rest):
        yield f"{program} sends data"
    elif program in _SENDERS and rest:
        yield f"{program} sends what it is given"
    elif program in _COPIERS and any(_REMOTE.match(word) for word in rest):
        yield f"{program} copies to another machine"
    elif any(word in _SENDING.get(program, ()) for word in rest[:4]):
        yield f"{program} sends to a server"


# Names of files that hold secrets, in a folder that is sent as a whole.
_SECRET_FILE = re.compile(
    r"\.env(\.(?!example|sample|template|dist)\w+)?|.*\.(pem|key|p12|pfx|keystore|jks)|id_(rsa|dsa"
    r"|ecdsa|ed25519)|credentials(\.json)?|\.(netrc|npmrc|pypirc|pgpass|htpasswd)",
    re.I,
)
_MOST_READ, _MOST_FILES = 256 * 1024, 2000
_REMOTE_SECTION = re.compile(r'^\[remote "([^"\n]+)"\]|^\s*(?:push)?url\s*=\s*(\S+)', re.M)


def leaving_files(verdict: Verdict, cwd: str) -> Iterator[tuple[str, str]]:
    """Files with secrets that a command sends, and pushes to new remotes: rule and reason."""
    for words in (*verdict.commands, *verdict.inside):
        if not words or not any(_outbound_of_words(words)):
            continue
        program = os.path.basename(words[0])
        if program == "git":
            if "push" in words[1:4] and (remote := _new_remote(words, cwd)):
                yield "git.new-remote", f"it pushes to {remote}, which is no remote of this project"
            continue
        if program in (*_COPIERS, "aws", "gsutil") and not _REMOTE.match(words[-1]):
            # A copy from there.
            continue
        for word in words[1:]:
            # `@file`, `name=@file` and `--option=file`.
            for name in {word, word.rpartition("@")[2], word.partition("=")[2].lstrip("@<")} - {""}:
                path = os.path.join(cwd, os.path.expanduser(name))
                if secret := _secret_at(path):
                    yield "secrets.leave", f"{program} sends {secret}, which holds a secret"


def _secret_at(path: str) -> str:
    """The file at a path, or below it, that holds a secret; empty if there is none."""
    try:
        if os.path.isdir(path):
            names = (
                os.path.join(folder, name)
                for folder, _, files in os.walk(path)
                if ".git" not in folder.split(os.sep)
                for name in files
            )
            for name, _ in zip(names, range(_MOST_FILES), strict=False):
                if _SECRET_FILE.fullmatch(os.path.basename(name)):
                    return name
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                text = file.read(_MOST_READ).decode("utf-8", "replace")
            if _SECRET_FILE.fullmatch(os.path.basename(path)) or redact(text) != text:
                return path
    except (OSError, ValueError):
        pass
    return ""


def _new_remote(words: Sequence[str], cwd: str) -> str:
    """The target of a push that the repository's settings do not name; empty if they do."""
    operands = [word for word in words[words.index("push") + 1 :] if not word.startswith("-")]
    if not operands:
        return ""
    folder = cwd
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)
    try:
        with open(os.path.join(folder, ".git", "config"), encoding="utf-8", errors="replace") as f:
            known = {name for found in _REMOTE_SECTION.findall(f.read()) for name in found if name}
    except OSError:
        # A linked worktree or a submodule: its settings are elsewhere.
        return ""
    return "" if operands[0] in known else operands[0]


# Folders of the home, and of a project's own `.hermes`.
_FOLDERS = {
    "memories": "memory",
    "skills": "skills",
    "cron": "cron",
    "plugins": "plugins",
    "hooks": "hooks",
    "yaml_tools": "tools",
    "tools": "tools",
    "agents": "rules",
    "commands": "rules",
    "rules": "rules",
}
# Words to agents that stand in projects and homes, ours and those of other programs.
_FILES = frozenset((
    ".hermes.md", "hermes.md", "agents.md", "agents.override.md", "claude.md", "claude.local.md",
    "gemini.md", "qwen.md", "soul.md", ".cursorrules", ".windsurfrules", ".clinerules",
    ".goosehints", "copilot-instructions.md",
))  # fmt: skip
_RULES = frozenset((".cursor", ".claude", ".codex", ".gemini", ".windsurf", ".clinerules", ".roo"))


class PersistentWrite(NamedTuple):
    """A write that later conversations load: kind, path, and whether the call can be deferred."""

    kind: str
    place: str = ""
    waits: bool = True


def persistent_write(
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    paths: Mapping[tuple[str, str], str] | None,
    effects: CallEffects,
) -> PersistentWrite | None:
    """The write of a call that later conversations load by themselves; None if there is none."""
    if entry.effect_of(arguments) == "read":
        return None
    if entry.keeps:
        return PersistentWrite(entry.keeps)
    for (kind, _), place in (paths or {}).items():
        if kind in ("write", "delete") and (found := persistent_kind(place)):
            return PersistentWrite(found, place)
    for act in effects.commands():
        for place in effects.verdict(act).writes:
            if found := persistent_kind(os.path.realpath(place)):
                # What a command does depends on when it runs.
                return PersistentWrite(found, place, waits=False)
    return None


def persistent_kind(place: str) -> str:
    """The kind of content that later conversations load from a path: `memory`, `rules`…"""
    parts = [part.casefold() for part in place.split("/")]
    name = parts[-1]
    home = os.path.realpath(hermes_home())
    if is_below(place, home):
        first = os.path.relpath(place, home).split("/")[0].casefold()
        return _FOLDERS.get(first, "")
    if ".hermes" in parts[:-1] and (found := _FOLDERS.get(parts[parts.index(".hermes") + 1])):
        return found
    if name == "skill.md":
        return "skills"
    if name in _FILES or not _RULES.isdisjoint(parts):
        return "rules"
    return ""


def refuse_tainted_write(path: str, place: str) -> None:
    """Refuse a write that a call comes upon while it runs, where a person had to be asked."""
    kind = persistent_kind(place)
    if kind:
        raise PathRefusedError(
            path,
            f"later conversations load it by themselves ({kind}), and this one has read what "
            "others wrote",
        )


def review_tainted(
    ruling: Ruling,
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    context: ToolContext,
    sources: Sequence[str],
) -> Ruling:
    """The ruling on a call of a conversation that has read untrusted text."""
    if ruling.action == "refuse":
        return ruling
    effects = ruling.effects or effects_of(entry, arguments, context)
    found = persistent_write(entry, arguments, ruling.paths, effects)
    if found is None:
        return _sending(ruling, entry, arguments, context, sources, effects)
    rule = f"review:{found.kind}"
    where = f" ({found.place})" if found.place else ""
    reason = (
        f"it writes {found.kind}{where}, which later conversations load by themselves, after this "
        f"one has read what others wrote: {', '.join(sources[:3])}"
    )
    if ruling.action == "ask":
        reason = f"{ruling.reason}; {reason}"
    grant = call_grant(rule, entry, to_json(arguments), acts=(), workspace=context.workspace)
    return Ruling(
        "ask",
        reason=reason,
        rule=rule,
        grants=(*ruling.grants, grant),
        targets=ruling.targets,
        paths=ruling.paths,
        effects=effects,
        human_only=True,
        keeps=found.kind if found.waits else "",
    )


def _sending(
    ruling: Ruling,
    entry: ToolEntry,
    arguments: Mapping[str, Any],
    context: ToolContext,
    sources: Sequence[str],
    effects: CallEffects,
) -> Ruling:
    """The ruling on a call that may send away content of the conversation."""
    if ruling.action != "allow":
        return ruling
    for why in outbound_effects(effects):
        rule = "review:outbound"
        grant = call_grant(rule, entry, to_json(arguments), acts=(), workspace=context.workspace)
        return Ruling(
            "ask",
            reason=f"{why}, after this conversation has read what others wrote: "
            f"{', '.join(sources[:3])}",
            rule=rule,
            grants=(*ruling.grants, grant),
            targets=ruling.targets,
            paths=ruling.paths,
            effects=effects,
            human_only=True,
        )
    return ruling

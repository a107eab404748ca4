"""File guard: only files that the request names may change; other changes are refused or undone."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.embedded.tools import into_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from hermes.core.context import ToolContext
    from hermes.embedded.tools import SmallTool
    from hermes.stores.checkpoints.types import Change


# A word that may be a path: with a slash or an extension.
_PATHLIKE = re.compile(r"(?<![\w/.~@-])(?:~?/)?[\w.@+-]+(?:/[\w.@+-]+)*/?")
_ENDING = re.compile(r"[^./]*[^\W\d_][^./]*\.[A-Za-z][A-Za-z0-9]{0,9}$|^\d+\.[A-Za-z][A-Za-z0-9]*$")
_HIDDEN = re.compile(r"\.[A-Za-z][\w.-]+$")
_QUOTED = re.compile(r"[\"'`“‘«]([^\"'`”’»\n]{1,120})[\"'`”’»]")
_CALLED = re.compile(
    r"\b(?:files?|folder|directory|document|archive|note|script|list|it|one) "
    r"(?:called|named|titled)\s+[\"'`“]?([\w][\w.-]*)",
    re.IGNORECASE,
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_ABBREVIATIONS = frozenset({"e.g", "i.e", "etc", "vs", "a.m", "p.m", "ph.d"})
_WORD = re.compile(r"[^\W_]+")
# Words up to this length are too common.
_VAGUE = 3
# Phrases that mean every file.
_EVERY = re.compile(
    r"\b(?:all|every|each|any)\b[^.;]*\b(?:files?|folders?|scripts?|documents?|pages?|modules?)\b"
    r"|\b(?:everywhere|throughout)\b",
    re.IGNORECASE,
)


class NamedFiles:
    """The files and folders that a request names.

    `paths` are the words that look like paths; `spelled` the existing files among them; `files`
    these, or else the files whose stem is a word of the request (`the readme`); `folders` the
    existing folders; `targets` the paths that may be written to.
    """

    __slots__ = ("_every", "_stems", "_text", "files", "folders", "paths", "spelled", "targets")

    def __init__(self, text: str, existing: Sequence[str]) -> None:
        self._text = text.casefold()
        self._every = bool(_EVERY.search(text))
        self.paths = _paths(text)
        folders = dict.fromkeys(
            above for path in existing for above in _above(path)
        )  # in the order of the files
        # `src/app.py` does not name the folder `src`.
        words = set(_WORD.findall(_PATHLIKE.sub(_unless_path, self._text)))
        spelled = {path.casefold().strip("/") for path in self.paths}
        exact = [
            path
            for path in existing
            if _spelled(path, spelled)
            or ("." not in os.path.basename(path) and _mentioned(path, words))
        ]
        taken = {_stem(path) for path in exact}
        self._stems = [
            path for path in existing if _stem(path) not in taken and _mentioned(path, words)
        ]
        self.spelled = exact
        self.files = exact or self._stems
        self.folders = [
            folder
            for folder in folders
            if _spelled(folder, spelled) or os.path.basename(folder).casefold() in words
        ]
        taken = {_bare(folder) for folder in self.folders}
        self.targets = [
            path for path in self.paths if _bare(path) not in taken and not path.endswith("/")
        ]

    def target(self, path: str) -> bool:
        """Whether the request names this path literally."""
        bare = _bare(path)
        name = os.path.basename(bare)
        return any(
            bare == path or name == path or bare.endswith(f"/{path}") for path in self._spelled
        )

    def may_change(self, path: str, *, exists: bool, whole: bool = False) -> bool:
        """Whether the request allows a write to this path.

        Args:
            path: Relative to the workspace.
            exists: Whether the file exists.
            whole: Whether the file is replaced or removed, not edited.
        """
        if self.target(path):
            return True
        bare = _bare(path)
        inside = any(bare.startswith(f"{_bare(folder)}/") for folder in self.folders)
        if not exists:
            # The model may choose a name if the request has none.
            return inside or not self.paths
        files = {*map(_bare, self.files), *map(_bare, self._stems)}
        if whole and self.paths:
            return False
        return self._every or inside or bare in files

    def describe(self, path: str, words: str) -> None:
        """Add the only file that contains some words of the request, if it names no other file.

        Example: `Move the file that mentions the aquarium`.
        """
        if len(words) > _VAGUE and self.says(words) and not self.paths and not self.files:
            self._stems.append(path)
            self.files = self._stems

    def leads_to(self, path: str) -> bool:
        """Whether the request names a path inside of this folder."""
        return any(named.startswith(f"{_bare(path)}/") for named in self._spelled)

    def says(self, words: str) -> bool:
        """Whether the request contains exactly these words."""
        return " ".join(words.casefold().split()) in " ".join(self._text.split())

    def says_program(self, word: str) -> bool:
        """Whether a word of a command is a named file."""
        return any(_bare(path) == _bare(word) for path in self.files) or self.target(word)

    @property
    def _spelled(self) -> list[str]:
        return [_bare(path) for path in self.paths]


def _paths(text: str) -> list[str]:
    """The words of a text that look like paths, in order."""
    bare = _URL.sub(" ", text)
    paths = []
    for match in _QUOTED.finditer(bare):
        inner = match[1].strip()
        # A name with spaces is recognised by its quotes.
        if " " in inner and _ENDING.search(inner) and len(inner) < 80:
            paths.append(inner)
    for match in _PATHLIKE.finditer(bare):
        word = match[0].rstrip(".")
        if _is_path(word):
            paths.append(word)
    paths += [match[1].rstrip(".") for match in _CALLED.finditer(bare)]
    return list(dict.fromkeys(paths))


def _is_path(word: str) -> bool:
    if word.casefold() in _ABBREVIATIONS or "@" in word or re.fullmatch(r"[A-Z]\.[A-Z]", word):
        return False
    name = os.path.basename(word.rstrip("/"))
    if "/" in word:
        # Not `and/or`, `km/h`: a path has an extension, a root or a trailing slash.
        return bool(_ENDING.search(name)) or word.startswith(("/", "~", "./")) or word[-1] == "/"
    return bool(_ENDING.search(name) or _HIDDEN.match(name))


def _unless_path(match: re.Match[str]) -> str:
    return " " if _is_path(match[0].rstrip(".")) else match[0]


def _spelled(path: str, spelled: set[str]) -> bool:
    bare = _bare(path)
    return bare in spelled or os.path.basename(bare) in spelled


def _mentioned(path: str, words: set[str]) -> bool:
    """Whether the file's stem is a word of the request."""
    parts = _WORD.findall(_stem(path))
    return bool(parts) and len("".join(parts)) > 2 and all(part in words for part in parts)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0].casefold()


def _bare(path: str) -> str:
    return path.casefold().removeprefix("./").strip("/")


def _above(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


if TYPE_CHECKING:
    ChangeKind = Literal["made", "changed", "moved", "deleted"]


class FileChange(NamedTuple):
    """A changed file. `path` is relative to the workspace if inside; `was` is the old path."""

    path: str
    what: ChangeKind
    was: str = ""

    @property
    def label(self) -> str:
        """Its path, with the old one if it moved."""
        return f"{self.was} to {self.path}" if self.was else self.path


def changes(ctx: ToolContext) -> list[FileChange]:
    """The changes of this turn so far, one per file."""
    first: dict[str, Change] = {}
    last: dict[str, Change] = {}
    for change in _recorded(ctx):
        first.setdefault(change.place, change)
        last[change.place] = change
    changed = []
    digests: dict[str, str] = {}
    for file, change in first.items():
        before, after = change.before, last[file].after
        if (before.kind, before.digest) == (after.kind, after.digest):
            continue
        gone = after.kind == "absent"
        what: ChangeKind = "deleted" if gone else "made" if before.kind == "absent" else "changed"
        folder = "/" if "folder" in (before.kind, after.kind) else ""
        path = _relative(ctx, file) + folder
        changed.append(FileChange(path, what))
        digests[path] = "" if folder else (before if gone else after).digest
    changed = _with_moves(changed, digests)
    # A folder is listed only if no file in it is.
    return [c for c in changed if not (c.path.endswith("/") and _contains(c, changed))]


def _with_moves(changed: list[FileChange], digests: dict[str, str]) -> list[FileChange]:
    """The changes, with a deleted and a new file of equal content joined to a move."""
    deleted = [c for c in changed if c.what == "deleted" and digests[c.path]]
    joined = []
    for change in changed:
        made = change.what == "made"
        same = (old for old in deleted if made and digests[old.path] == digests[change.path])
        origin = next(same, None)
        if origin is None:
            joined.append(change)
            continue
        deleted.remove(origin)
        joined.append(FileChange(change.path, "moved", origin.path))
    moved = {change.was for change in joined}
    return [c for c in joined if not (c.what == "deleted" and c.path in moved)]


def _contains(folder: FileChange, changed: list[FileChange]) -> bool:
    return any(c.path.startswith(folder.path) and c != folder for c in changed)


def undo_unnamed(ctx: ToolContext, call: str, named: NamedFiles) -> list[str]:
    """Undo a command's changes of existing files that the request does not name; their paths."""
    from hermes.files.edit_transaction import author_of
    from hermes.stores.checkpoints.checkpoint_store import checkpoints

    restored = []
    for change in _recorded(ctx):
        path = _relative(ctx, change.place)
        if change.author.call != call or change.before.kind != "file":
            continue
        same = (change.before.kind, change.before.digest) == (
            change.after.kind,
            change.after.digest,
        )
        gone = change.after.kind == "absent"
        if same or named.may_change(path, exists=True, whole=gone):
            continue
        try:
            checkpoints(ctx).restore(change.place, change.id, author=author_of(ctx))
        except ToolError:
            # Reported as changed.
            continue
        restored.append(path)
    return restored


def _recorded(ctx: ToolContext) -> list[Change]:
    from hermes.stores.checkpoints.checkpoint_store import checkpoints
    from hermes.stores.checkpoints.types import CheckpointError

    try:
        recorded = checkpoints(ctx).show(f"{ctx.session_id}/{ctx.turn}")
    except CheckpointError:
        # No changes in this turn.
        return []
    return [change for change in recorded if change.author.agent == ctx.agent_path]


def _relative(ctx: ToolContext, path: str) -> str:
    return path.removeprefix(os.path.join(os.path.realpath(ctx.workspace), ""))


# Tools whose text could be written to another file.
_WRITING = frozenset({"write_file", "append_file", "terminal"})
# Interpreters: the script follows.
_RUNNERS = frozenset({"sh", "bash", "zsh", "python", "python3", "node", "perl", "ruby"})


def refusal(
    tool: SmallTool, arguments: dict[str, Any], named: NamedFiles, context: ToolContext
) -> str:
    """Reason why a call is refused: it would change a file that is not named; else ""."""
    root = os.path.join(os.path.realpath(context.workspace), "")
    for path, whole in _written(tool, arguments, named, root):
        exists = os.path.isfile(os.path.join(root, path))
        if tool.name == "terminal" and not exists and (path[:1] == "/" or named.leads_to(path)):
            # A new file outside of the workspace, or a folder for a named file, is allowed.
            continue
        if tool.name == "make_folder" and not exists and named.says(os.path.basename(path)):
            continue
        if not named.may_change(path, exists=exists, whole=whole):
            writes_text = tool.name in _WRITING and named.targets
            instead = f" Write to {' or '.join(named.targets)}." if writes_text else ""
            return f"Not done: the request does not name {path}, so it stays as it is.{instead}"
    return ""


def command_changes(command: str, call: str, named: NamedFiles, context: ToolContext) -> str:
    """A command's changes as text; those of files that are not named are undone."""
    restored = [] if _asked_for(command, named) else undo_unnamed(context, call, named)
    notes = [f"{path} was put back: the request does not name it." for path in restored]
    now = [f"{change.label} was {change.what}" for change in changes(context)]
    if now:
        notes.append(f"(So far: {', '.join(now[:8])}.)")
    return "".join(f"\n\n{note}" for note in notes)


def _written(
    tool: SmallTool, arguments: dict[str, Any], named: NamedFiles, root: str
) -> Iterator[tuple[str, bool]]:
    """The paths that a call would write to, and whether it replaces them."""
    for argument, whole in tool.writes.items():
        path = str(arguments[argument])
        if argument == "to" and (into_folder(arguments) or os.path.isdir(os.path.join(root, path))):
            path = os.path.join(path, os.path.basename(str(arguments["path"])))
        yield path, whole
    if tool.name == "terminal" and not _asked_for(arguments["command"], named):
        from hermes.safety.shell import detect_dangerous_command

        verdict = detect_dangerous_command(arguments["command"], cwd=root.rstrip("/"))
        for path in verdict.writes:
            yield path.removeprefix(root), False


def _asked_for(command: str, named: NamedFiles) -> bool:
    """Whether the request contains this command, or names the script that it runs."""
    if named.says(command):
        return True
    words = command.split()
    if words and os.path.basename(words[0]) in _RUNNERS:
        words = words[1:]
    elif not (words and "/" in words[0]):
        # `rm notes.txt` runs no script of theirs; `sh notes.sh` and `./notes.sh` do.
        return False
    return bool(words) and named.says_program(words[0])

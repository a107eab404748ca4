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


# A word with a slash or an ending, as file names have them.
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
# Words as short as this are in many texts.
_VAGUE = 3
# Words that mean whatever there is, so that no file is left out.
_EVERY = re.compile(
    r"\b(?:all|every|each|any)\b[^.;]*\b(?:files?|folders?|scripts?|documents?|pages?|modules?)\b"
    r"|\b(?:everywhere|throughout)\b",
    re.IGNORECASE,
)


class Named:
    """What a request names, given what there is.

    `paths` are the words that look like paths, `spelled` the existing files among them; `files`
    are those, or the ones meant by a word (`the readme`), `folders` the existing folders; `targets`
    are the paths that can be written to.
    """

    __slots__ = ("_every", "_stems", "_text", "files", "folders", "paths", "spelled", "targets")

    def __init__(self, text: str, existing: Sequence[str]) -> None:
        self._text = text.casefold()
        self._every = bool(_EVERY.search(text))
        self.paths = _paths(text)
        folders = dict.fromkeys(
            above for path in existing for above in _above(path)
        )  # in the order of the files
        # A part of `src/app.py` is not a word about the folder.
        words = set(_WORD.findall(_PATHLIKE.sub(_unless_path, self._text)))
        spelled = {path.casefold().strip("/") for path in self.paths}
        exact = [
            path
            for path in existing
            if _spelled(path, spelled) or ("." not in os.path.basename(path) and _said(path, words))
        ]
        taken = {_stem(path) for path in exact}
        self._stems = [path for path in existing if _stem(path) not in taken and _said(path, words)]
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
        """Whether the request names this path as it stands: a file, or a name for one."""
        bare = _bare(path)
        name = os.path.basename(bare)
        return any(bare == one or name == one or bare.endswith(f"/{one}") for one in self._spelled)

    def may_change(self, path: str, *, exists: bool, whole: bool = False) -> bool:
        """Whether writing there is what the request says, or at least not against it.

        Args:
            path: Relative to the workspace.
            exists: Whether there is such a file now.
            whole: The file is to be replaced or removed as a whole, not edited.
        """
        if self.target(path):
            return True
        bare = _bare(path)
        inside = any(bare.startswith(f"{_bare(folder)}/") for folder in self.folders)
        if not exists:
            # A name of the model's choice is fine where the person gave none.
            return inside or not self.paths
        meant = {*map(_bare, self.files), *map(_bare, self._stems)}
        if whole and self.paths:
            return False
        return self._every or inside or bare in meant

    def describe(self, path: str, words: str) -> None:
        """Take the one file that has some words for meant, where these are all the request names.

        `Move the file that mentions the aquarium` names it as well as its name would.
        """
        if len(words) > _VAGUE and self.says(words) and not self.paths and not self.files:
            self._stems.append(path)
            self.files = self._stems

    def leads_to(self, path: str) -> bool:
        """Whether something that the request names is to be inside of this folder."""
        return any(one.startswith(f"{_bare(path)}/") for one in self._spelled)

    def says(self, words: str) -> bool:
        """Whether the request has exactly these words in it."""
        return " ".join(words.casefold().split()) in " ".join(self._text.split())

    def says_program(self, word: str) -> bool:
        """Whether a word of a command is a file that the request names."""
        return any(_bare(path) == _bare(word) for path in self.files) or self.target(word)

    @property
    def _spelled(self) -> list[str]:
        return [_bare(path) for path in self.paths]


def _paths(text: str) -> list[str]:
    """The words of a text that look like paths, in order."""
    bare = _URL.sub(" ", text)
    found = []
    for match in _QUOTED.finditer(bare):
        inner = match[1].strip()
        # Names with spaces are only known by their quotes.
        if " " in inner and _ENDING.search(inner) and len(inner) < 80:
            found.append(inner)
    for match in _PATHLIKE.finditer(bare):
        word = match[0].rstrip(".")
        if _is_path(word):
            found.append(word)
    found += [match[1].rstrip(".") for match in _CALLED.finditer(bare)]
    return list(dict.fromkeys(found))


def _is_path(word: str) -> bool:
    if word.casefold() in _ABBREVIATIONS or "@" in word or re.fullmatch(r"[A-Z]\.[A-Z]", word):
        return False
    name = os.path.basename(word.rstrip("/"))
    if "/" in word:
        # Not `and/or`, `km/h`: a path has an ending, a root or a last slash.
        return bool(_ENDING.search(name)) or word.startswith(("/", "~", "./")) or word[-1] == "/"
    return bool(_ENDING.search(name) or _HIDDEN.match(name))


def _unless_path(match: re.Match[str]) -> str:
    return " " if _is_path(match[0].rstrip(".")) else match[0]


def _spelled(path: str, spelled: set[str]) -> bool:
    bare = _bare(path)
    return bare in spelled or os.path.basename(bare) in spelled


def _said(path: str, words: set[str]) -> bool:
    """Whether a word of the request is the file's name without its ending."""
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
    What = Literal["made", "changed", "moved", "deleted"]


class Changed(NamedTuple):
    """One file, relative to the workspace where it is inside, and what became of it.

    `path` is where it is now or was last, `was` where a file was that moved.
    """

    path: str
    what: What
    was: str = ""

    @property
    def told(self) -> str:
        """Its path, and where it came from."""
        return f"{self.was} to {self.path}" if self.was else self.path


def changes(ctx: ToolContext) -> list[Changed]:
    """What this turn has changed so far, each file once."""
    first: dict[str, Change] = {}
    last: dict[str, Change] = {}
    for change in _recorded(ctx):
        first.setdefault(change.place, change)
        last[change.place] = change
    found = []
    digests: dict[str, str] = {}
    for place, change in first.items():
        before, after = change.before, last[place].after
        if (before.kind, before.digest) == (after.kind, after.digest):
            continue
        gone = after.kind == "absent"
        what: What = "deleted" if gone else "made" if before.kind == "absent" else "changed"
        folder = "/" if "folder" in (before.kind, after.kind) else ""
        path = _relative(ctx, place) + folder
        found.append(Changed(path, what))
        digests[path] = "" if folder else (before if gone else after).digest
    found = _with_moves(found, digests)
    # A folder is worth a word only where nothing in it is.
    return [one for one in found if not (one.path.endswith("/") and _inside(one, found))]


def _with_moves(found: list[Changed], digests: dict[str, str]) -> list[Changed]:
    """The same, where what is gone in one place and there in another has moved."""
    gone = [one for one in found if one.what == "deleted" and digests[one.path]]
    told = []
    for one in found:
        origin = next(
            (was for was in gone if one.what == "made" and digests[was.path] == digests[one.path]),
            None,
        )
        if origin is None:
            told.append(one)
            continue
        gone.remove(origin)
        told.append(Changed(one.path, "moved", origin.path))
    taken = {one.was for one in told}
    return [one for one in told if not (one.what == "deleted" and one.path in taken)]


def _inside(folder: Changed, found: list[Changed]) -> bool:
    return any(one.path.startswith(folder.path) and one != folder for one in found)


def put_back_unnamed(ctx: ToolContext, call: str, named: Named) -> list[str]:
    """Undo what a command did to files that were there before and that nobody named."""
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
            # What can't be put back is still reported as changed.
            continue
        restored.append(path)
    return restored


def _recorded(ctx: ToolContext) -> list[Change]:
    from hermes.stores.checkpoints.checkpoint_store import checkpoints
    from hermes.stores.checkpoints.types import CheckpointError

    try:
        recorded = checkpoints(ctx).show(f"{ctx.session_id}/{ctx.turn}")
    except CheckpointError:
        # Nothing was changed in this turn.
        return []
    return [one for one in recorded if one.author.agent == ctx.agent_path]


def _relative(ctx: ToolContext, place: str) -> str:
    root = os.path.join(os.path.realpath(ctx.workspace), "")
    return place.removeprefix(root)


# The tools whose text could go to another file.
_WRITING = frozenset({"write_file", "append_file", "terminal"})
# What runs a script that is named after it.
_RUNNERS = frozenset({"sh", "bash", "zsh", "python", "python3", "node", "perl", "ruby"})


def refusal(tool: SmallTool, given: dict[str, Any], named: Named, context: ToolContext) -> str:
    """Why a call may not be made: it would change a file that nobody named; else nothing."""
    root = os.path.join(os.path.realpath(context.workspace), "")
    for path, whole in _written(tool, given, named, root):
        exists = os.path.isfile(os.path.join(root, path))
        if tool.name == "terminal" and not exists and (path[:1] == "/" or named.leads_to(path)):
            # What a command makes elsewhere is nobody's loss, nor is a folder for what is named.
            continue
        if tool.name == "make_folder" and not exists and named.says(os.path.basename(path)):
            continue
        if not named.may_change(path, exists=exists, whole=whole):
            spoken = tool.name in _WRITING and named.targets
            instead = f" Write to {' or '.join(named.targets)}." if spoken else ""
            return f"Not done: the request does not name {path}, so it stays as it is.{instead}"
    return ""


def after_command(command: str, call: str, named: Named, context: ToolContext) -> str:
    """What a command did to files, in words; undone where nobody asked for it."""
    restored = [] if _asked_for(command, named) else put_back_unnamed(context, call, named)
    notes = [f"{path} was put back: the request does not name it." for path in restored]
    now = [f"{one.told} was {one.what}" for one in changes(context)]
    if now:
        notes.append(f"(So far: {', '.join(now[:8])}.)")
    return "".join(f"\n\n{note}" for note in notes)


def _written(
    tool: SmallTool, given: dict[str, Any], named: Named, root: str
) -> Iterator[tuple[str, bool]]:
    """The paths that a call would write to, and whether as a whole."""
    for argument, whole in tool.writes.items():
        path = str(given[argument])
        if argument == "to" and (into_folder(given) or os.path.isdir(os.path.join(root, path))):
            path = os.path.join(path, os.path.basename(str(given["path"])))
        yield path, whole
    if tool.name == "terminal" and not _asked_for(given["command"], named):
        from hermes.safety.shell import detect_dangerous_command

        verdict = detect_dangerous_command(given["command"], cwd=root.rstrip("/"))
        for place in verdict.writes:
            yield place.removeprefix(root), False


def _asked_for(command: str, named: Named) -> bool:
    """Whether the person wanted this very command, or a program of theirs, to be run."""
    if named.says(command):
        return True
    words = command.split()
    if words and os.path.basename(words[0]) in _RUNNERS:
        words = words[1:]
    elif not (words and "/" in words[0]):
        # `rm notes.txt` runs nothing of theirs; `sh notes.sh` and `./notes.sh` do.
        return False
    return bool(words) and named.says_program(words[0])

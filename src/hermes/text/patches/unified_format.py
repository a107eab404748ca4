"""Unified diff format of `diff -u` and git: file headers, quoted names, hunks with line numbers."""

from __future__ import annotations

import re

from hermes.text.patches.model import ADDED, CONTEXT, REMOVED, FilePatch, Hunk, Opening, PatchError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.text.patches.model import Action


NOTHING = "/dev/null"
_STAMP = re.compile(r"\s+(?:\d{4}-\d\d-\d\d[ T]\d\d:|\w{3} \w{3} [ \d]\d \d\d:\d\d:).*$")
_ESCAPE = re.compile(r'\\([abfnrtv"\\]|[0-7]{1,3})')
_CONTROL = dict(zip('abfnrtv"\\', '\a\b\f\n\r\t\v"\\', strict=True))
# `git diff` says with one letter where each side comes from: index, work tree, commit, object.
_SIDES = frozenset({"iw", "ci", "cw", "ow", "ba", "wi", "ic", "wc", "wo"})
_BACKUPS = (".orig", ".old", ".bak", "~")


def header_name(text: str) -> str:
    """The name behind `---` or `+++`, without quotes and time stamp."""
    name, tab, _ = text.partition("\t")
    if text.lstrip(" ").startswith('"'):
        return unquoted(text.strip(" "))
    # git puts a tab behind a name with spaces, so that one can see where it ends.
    return name if tab else _STAMP.sub("", name).strip()


def unquoted(text: str) -> str:
    """A name as git quotes it: in double quotes, bytes that are not ASCII in octal."""
    end = text.rfind('"')
    if not text.startswith('"') or end < 1:
        return text
    pieces: list[bytes] = []
    reached = 1
    for found in _ESCAPE.finditer(text, 1, end):
        pieces.append(text[reached : found.start()].encode(errors="surrogateescape"))
        code = found[1]
        pieces.append(_CONTROL[code].encode() if code in _CONTROL else bytes([int(code, 8) & 0xFF]))
        reached = found.end()
    pieces.append(text[reached:end].encode(errors="surrogateescape"))
    return b"".join(pieces).decode(errors="surrogateescape")


def git_names(rest: str) -> tuple[str, str] | None:
    """The two names of a `diff --git` line, None where spaces leave their border open."""
    if rest.startswith('"'):
        end = _closing(rest)
        return unquoted(rest[:end]), unquoted(rest[end:].strip())
    if rest.endswith('"'):
        start = rest.find(' "')
        return (rest[:start], unquoted(rest[start + 1 :])) if start > 0 else None
    borders = [place for place, character in enumerate(rest) if character == " "]
    if len(borders) == 1:
        return rest[: borders[0]], rest[borders[0] + 1 :]
    for place in borders:
        one, other = rest[:place], rest[place + 1 :]
        if one == other or (one[1:2] == "/" and one[2:] == other[2:]):
            return one, other
    return None


def without_prefixes(old: str, new: str, *, git: bool) -> tuple[str, str]:
    """Both names without the `a/` and `b/` that git puts in front; as they are otherwise.

    Its other letters count only behind a `diff --git` line.
    """
    if old == NOTHING:
        return old, new[2:] if new.startswith("b/") or _sided(new, git=git) else new
    if new == NOTHING:
        return old[2:] if old.startswith("a/") or _sided(old, git=git) else old, new
    sides = old[:1] + new[:1]
    prefixed = old[1:2] == new[1:2] == "/" and (sides == "ab" or (git and sides in _SIDES))
    return (old[2:], new[2:]) if prefixed else (old, new)


def _sided(name: str, *, git: bool) -> bool:
    return git and name[1:2] == "/" and name[:1] in "abciow"


def is_backup(old: str, new: str) -> bool:
    """Whether the first name is that of a copy kept before the second file was changed."""
    return any(old == new + ending for ending in _BACKUPS)


def _closing(text: str) -> int:
    place = 1
    while place < len(text) and text[place] != '"':
        place += 2 if text[place] == "\\" else 1
    return place + 1


_GIT = "diff --git "
_BINARY = ("GIT binary patch", "Binary files ")
_LINK, _MODULE = 0o120000, 0o160000
_KIND = 0o170000


def parse_unified(lines: Sequence[str], *, whole: bool) -> list[FilePatch]:
    """The files of a unified diff; `whole` says that its last line is complete."""
    reader = _Reader(lines, whole=whole)
    patches = reader.read()
    if not patches:
        raise PatchError(
            1,
            "expected `--- a/path` and `+++ b/path`, or `*** Begin Patch`",
            hint="Send a unified diff, or a text from `*** Begin Patch` to `*** End Patch`.",
        )
    return patches


class _Header:
    """The file header in front of the hunks."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.git = False
        self.old: str | None = None
        self.new: str | None = None
        # As the `diff --git` line has them, where that can be told.
        self.both: tuple[str, str] | None = None
        self.added = self.deleted = False
        self.renamed: list[str] = ["", ""]
        self.mode: int | None = None

    def patch(self) -> FilePatch:
        """The file that they name."""
        if all(self.renamed):
            old, new = self.renamed
        elif self.old is None or self.new is None:
            raise PatchError(self.line, "expected names: `--- a/path`, `+++ b/path`")
        elif self.both is not None and NOTHING in (self.old, self.new):
            # Its line names a file that comes or goes twice, and so tells what is a prefix.
            old, new = without_prefixes(*self.both, git=True)
        else:
            old, new = without_prefixes(self.old, self.new, git=self.git)
        action: Action = "update"
        if self.added or self.old == NOTHING:
            old, action = new, "add"
        elif self.deleted or self.new == NOTHING:
            new, action = old, "delete"
        elif is_backup(old, new):
            old = new
        if old in ("", NOTHING) or new in ("", NOTHING):
            raise PatchError(self.line, "expected the name of a file")
        prefixed = self.git or (old, new) != (self.old, self.new)
        if old != new and not prefixed:
            raise PatchError(
                self.line, f"expected one file on both lines, not `{old[:80]}` and `{new[:80]}`"
            )
        if self.mode is not None and self.mode & _KIND in (_LINK, _MODULE):
            raise PatchError(self.line, "it makes a symbolic link or a submodule, not a file")
        return FilePatch(
            old, action, line=self.line, move_to=new if new != old else None, mode=self.mode
        )


class _Reader:
    def __init__(self, lines: Sequence[str], *, whole: bool) -> None:
        self._lines = lines
        self._whole = whole
        self._place = 0

    def read(self) -> list[FilePatch]:
        """All files; text in front of a header is passed over."""
        patches: list[FilePatch] = []
        while self._place < len(self._lines):
            line = self._line()
            if line.startswith(_GIT) or self._opens_names():
                patches.append(self._read_file())
            elif line.startswith("@@"):
                raise PatchError(
                    self._place + 1, "expected `--- a/path` and `+++ b/path` above `@@`"
                )
            elif line.startswith(_BINARY):
                raise PatchError(self._place + 1, "binary files can't be patched")
            else:
                self._place += 1
        return patches

    def _line(self, ahead: int = 0) -> str:
        place = self._place + ahead
        return self._lines[place] if place < len(self._lines) else ""

    def _opens_names(self) -> bool:
        return self._line().startswith("--- ") and self._line(1).startswith("+++ ")

    def _read_file(self) -> FilePatch:
        header = _Header(self._place + 1)
        if self._line().startswith(_GIT):
            header.git = True
            header.both = git_names(self._line()[len(_GIT) :])
            header.old, header.new = header.both or (None, None)
            self._place += 1
            while self._read_extended(header):
                self._place += 1
        if self._opens_names():
            header.old = header_name(self._line()[4:])
            header.new = header_name(self._line(1)[4:])
            self._place += 2
        patch = header.patch()
        while self._line().startswith("@@"):
            patch.hunks.append(self._read_hunk(patch))
        if not patch.hunks and not header.git:
            raise PatchError(self._place + 1, "expected a hunk that starts with `@@`")
        empty = patch.move_to is None and patch.mode is None and patch.action == "update"
        if not patch.hunks and empty:
            raise PatchError(header.line, f"`{patch.path}` has no change; expected `@@` and lines")
        return patch

    def _read_extended(self, header: _Header) -> bool:
        """Take one of git's own header lines; False when the next line is none."""
        line = self._line()
        words = line.split(" ", 2)
        if line.startswith(_BINARY):
            raise PatchError(self._place + 1, "binary files can't be patched")
        if line.startswith(("copy from ", "copy to ")):
            raise PatchError(self._place + 1, "a copy can't be patched; add the new file in full")
        if line.startswith(("rename from ", "rename to ")):
            header.renamed[words[1] == "to"] = unquoted(words[2])
            return True
        if line.startswith(("new file mode ", "deleted file mode ", "new mode ", "old mode ")):
            header.added |= line.startswith("new file")
            header.deleted |= line.startswith("deleted")
            digits = line.split()[-1]
            if not digits.isascii() or digits.strip("01234567"):
                raise PatchError(self._place + 1, "expected a mode such as 100644")
            if not line.startswith(("old", "deleted")):
                header.mode = int(digits, 8)
            return True
        return line.startswith(("index ", "similarity index ", "dissimilarity index "))

    def _read_hunk(self, patch: FilePatch) -> Hunk:
        hunk = Hunk(self._place + 1)
        opening = Opening(self._line())
        hunk.start, hunk.new_start = opening.start, opening.new_start
        left = list(opening.counts or (0, 0))
        counted = opening.counts is not None
        self._place += 1
        blank = 0  # empty lines, which are content only where more of it follows
        while self._place < len(self._lines):
            line = self._line()
            done = counted and left[0] <= 0 and left[1] <= 0
            if line.startswith("\\"):
                self._mark_bare(hunk)
                self._place += 1
                continue
            if self._is_over(line, done=done, left=left):
                break
            if line.startswith("\t"):
                line = CONTEXT + line  # its mark was taken for indentation
            if not line:
                blank += 1
            elif line[0] not in " -+":
                if done:
                    break
                raise PatchError(
                    self._place + 1,
                    f"expected a line that starts with ` `, `-` or `+`, not `{line[:80]}`",
                )
            else:
                hunk.lines += [(CONTEXT, "")] * blank
                hunk.lines.append((line[0], line[1:]))
                blank = 0
            mark = line[:1] or CONTEXT
            left[0] -= mark != ADDED
            left[1] -= mark != REMOVED
            self._place += 1
        self._check(hunk, patch, cut=counted and max(left[0], left[1]) > 0)
        return hunk

    def _is_over(self, line: str, *, done: bool, left: Sequence[int]) -> bool:
        """Whether a line that could be one of the hunk begins something else."""
        if line.startswith(("@@", "diff ", "Index: ")):
            return True
        if line.rstrip() == "--" and done:
            return True  # the signature of a mail
        if not self._opens_names():
            return False
        # Two changed lines may look like names: `-- a` removed, `++ b` added.
        return self._line(2).startswith("@@") and list(left) != [1, 1] if not done else True

    def _mark_bare(self, hunk: Hunk) -> None:
        mark = hunk.lines[-1][0] if hunk.lines else CONTEXT
        hunk.old_bare |= mark != ADDED
        hunk.new_bare |= mark != REMOVED

    def _check(self, hunk: Hunk, patch: FilePatch, *, cut: bool) -> None:
        if not hunk.changes:
            raise PatchError(hunk.line, "a hunk has no line that starts with `-` or `+`")
        ended = self._place >= len(self._lines) and not self._whole
        if cut and ended and hunk.lines[-1][0] != CONTEXT:
            raise PatchError(
                len(self._lines),
                "the patch is cut off: its last hunk has fewer lines than it says",
                hint="Send the whole patch again, or several smaller ones.",
            )
        foreign = {"add": " -", "delete": " +"}.get(patch.action, "")
        if any(mark in foreign for mark, _ in hunk.lines):
            what = "a new file has only lines that start with `+`"
            if patch.action == "delete":
                what = "a deleted file has only lines that start with `-`"
            raise PatchError(hunk.line, what)

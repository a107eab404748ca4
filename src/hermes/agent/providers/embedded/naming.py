"""Which files a request is about, by its words: a small model may write to those and no others."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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

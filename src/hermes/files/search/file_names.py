"""File-name search: by glob, by part of the path, by letters in order, by similar spelling."""

from __future__ import annotations

import re

from hermes.core.errors import ToolError
from hermes.files.search.content import order
from hermes.files.search.query import Choice, SearchDeadline, Skipped
from hermes.files.search.walk import Walk
from hermes.text.globs import chooser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal

    from hermes.environments.disk.protocol import Disk

    How = Literal["glob", "part", "letters", "spelling", "all"]

_WILD = re.compile(r"[*?\[{]")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
# Of names that are merely alike, no more than the best.
_MOST_ALIKE = 20
# How close the letters must be together, to be meant.
_LEAST_IN_NAME, _LEAST_IN_PATH = 0.35, 0.5


class NameMatches:
    """A page of the matching paths, best first; folders end in a slash."""

    __slots__ = ("finished", "how", "paths", "scanned", "skipped", "total", "withheld")

    def __init__(self, skipped: Skipped, scanned: int, *, finished: bool) -> None:
        self.paths: list[str] = []
        self.total = 0
        # By what they fit.
        self.how: How = "part"
        self.scanned = scanned
        self.skipped = skipped
        self.finished = finished
        self.withheld = 0


def search_names(
    disk: Disk,
    root: str,
    pattern: str,
    *,
    choice: Choice | None = None,
    chosen: Callable[[str], bool] | None = None,
    readable: Callable[[str], bool] | None = None,
    ignore_case: bool = True,
    offset: int = 0,
    limit: int | None = None,
    watch: SearchDeadline | None = None,
) -> NameMatches:
    """Files and folders below `root` with a matching path.

    A pattern with `*`, `?`, `[` or `{` is a glob. Any other is a part of a path, exact names
    first. Without such a path, the letters of the pattern in order match (`usrctl` for
    `user_controller`), and without those, names with a similar spelling.
    """
    status = disk.status(root)
    if status is None:
        raise ToolError("there is no such folder")
    if status.kind != "folder":
        raise ToolError("names are searched in folders, and this is none")
    watch = watch or SearchDeadline()
    choice = choice or Choice()
    walk = Walk(disk, root, hidden=choice.hidden, ignored=choice.ignored)
    paths: list[str] = []
    for folder in walk.folders(watch):
        lead = folder.path
        paths += [lead + name for name in folder.files]
        paths += [f"{lead}{name}/" for name in folder.folders]
    result = NameMatches(walk.skipped, len(paths), finished=not watch.expired)
    if chosen is not None:
        paths = [path for path in paths if chosen(path.rstrip("/"))]
    result.how, fitting = _fitting(pattern.strip(), paths, ignore_case=ignore_case)
    result.total = len(fitting)
    result.paths = fitting[offset:] if limit is None else fitting[offset : offset + limit]
    if readable is not None:
        # Of the page alone: to judge a name takes longer than to find it.
        page = result.paths
        result.paths = [path for path in page if readable(f"{root}/{path.rstrip('/')}")]
        result.withheld = len(page) - len(result.paths)
        result.total -= result.withheld
    return result


def _fitting(pattern: str, paths: list[str], *, ignore_case: bool) -> tuple[How, list[str]]:
    if pattern in ("", "*", "**", "**/*", "."):
        return "all", sorted(paths, key=order)
    if _WILD.search(pattern):
        fits = chooser(pattern.lower() if ignore_case else pattern, below=False)
        if ignore_case:
            matches = [path for path in paths if fits(path.lower().rstrip("/"))]
        else:
            matches = [path for path in paths if fits(path.rstrip("/"))]
        return "glob", sorted(matches, key=order)
    wanted = pattern.replace("\\", "/").removeprefix("./").lstrip("/")
    folders_only = wanted.endswith("/")
    wanted = wanted.rstrip("/")
    if folders_only:
        paths = [path for path in paths if path.endswith("/")]
    matches = _parts(wanted, paths, ignore_case=ignore_case)
    if matches:
        return "part", matches
    matches = _letters(wanted, paths)
    if matches:
        return "letters", matches
    return "spelling", _spelled(wanted, paths)


def _parts(wanted: str, paths: list[str], *, ignore_case: bool) -> list[str]:
    """Paths that contain the text: exact ends first, then names that begin with it, then others."""
    folded = wanted.casefold() if ignore_case else wanted
    if ignore_case:
        if folded.isascii():
            matches = [path for path in paths if folded in path.lower()]
        else:
            matches = [path for path in paths if folded in path.casefold()]
    else:
        matches = [path for path in paths if folded in path]

    def rank(path: str) -> tuple[int, str]:
        bare = path.rstrip("/")
        whole = bare.casefold() if ignore_case else bare
        name = whole.rpartition("/")[2]
        last = folded.rpartition("/")[2]
        exact = f"/{whole}".endswith(f"/{folded}")
        stem = name.partition(".")[0] == last and folded in whole
        level = (
            0 if exact else 1 if stem else 2 if name.startswith(last) else 3 if last in name else 4
        )
        return level, order(path)

    return sorted(matches, key=rank)


def _letters(wanted: str, paths: Iterable[str]) -> list[str]:
    """Paths that contain the letters in order, mostly at the beginnings of words."""
    letters = [letter for letter in wanted.casefold() if not letter.isspace()]
    if len(letters) < 2:
        return []
    between = re.compile(".*?".join(map(re.escape, letters)), re.DOTALL)
    above = set(wanted.casefold().split("/")[:-1])
    ranked = []
    for path in paths:
        folded = path.casefold()
        if between.search(folded) is None:
            continue
        bare = path.rstrip("/")
        name = bare.rpartition("/")[2]
        inside = between.search(name.casefold())
        score = _closeness(letters, name if inside else bare)
        if score >= (_LEAST_IN_NAME if inside else _LEAST_IN_PATH):
            whole = len(above.intersection(folded.split("/"))) if above else 0
            ranked.append((not inside, -whole, -score, order(path), path))
    return [path for *_, path in sorted(ranked)]


def _closeness(letters: list[str], text: str) -> float:
    """The share of letters that continue a run or begin a word, less a small cost per jump."""
    begins = [match.start() for match in _HUMPS.finditer(text)]
    folded = text.casefold()
    if len(folded) != len(text):
        return 0.0
    good = leaps = 0
    at = -1
    for letter in letters:
        if at >= 0 and folded.startswith(letter, at + 1):
            at += 1
            good += 1
            continue
        following = next((i for i in begins if i > at and folded[i] == letter), -1)
        good += following >= 0
        if following < 0:
            following = folded.find(letter, at + 1)
        if following < 0:
            return 0.0
        leaps += 1
        at = following
    return good / len(letters) - leaps / 50


def _spelled(wanted: str, paths: list[str]) -> list[str]:
    """The names with the most similar spelling."""
    from difflib import SequenceMatcher

    folded = wanted.casefold()
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(folded)
    scores: dict[str, float] = {}
    deep = "/" in folded
    ranked = []
    for path in paths:
        bare = path.rstrip("/").casefold()
        name = bare if deep else bare.rpartition("/")[2]
        score = scores.get(name)
        if score is None:
            score = scores[name] = max(
                _alike(matcher, variant) for variant in _variants(name, folded)
            )
        if score >= 0.7:
            ranked.append((-score, order(path), path))
    return [path for *_, path in sorted(ranked)[:_MOST_ALIKE]]


def _variants(name: str, wanted: str) -> set[str]:
    return {name, name.rpartition(".")[0] or name} if "." not in wanted else {name}


def _alike(matcher: object, name: str) -> float:
    from difflib import SequenceMatcher

    assert isinstance(matcher, SequenceMatcher)
    matcher.set_seq1(name)
    if matcher.real_quick_ratio() < 0.7 or matcher.quick_ratio() < 0.7:
        return 0.0
    return float(matcher.ratio())

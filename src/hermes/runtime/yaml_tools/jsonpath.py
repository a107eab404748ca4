"""JSONPath subset: `$`, `.name`, `['name']`, `[n]`, `[*]`, `.*`, `..name`."""

from __future__ import annotations

import re
from itertools import islice

from hermes.core.errors import HermesError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# What `..name` may visit in one answer; a document that needs more is not what anybody meant.
MOST_VISITED = 1_000_000

_STEP = re.compile(
    r"""
      (?P<deep>\.\.)? (?: (?(deep)|\.) (?P<name>[^\W\d][\w-]*|\*) )
    | (?P<deep2>\.\.)? \[ \s* (?:
          (?P<index>-?\d{1,9})
        | (?P<star>\*)
        | '(?P<single>(?:[^'\\]|\\.)*)'
        | "(?P<double>(?:[^"\\]|\\.)*)"
      ) \s* \]
    """,
    re.VERBOSE,
)


class PathError(HermesError):
    """A path that can't be read; the message says where it stops making sense."""


class JsonPath:
    """One path, read once. `definite` when it can lead to one place only."""

    __slots__ = ("_steps", "definite", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = _parse(text.strip())
        self.definite = not any(deep or key is None for deep, key in self._steps)

    def __repr__(self) -> str:
        return f"JsonPath({self.text!r})"

    def find(self, value: Any) -> list[Any]:
        """Every place the path leads to, in document order."""
        found = [value]
        for deep, key in self._steps:
            places = _everything(found) if deep else found
            found = _bounded(inner for place in places for inner in _children(place, key))
        return found


def _parse(text: str) -> list[tuple[bool, str | int | None]]:
    """Steps as (at any depth?, key); a key of None means every child."""
    if not text.startswith("$"):
        raise PathError(f"{text!r:.80} does not begin with `$`", hint="Write `$.name`.")
    steps: list[tuple[bool, str | int | None]] = []
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise PathError(
                f"{text!r:.80} can't be read from {text[at:]!r:.40} on",
                hint="Steps are .name, ['name'], [n], [*], .* and ..name.",
            )
        steps.append((bool(step["deep"] or step["deep2"]), _key(step)))
        at = step.end()
    return steps


def _key(step: re.Match[str]) -> str | int | None:
    if step["star"] or step["name"] == "*":
        return None
    if step["index"] is not None:
        return int(step["index"])
    if step["name"] is not None:
        return step["name"]
    quoted: str = step["single"] if step["single"] is not None else step["double"]
    return re.sub(r"\\(.)", r"\1", quoted)


def _children(place: Any, key: str | int | None) -> Iterator[Any]:
    if isinstance(place, dict):
        if key is None:
            yield from place.values()
        elif isinstance(key, str) and key in place:
            yield place[key]
    elif isinstance(place, list):
        if key is None:
            yield from place
        elif isinstance(key, int) and -len(place) <= key < len(place):
            yield place[key]


def _bounded(values: Iterator[Any]) -> list[Any]:
    found = list(islice(values, MOST_VISITED + 1))
    if len(found) > MOST_VISITED:
        raise PathError(f"the answer has more than {MOST_VISITED} places to look at")
    return found


def _everything(places: list[Any]) -> Iterator[Any]:
    """The places and all that is below them, parents first, without recursion."""
    waiting = places[::-1]
    visited = 0
    while waiting:
        place = waiting.pop()
        visited += 1
        if visited > MOST_VISITED:
            raise PathError(f"the answer has more than {MOST_VISITED} places to look at")
        yield place
        if isinstance(place, dict):
            waiting.extend(reversed(place.values()))
        elif isinstance(place, list):
            waiting.extend(reversed(place))

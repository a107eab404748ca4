"""Where a value comes from, and where a call would take it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.safety.placeholders.spelling import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Resolve = Callable[[str], str]
    Place = tuple[str, str]


class Origin(NamedTuple):
    """Where a value was seen: `kind` is "file", "host" or "" for anywhere else."""

    tool: str
    kind: str = ""
    target: str = ""


def origin_of(
    tool: str,
    acts: Iterable[tuple[str, str]],
    *,
    workspace: str = "",
    resolve: Resolve | None = None,
) -> Origin:
    """Where the result of a call comes from; nowhere in particular when it touches several places.

    Args:
        tool: The tool that was called.
        acts: What the call does, as kind and value.
        workspace: Where relative paths start.
        resolve: Gives the real place of a path; by default that on this machine.
    """
    places = {_place(kind, value, workspace, resolve) for kind, value in acts}
    return Origin(tool, *(places.pop() if len(places) == 1 else ("", "")))


def refused(placeholder: str, reason: str) -> ToolError:
    """What the model is told when a value may not go where it wants it."""
    return ToolError(
        f"{placeholder} stands for a secret and can't be used here: {reason}",
        hint="A secret goes back only to the file or the host it was read from, by a call that "
        "touches nothing else. Read that file or address itself again, or ask the user.",
    )


def destination(
    placeholder: str,
    acts: Sequence[tuple[str, str]],
    workspace: str,
    resolve: Resolve | None,
    effect: str,
) -> Place:
    """The one place that a call takes its arguments to; raises `ToolError` where it is not one."""
    places = {_place(kind, value, workspace, resolve) for kind, value in acts}
    kinds = {kind for kind, _ in acts}
    if len(places) > 1:
        raise refused(placeholder, "the call touches more than one place")
    if "write" in kinds <= {"read", "write"} and effect in ("", "write"):
        return places.pop()
    if kinds == {"fetch"} and effect in ("", "network"):
        place = places.pop()
        if place[1]:
            return place
    raise refused(placeholder, "the call neither writes a file nor fetches from a host")


def _place(kind: str, value: str, workspace: str, resolve: Resolve | None) -> Place:
    if kind in ("read", "write", "delete"):
        if resolve is not None:
            return "file", resolve(value)
        try:
            return "file", os.path.realpath(os.path.join(workspace, os.path.expanduser(value)))
        except ValueError:
            return "", ""
    return ("host", _host(value)) if kind == "fetch" else ("", "")


def _host(url: str) -> str:
    """Scheme, host and port of an address; empty where that is not plain to see."""
    from urllib.parse import urlsplit

    authority = re.match(r"[A-Za-z][A-Za-z0-9+.\-]*://([^/?#\\\s]*)", url)
    if authority is None or START in authority[1]:
        return ""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return ""
    if parts.netloc != authority[1] or not parts.hostname or not port:
        # Where readers of addresses disagree, there is no telling whose it is.
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}"


def check_addresses(given: Any, filled: Any, host: str, placeholder: str) -> None:
    """Refuse an address among the arguments that a value would lead elsewhere."""
    if isinstance(given, str):
        if (
            given != filled
            and _host(given) == host
            and not (_host(filled) == host and filled.isprintable() and " " not in filled)
        ):
            raise refused(placeholder, "its value does not fit into an address")
    elif isinstance(given, dict):
        for before, after in zip(given.values(), filled.values(), strict=True):
            check_addresses(before, after, host, placeholder)
    elif isinstance(given, (list, tuple)):
        for before, after in zip(given, filled, strict=True):
            check_addresses(before, after, host, placeholder)

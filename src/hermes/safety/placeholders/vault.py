"""Vault: the masked secrets of each session, filled in again where their origin and destination
allow it.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.safety.placeholders.format import (
    START,
    filled,
    is_placeholder,
    new_placeholder,
    placeholders_in,
)
from hermes.safety.redaction.known_values import KnownValues
from hermes.safety.redaction.redactor import Redactor, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, NoReturn

    from hermes.safety.redaction.redactor import Show


if TYPE_CHECKING:
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
    """The origin of a call's result; none when the call touches several targets.

    Args:
        tool: The tool that was called.
        acts: The effects of the call, as kind and value.
        workspace: Where relative paths start.
        resolve: Returns the real path; by default that on this machine.
    """
    places = {_place(kind, value, workspace, resolve) for kind, value in acts}
    return Origin(tool, *(places.pop() if len(places) == 1 else ("", "")))


def refused(placeholder: str, reason: str) -> ToolError:
    """The error for a value that may not go to a destination."""
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


MOST_SESSIONS = 64
MOST_VALUES = 1_000
MOST_CHARACTERS = 1_000_000

_GUTTER = re.compile(r"[ \t]*(\d+)[|:\t→]")


class Used(NamedTuple):
    """The placeholders that a call used, and the values that its result must not show."""

    placeholders: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Used({', '.join(self.placeholders)})"


class _Kept:
    """One value with its placeholder and the places it was seen in."""

    __slots__ = ("number", "origins", "placeholder", "value")

    def __init__(self, value: str, placeholder: str, *, number: bool) -> None:
        self.value = value
        self.placeholder = placeholder
        self.number = number
        self.origins: set[tuple[str, str]] = set()


class _Session:
    """The values of one session, those used last at the end."""

    __slots__ = ("by_placeholder", "by_value", "characters", "key")

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self.by_value: OrderedDict[tuple[str, bool], _Kept] = OrderedDict()
        self.by_placeholder: dict[str, _Kept] = {}
        self.characters = 0

    def keep(self, value: str, kind: str, *, number: bool) -> _Kept:
        found = self.by_value.get((value, number))
        if found is not None:
            self.by_value.move_to_end((value, number))
            return found
        kept = _Kept(value, self._new_placeholder(value, kind, number=number), number=number)
        self.by_value[value, number] = kept
        self.by_placeholder[kept.placeholder] = kept
        self.characters += len(value)
        while len(self.by_value) > MOST_VALUES or (
            self.characters > MOST_CHARACTERS and len(self.by_value) > 1
        ):
            _, oldest = self.by_value.popitem(last=False)
            del self.by_placeholder[oldest.placeholder]
            self.characters -= len(oldest.value)
        return kept

    def _new_placeholder(self, value: str, kind: str, *, number: bool) -> str:
        salt = 0
        while True:
            said = f"{salt}\0{number}\0{value}".encode("utf-8", "surrogatepass")
            placeholder = new_placeholder(kind, said, self.key)
            if placeholder not in self.by_placeholder:
                return placeholder
            salt += 1


class Vault:
    """The masked values of each session, and the way back."""

    __slots__ = ("_lock", "_redactor", "_sessions")

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor()
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vault stays in its process")

    def mask(self, text: str, *, session: str, origin: Origin, used: Used | None = None) -> str:
        """`text` with a placeholder for each secret.

        `used` is the result of `fill` for the call: its values are masked everywhere, in any
        format.
        """
        show = self._show(session, origin)
        if used and used.values:
            known = KnownValues(used.values)
            spans = [*self._redactor.find(text), *known.find(text), *known.find_joined(text)]
            return replace(text, spans, self._redactor.redact, show) if spans else text
        return self._redactor.redact(text, show=show)

    def has_placeholder(self, text: str) -> bool:
        """Whether there is a placeholder in a text, of this session or any other."""
        return START in text and bool(placeholders_in(text))

    def fill(
        self,
        arguments: Mapping[str, Any],
        acts: Sequence[tuple[str, str]],
        session: str,
        *,
        workspace: str = "",
        resolve: Resolve | None = None,
        effect: str = "",
        allowed: bool = True,
    ) -> tuple[dict[str, Any], Used]:
        """The arguments to run with, placeholders replaced by values; and the values used.

        A call without effects keeps placeholders as text. Raises `ToolError` where a value may not
        go; the given arguments are not changed.

        Args:
            arguments: The arguments as the model sent them.
            acts: The effects of the call, as kind and value.
            session: The session of the placeholders.
            workspace: Where relative paths start.
            resolve: Returns the real path; by default that on this machine.
            effect: The declared effect of the tool, if known.
            allowed: Whether the profile lets values pass at all.
        """
        found = placeholders_in(arguments)
        if not found or not acts:
            return dict(arguments), Used()
        if not allowed:
            raise refused(found[0], "the profile in force does not pass secrets on")
        place = destination(found[0], acts, workspace, resolve, effect)
        values = {placeholder: self._value(placeholder, session, place) for placeholder in found}
        given = {name: filled(value, values) for name, value in arguments.items()}
        if place[0] == "host":
            check_addresses(dict(arguments), given, place[1], found[0])
        return given, Used(tuple(values), tuple(kept.value for kept in values.values()))

    def known(self, session: str) -> Used:
        """Every value that a placeholder of the session stands for."""
        with self._lock:
            held = self._sessions.get(session)
            if held is None:
                return Used()
            kept = list(held.by_placeholder.values())
        return Used(tuple(one.placeholder for one in kept), tuple(one.value for one in kept))

    def end_session(self, session: str) -> None:
        """Forget the values of a session."""
        with self._lock:
            self._sessions.pop(session, None)

    def _show(self, session: str, origin: Origin) -> Show:
        def show(value: str, kind: str, number: bool) -> str:
            if is_placeholder(value):
                return value
            plain = _without_gutter(value) if "\n" in value else value
            with self._lock:
                kept = self._session(session).keep(plain, kind, number=number)
                if origin.kind:
                    kept.origins.add((origin.kind, origin.target))
                return kept.placeholder

        return show

    def _session(self, name: str) -> _Session:
        found = self._sessions.get(name)
        if found is None:
            found = self._sessions[name] = _Session()
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(name)
        return found

    def _value(self, placeholder: str, session: str, place: Place) -> _Kept:
        with self._lock:
            held = self._sessions.get(session)
            kept = held.by_placeholder.get(placeholder) if held else None
            if kept is None:
                raise refused(placeholder, "its value is no longer held in this session")
            if place not in kept.origins:
                where = "file" if place[0] == "file" else "host"
                raise refused(placeholder, f"its value was not seen in this {where}")
            return kept


def _without_gutter(value: str) -> str:
    """A value over lines without the line numbers that a listing puts before each."""
    first, *rest = value.split("\n")
    gutters = [_GUTTER.match(line) for line in rest]
    numbers = [int(gutter[1]) for gutter in gutters if gutter]
    if len(numbers) < len(rest) or numbers != list(range(numbers[0], numbers[0] + len(rest))):
        return value
    return "\n".join([first, *(g.string[g.end() :] for g in gutters if g)])

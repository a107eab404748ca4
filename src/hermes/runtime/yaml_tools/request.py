"""One call's arguments -> an HTTP request. Values go where the file says and nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from hermes.core.errors import ToolError
from hermes.core.jsontext import to_json
from hermes.runtime.yaml_tools.argv import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.runtime.yaml_tools.definition import Auth, HttpSpec, Parameter
    from hermes.runtime.yaml_tools.placeholders import Template


class Request:
    """What is to be sent. `secrets` are the values that must not be seen in any answer."""

    __slots__ = ("body", "headers", "method", "secrets", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.secrets = secrets


def build_request(
    spec: HttpSpec, parameters: Mapping[str, Parameter], arguments: Mapping[str, Any]
) -> Request:
    """The request for one call; raises `ToolError` for a value that has no place in it."""
    headers = {"Accept": "application/json, text/*;q=0.9, */*;q=0.5", **_titled(spec.headers)}
    body: dict[str, Any] = {}
    for name, value in _given(arguments).items():
        place = parameters[name].place
        if place == "header":
            headers[name] = header_value(name, as_text(value))
        elif place == "body":
            body[name] = value
    content = None
    if any(parameter.place == "body" for parameter in parameters.values()):
        content = to_json(body).encode()
        headers.setdefault("Content-Type", "application/json")
    secrets = _authorise(spec.auth, headers)
    url = build_url(spec, parameters, arguments)
    return Request(spec.method, url, headers, content, secrets)


def build_url(
    spec: HttpSpec, parameters: Mapping[str, Parameter], arguments: Mapping[str, Any]
) -> str:
    """The address for one call, every value quoted."""
    given = _given(arguments)
    path = "/".join(_segment(segment, given) for segment in spec.segments)
    pairs = [
        piece.fill(lambda name: _quoted(name, given[name]))
        for piece in spec.query
        if all(name in given for name in piece.names)
    ]
    for name, value in given.items():
        if parameters[name].place == "query":
            values = value if isinstance(value, list) else [value]
            pairs += [f"{quote(name, safe='')}={_quoted(name, one)}" for one in values]
    return f"{spec.origin}/{path}" + (f"?{'&'.join(pairs)}" if pairs else "")


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def header_value(name: str, value: str) -> str:
    """`value` when it can be a header's; a line break would begin another header."""
    value = value.strip(" \t")
    if not all(character == "\t" or character.isprintable() for character in value):
        raise ToolError(
            f"{name} is sent as a header and can't hold line breaks or control characters"
        )
    return value


def _segment(segment: Template, given: Mapping[str, Any]) -> str:
    filled = segment.fill(lambda name: _quoted(name, given[name]))
    if not segment.names:
        return filled
    named = " and ".join(segment.names)
    # Some servers undo the quoting first and then walk the path, so dots are looked for after it.
    if any(step in (".", "..") for step in unquote(filled).replace("\\", "/").split("/")):
        raise ToolError(f"{named} can't be a step to another folder (`..`): it is part of a path")
    if not filled:
        raise ToolError(f"{named} can't be empty: it is part of a path")
    return filled


def _quoted(name: str, value: Any) -> str:
    try:
        return quote(as_text(value).encode(), safe="")
    except UnicodeEncodeError:
        raise ToolError(f"{name} holds half a character, which no address can hold") from None


def _titled(headers: Mapping[str, str]) -> dict[str, str]:
    # `accept: …` in the file replaces our own `Accept`.
    return {("Accept" if name.lower() == "accept" else name): v for name, v in headers.items()}


def _authorise(auth: Auth, headers: dict[str, str]) -> tuple[str, ...]:
    """Set the header that says who we are; the values to be kept out of every answer."""
    if auth.type == "none":
        return ()
    values = [_variable(name) for name in auth.names]
    if auth.type == "basic":
        from base64 import b64encode

        pair = b64encode(":".join(values).encode()).decode()
        headers[auth.header] = f"Basic {pair}"
        # The user name alone is no secret; together with the password it is.
        return (values[1], pair)
    headers[auth.header] = f"Bearer {values[0]}" if auth.type == "bearer" else values[0]
    return tuple(values)


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise ToolError(
            f"the environment variable {name} is not set", hint=f"A person has to set {name}."
        )
    if not value.isprintable():
        raise ToolError(f"the environment variable {name} holds a line break or control character")
    return value

"""HTTP messages: builds the request of a call, and extracts the result text from the response."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from hermes.core.entry import ToolResult
from hermes.core.errors import ToolError
from hermes.core.json_text import to_json
from hermes.runtime.yaml_tools.jsonpath import JsonPath
from hermes.runtime.yaml_tools.template import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.runtime.yaml_tools.spec import Auth, HttpSpec, Parameter, ResponseSpec
    from hermes.runtime.yaml_tools.template import Template


class Request:
    """An HTTP request. `secrets` are values to mask in the response."""

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


EXCERPT = 2000
# Real encodings only: Python knows others, some of which take for ever on a text made for it.
_CHARSET = re.compile(
    r"charset\s*=\s*[\"']?((?:utf-?(?:8|16|32)|iso-?8859|latin|windows-|cp|us-ascii|ascii|gb|big5|euc"
    r"|shift|sjis|koi8|iso-2022|mac|tis)[\w-]*)",
    re.IGNORECASE,
)


class Body:
    """The bytes of a response, and its content type."""

    __slots__ = ("content", "content_type")

    def __init__(self, content: bytes, content_type: str = "") -> None:
        self.content = content
        self.content_type = content_type

    def text(self) -> str | None:
        """The body as text; None when it is something else."""
        named = _CHARSET.search(self.content_type)
        for encoding in (*((named[1],) if named else ()), "utf-8-sig"):
            try:
                return self.content.decode(encoding)
            except (LookupError, ValueError):
                # An encoding nobody knows, or not the one it was said to be.
                continue
        return None if b"\0" in self.content else self.content.decode("utf-8", "replace")


def read_json(text: str) -> tuple[bool, Any]:
    """Whether the text is JSON, and its value."""
    import json

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return True, json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False, None


def answer(status: int, body: Body, spec: ResponseSpec, redact: Callable[[str], str]) -> Any:
    """The tool result for a successful response."""
    if not body.content:
        return {"status": status, "body": ""}
    text = body.text()
    if text is None:
        return ToolResult(
            {"content_type": body.content_type, "bytes": len(body.content)},
            notes=["the answer is not text and was left out"],
        )
    is_json, value = read_json(text)
    if spec.path is None and spec.template is None:
        return value if is_json else text
    if not is_json:
        return ToolResult(
            error="the answer is not JSON, so nothing can be picked from it",
            content_type=body.content_type,
            body=_excerpt(text, redact),
        )
    if spec.path is not None:
        found = spec.path.find(value)
        if spec.path.definite:
            if not found:
                return _nothing(spec.path.text, value)
            value = found[0]
        elif not found:
            return ToolResult(
                [], notes=[f"nothing in the answer is at {spec.path.text}; {_has(value)}"]
            )
        else:
            value = found
    return value if spec.template is None else _rendered(spec.template, value)


def failure(what: str, status: int, body: Body, redact: Callable[[str], str]) -> ToolResult:
    """The result for an answer that says no."""
    from http import HTTPStatus

    text = body.text()
    excerpt = f"({len(body.content)} bytes, not text)" if text is None else _excerpt(text, redact)
    try:
        # The usual words and not the server's, which could be anything.
        words = HTTPStatus(status).phrase
    except ValueError:
        words = ""
    error = f"{what} answered {status} {words}".rstrip()
    return ToolResult(error=error, status=status, body=excerpt)


def _excerpt(text: str, redact: Callable[[str], str]) -> str:
    # Redacted before it is cut: half a secret would not be recognised.
    shown = redact(text[: 20 * EXCERPT])
    if len(shown) <= EXCERPT:
        return shown
    return f"{shown[:EXCERPT]}… ({len(text) - EXCERPT} characters more)"


def _rendered(template: Template, value: Any) -> Any:
    """The template once, or once per member of a list, a line each."""
    paths = {name: JsonPath(f"$.{name}") for name in template.names}
    found_any = False

    def line(item: Any) -> str:
        def field(name: str) -> str:
            nonlocal found_any
            found = paths[name].find(item)
            if not found:
                return ""
            found_any = True
            if paths[name].definite:
                return "" if found[0] is None else as_text(found[0])
            return ", ".join(map(as_text, found))

        return template.fill(field)

    text = "\n".join(map(line, value)) if isinstance(value, list) else line(value)
    if not found_any and value != []:
        return _nothing(" or ".join(template.names), value)
    return text


def _nothing(where: str, value: Any) -> ToolResult:
    return ToolResult(error=f"nothing in the answer is at {where}", hint=_has(value))


def _has(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:20])
        return (
            f"the answer is an object with the keys {keys}"
            if keys
            else "the answer is an empty object"
        )
    if isinstance(value, list):
        return f"the answer is a list of {len(value)}"
    return f"the answer is {as_text(value)[:80]}"

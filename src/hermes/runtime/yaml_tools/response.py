"""An answer's body -> what the model reads: the whole, a part, or a text made from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.core.result import ToolResult
from hermes.runtime.yaml_tools.argv import as_text
from hermes.runtime.yaml_tools.jsonpath import JsonPath

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.runtime.yaml_tools.definition import ResponseSpec
    from hermes.runtime.yaml_tools.placeholders import Template

EXCERPT = 2000
# Real encodings only: Python knows others, some of which take for ever on a text made for it.
_CHARSET = re.compile(
    r"charset\s*=\s*[\"']?((?:utf-?(?:8|16|32)|iso-?8859|latin|windows-|cp|us-ascii|ascii|gb|big5|euc"
    r"|shift|sjis|koi8|iso-2022|mac|tis)[\w-]*)",
    re.IGNORECASE,
)


class Body:
    """The bytes of an answer, and what the server says they are."""

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
    """What the tool gives back for an answer that says yes."""
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

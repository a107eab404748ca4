"""What a person who is asked for approval sees, and what their words mean."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.context import ApprovalRequest
    from hermes.core.registry import ToolRegistry

# Shown whole up to here; longer arguments by both ends, with the size and a digest.
_WHOLE = 4_000
ANSWERS = {
    "y": "once",
    "yes": "once",
    "s": "session",
    "session": "session",
    "a": "always",
    "always": "always",
}


def can_ask() -> bool:
    """Whether there is a person who sees the question and can type an answer."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def yes_to_this(request: ApprovalRequest) -> bool:  # noqa: ARG001
    """The approver for a person who said yes beforehand, for this one command."""
    return True


def usual_values(registry: ToolRegistry, tool: str) -> dict[str, Any]:
    """The values that the arguments of a tool have when nobody gives others."""
    entry = registry.resolve(tool)
    properties = entry.parameters.get("properties", {}) if entry is not None else {}
    return {name: one["default"] for name, one in properties.items() if "default" in one}


def shown(value: object) -> str:
    """A value as the person has to see it: nothing hidden, nothing that moves the cursor."""
    import hashlib

    from hermes.core.jsontext import to_json

    text = to_json(value)
    # Escapes make control, bidi and zero-width characters visible.
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    if len(plain) <= _WHOLE:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    ends = _WHOLE // 2
    return f"{plain[:ends]} …[{len(text)} characters, sha256 {digest}]… {plain[-ends:]}"

"""Untrusted text of the protocol: cleaned of control and invisible characters, and cut to length.

A server can write anything into a description. Nothing in it may be invisible to a person, imitate
the structure of a conversation, or crowd out the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

DESCRIPTION_CHARS = 2_000
PARAMETER_CHARS = 500
SCHEMA_CHARS = 12_000  # all texts inside one schema together


def clean(text: Any, limit: int) -> str:
    """Visible text of at most `limit` characters; empty for anything that is no text."""
    from hermes.safety.sanitise import clean_text

    if not isinstance(text, str):
        return ""
    text = clean_text(text[: 8 * limit]).strip()
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def tool_description(tool: dict[str, Any], server: str) -> str:
    """The description of a server's tool, or its title."""
    text = clean(tool.get("description"), DESCRIPTION_CHARS) or clean(tool.get("title"), 200)
    annotations = tool.get("annotations")
    if not text and isinstance(annotations, dict):
        text = clean(annotations.get("title"), 200)
    return text or f"A tool of the server {server} without a description."


def valid_unicode(text: str) -> str:
    """The text with unpaired surrogates replaced: they can't be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def valid_unicode_value(value: Any) -> Any:
    """`valid_unicode` for every text inside a JSON value."""
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, list):
        return [valid_unicode_value(item) for item in value]
    if isinstance(value, dict):
        return {valid_unicode(key): valid_unicode_value(item) for key, item in value.items()}
    return value

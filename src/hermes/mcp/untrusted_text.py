"""Untrusted text of the protocol: cleaned of control and invisible characters, and cut to
length.
"""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = 2_000
PARAMETER = 500
# All texts inside one schema together.
SCHEMA_TEXT = 12_000


def plain(text: Any, limit: int) -> str:
    """`text` without what nobody sees, at most `limit` characters."""
    from hermes.safety.sanitise import clean_text

    if not isinstance(text, str):
        return ""
    # Far more than is shown need not be read.
    text = clean_text(text[: 8 * limit]).strip()
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def description_of(tool: dict[str, Any], server: str) -> str:
    """What a server says of a tool; definitions say before it whose words these are."""
    said = plain(tool.get("description"), DESCRIPTION) or plain(tool.get("title"), 200)
    annotations = tool.get("annotations")
    if not said and isinstance(annotations, dict):
        said = plain(annotations.get("title"), 200)
    return said or f"A tool of the server {server} that says nothing of itself."


def whole(text: str) -> str:
    """The text with a mark in place of each half of a character, which can't be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def whole_value(value: Any) -> Any:
    """The same for every text in a value."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [whole_value(item) for item in value]
    if isinstance(value, dict):
        return {whole(key): whole_value(item) for key, item in value.items()}
    return value

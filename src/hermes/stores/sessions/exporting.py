"""A whole session as one text: for programs (json), for reading (md), for a browser (html)."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.messages import Message
from hermes.safety.redaction import redact
from hermes.stores.sessions.values import Base, Intent, Note, Outcome, SessionsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.stores.sessions.values import Entry, SessionInfo

FORMS = ("json", "md", "html")


class Part:
    """A piece of an export: whose it is, what it says, and what it has beside the words."""

    __slots__ = ("at", "details", "images", "text", "who")

    def __init__(self, who: str, at: float, text: str) -> None:
        self.who = who
        self.at = at
        self.text = text
        self.details: list[tuple[str, str]] = []
        self.images: list[tuple[str, str]] = []


def export(
    info: SessionInfo,
    journal: Sequence[Entry],
    messages: Sequence[Message],
    form: str,
    *,
    raw: bool = False,
) -> str:
    """The session in one of `FORMS`; secrets are left out unless `raw`."""
    if form == "json":
        plain = msgspec.to_builtins(
            {"session": info, "messages": list(messages), "journal": list(journal)}
        )
        plain = plain if raw else _redacted(plain)
        return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"
    parts = [part for entry in journal for part in _parts(entry)]
    for part in () if raw else parts:
        part.text = redact(part.text)
        part.details = [(redact(name), redact(text)) for name, text in part.details]
    title = info.title if raw else redact(info.title)
    if form == "md":
        return "\n\n".join([*_markdown_head(info, title), *map(_markdown, parts)]) + "\n"
    if form == "html":
        from hermes.stores.sessions.page import page

        return page(info, title, parts)
    raise SessionsError(f"there is no export as {form!r:.40}", hint=f"Use {', '.join(FORMS)}.")


def when(at: float) -> str:
    """A time as people write it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) + " UTC"


def _parts(entry: Entry) -> Iterator[Part]:
    value = entry.value
    if isinstance(value, Message):
        part = Part(value.role if value.role != "tool" else f"result of {value.name or 'a call'}",
                    entry.at, value.text)  # fmt: skip
        if value.reasoning:
            part.details.append(("reasoning", value.reasoning))
        part.details += [(f"call {call.name}", call.arguments) for call in value.calls]
        part.images = [(image.media_type, image.data or image.url) for image in value.images]
        yield part
    elif isinstance(value, Base):
        part = Part("summary" if value.upto else "what came before", entry.at, "")
        part.details = [(message.role, message.text) for message in value.messages]
        yield part
    elif isinstance(value, Note):
        part = Part(f"note: {value.kind}", entry.at, "")
        part.details.append((value.kind, msgspec.json.encode(value.data).decode()))
        yield part
    elif isinstance(value, Outcome) and value.status != "ok":
        yield Part(f"a call ended as {value.status}", entry.at, "")
    else:
        # What was asked for and what it gave is in the messages already.
        assert isinstance(value, Intent | Outcome)


def _markdown_head(info: SessionInfo, title: str) -> list[str]:
    return [
        f"# {' '.join(title.split()) or info.id}",
        f"Session `{info.id}`, model `{info.model}`, in `{info.workspace}`, {when(info.began)}",
    ]


def _markdown(part: Part) -> str:
    lines = [f"## {part.who} · {when(part.at)}"]
    if part.text:
        lines.append(_fenced(part.text) if part.who.startswith("result") else part.text)
    for name, text in part.details:
        lines.append(f"**{name}**\n\n{_fenced(text)}")
    lines += [f"(an image, {kind})" for kind, _ in part.images]
    return "\n\n".join(lines)


def _fenced(text: str) -> str:
    """A block that no line of the text can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return value

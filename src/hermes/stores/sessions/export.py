"""Session export: JSON, Markdown, or one self-contained HTML page without scripts."""

from __future__ import annotations

import re
import time
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.core.model_protocol import Message
from hermes.safety.redaction import redact
from hermes.stores.sessions.records import Base, Intent, Note, Outcome, SessionsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes.stores.sessions.records import Entry, SessionInfo


FORMS = ("json", "md", "html")


class Part:
    """A part of an export: role, text, and further fields."""

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


_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }}
article {{ border-left: 4px solid #8888; margin: 1rem 0; padding: 0 1rem; }}
article.user {{ border-color: #27c; }}
article.assistant {{ border-color: #2a6; }}
h2 {{ font-size: 1rem; margin: 0; }}
time, .about {{ color: #888; font-weight: normal; font-size: .85rem; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .5rem 0; }}
details pre, pre.result {{ font: .85rem/1.4 ui-monospace, monospace; }}
img {{ max-width: 100%; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="about">{about}</p>
"""
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")


def page(info: SessionInfo, title: str, parts: list[Part]) -> str:
    """The page."""
    about = f"{info.id} · {info.model} · {info.workspace} · {when(info.began)}"
    head = _HEAD.format(title=_safe(title or info.id), about=_safe(about))
    return head + "".join(map(_article, parts)) + "</body>\n</html>\n"


def _article(part: Part) -> str:
    kind = part.who.split(" ")[0]
    lines = [
        f'<article class="{_safe(kind)}">',
        f"<h2>{_safe(part.who)} <time>{when(part.at)}</time></h2>",
    ]
    if part.text:
        style = ' class="result"' if kind == "result" else ""
        inside = f"<pre{style}>{_safe(part.text)}</pre>"
        folded = kind == "result" and len(part.text) > 1000
        lines.append(_folded("result", part.text) if folded else inside)
    lines += [_folded(name, text) for name, text in part.details]
    for media_type, data in part.images:
        if media_type in _PICTURES and _BASE64.fullmatch(data):
            lines.append(f'<img alt="" src="data:{media_type};base64,{data}">')
        else:
            lines.append(f"<p>(an image, {_safe(media_type)})</p>")
    return "\n".join([*lines, "</article>\n"])


def _folded(name: str, text: str) -> str:
    return f"<details><summary>{_safe(name)}</summary><pre>{_safe(text)}</pre></details>"


def _safe(text: str) -> str:
    """Text that is only text to a browser; control characters, which HTML forbids, made visible."""
    shown = "".join(c if c >= " " or c in "\t\n" else "\ufffd" for c in text)
    return escape(shown, quote=True)

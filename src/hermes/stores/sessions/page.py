"""A session as one web page that needs nothing else and runs nothing."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from hermes.stores.sessions.exporting import when

if TYPE_CHECKING:
    from hermes.stores.sessions.exporting import Part
    from hermes.stores.sessions.values import SessionInfo

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

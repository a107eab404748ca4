"""Jupyter notebooks (`.ipynb`) as text: numbered cells with source and output.

Metadata is left out, long outputs are shortened, and pictures are replaced by their type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.text.ansi import strip_ansi
from hermes.text.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OUTPUT = 2_000  # characters of one output that are shown
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^<>]*>", re.DOTALL | re.IGNORECASE)


class Notebook(NamedTuple):
    """A notebook as text; `note` says why when it is shown as it stands in the file."""

    text: str
    cells: int
    language: str
    note: str


def read_notebook(data: bytes, *, max_output: int = OUTPUT) -> Notebook:
    """The cells of a notebook; a file that is none is returned as plain text with a note."""
    import json

    source = decode(data)
    try:
        content = json.loads(source.text)
        cells = _cells(content)
    except (ValueError, RecursionError, _BrokenError) as error:
        note = f"not a notebook that can be read ({error}); shown as text"
        return Notebook(source.shown, 0, "", note)
    language = _language(content)
    parts = [
        "\n".join(_shown(cell, number, max_output)) for number, cell in enumerate(cells, start=1)
    ]
    return Notebook("\n\n".join(parts) + "\n" if parts else "", len(cells), language, "")


class _BrokenError(Exception):
    """JSON, but no notebook."""


def _cells(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, dict):
        raise _BrokenError("no JSON object")
    cells = content.get("cells")
    if cells is None and isinstance(content.get("worksheets"), list):
        # Until version 3 there were several sheets.
        sheets = [sheet for sheet in content["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or ()]
    if not isinstance(cells, list):
        raise _BrokenError("it has no cells")
    if not all(isinstance(cell, dict) for cell in cells):
        raise _BrokenError("a cell is no JSON object")
    return cells


def _language(content: dict[str, Any]) -> str:
    metadata = _dict(content.get("metadata"))
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        name = _dict(metadata.get(part)).get(key)
        if isinstance(name, str) and name:
            return name
    return ""


def _shown(cell: dict[str, Any], number: int, max_output: int) -> Iterator[str]:
    kind = cell.get("cell_type")
    count = cell.get("execution_count", cell.get("prompt_number"))
    run = f", run {count}" if isinstance(count, int) else ""
    yield f"# cell {number}: {kind if isinstance(kind, str) else 'unknown'}{run}"
    source = _joined(cell.get("source", cell.get("input")))
    if source:
        yield source.rstrip("\n")
    for name, content in _dict(cell.get("attachments")).items():
        for mime, value in _dict(content).items():
            yield f"[attachment {name}: {_size(mime, value)}]"
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        yield from _output(_dict(output), max_output)


def _output(output: dict[str, Any], most: int) -> Iterator[str]:
    kind = output.get("output_type")
    if kind == "stream":
        name = output.get("name", output.get("stream", "stdout"))
        text = _without_overwritten(_joined(output.get("text")))
        yield f"# -> {name}"
        yield _short(text, most)
    elif kind in ("error", "pyerr"):
        yield f"# -> error {output.get('ename', '')}: {_joined(output.get('evalue'))}"
        trace = output.get("traceback")
        if isinstance(trace, list) and trace:
            yield _short("\n".join(map(_joined, trace)), most)
    else:
        yield from _display(output, most)


def _display(output: dict[str, Any], most: int) -> Iterator[str]:
    # Until version 3 the forms of an output were its own members, by short names.
    short = {"text": "text/plain", "html": "text/html", "png": "image/png", "jpeg": "image/jpeg",
             "svg": "image/svg+xml", "latex": "text/latex"}  # fmt: skip
    data = _dict(output.get("data")) or {
        short[key]: value for key, value in output.items() if key in short
    }
    yield "# -> result" if output.get("output_type") in _RESULTS else "# -> display"
    shown_type = False
    for mime in ("text/plain", "text/markdown", "text/latex", "text/html"):
        text = _joined(data.get(mime))
        if text and not shown_type:
            shown_type = True
            yield _short(_TAG.sub(" ", text) if mime == "text/html" else text, most)
    for mime, value in data.items():
        if mime.split("/")[0] in ("image", "audio", "video") or (
            not shown_type and not mime.startswith("text/")
        ):
            yield f"[{_size(mime, value)}]"


_RESULTS = ("execute_result", "pyout")


def _size(mime: str, value: Any) -> str:
    if not isinstance(value, str | list):
        from hermes.core.json_text import to_json

        return f"{mime}, {len(to_json(value)):,} characters"
    text = _joined(value)
    if mime.startswith("text/") or mime.endswith(("+xml", "json", "javascript")):
        return f"{mime}, {len(text):,} characters"
    letters = len("".join(text.split()).rstrip("="))
    return f"{mime}, {letters * 3 // 4:,} bytes"


def _without_overwritten(text: str) -> str:
    """A stream as a terminal leaves it: a progress bar is there once, as it was last."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def _short(text: str, most: int) -> str:
    text = strip_ansi(text).strip("\n")
    if len(text) <= most:
        return text
    head, tail = text[: most * 2 // 3], text[-(most // 3) :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… [{left_out:,} characters left out] …\n{tail}"


def _joined(value: Any) -> str:
    """Text that may be kept as a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

"""`read_file`: a page of lines, or the file type and the tool that reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.entry import ToolResult
from hermes.core.errors import ToolError, close_matches
from hermes.environments.for_task import disk_of
from hermes.files.edit_transaction import LARGEST, disk_error
from hermes.files.file_type import kind_of_content
from hermes.files.notebooks import read_notebook
from hermes.files.seen_files import digest_of, hide_keys, versions_of
from hermes.text.line_pages import CHARACTERS, page, page_of

if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from hermes.core.context import ToolContext
    from hermes.environments.disk.protocol import Disk
    from hermes.text.line_pages import Page

# A shorter page is shown again, even when it is unchanged.
_WORTH_SAVING = 2_000
# Larger files are not kept for a later diff.
_KEPT = 1024 * 1024
_HEAD = 8_192


def read_page(ctx: ToolContext, path: str, *, offset: int, limit: int, force: bool) -> ToolResult:
    """A page of a text file, with notes on encoding, line ends and cuts."""
    try:
        return _read_page(ctx, path, offset, limit, force=force)
    except OSError as error:
        raise disk_error(path, error) from error


def _read_page(ctx: ToolContext, path: str, offset: int, limit: int, *, force: bool) -> ToolResult:
    if offset == 0:
        raise ToolError("offset counts from 1; negative numbers count from the end")
    real_path = ctx.resolve_path(path, "read")
    disk = disk_of(ctx)
    with _opened(ctx, disk, path, real_path) as file:
        head, size = _start(file)
        kind = kind_of_content(head, path)
        if kind.what != "text":
            hint = f"Use {kind.tool}." if kind.tool else None
            raise ToolError(f"{path} is {kind.what}, {size:,} bytes, not text", hint=hint)
        if path.endswith(".ipynb") and size <= LARGEST:
            whole = _whole(file)
            notebook = read_notebook(whole)
            if not notebook.note:
                hide_keys(ctx, whole)
                kept = whole if size <= _KEPT else None
                versions_of(ctx).note(real_path, digest_of(whole), ctx.call_id, data=kept)
                return _answer(path, page_of(notebook.text, offset, limit))
        data = None
        if size <= _KEPT:
            data = head if len(head) < _HEAD else _whole(file)
            hide_keys(ctx, data)
            shown = page_of(data, offset, limit)
        else:
            shown = page(file, offset, limit, watch=_watch(ctx, path))
    versions = versions_of(ctx)
    versions.note(real_path, shown.digest, ctx.call_id, data=data)
    before = versions.shown_before(real_path, offset, limit, shown.digest)
    if before and not force and len(shown.text) > _WORTH_SAVING:
        note = f"unchanged since call {before}, which showed it; force=true shows it again"
        return ToolResult({"path": path, "total_lines": shown.total_lines, "note": note})
    versions.shown(real_path, offset, limit, shown.digest, ctx.call_id)
    return _answer(path, shown)


def _answer(path: str, shown: Page) -> ToolResult:
    text = shown.text
    answer: dict[str, Any] = {"path": path, "total_lines": shown.total_lines, "content": text}
    if shown.next_offset is not None:
        answer["next_offset"] = shown.next_offset
    if shown.encoding != "utf-8":
        answer["encoding"] = shown.encoding if shown.certain else f"{shown.encoding}?"
    notes = []
    if not shown.lines and shown.total_lines:
        notes.append(f"there is no line {shown.offset}; the last is {shown.total_lines}")
    elif not shown.total_lines:
        notes.append("the file is empty")
    if shown.newline not in ("\n", ""):
        ends = {"\r\n": "CRLF", "\r": "CR"}.get(shown.newline, "mixed")
        notes.append(f"line ends: {ends}")
    if shown.cut:
        notes.append(f"{len(shown.cut)} long lines are cut")
    if len(text) > CHARACTERS // 2 and shown.next_offset:
        notes.append(f"cut at {CHARACTERS:,} characters; go on with next_offset")
    return ToolResult(answer, notes=notes)


def _opened(ctx: ToolContext, disk: Disk, path: str, real_path: str) -> BinaryIO:
    """Open a file; if that fails, find out why: missing, a folder, or a disk error."""
    try:
        return disk.open(real_path)
    except (OSError, ToolError):
        status = disk.status(real_path)
        if status is None:
            # The task knows now that the file is gone, so it may create it.
            versions_of(ctx).forget(real_path)
            raise _missing(disk, path, real_path) from None
        if status.kind == "folder":
            raise ToolError(f"{path} is a folder", hint="Use directory_list.") from None
        raise


def _start(file: BinaryIO) -> tuple[bytes, int]:
    """The first bytes of a file, and its size."""
    head = file.read(_HEAD)
    while len(head) < _HEAD:
        more = file.read(_HEAD)
        if not more:
            return head, len(head)
        head += more
    try:
        size = file.seek(0, os.SEEK_END)
    except OSError:
        # Not seekable, as in /proc.
        size = 0
    return head, max(len(head), size)


def _missing(disk: Disk, path: str, real_path: str) -> ToolError:
    """The error for a missing file, with similar names as hint."""
    from itertools import islice

    folder = os.path.dirname(real_path)
    status = disk.status(folder)
    if status is None or status.kind != "folder":
        return ToolError(
            f"{path} is not there, nor is the folder {os.path.dirname(path) or folder}",
            hint="Use search_files with target=files to find it.",
        )
    names = [entry.name for entry in islice(disk.scan(folder), 5_000)]
    near = close_matches(os.path.basename(real_path), names, count=3, cutoff=0.6)
    if near:
        parent = os.path.dirname(path)
        hint = "Did you mean " + " or ".join(os.path.join(parent, name) for name in near) + "?"
    else:
        some = ", ".join(sorted(names)[:20])
        hint = f"The folder holds {some or 'nothing'}."
    return ToolError(f"{path} is not there", hint=hint)


def _whole(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _watch(ctx: ToolContext, path: str) -> Any:
    def watch(share: float) -> None:
        ctx.check_cancelled()
        ctx.progress(f"counting the lines of {path}", fraction=share)

    return watch

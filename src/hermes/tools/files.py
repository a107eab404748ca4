"""File tools: read, write and edit text files.

Paths are relative to the workspace. Every change can be undone (`hermes undo`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, ToolResult, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@tool(
    toolset="file",
    permissions=["file:read"],
    effect="read",
    acts={"path": "read"},
    aliases=["file_read"],
    emoji="📖",
    max_result_size_chars=400_000,
    tags=[
        "open",
        "cat",
        "show",
        "view",
        "look at",
        "contents",
        "head",
        "tail",
        "lines",
        "notebook",
    ],
)
def read_file(
    ctx: ToolContext,
    path: str,
    offset: int = 1,
    limit: Annotated[int, Field(ge=1, le=100_000)] = 2_000,
    force: bool = False,
) -> ToolResult:
    """Read a text file with line numbers.

    Args:
        path: The file.
        offset: First line, from 1; negative counts from the end.
        limit: How many lines at most.
        force: Show it even if this page was shown before and is unchanged.
    """
    from hermes.files.read import read_page

    return read_page(ctx, path, offset=offset, limit=limit, force=force)


@tool(
    toolset="file",
    permissions=["file:write"],
    effect="write",
    acts={"path": "write"},
    aliases=["file_write"],
    locks=["path"],
    emoji="📝",
    tags=["save", "create a file", "store text", "new file", "overwrite", "note"],
)
def write_file(
    ctx: ToolContext, path: str, content: str, allow_shrink: bool = False
) -> dict[str, Any]:
    """Make a text file, or replace the whole of one. Folders are made as needed.

    Args:
        path: The file.
        content: All of its text; for a part of a file use patch.
        allow_shrink: Let a large file become much smaller.
    """
    from hermes.files.edit_transaction import rewrite
    from hermes.files.seen_files import versions_of
    from hermes.files.write import check_names_file, check_unchanged, check_whole, spelled_like
    from hermes.text.diff import short_diff
    from hermes.text.encoding import decode

    check_names_file(path)
    real_path = ctx.resolve_path(path, "write")
    seen = versions_of(ctx).last(real_path)
    now = old = None

    def whole(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
        nonlocal now, old
        now = files[real_path]
        check_unchanged(path, now, seen, winner=lambda: _winner(ctx, real_path, now))
        if now is None:
            return {real_path: _utf8(content)}
        old = decode(now)
        check_whole(path, content, old, shrink=allow_shrink)
        return {real_path: spelled_like(content, old)}

    edits = rewrite(ctx, [real_path], whole)
    # Nothing is written where the file holds just that already.
    written = edits[0].after if edits else now
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    answer: dict[str, Any] = {"path": path, "bytes": len(written or b""), "lines": lines}
    if old is None:
        return answer | {"created": True}
    # What the file says now: line ends may have been spelled as they were.
    text = decode(written or b"").text
    answer["diff"] = short_diff(old.text, text, path, limit=2_000) if edits else "unchanged"
    return answer | _spelling(old)


def _patch_acts(arguments: Mapping[str, Any], _: ToolContext) -> list[tuple[str, str]]:
    from hermes.text.patches.parse import paths_of

    acts: list[tuple[str, str]] = []
    if arguments.get("path"):
        acts.append(("write", arguments["path"]))
    if arguments.get("patch"):
        acts.extend(paths_of(arguments["patch"]))
    # What can't be read changes nothing: the tool will say what is wrong with it.
    return acts or [("read", ".")]


@tool(
    toolset="file",
    permissions=["file:write"],
    effect="write",
    acts=_patch_acts,
    locks=["path"],
    aliases=["file_edit", "edit_file"],
    emoji="🔧",
    tags=["change text", "fix", "replace", "modify", "rename", "correct a typo", "diff", "apply"],
)
def patch(
    ctx: ToolContext,
    mode: Literal["replace", "patch"] = "replace",
    path: str | None = None,
    old_string: str | None = None,
    new_string: str | None = None,
    replace_all: bool = False,
    patch: str | None = None,
) -> dict[str, Any]:
    """Edit files: replace a piece of text, or apply a patch to several files at once.

    Args:
        mode: `replace` takes path, old_string, new_string; `patch` takes patch.
        path: The file.
        old_string: The text as it is in the file, with enough around it to be unique.
        new_string: What takes its place.
        replace_all: Replace every place where it is found.
        patch: A unified diff, or `*** Begin Patch` text. All of it is applied, or nothing.
    """
    if mode == "patch":
        from hermes.files.edit import apply_patch

        if not patch:
            raise ToolError("mode=patch needs patch", hint="Send the diff as `patch`.")
        return apply_patch(ctx, patch)
    lacking = [
        name
        for name, value in (("path", path), ("old_string", old_string), ("new_string", new_string))
        if value is None
    ]
    if lacking or path is None or old_string is None or new_string is None:
        raise ToolError(f"mode=replace needs {', '.join(lacking)}")
    from hermes.files.edit import replace_in_file

    return replace_in_file(ctx, path, old_string, new_string, replace_all=replace_all)


def _winner(ctx: ToolContext, real_path: str, now: bytes | None) -> str:
    """The agent that wrote the present content of a file; empty when it was none."""
    from hermes.files.seen_files import digest_of
    from hermes.stores.checkpoints.checkpoint_store import checkpoints

    if now is None:
        return ""
    author = checkpoints(ctx).last_writer(real_path, digest=digest_of(now))
    return "" if author is None else author.described


def _utf8(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"character {error.start} of the content ({content[error.start]!r}) is half of a pair "
            "and can't be written"
        ) from None


def _spelling(old: Any) -> dict[str, Any]:
    """Notes on encoding and line ends that were kept, if unusual."""
    kept = {}
    if old.encoding != "utf-8":
        kept["encoding"] = old.encoding
    if old.newline != "\n" and old.newline:
        kept["line_ends"] = {"\r\n": "CRLF", "\r": "CR"}.get(old.newline, old.newline)
    return kept

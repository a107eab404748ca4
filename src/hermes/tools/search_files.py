"""`search_files` and `directory_list`: search by content or name, list folders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.environments.disk.protocol import Disk, Status
    from hermes.files.search.content import ContentMatches


@tool(
    toolset="file",
    permissions=["file:read"],
    effect="read",
    acts={"path": "read"},
    emoji="🔍",
    aliases=["search", "file_search"],
    max_result_size_chars=60_000,
    tags=[
        "grep", "ripgrep", "rg", "find in files", "where is it defined", "usages", "occurrences",
        "look for text", "regex", "locate file", "glob", "fuzzy file name", "find a file",
    ],
)  # fmt: skip
def search_files(
    ctx: ToolContext,
    pattern: str,
    target: Literal["content", "files"] = "content",
    path: str = ".",
    glob: str | None = None,
    context: Annotated[int, Field(ge=0, le=20)] = 0,
    limit: Annotated[int, Field(ge=0, le=1000)] = 50,
    offset: Annotated[int, Field(ge=0)] = 0,
    output: Literal["content", "files", "count"] = "content",
    literal: bool = False,
    ignore_case: bool = False,
    hidden: bool = False,
    ignored: bool = False,
    binary: bool = False,
    timeout: Annotated[float, Field(gt=0, le=600)] = 30,
) -> dict[str, Any]:
    """Search file contents (by line) or file and folder names.

    Args:
        pattern: Regular expression; with target=files a glob or part of a name, typos allowed.
        target: Search in contents, or for names.
        path: Folder or file to search.
        glob: Only these files: `*.py`, `src/**`, `!*.min.js`; several with commas.
        context: Lines to show around each match.
        limit: Matches to show.
        offset: Matches to skip.
        output: Matching lines, names of files that match, or counts per file.
        literal: Take the pattern as plain text.
        ignore_case: Upper and lower case are the same.
        hidden: Names that begin with a dot, too.
        ignored: What .gitignore leaves out, too.
        binary: Binary files, too.
        timeout: Seconds until a partial answer.
    """
    from hermes.environments.for_task import disk_of
    from hermes.files.search import report
    from hermes.files.search.content import search_content
    from hermes.files.search.file_names import search_names
    from hermes.files.search.query import Choice, SearchDeadline, read_pattern
    from hermes.files.seen_files import hide_keys_at
    from hermes.text.globs import chooser

    disk = disk_of(ctx)
    root = ctx.resolve_path(path, "read")
    hide_keys_at(ctx, disk, root)
    watch = SearchDeadline(timeout, cancellation=ctx.cancellation, progress=ctx.progress)
    choice = Choice(hidden=hidden, ignored=ignored, binary=binary)
    chosen = chooser(glob) if glob else None
    readable = _readable(ctx, disk)
    status = _existing(disk, root, path)
    lead = _lead(path, folder=status.kind == "folder")
    if target == "files":
        names = search_names(
            disk,
            root,
            pattern,
            choice=choice,
            chosen=chosen,
            readable=readable,
            offset=offset,
            limit=limit,
            watch=watch,
        )
        return report.names_report(names, lead, offset=offset, limit=limit, watch=watch)
    result = search_content(
        disk,
        root,
        read_pattern(pattern, literal=literal, ignore_case=ignore_case),
        choice=choice,
        chosen=chosen,
        readable=readable,
        context=context,
        offset=offset,
        limit=limit,
        by_file=output != "content",
        watch=watch,
    )
    if status.kind == "file":
        _rename(result, os.path.basename(path.rstrip("/")))
    notes = report.nothing_found(result, pattern, glob, literal=literal)
    return report.content_report(
        result, output, lead, offset=offset, limit=limit, watch=watch, notes=notes
    )


@tool(
    toolset="file",
    permissions=["file:read"],
    effect="read",
    acts={"path": "read"},
    emoji="📂",
    aliases=["list_directory", "list_files", "ls"],
    max_result_size_chars=60_000,
    tags=[
        "ls", "dir", "tree", "folder contents", "what files are there", "project structure",
        "file sizes", "browse", "show folder",
    ],
)  # fmt: skip
def directory_list(
    ctx: ToolContext,
    path: str = ".",
    depth: Annotated[int, Field(ge=1, le=20)] = 2,
    limit: Annotated[int, Field(ge=0, le=2000)] = 200,
    offset: Annotated[int, Field(ge=0)] = 0,
    hidden: bool = False,
    ignored: bool = False,
    sizes: bool = True,
    timeout: Annotated[float, Field(gt=0, le=600)] = 30,
) -> dict[str, Any]:
    """List a folder as a tree: folders first with their counts, files with sizes.

    Args:
        path: Folder to list.
        depth: How many levels to show.
        limit: Lines to show.
        offset: Lines to skip.
        hidden: Show names that begin with a dot, too.
        ignored: Show what .gitignore and .ignore leave out, too.
        sizes: Show the sizes of files.
        timeout: Seconds after which a partial answer comes.
    """
    from hermes.environments.for_task import disk_of
    from hermes.files.listing import list_folder, listing_report
    from hermes.files.search.query import Choice, SearchDeadline

    disk = disk_of(ctx)
    root = ctx.resolve_path(path, "read")
    _existing(disk, root, path)
    watch = SearchDeadline(timeout, cancellation=ctx.cancellation, progress=ctx.progress)
    listing = list_folder(
        disk,
        root,
        depth=depth,
        offset=offset,
        limit=limit,
        choice=Choice(hidden=hidden, ignored=ignored),
        sizes=sizes,
        readable=_readable(ctx, disk),
        watch=watch,
    )
    return listing_report(listing, offset=offset, limit=limit, watch=watch)


def _existing(disk: Disk, root: str, path: str) -> Status:
    """The status of a path; raises when it does not exist."""
    status = disk.status(root)
    if status is None:
        raise ToolError(
            f"{path}: no such file or folder",
            hint="Use search_files with target=files to find it by a part of its name.",
        )
    return status


def _readable(ctx: ToolContext, disk: Disk) -> Callable[[str], bool]:
    from hermes.files.seen_files import hide_keys_at

    def readable(real_path: str) -> bool:
        try:
            ctx.resolve_path(real_path, "read")
        except ToolError:
            return False
        if real_path.endswith((".pem", ".key", ".p8", ".ppk")):
            hide_keys_at(ctx, disk, real_path)
        return True

    return readable


def _rename(result: ContentMatches, name: str) -> None:
    """Report the single searched file under the name in the call, even if that is a link."""
    result.counts = dict(zip([name], result.counts.values(), strict=False))
    result.lines = dict(zip([name], result.lines.values(), strict=False))


def _lead(path: str, *, folder: bool) -> str:
    """The prefix of paths in an answer, so that the next call can use them."""
    bare = path.rstrip("/")
    if not folder:
        above = bare.rpartition("/")[0]
        return f"{above}/" if above or bare.startswith("/") else ""
    if bare in ("", "."):
        return "/" if path.startswith("/") else ""
    return f"{bare.removeprefix('./')}/"

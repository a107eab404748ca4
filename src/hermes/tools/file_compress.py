"""`file_compress`: create, list, test and extract archives."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, ToolResult, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from hermes.environments.disk.protocol import Disk
    from hermes.files.archives.creation import CreatedArchive, Source
    from hermes.files.archives.limits import Member, PlacedPath
    from hermes.stores.checkpoints import Planned

_EVERY = 4 * 1024 * 1024
_SHOWN = 50


def _acts(arguments: Mapping[str, Any], _: ToolContext) -> list[tuple[str, str]]:
    """The paths that a call reads and writes."""
    from hermes.files.archives.creation import folder_for

    archive = arguments["archive"]
    if arguments["action"] == "create":
        return [
            ("write", archive),
            *(("read", source) for source in arguments.get("sources") or ()),
        ]
    if arguments["action"] == "extract":
        return [("read", archive), ("write", arguments.get("target") or folder_for(archive))]
    return [("read", archive)]


@tool(
    toolset="file",
    permissions=["file:read", "file:write"],
    effect="write",
    reads_when={"action": ["list", "test"]},
    acts=_acts,
    emoji="🗜️",
    aliases=["archive", "compress", "extract_archive", "unzip", "zip_files"],
    max_result_size_chars=60_000,
    tags=[
        "zip", "unzip", "tar", "tgz", "gzip", "7z", "zst", "unpack", "pack", "bundle", "extract",
        "decompress", "shrink", "backup folder", "look inside an archive",
    ],
)  # fmt: skip
def file_compress(
    ctx: ToolContext,
    action: Literal["create", "list", "extract", "test"],
    archive: str,
    sources: list[str] | None = None,
    target: str | None = None,
    members: list[str] | None = None,
    exclude: list[str] | None = None,
    format: Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "7z"] | None = None,  # noqa: A002
    level: Annotated[int, Field(ge=0, le=9)] = 6,
    existing: Literal["refuse", "skip", "replace"] = "refuse",
    limit: Annotated[int, Field(ge=1, le=2000)] = 200,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> ToolResult:
    """Create, list, test or extract zip, tar(.gz, .bz2, .xz, .zst) and 7z archives.

    Links are packed as links. Unpacking is all or nothing.

    Args:
        action: What to do.
        archive: The archive file.
        sources: Files and folders to pack.
        target: Folder to unpack into; made if need be. Default: one named like the archive.
        members: Patterns of what to list or unpack; default everything.
        exclude: Patterns of what not to pack or unpack.
        format: Default: by the archive's name.
        level: 0 fast to 9 small.
        existing: What becomes of files that are in the way.
        limit: How many members to list.
        offset: First member to list.
    """
    if action == "create":
        return _create(ctx, archive, sources or [], exclude or [], format, level, existing)
    from hermes.files.archives.creation import folder_for

    with _readable(ctx, archive) as real_path:
        if action == "list":
            return _list(ctx, real_path, members, exclude, limit, offset)
        if action == "test":
            return _test(ctx, real_path)
        return _extract(ctx, real_path, target or folder_for(archive), members, exclude, existing)


def record(ctx: ToolContext, planned: Sequence[Planned]) -> list[int]:
    """Record the present state of paths for undo, before they change."""
    from hermes.environments.for_task import disk_of
    from hermes.files.edit_transaction import author_of
    from hermes.stores.checkpoints.checkpoint_store import checkpoints

    return checkpoints(ctx).before(author_of(ctx), disk_of(ctx), planned)


def _forget(ctx: ToolContext, records: Sequence[int]) -> None:
    """Drop the records of a change that did not happen."""
    from hermes.stores.checkpoints.checkpoint_store import checkpoints

    if records:
        checkpoints(ctx).forget(records)


def _create(
    ctx: ToolContext,
    archive: str,
    sources: Sequence[str],
    exclude: Sequence[str],
    form: Any,
    level: int,
    existing: str,
) -> ToolResult:
    from hermes.environments.for_task import disk_of
    from hermes.files.archives.creation import create_archive, format_of, gather, leads_out
    from hermes.stores.checkpoints import Planned, State

    if not sources:
        raise ToolError("create needs sources: the files and folders to pack")
    disk = disk_of(ctx)
    wanted = form or format_of(archive)
    real_path = ctx.resolve_path(archive, "write")
    there = disk.status(real_path)
    if there is not None and (there.kind != "file" or existing != "replace"):
        hint = 'Use existing="replace", or another name.' if there.kind == "file" else None
        raise ToolError(f"{archive} is there already, a {there.kind}", hint=hint)

    def found(count: int) -> None:
        ctx.check_cancelled()
        ctx.progress(f"{count} files found")

    gathered = gather(
        disk,
        [_source(ctx, disk, source) for source in sources],
        real_path,
        exclude=exclude,
        permit=lambda source_path: ctx.resolve_path(source_path, "read"),
        check=found,
    )
    if not gathered.items:
        raise ToolError("there is nothing to pack in these sources", hint="Look at exclude.")
    records: list[int] = []

    def before(made: CreatedArchive) -> None:
        state = State("file", made.digest, size=made.size)
        records.extend(record(ctx, [Planned(real_path, state)]))

    try:
        packed = create_archive(
            disk,
            real_path,
            gathered.items,
            form=wanted,
            level=level,
            check=_added(ctx, gathered.size),
            before=before,
        )
    except BaseException:
        _forget(ctx, records)
        raise
    notes = []
    if gathered.archive_left_out:
        notes.append("the archive itself was left out")
    if gathered.special:
        shown = ", ".join(gathered.special[:_SHOWN])
        notes.append(f"left out, since no file, folder or link: {shown}")
    if outward := [item.name for item in gathered.items if leads_out(item)]:
        shown = ", ".join(outward[:_SHOWN])
        notes.append(f"links that lead out of the archive, which will not unpack here: {shown}")
    answer = {
        "archive": real_path,
        "format": wanted,
        "members": packed.members,
        "bytes": packed.bytes,
        "size": packed.size,
    }
    return ToolResult(answer, notes=notes)


def _list(
    ctx: ToolContext,
    real_path: str,
    members: list[str] | None,
    exclude: list[str] | None,
    limit: int,
    offset: int,
) -> ToolResult:
    from hermes.files.archives.extraction import list_archive

    choose = _chooser(members, exclude)
    held = list_archive(real_path, watch=_reached(ctx, real_path))
    found = [one for one in held if choose is None or choose(one.path.strip("/"))]
    answer: dict[str, Any] = {
        "total": len(found),
        "bytes": sum(member.size for member in found),
        "members": [_described(member) for member in found[offset : offset + limit]],
    }
    if offset + limit < len(found):
        answer["next_offset"] = offset + limit
    if not found and held:
        return ToolResult(answer, notes=[f"none of its {len(held)} members fits the patterns"])
    return ToolResult(answer)


def _test(ctx: ToolContext, real_path: str) -> ToolResult:
    from hermes.files.archives.extraction import check_archive
    from hermes.files.archives.limits import ArchiveError

    try:
        held = check_archive(real_path, watch=_reached(ctx, real_path))
    except ArchiveError as error:
        return ToolResult({"sound": False, "problem": str(error)})
    answer = {"sound": True, "members": len(held), "bytes": sum(member.size for member in held)}
    return ToolResult(answer)


def _extract(
    ctx: ToolContext,
    real_path: str,
    target: str,
    members: list[str] | None,
    exclude: list[str] | None,
    existing: Any,
) -> ToolResult:
    from hermes.environments.for_task import disk_of
    from hermes.files.archives.remote_disk import extract_to

    fits = _chooser(members, exclude)
    chosen = 0

    def choose(path: str) -> bool:
        nonlocal chosen
        fit = fits is None or fits(path)
        chosen += fit
        return fit

    records: list[int] = []

    def before(placed: list[PlacedPath]) -> None:
        if fits is not None and not chosen:
            raise ToolError("no member fits the patterns", hint="Use list to see the names.")
        planned = []
        for one in placed:
            ctx.check_cancelled()
            ctx.resolve_path(one.place, "write")
            planned.append(_planned(one))
        records.extend(record(ctx, planned))

    try:
        made = extract_to(
            disk_of(ctx),
            real_path,
            ctx.resolve_path(target, "write"),
            choose=choose,
            existing=existing,
            before=before,
            watch=_reached(ctx, real_path),
            check=ctx.check_cancelled,
        )
    except BaseException:
        _forget(ctx, records)
        raise
    answer: dict[str, Any] = {
        "target": made.target,
        "files": made.files,
        "bytes": made.bytes,
        "paths": made.paths[:_SHOWN],
    }
    if made.files > _SHOWN:
        answer["more_paths"] = made.files - _SHOWN
    for name, paths in (("skipped", made.skipped), ("replaced", made.replaced)):
        if paths:
            answer[name] = {"files": len(paths), "paths": paths[:_SHOWN]}
    return ToolResult(answer)


def _planned(placed: PlacedPath) -> Planned:
    """The planned state of a path, for the checkpoint store."""
    from hermes.environments.disk.local_disk import LocalDisk
    from hermes.stores.checkpoints import Planned, State
    from hermes.stores.checkpoints.path_state import present_state

    if not placed.drafted:
        return Planned(placed.place, State("folder"))
    return Planned(placed.place, present_state(LocalDisk(), placed.drafted, like=State("file")))


@contextmanager
def _readable(ctx: ToolContext, archive: str) -> Iterator[str]:
    """A local path of an archive."""
    from hermes.environments.for_task import disk_of
    from hermes.files.archives.remote_disk import at_hand

    disk = disk_of(ctx)
    real_path = ctx.resolve_path(archive, "read")
    status = disk.status(real_path)
    if status is None:
        raise ToolError(f"{archive} is not there")
    if status.kind != "file":
        raise ToolError(f"{archive} is not a file but a {status.kind}")
    with at_hand(disk, real_path, ctx.check_cancelled) as path:
        yield path


def _source(ctx: ToolContext, disk: Disk, source: str) -> Source:
    """The path of a source, and its member name."""
    from hermes.files.archives.creation import Source, name_for

    name = name_for(source, ctx.workspace)
    folder, last = os.path.split(os.path.normpath(source))
    if last not in ("", ".", ".."):
        # A link is packed as one, and not what it leads to.
        unfollowed = f"{ctx.resolve_path(folder or '.', 'read').rstrip('/')}/{last}"
        status = disk.status(unfollowed)
        if status is not None and status.kind == "link":
            return Source(unfollowed, name)
    return Source(ctx.resolve_path(source, "read"), name)


def _chooser(members: list[str] | None, exclude: list[str] | None) -> Callable[[str], bool] | None:
    from hermes.text.globs import Patterns

    wanted, unwanted = Patterns(members), Patterns(exclude)
    if not wanted and not unwanted:
        return None
    return lambda path: (not wanted or wanted.fit(path)) and not unwanted.fit(path)


def _described(member: Member) -> dict[str, Any]:
    shown: dict[str, Any] = {"path": member.path}
    if member.kind == "file":
        shown["size"] = member.size
    else:
        shown["kind"] = member.kind
    if member.link:
        shown["link"] = member.link
    return shown


def _added(ctx: ToolContext, total: int) -> Callable[[int], None]:
    """Progress by bytes packed."""
    done = 0

    def check(size: int) -> None:
        nonlocal done
        done += size
        shown(done)

    shown = _shower(ctx, total, "packed")
    return check


def _reached(ctx: ToolContext, real_path: str) -> Callable[[int], None]:
    """Progress by archive bytes read."""
    return _shower(ctx, os.path.getsize(real_path), "read")


def _shower(ctx: ToolContext, total: int, word: str) -> Callable[[int], None]:
    """Checks for cancellation, and reports progress now and then."""
    following = _EVERY

    def show(done: int) -> None:
        nonlocal following
        ctx.check_cancelled()
        if done >= following:
            following = done + _EVERY
            ctx.progress(f"{done} of {total} bytes {word}", fraction=min(1.0, done / (total or 1)))

    return show

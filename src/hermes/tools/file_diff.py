"""`file_diff`: differences between files, texts, folders and earlier versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from hermes.core import ToolContext, ToolError, tool
from hermes.core.schema import Field

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.environments.disk.protocol import Disk
    from hermes.files.compare.content_diff import Side

_EVERY = 4 * 1024 * 1024


@tool(
    toolset="file",
    permissions=["file:read"],
    effect="read",
    acts={"path": "read", "other": "read"},
    emoji="🔀",
    aliases=["diff", "compare_files", "diff_files"],
    max_result_size_chars=100_000,
    tags=[
        "compare", "difference", "what changed", "unified diff", "side by side", "versions",
        "git head", "before and after", "same content", "changes since", "two directories",
    ],
)  # fmt: skip
def file_diff(
    ctx: ToolContext,
    path: str,
    other: str | None = None,
    text: str | None = None,
    against: Literal["checkpoint", "head"] | None = None,
    format: Literal["unified", "summary", "side_by_side"] = "unified",  # noqa: A002
    context: Annotated[int, Field(ge=0, le=100)] = 3,
    exclude: list[str] | None = None,
) -> dict[str, Any]:
    """Compare a file with another file, a text or an earlier version of itself; or two folders.

    Args:
        path: File or folder; the old side of `other` and `text`, the new side of `against`.
        other: File or folder to compare with.
        text: Text to compare with.
        against: `head` is the last git commit, `checkpoint` before the turn that last changed it.
        format: How changed lines are shown.
        context: Unchanged lines around a change.
        exclude: Patterns to leave out of folders.
    """
    from hermes.environments.for_task import disk_of
    from hermes.files.compare.content_diff import Side, compare_contents
    from hermes.files.compare.folder_diff import compare_folders
    from hermes.files.seen_files import hide_keys_at

    sides_given = [name for name in (other, text, against) if name is not None]
    if len(sides_given) != 1:
        raise ToolError(
            f"file_diff needs one thing to compare {path} with, not {len(sides_given)}",
            hint='Give one of other="…", text="…", against="head" or against="checkpoint".',
        )
    disk = disk_of(ctx)
    real_path = ctx.resolve_path(path, "read")
    hide_keys_at(ctx, disk, real_path)
    status = disk.status(real_path)
    if status is None and against is None:
        raise ToolError(f"{path} is not there")
    if other is not None:
        place_of_other = ctx.resolve_path(other, "read")
        hide_keys_at(ctx, disk, place_of_other)
        match = disk.status(place_of_other)
        if match is None:
            raise ToolError(f"{other} is not there")
        kinds = {status.kind if status else "", match.kind}
        if kinds == {"folder"}:
            return compare_folders(
                disk,
                real_path,
                place_of_other,
                exclude=exclude or (),
                permit=lambda file_path: ctx.resolve_path(file_path, "read"),
                check=lambda done: _checked(ctx, done),
            )
        if kinds != {"file"}:
            raise ToolError(
                f"{path} is a {status.kind if status else ''} and {other} a {match.kind}",
                hint="Compare two files or two folders.",
            )
        sides = Side.of_file(path, disk, real_path), Side.of_file(other, disk, place_of_other)
    elif status is not None and status.kind != "file":
        raise ToolError(f"{path} is not a file but a {status.kind}")
    elif text is not None:
        sides = (
            Side.of_file(path, disk, real_path),
            Side.of_bytes("text", text.encode("utf-8", "surrogatepass")),
        )
    else:
        sides = _versions(ctx, disk, path, real_path, str(against))
    return compare_contents(
        *sides, form=format, context=context, check=_metered(ctx, sides[0].size + sides[1].size)
    )


def previous(ctx: ToolContext, real_path: str) -> bytes | None:
    """The bytes that a file had before the last turn that changed it; None when it had none."""
    from hermes.stores.checkpoints.checkpoint_store import checkpoints

    store = checkpoints(ctx)
    history = store.history(real_path)
    if not history:
        raise ToolError(f"no change of {real_path} is recorded", hint='Use against="head".')
    turn = history[-1].author[:2]
    first = history[-1]
    for change in reversed(history):
        if change.author[:2] != turn:
            break
        first = change
    return store.content(first.before) if first.before.kind == "file" else None


def _versions(
    ctx: ToolContext, disk: Disk, path: str, real_path: str, against: str
) -> tuple[Side, Side]:
    """A file before and now; an empty input where it does not exist."""
    from hermes.files.compare.content_diff import Side, committed

    if against == "checkpoint":
        before = previous(ctx, real_path)
    else:
        before = committed(real_path, ctx.check_cancelled, getattr(disk, "run", None))
    now = disk.status(real_path)
    if before is None and now is None:
        raise ToolError(f"{path} is not there, and was not in the {against} either")
    old = Side.of_bytes(f"{path} ({against})" if before is not None else "/dev/null", before or b"")
    new = Side.of_bytes("/dev/null", b"") if now is None else Side.of_file(path, disk, real_path)
    return old, new


def _checked(ctx: ToolContext, done: str) -> None:
    ctx.check_cancelled()
    ctx.progress(done)


def _metered(ctx: ToolContext, total: int) -> Callable[[int], None]:
    """Counts bytes that were read: cancellation is noticed, and long work shows how far it is."""
    read = 0

    def check(size: int) -> None:
        nonlocal read
        ctx.check_cancelled()
        if read // _EVERY != (read + size) // _EVERY:
            ctx.progress(f"{read + size} bytes compared", fraction=min(1.0, read / total))
        read += size

    return check

"""Whatever an agent does in a turn, undo brings back every byte, mode, link, time, attribute."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.stores.checkpoints.conftest import picture, times

from hermes.environments.disk.local_disk import LocalDisk
from hermes.stores.checkpoints import (
    ABSENT,
    Author,
    Checkpoints,
    Planned,
    State,
    file_state,
    folder_state,
    link_state,
)

NAMES = ("a", "b", "ü", "d", "d/a", "d/e", "d/e/f", "x/y/z")
DATA = (b"", b"one\n", b"two\n", b"\x00\xff" * 40_000, os.urandom(200_000))
MODES = (0o600, 0o644, 0o755, 0o444)

names = st.sampled_from(NAMES)
actions = st.one_of(
    st.tuples(st.just("write"), names, st.sampled_from(DATA)),
    st.tuples(st.just("remove"), names, st.just(None)),
    st.tuples(st.just("mode"), names, st.sampled_from(MODES)),
    st.tuples(st.just("link"), names, names),
    st.tuples(st.just("folder"), names, st.just(None)),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("attribute"), names, st.sampled_from((b"", b"one", b"two"))),
    st.tuples(st.just("time"), names, st.integers(0, 2**60)),
)
# Each group is one call: of a tool, or of a command that does all of it.
groups = st.lists(st.tuples(st.booleans(), st.lists(actions, min_size=1, max_size=5)), max_size=5)


def act(root: str, what: str, name: str, value: object) -> None:
    """Do it as a command would; what can't be done is not."""
    path = os.path.join(root, name)
    try:
        if what == "write" and isinstance(value, bytes):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not os.path.islink(path):
                Path(path).write_bytes(value)
        elif what == "remove":
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        elif what == "mode" and isinstance(value, int):
            folder = os.path.isdir(path)
            if not os.path.islink(path):
                os.chmod(path, value | (0o700 if folder else 0))
        elif what == "link":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(str(value), path)
        elif what == "folder":
            os.makedirs(path, exist_ok=True)
        elif what == "rename":
            os.rename(path, os.path.join(root, str(value)))
        elif what == "attribute" and isinstance(value, bytes) and os.path.isfile(path):
            if value:
                os.setxattr(path, "user.note", value)
            else:
                os.removexattr(path, "user.note")
        elif what == "time" and isinstance(value, int):
            os.utime(path, ns=(value, value), follow_symlinks=False)
    except OSError:
        return


def planned(root: str, what: str, name: str, value: object) -> list[Planned]:
    """What a tool would say that it is about to do; nothing where it could not."""
    path = os.path.join(root, name)
    blocked = any(
        os.path.islink(above) or (os.path.lexists(above) and not os.path.isdir(above))
        for above in (
            os.path.join(root, *name.split("/")[:n]) for n in range(1, name.count("/") + 1)
        )
    )
    if blocked:
        return []
    is_file = os.path.isfile(path) and not os.path.islink(path)
    if what == "write" and isinstance(value, bytes) and (is_file or not os.path.lexists(path)):
        # A tool that has nothing to change changes nothing.
        same = is_file and Path(path).read_bytes() == value
        return [] if same else [Planned(path, file_state(value))]
    if what == "remove" and os.path.lexists(path):
        return [Planned(path, ABSENT)]
    if what == "mode" and isinstance(value, int) and is_file:
        if os.stat(path).st_mode & 0o7777 == value:
            return []
        return [Planned(path, file_state(Path(path).read_bytes(), value))]
    if what == "link" and not os.path.lexists(path):
        return [Planned(path, link_state(str(value)))]
    if what == "folder" and not os.path.lexists(path):
        return [Planned(path, folder_state())]
    if what == "rename" and is_file:
        target = os.path.join(root, str(value))
        there = os.path.dirname(target)
        if target != path and os.path.isdir(there) and os.path.realpath(there) == there:
            mode = os.stat(path).st_mode & 0o7777
            after: State = file_state(Path(path).read_bytes(), mode)
            if not os.path.isdir(target):
                return [Planned(path, ABSENT), Planned(target, after)]
    return []


def seen(root: str, *, exact: bool) -> tuple[object, object]:
    """The files below a folder; times and attributes only where they are `exact`."""
    if exact:
        return picture(root), times(root)
    return {name: value[:3] for name, value in picture(root).items()}, {}


# A folder in the place of another one may have its inode number.
@example(
    [], [(False, [("write", "d/a", b"")]), (False, [("remove", "d", None), ("write", "d/e", b"")])]
)
@example(
    [(False, [("write", "a", b"")])],
    [(False, [("remove", "a", None)]), (True, [("write", "a", b"")])],
)
@settings(max_examples=60)
@given(groups, groups)
def test_undo_restores_every_byte_mode_link_time_and_attribute(
    history: list[tuple[bool, list[tuple[str, str, object]]]],
    turn: list[tuple[bool, list[tuple[str, str, object]]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, Checkpoints(f"{folder}/store") as store:
        root = os.path.join(os.path.realpath(folder), "work")
        os.mkdir(root)
        for _, group in history:
            for action in group:
                act(root, *action)
        # Tools record contents and modes, and no times: what they leave as it was may have another.
        exact = not any(by_tool for by_tool, _ in turn)
        before = seen(root, exact=exact)
        for number, (by_tool, group) in enumerate(turn):
            author = Author("s", "t", f"c{number}", "tool")
            if by_tool:
                for action in group:
                    plan = planned(root, *action)
                    if plan:
                        store.before(author, LocalDisk(), plan)
                        act(root, *action)
            else:
                snapshot = store.snapshot(root, author)
                for action in group:
                    act(root, *action)
                store.after_command(snapshot)
        after = seen(root, exact=exact)

        if not store.turns():
            assert after[0] == before[0]
            return
        report = store.undo(turn="t")
        assert report.left == []
        assert seen(root, exact=exact) == before

        if report.undo_turn:
            again = store.undo(turn=report.undo_turn)
            assert again.left == []
            assert seen(root, exact=exact) == after

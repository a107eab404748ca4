"""A user is let into a folder, and out again, and nobody else notices."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hermes.environments.workspace_acl import CONTAINER_USER, grant_access, revoke_access

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="access lists as Linux has them")
OTHER = 61_002


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "sub").mkdir(parents=True)
    for name, mode in (("open", 0o644), ("private", 0o600), ("run", 0o751)):
        (made / "sub" / name).write_text(name)
        (made / "sub" / name).chmod(mode)
    made.chmod(0o2755)
    if not grant_access(str(made), OTHER):
        pytest.skip("this disk has no access lists")
    revoke_access(str(made), OTHER)
    return made


def state(folder: Path) -> dict[str, tuple[int, dict[str, bytes]]]:
    """Mode and access lists of everything."""
    return {
        str(path): (
            path.lstat().st_mode,
            {name: os.getxattr(path, name) for name in os.listxattr(path)},
        )
        for path in (folder, *folder.rglob("*"))
    }


def test_what_is_taken_away_leaves_everything_as_it_was(folder: Path) -> None:
    before = state(folder)

    grant_access(str(folder))
    between = state(folder)
    revoke_access(str(folder))

    assert between != before
    assert state(folder) == before


def test_somebody_else_s_entries_stay(folder: Path) -> None:
    grant_access(str(folder), OTHER)
    before = state(folder)

    grant_access(str(folder))
    revoke_access(str(folder))

    assert state(folder) == before


def test_what_the_user_made_is_handed_over(folder: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give files away")
    grant_access(str(folder))
    made = folder / "theirs"
    made.write_text("x")
    made.chmod(0o4755)
    os.chown(made, CONTAINER_USER, CONTAINER_USER)
    made.chmod(0o4755)
    (folder / "link").symlink_to("/etc/passwd")
    os.lchown(folder / "link", CONTAINER_USER, CONTAINER_USER)
    passwd = os.stat("/etc/passwd")

    revoke_access(str(folder))

    assert (made.stat().st_uid, made.stat().st_mode & 0o7777) == (0, 0o755)
    assert (folder / "link").lstat().st_uid == 0
    assert os.stat("/etc/passwd").st_mode == passwd.st_mode


def test_a_folder_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    revoke_access(str(tmp_path / "nothing"))


def test_a_new_file_gets_no_execute_bit_for_its_group(folder: Path) -> None:
    folder.chmod(0o755)
    grant_access(str(folder))
    (folder / "new").write_text("x")

    revoke_access(str(folder))

    assert (folder / "new").stat().st_mode & 0o7777 == 0o644

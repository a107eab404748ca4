"""A disk that is full, or can't be written: said as that, and nothing that was kept is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import HERMES, CommandLine

from hermes.stores.sessions import Sessions
from hermes.stores.sessions.session_db import explained

_APART = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def _own_disks() -> bool:
    """Whether this user may make a small disk that nobody else sees."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*_APART, "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not _own_disks(), reason="no disk of its own can be made here")
def test_a_store_on_a_full_disk_says_so_and_works_when_there_is_room_again(
    hermes: CommandLine, tmp_path: Path
) -> None:
    made = "from hermes.stores.sessions import Sessions; import sys; store = Sessions();"
    script = f"""
        mount -t tmpfs -o size=400k none {tmp_path}
        export HERMES_HOME={tmp_path}/home
        mkdir $HERMES_HOME
        {sys.executable} -c '{made} store.begin(title="a", workspace="/", model="", front_door="")'
        rm -f $HERMES_HOME/state.db-shm
        cat /dev/zero > {tmp_path}/much 2> /dev/null || true
        {HERMES} sessions list || true
        {HERMES} sessions doctor || true
        rm {tmp_path}/much
        {HERMES} sessions list
    """

    done = subprocess.run(
        [*_APART, script], env=hermes.environment(), capture_output=True, text=True, check=True
    )

    told = done.stderr.splitlines()
    assert len(told) == 2, done.stderr
    assert all("no room on the disk" in line for line in told)
    assert all(f"Free some space where {tmp_path}/home is" in line for line in told)
    assert done.stdout.count("  a\n") == 1


def test_a_folder_that_can_not_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    import sqlite3

    error = explained(sqlite3.OperationalError("disk I/O error"), str(tmp_path / "gone" / "s.db"))

    assert "disk I/O error (No such file or directory)" in str(error)
    assert str(tmp_path / "gone") in str(error.hint)


def test_what_is_not_the_folders_fault_is_said_as_it_came(tmp_path: Path) -> None:
    import sqlite3

    error = explained(sqlite3.OperationalError("no such table: x"), str(tmp_path / "s.db"))

    assert str(error).endswith("can't be used: no such table: x")
    assert list(tmp_path.iterdir()) == []
    with Sessions(tmp_path / "s.db") as store:
        assert store.list() == []

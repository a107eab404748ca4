"""Commands in a container of Apptainer: the real one where it is, else its stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from hermes.core.errors import ConfigError, UnavailableError
from hermes.environments.command import BackendError
from hermes.environments.singularity import SingularityEnvironment, SingularitySettings, prune

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments.places import Apptainer


def made(apptainer: Apptainer, folder: Path, **changes: object) -> SingularityEnvironment:
    given: dict[str, object] = {"program": str(apptainer.program), "workspace": str(folder)}
    settings = SingularitySettings(str(apptainer.image), **{**given, **changes})  # type: ignore[arg-type]
    return SingularityEnvironment(settings)


@pytest.fixture
def box(apptainer: Apptainer, tmp_path: Path) -> Iterator[SingularityEnvironment]:
    """A container with an empty workspace, ended with the test."""
    environment = made(apptainer, tmp_path)
    yield environment
    environment.cleanup()


def running(word: str) -> list[str]:
    found = subprocess.run(
        ["ps", "-wweo", "stat=,args="], capture_output=True, text=True, check=True
    )
    lines = [line for line in found.stdout.splitlines() if not line.startswith("Z")]
    return [line for line in lines if word in line]


def eventually(holds: Callable[[], bool], seconds: float = 8.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.05)
    return holds()


def sleeping() -> str:
    return f"9{int.from_bytes(os.urandom(4)) % 10**8:08d}"


def test_commands_run_in_the_image_and_share_what_they_write(
    box: SingularityEnvironment, tmp_path: Path
) -> None:
    first = box.execute(
        "echo text >made; echo kept >/root/note; cd /tmp; export A=1; exit 3", timeout=30
    )
    second = box.execute("cat /root/note; pwd; echo $A; ls /bin/busybox", timeout=30)

    assert (first.exit_code, first.stdout) == (3, "")
    assert second.stdout == "kept\n/tmp\n1\n/bin/busybox\n"
    assert (tmp_path / "made").read_text() == "text\n"


def test_nothing_of_the_home_or_of_our_variables_is_seen(
    apptainer: Apptainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "not-for-you")
    box = made(apptainer, tmp_path)

    result = box.execute("env; ls -A $HOME /home 2>/dev/null", timeout=30)
    box.cleanup()

    assert "not-for-you" not in result.stdout
    assert ".bashrc" not in result.stdout


def test_a_timeout_ends_everything_that_was_started(box: SingularityEnvironment) -> None:
    word = sleeping()

    result = box.execute(f"sleep {word} & (setsid sleep {word} &); sleep {word}", timeout=1)

    assert result.ended == "timeout"
    assert eventually(lambda: not running(word))
    assert box.execute("echo fine", timeout=20).stdout == "fine\n"


def test_what_is_left_running_ends_with_the_task(apptainer: Apptainer, tmp_path: Path) -> None:
    word = sleeping()
    box = made(apptainer, tmp_path)

    result = box.execute(f"sleep {word} & echo on", timeout=30)
    alive = running(word)
    box.cleanup()

    assert result.stdout == "on\n"
    assert result.background_pids
    assert alive
    assert eventually(lambda: not running(word))


def test_a_terminal_can_be_answered(box: SingularityEnvironment) -> None:
    result = box.execute("read -p 'Your name: ' x; echo \"hi $x\"", timeout=30, pty=True)

    assert (result.ended, result.prompt) == ("needs input", "Your name:")
    assert result.background is not None
    result.background.write(b"Ada\n")
    assert result.background.wait(20)
    assert "hi Ada" in result.background.recent()


def test_no_network_means_none(apptainer: Apptainer, tmp_path: Path) -> None:
    box = made(apptainer, tmp_path, network="none")

    result = box.execute("cat /proc/net/dev", timeout=30)
    box.cleanup()

    names = [line.split(":")[0].strip() for line in result.stdout.splitlines()[2:]]
    assert set(names) <= {"lo"}
    assert box.info().network == "none"


def test_a_folder_bound_for_reading_can_only_be_read(apptainer: Apptainer, tmp_path: Path) -> None:
    data = tmp_path / "data"
    work = tmp_path / "work"
    data.mkdir()
    work.mkdir()
    (data / "file").write_text("content\n")
    box = made(apptainer, work, binds=[f"{data}:/var/tmp:ro"])

    result = box.execute("cat /var/tmp/file; echo no >/var/tmp/new", timeout=30)
    box.cleanup()

    assert result.stdout == "content\n"
    assert result.exit_code != 0
    assert not (data / "new").exists()


def test_nothing_is_left_when_we_are_killed(apptainer: Apptainer, tmp_path: Path) -> None:
    word = sleeping()
    program = (
        "from hermes.environments.singularity import *\n"
        f"s = SingularitySettings({str(apptainer.image)!r}, program={str(apptainer.program)!r},"
        f" workspace={str(tmp_path)!r})\n"
        f"e = SingularityEnvironment(s)\ne.start('sleep {word}')\n"
        f"e.execute('setsid sleep {word} &', timeout=20)\nprint('up', flush=True)\n"
        f"e.execute('sleep {word}', timeout=100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        begun = ours.stdout.readline()
        started = eventually(lambda: len(running(f"sleep {word}")) >= 3)
        ours.kill()

    assert begun == b"up\n"
    assert started
    assert eventually(lambda: not running(word))
    assert eventually(lambda: not running(f"[hermes-{ours.pid}-"))
    prune(str(apptainer.program))
    listed = subprocess.check_output([apptainer.program, "instance", "list", "--json"], text=True)
    assert f"hermes-{ours.pid}-" not in listed


def test_an_instance_of_a_hermes_that_is_gone_is_found_and_ended(apptainer: Apptainer) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    name = f"hermes-{gone.pid}-0123abcd"
    words = ["instance", "start", "--containall", "--no-home", "--no-privs", "--writable-tmpfs"]
    subprocess.run(
        [apptainer.program, *words, apptainer.image, name], check=True, stderr=subprocess.DEVNULL
    )

    ended = prune(str(apptainer.program))

    assert name in ended
    assert prune(str(apptainer.program)) == []


def test_an_image_that_can_not_be_started_is_one_error_with_the_check(
    apptainer: Apptainer, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.sif"
    broken.write_bytes(b"no image")

    settings = SingularitySettings(str(broken), program=str(apptainer.program))

    with pytest.raises(BackendError, match="does not start") as refused:
        SingularityEnvironment(settings).execute("true", timeout=20)

    assert refused.value.hint is not None
    assert "To check: apptainer exec" in refused.value.hint


def test_a_missing_program_is_said_to_be(tmp_path: Path) -> None:
    settings = SingularitySettings(str(tmp_path), program="no-such-program")

    with pytest.raises(UnavailableError, match="no-such-program"):
        SingularityEnvironment(settings).execute("true", timeout=5)


@pytest.mark.parametrize(
    "changes",
    [
        {"image": ""},
        {"image": "--writable"},
        {"image": "/no/such/image.sif"},
        {"binds": ["/no/such/folder:/data"]},
        {"binds": ["/usr:data"]},
        {"binds": ["/usr:/data:rx"]},
        {"binds": ["/usr,/etc:/data"]},
        {"binds": [f"{os.path.expanduser('~')}:/data"]},
        {"binds": ["/:/host"]},
        {"workspace": "~"},
        {"overlay": "/no/such/overlay"},
        {"network": "bridge"},
        {"memory": "lots"},
        {"pids": 0},
    ],
)
def test_settings_that_can_not_be_are_found_before_anything_starts(
    changes: dict[str, object], tmp_path: Path
) -> None:
    given = {"image": str(tmp_path), **changes}

    with pytest.raises(ConfigError):
        SingularitySettings(**given)  # type: ignore[arg-type]

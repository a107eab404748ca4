"""`ConfinedEnvironment`: commands, notes, the way out, and what is put back."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.confinement.conftest import require
from tests.tools.conftest import processes

from hermes.core import ToolCall
from hermes.core.errors import UnavailableError
from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings
from hermes.environments.confinement.proof import broken_limits
from hermes.runtime.app import App

MECHANISMS = ("bubblewrap", "landlock")


@pytest.fixture(params=MECHANISMS)
def confined(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConfinedEnvironment]:
    mechanism = request.param
    require(mechanism)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    (tmp_path / "hermes").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    machine = ConfinedMachine(str(work), Settings(), task="t", mechanisms=[mechanism])
    environment = ConfinedEnvironment(str(work), Settings(), machine=machine)
    yield environment
    environment.cleanup()


def test_every_limit_holds(confined: ConfinedEnvironment) -> None:
    assert broken_limits(confined) == []


def test_state_stays_from_one_command_to_the_next(confined: ConfinedEnvironment) -> None:
    confined.execute("mkdir d; cd d; export NAME=value", timeout=20)

    assert confined.execute('echo "$NAME $(basename "$PWD")"', timeout=20).stdout == "value d\n"


def test_a_blocked_write_is_explained_with_its_path(confined: ConfinedEnvironment) -> None:
    result = confined.execute("touch /etc/hermes-mark", timeout=20)

    assert result.exit_code
    assert any("/etc/hermes-mark" in note and "outside=true" in note for note in result.notes)


def test_a_git_setting_that_runs_a_program_is_put_back(confined: ConfinedEnvironment) -> None:
    result = confined.execute("git config core.fsmonitor 'touch x'", timeout=20)

    shown = subprocess.run(
        ["git", "-C", confined.machine.workspace, "config", "core.fsmonitor"], capture_output=True
    )
    assert shown.returncode == 1
    assert any("core.fsmonitor" in note for note in result.notes)


def test_an_ordinary_git_setting_stays(confined: ConfinedEnvironment) -> None:
    result = confined.execute("git remote add origin https://x.example/r.git", timeout=20)

    config = Path(confined.machine.workspace, ".git", "config").read_text()
    assert "x.example" in config
    assert result.notes == []


def test_a_hook_is_taken_out_even_if_its_folder_was_moved(confined: ConfinedEnvironment) -> None:
    result = confined.execute(
        "mv .git g; mkdir -p .git/hooks; cp -r g/. .git/ 2>/dev/null; "
        "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        timeout=20,
    )

    assert not Path(confined.machine.workspace, ".git", "hooks", "pre-commit").exists()
    assert any("pre-commit" in note for note in result.notes)


@pytest.mark.parametrize(
    "command",
    [
        "mv .git g; ln -s {other}/.git .git",
        "mv .git g; echo 'gitdir: {other}/.git' > .git",
        "echo {other}/.git > .git/commondir",
        "mv .git g; cp -r g .git; rm -rf .git/hooks; ln -s {other}/.git/hooks .git/hooks",
        "mv .git g; cp -r g .git; rm -f .git/config; ln -s {other}/.git/config .git/config",
    ],
)
def test_what_leads_git_to_another_repository_is_taken_out_and_that_one_left_alone(
    confined: ConfinedEnvironment, tmp_path: Path, command: str
) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    (other / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
    subprocess.run(["git", "-C", str(other), "config", "core.pager", "less"], check=True)
    settings = (other / ".git" / "config").read_text()

    result = confined.execute(command.format(other=other), timeout=20)

    asked = ["rev-parse", "--path-format=absolute", "--git-path", "hooks", "--git-path", "config"]
    found = subprocess.run(
        ["git", "-C", confined.machine.workspace, *asked], capture_output=True, text=True
    )
    assert str(other) not in "".join(map(os.path.realpath, found.stdout.splitlines()))
    assert any("put back" in note for note in result.notes)
    assert (other / ".git" / "hooks" / "pre-commit").exists()
    assert (other / ".git" / "config").read_text() == settings


def test_settings_that_were_moved_away_and_back_stay(confined: ConfinedEnvironment) -> None:
    config = Path(confined.machine.workspace, ".git", "config")
    subprocess.run(["git", "config", "--file", str(config), "core.pager", "less"], check=True)
    confined.execute("mv .git g", timeout=20)
    result = confined.execute("mv g .git", timeout=20)

    assert result.notes == []
    assert "less" in config.read_text()


def test_repositories_below_the_workspace_and_files_of_ours_are_guarded_too(
    confined: ConfinedEnvironment,
) -> None:
    work = Path(confined.machine.workspace)
    subprocess.run(["git", "init", "-q", str(work / "libraries" / "one")], check=True)
    (work / ".hermes").mkdir()
    (work / ".hermes" / "note").write_text("a")

    confined.execute(
        "echo x > libraries/one/.git/hooks/pre-push; echo b > .hermes/note; echo c > .hermes/new",
        timeout=20,
    )

    assert not (work / "libraries" / "one" / ".git" / "hooks" / "pre-push").exists()
    assert (work / ".hermes" / "note").read_text() == "a"
    assert not (work / ".hermes" / "new").exists()


def test_a_secret_that_appears_later_is_hidden_from_the_next_command(
    confined: ConfinedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    started = confined.start("sleep 30; true")
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text("secret")

    assert confined.execute(f"cat {home}/.kube/config", timeout=20).exit_code
    # What runs already goes on.
    assert started.state == "running"
    confined.cleanup()
    assert not processes("sleep 30; true")


def test_a_hidden_file_that_is_gone_does_not_keep_the_guardian_from_starting_again(
    confined: ConfinedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / ".netrc").write_text("x")
    confined.execute("true", timeout=20)
    (home / ".netrc").unlink()
    confined.machine.guardian.close()

    assert confined.execute("echo again", timeout=20).stdout == "again\n"


def test_hooks_of_a_background_command_are_taken_out_at_the_end(
    confined: ConfinedEnvironment,
) -> None:
    work = Path(confined.machine.workspace)
    started = confined.start("cp -r .git g; mv .git old; mv g .git; echo x > .git/hooks/pre-push")
    started.wait(20)
    confined.cleanup()

    assert not (work / ".git" / "hooks" / "pre-push").exists()


def test_outside_lifts_the_limits_for_one_thread_alone(
    confined: ConfinedEnvironment, tmp_path: Path
) -> None:
    with confined.outside():
        assert confined.execute(f"touch {tmp_path}/out", timeout=20).exit_code == 0
    assert (tmp_path / "out").exists()

    assert confined.execute("touch /etc/hermes-mark", timeout=20).exit_code


def test_variables_and_functions_of_confined_commands_do_not_leave(
    confined: ConfinedEnvironment,
) -> None:
    confined.execute("export PATH=$PWD:$PATH NAME=x; true() { echo f; }", timeout=20)

    with confined.outside():
        said = confined.execute('echo "$NAME"; true; echo "${PATH%%:*}"', timeout=20).stdout

    assert said.split("\n")[0] == ""
    assert "f\n" not in said
    assert confined.machine.workspace not in said
    assert confined.execute("true", timeout=20).stdout == "f\n"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_network_is_open_unless_it_is_closed(mechanism: str, tmp_path: Path) -> None:
    require(mechanism)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        for network, reached in (("open", True), ("off", False)):
            settings = Settings(network=network)
            machine = ConfinedMachine(str(tmp_path), settings, task="n", mechanisms=[mechanism])
            environment = ConfinedEnvironment(str(tmp_path), settings, machine=machine)
            result = environment.execute(f'python3 -c "{connect}"', timeout=30)
            environment.cleanup()

            assert (result.exit_code == 0) is reached, result.stderr


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("docker compose up -d", True),
        ("docker ps", False),
        ("docker compose up; rm -rf ~", False),
        ("docker compose up $(id)", False),
        ("docker compose up\nid", False),
    ],
)
def test_only_plain_commands_run_outside_for_good(command: str, runs: bool, tmp_path: Path) -> None:
    environment = ConfinedEnvironment(str(tmp_path), Settings(outside=("docker compose",)))

    assert environment.runs_outside(command) is runs


def test_where_nothing_can_confine_on_refuses_and_auto_says_so(tmp_path: Path) -> None:
    strict = ConfinedMachine(str(tmp_path), Settings(mode="on"), task="t", mechanisms=())
    with pytest.raises(UnavailableError):
        ConfinedEnvironment(str(tmp_path), Settings(), machine=strict).execute("true", timeout=9)

    loose = ConfinedMachine(str(tmp_path), Settings(), task="t", mechanisms=())
    environment = ConfinedEnvironment(str(tmp_path), Settings(), machine=loose)
    result = environment.execute("true", timeout=9)
    environment.cleanup()

    assert result.exit_code == 0
    assert any("not confined" in note for note in result.notes)
    assert any("not confined" in line for line in environment.info().not_enforced)


def test_leaving_is_asked_about_and_refused_when_nobody_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    monkeypatch.chdir(tmp_path)

    def call(command: str) -> ToolCall:
        return ToolCall("terminal", {"command": command, "outside": True, "reason": "a socket"})

    asked = []

    def approve(request: object) -> bool:
        asked.append(str(request.reason))  # type: ignore[attr-defined]
        return True

    for approver, command, status in ((None, "id", "refused"), (approve, "date", "ok")):
        app = App()
        app.approver = approver
        try:
            assert app.runtime.call_sync(call(command)).status == status
        finally:
            app.close()
    assert "outside of confinement" in asked[0]
    assert "a socket" in asked[0]


def test_models_are_not_sent_the_way_out() -> None:
    app = App()
    try:
        entry = app.registry.get("terminal")
        assert entry is not None
        assert "outside" not in entry.schema["parameters"]["properties"]
        assert "outside" in entry.parameters["properties"]
    finally:
        app.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_program_that_is_installed_below_tmp_works(mechanism: str, tmp_path: Path) -> None:
    import shutil

    import hermes

    require(mechanism)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(hermes.__file__).parent, tmp_path / "lib" / "hermes", ignore=ignored)
    (tmp_path / "work").mkdir()
    script = f"""
from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings
machine = ConfinedMachine("work", Settings(), task="i", mechanisms=[{mechanism!r}])
environment = ConfinedEnvironment("work", Settings(), machine=machine)
print(environment.execute("echo it works", timeout=30).stdout)
environment.cleanup()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")},
    )  # fmt: skip

    assert "it works" in done.stdout, done.stderr


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kill_9_leaves_no_process_and_no_mount(mechanism: str, tmp_path: Path) -> None:
    require(mechanism)
    script = f"""
import os, signal
from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings
machine = ConfinedMachine({str(tmp_path)!r}, Settings(), task="k", mechanisms=[{mechanism!r}])
environment = ConfinedEnvironment({str(tmp_path)!r}, Settings(), machine=machine)
environment.start("sleep 812.5; true")
environment.start("setsid sleep 812.5; true")
print("started", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    mounts = Path("/proc/self/mountinfo").read_text()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )

    assert "started" in done.stdout, done.stderr
    _until_gone("sleep 812.5")
    assert Path("/proc/self/mountinfo").read_text() == mounts


def _until_gone(words: str) -> None:
    import time

    until = time.monotonic() + 20
    while processes(words) and time.monotonic() < until:
        time.sleep(0.05)
    assert not processes(words)


def test_typed_text_is_confined_like_the_program_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    (tmp_path / "hermes").mkdir()
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    asked: list[str] = []

    def approver(request: object) -> str:
        asked.append(request.reason)  # type: ignore[attr-defined]
        return "once"

    app = App(project=str(tmp_path), approver=approver)
    context = app.runtime.context("typing")

    def call(tool: str, **arguments: object) -> str:
        return str(app.runtime.call_sync(ToolCall(tool, arguments), context).content)

    call("process", action="start", name="inside", command="sh", pty=True)
    call("process", action="submit", name="inside", data="touch /etc/typed-mark; \x1b[D")
    assert asked == []
    assert not Path("/etc/typed-mark").exists()
    call("terminal", command="sh -i", pty=True, background=True, outside=True, reason="why")
    [outside] = [p.name for p in app.runtime.task("typing").kept("environment").processes()
                 if p.name != "inside"]  # fmt: skip
    asked.clear()
    for data, questions in (("echo a", 0), ("\x1b[A", 1), ("!ls", 2), ("touch /etc/hosts", 3)):
        call("process", action="submit", name=outside, data=data)
        assert len(asked) == questions, (data, asked)
    app.close()

"""The services' own libraries, against services on loopback."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest
from tests.environments.cloud import stubs

from hermes.core.errors import UnavailableError
from hermes.environments.cloud.cloud_environment import CloudEnvironment
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.daytona import DaytonaProvider
from hermes.environments.modal import ModalProvider
from hermes.environments.vercel import VercelProvider

if TYPE_CHECKING:
    from hermes.environments.cloud.provider import Provider

# The libraries leave their connections to be collected.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def probe_backend(provider: Provider, image: str = "some/image") -> None:
    """Everything that an environment asks of a service."""
    place = CloudEnvironment(provider, image=image, lifetime=600.0)

    first = place.execute("cd /tmp; export A=1; echo out; echo err >&2; exit 3", timeout=30)
    second = place.execute("pwd; echo $A; wc -c", timeout=30, stdin=b"\0\xff")
    long = place.execute("seq 700000", timeout=60)
    beside = place.start("echo $A; read x; echo got $x; exit 4")
    beside.write(b"word\n")
    ended = beside.wait(30)
    log = beside.log(0)[0]
    shown = _shown(place)
    asked = place.execute("printf 'Go on? '; read x; test -t 0 && echo got $x", 30, pty=True)
    assert asked.background is not None
    asked.background.write(b"yes\n")
    answered = asked.background.wait(30) and asked.background.recent()
    place.cleanup()

    assert (first.exit_code, first.stdout, first.stderr) == (3, "out\n", "err\n")
    assert second.stdout.split() == ["/tmp", "1", "2"]
    assert first.notes == second.notes == []
    assert (long.output.total, long.stdout[-7:]) == (4_788_895, "700000\n")
    assert (ended, beside.exit_code, log) == (True, 4, "1\ngot word\n")
    assert "".join(shown).split() == ["begun", "over"]
    assert "over" not in shown[0]
    assert asked.prompt == "Go on?"
    assert answered
    assert "got yes" in answered
    if long.spill is not None:
        os.unlink(long.spill)


def _shown(place: CloudEnvironment) -> list[str]:
    """What is shown of a command that ends when something of it was."""
    shown: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, "go")

        def show(text: str) -> None:
            shown.append(text)
            with open(go, "w", encoding="ascii"):
                pass

        command = f"echo begun; while [ ! -e {go} ]; do sleep 0.1; done; echo over"
        place.execute(command, timeout=60, on_output=show)
    return shown


def test_vercel_makes_runs_saves_and_deletes() -> None:
    pytest.importorskip("vercel.sandbox", reason="the vercel extra is not installed")

    with stubs.serving(stubs.vercel) as (address, seen):
        probe_backend(VercelProvider(token="t", team_id="a", project_id="b", base_url=address))

    assert "DELETE /v2/sandboxes/stale" in seen
    assert seen[-2].endswith("/snapshot")
    assert seen[-1].startswith("DELETE")


def test_daytona_makes_runs_saves_and_deletes() -> None:
    pytest.importorskip("daytona", reason="the daytona extra is not installed")
    addresses: list[str] = []

    with stubs.serving(stubs.daytona(lambda: addresses[0])) as (address, seen):
        addresses.append(address)
        probe_backend(DaytonaProvider(api_key="k", api_url=f"{address}/api"))

    calls = [one for one in seen if "socket.io" not in one]
    assert calls.index("DELETE /api/sandbox/stale") < calls.index("POST /api/sandbox")
    assert "POST /api/sandbox/sb1/snapshot" in calls
    assert calls[-1] == "DELETE /api/sandbox/sb1"


def test_modal_makes_runs_saves_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("modal", reason="the modal extra is not installed")
    from tests.environments.cloud import modal_stub

    with modal_stub.serving() as (address, seen):
        given = {
            "SERVER_URL": address, "TOKEN_ID": "a", "TOKEN_SECRET": "b",
            "CONFIG_PATH": "/dev/null", "ENVIRONMENT": "main",
        }  # fmt: skip
        for name, value in given.items():
            monkeypatch.setenv(f"MODAL_{name}", value)
        probe_backend(ModalProvider(), image="im-1")

    assert seen.index("SandboxTerminate sb-stale") < seen.index("SandboxCreateV2")
    assert seen[-2] == "TaskSnapshotFilesystem"
    assert seen[-1].startswith("SandboxTerminate")


def test_a_service_that_is_not_there_is_one_error() -> None:
    pytest.importorskip("vercel.sandbox", reason="the vercel extra is not installed")
    with stubs.serving(stubs.vercel) as (address, _):
        pass
    provider = VercelProvider(token="t", team_id="a", project_id="b", base_url=address)

    with pytest.raises(ProviderError, match="could not create a sandbox"):
        CloudEnvironment(provider, image="").execute("true", timeout=5)


@pytest.mark.parametrize("provider", [DaytonaProvider(), VercelProvider(), ModalProvider()])
def test_a_missing_library_names_its_extra(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in ("daytona", "vercel.sandbox.sync", "modal"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(UnavailableError, match="can't be imported"):
        CloudEnvironment(provider, image="x").execute("true", timeout=5)

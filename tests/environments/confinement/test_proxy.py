"""Network `hosts`: real clients through the proxy, everything else closed."""

from __future__ import annotations

import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.environments.confinement.conftest import require

from hermes.core import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.environments.confinement import ConfinedEnvironment, ConfinedMachine, Settings
from hermes.environments.confinement.proxy import HostProxy, RefusedError
from hermes.runtime.app import App

PROXY = "--noproxy ''"


class Site(http.server.ThreadingHTTPServer):
    """A server on the loopback with the files of a folder."""

    daemon_threads = True

    def __init__(self, folder: Path, *, certificate: Path | None = None) -> None:
        def handler(*arguments: Any) -> http.server.BaseHTTPRequestHandler:
            return Quiet(*arguments, directory=str(folder))

        super().__init__(("127.0.0.1", 0), handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "text").write_text("hello\n")
    server = Site(folder)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["bubblewrap", "landlock"])
def confined(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConfinedEnvironment]:
    require(request.param)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    (tmp_path / "hermes").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    settings = Settings(network="hosts", hosts=("127.0.0.1",))
    machine = ConfinedMachine(str(work), settings, task="t", mechanisms=[request.param])
    environment = ConfinedEnvironment(str(work), settings, machine=machine)
    yield environment
    environment.cleanup()


def test_curl_reaches_a_named_host_by_http_connect_and_socks(
    confined: ConfinedEnvironment, site: Site
) -> None:
    url = f"http://127.0.0.1:{site.port}/text"
    for options in (
        PROXY,
        f"{PROXY} --proxytunnel",
        f'{PROXY} --socks5-hostname "${{http_proxy#http://}}"',
        f'{PROXY} --socks5 "${{http_proxy#http://}}"',
    ):
        result = confined.execute(f"curl -sS {options} {url}", timeout=30)

        assert (result.stdout, result.stderr, result.notes) == ("hello\n", "", []), options


def test_https_goes_through_with_its_own_certificate(
    confined: ConfinedEnvironment, tmp_path: Path
) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out",
         "certificate", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    both = tmp_path / "work" / "both"
    both.write_text((tmp_path / "key").read_text() + (tmp_path / "certificate").read_text())
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "text").write_text("hello\n")
    site = Site(tmp_path / "site", certificate=both)

    command = f"curl -sS {PROXY} --cacert both https://127.0.0.1:{site.port}/text"
    assert confined.execute(command, timeout=30).stdout == "hello\n"
    site.shutdown()
    site.server_close()


def test_git_clones_pip_installs_and_npm_reads_a_package(
    confined: ConfinedEnvironment, site: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    commands = (
        "git init -q r",
        "git -C r -c user.name=n -c user.email=e commit -q --allow-empty -m first",
        "git -C r update-server-info",
    )
    for command in commands:
        subprocess.run(command.split(), cwd=folder, check=True)
    (folder / "simple" / "tiny").mkdir(parents=True)
    with zipfile.ZipFile(folder / "simple" / "tiny" / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "WORD = 'tiny'\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\n"
                       "Version: 1.0\n")  # fmt: skip
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\n"
                       "Root-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    (folder / "small").write_text(
        '{"name": "small", "dist-tags": {"latest": "2.0.0"}, "versions": {"2.0.0": '
        '{"name": "small", "version": "2.0.0", "dist": {"tarball": "http://x/y.tgz"}}}}'
    )
    base = f"http://127.0.0.1:{site.port}"
    # The machine's own loopback, and not that of the commands.
    confined.execute("export no_proxy= NO_PROXY=", timeout=30)
    pip = f"{sys._base_executable} -m pip --isolated -q --disable-pip-version-check"

    cloned = confined.execute(f"git clone -q {base}/r/.git copy && git -C copy log -1", timeout=60)
    assert "first" in cloned.stdout, cloned.stderr
    installed = confined.execute(
        f"{pip} install --no-cache-dir --target t -i {base}/simple tiny && cat t/tiny.py",
        timeout=90,
    )
    assert "WORD" in installed.stdout, installed.stderr
    assert shutil.which("npm") or os.environ.get("CI") != "true"
    if shutil.which("npm"):
        shown = confined.execute(f"npm view --registry {base} small version", timeout=90)
        assert shown.stdout.strip() == "2.0.0", shown.stderr


def test_other_names_are_refused_and_named_with_the_setting(confined: ConfinedEnvironment) -> None:
    result = confined.execute("curl -sS https://example.org/", timeout=30)

    assert result.exit_code
    assert result.notes == [
        "blocked: commands may not reach example.org; terminal.confine.hosts opens it"
    ]


@pytest.mark.parametrize(
    "attempt",
    [
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('192.0.2.1', 53))",
        "socket.create_connection(('192.0.2.1', 80), 3)",
        "socket.create_connection(('127.0.0.1', PORT), 3)",
        "s = socket.socket(socket.AF_INET6); s.settimeout(3); s.connect(('2001:db8::1', 80))",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "socket.getaddrinfo('example.org', 80)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    ],
)
def test_every_other_way_is_closed(confined: ConfinedEnvironment, site: Site, attempt: str) -> None:
    code = attempt.replace("PORT", str(site.port))

    result = confined.execute(f'python3 -c "import socket; {code}"', timeout=30)

    assert result.exit_code == 1
    assert "error" in result.stderr.lower(), result.output.merged


def test_a_server_of_the_task_is_reached_directly(
    confined: ConfinedEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "work" / "text").write_text("inside\n")
    confined.start("python3 -m http.server -b 127.0.0.1 8765")

    command = "curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://localhost:8765/text"
    result = confined.execute(command, timeout=60)
    # With Landlock the loopback is that of the machine, and goes through the proxy.
    assert (result.stdout == "inside\n") is (confined.mechanism == "bubblewrap")


def test_a_port_of_this_machine_is_forwarded(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    settings = Settings(network="hosts", hosts=(f"localhost:{site.port}",))
    machine = ConfinedMachine(str(tmp_path), settings, task="t", mechanisms=["bubblewrap"])
    environment = ConfinedEnvironment(str(tmp_path), settings, machine=machine)

    result = environment.execute(f"curl -sS http://localhost:{site.port}/text", timeout=30)

    assert result.stdout == "hello\n"
    environment.cleanup()


def test_the_proxy_ends_with_the_task(confined: ConfinedEnvironment) -> None:
    confined.execute("true", timeout=30)
    before = {thread.name for thread in threading.enumerate()}
    assert "hermes-proxy" in before

    confined.cleanup()

    assert not [t for t in threading.enumerate() if t.name == "hermes-proxy" and t.is_alive()]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("169.254.169.254", "metadata"),
        ("metadata.google.internal", "metadata"),
        ("[::ffff:169.254.169.254]", "hides"),
        ("0xa9fea9fe", "."),
        ("bad host", "."),
    ],
)
def test_metadata_services_are_closed_whatever_a_person_says(host: str, reason: str) -> None:
    proxy = HostProxy(["*.internal", host])
    proxy.answer_by(lambda _: pytest.fail("asked"))

    with pytest.raises(RefusedError, match=reason):
        proxy.allowed(host, 80)


def test_a_name_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import hermes.safety.urls as urls

    proxy = HostProxy(["a.example.org", "*.example.net"])
    for address, reason in (("169.254.169.254", "metadata"), ("127.0.0.1", "this machine")):
        monkeypatch.setattr(urls, "_ask_system", lambda *_, found=address: [found])
        with pytest.raises(RefusedError, match=reason):
            proxy.allowed("a.example.org", 80)
    monkeypatch.setattr(urls, "_ask_system", lambda *_: ["10.1.2.3"])
    assert proxy.allowed("A.EXAMPLE.ORG", 80) == ("10.1.2.3",)
    assert proxy.allowed("x.y.example.net", 80) == ("10.1.2.3",)
    for other in ("example.net", "a.example.org.evil.com", "example.org"):
        with pytest.raises(RefusedError, match="not open"):
            proxy.allowed(other, 80)


def test_a_new_name_asks_once_with_the_command(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    home = tmp_path / "hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    (home / "config.yaml").write_text("terminal: {confine: {network: hosts}}\n")
    asked: list[Any] = []

    def approver(request: Any) -> str:
        asked.append(request)
        return "session"

    app = App(ToolRegistry(), project=str(tmp_path), approver=approver)
    command = f"curl -sS {PROXY} http://127.0.0.1:{site.port}/text"

    def run(task: str) -> str:
        context = app.runtime.context(task, session_id="s")
        return str(
            app.runtime.call_sync(ToolCall("terminal", {"command": command}), context).content
        )

    for task in ("one", "one", "two"):
        assert "hello" in run(task)
    [request] = [each for each in asked if each.rule == "network:host"]
    assert request.arguments == {"host": "127.0.0.1", "command": command}
    app.close()


def test_nothing_is_left_of_a_killed_program(tmp_path: Path) -> None:
    require("bubblewrap")
    program = (
        "import os, sys, time\n"
        "from hermes.environments.confinement import ConfinedEnvironment, Settings\n"
        "e = ConfinedEnvironment(sys.argv[1], Settings(network='hosts'))\n"
        "e.start('sleep 4711')\n"
        "print(e.machine.guardian.first, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "HERMES_HOME": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        first = int(process.stdout.readline())
        process.kill()
    for _ in range(100):
        if not os.path.exists(f"/proc/{first}"):
            break
        time.sleep(0.1)

    assert not os.path.exists(f"/proc/{first}")

"""Packages that would be fetched to be run, and what is known of them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.mcp.client.conftest import Desk

from hermes.mcp.client.packages import Package, newest, package_of, with_version


@pytest.mark.parametrize(
    ("command", "package"),
    [
        ("npx -y @scope/server@1.2.3 --flag x", Package("npm", "@scope/server", "1.2.3")),
        ("npx @scope/server", Package("npm", "@scope/server", "")),
        ("/usr/bin/npx --yes server@latest", Package("npm", "server", "latest")),
        ("npx -p evil -- run-me", Package("npm", "evil", "")),
        ("npx --package=evil@2.0.0 run-me", Package("npm", "evil", "2.0.0")),
        ("npm exec -y server@1.0.0", Package("npm", "server", "1.0.0")),
        ("pnpm dlx server", Package("npm", "server", "")),
        ("bunx server@3.1.0", Package("npm", "server", "3.1.0")),
        ("uvx mcp-server-git==2026.1.2", Package("PyPI", "mcp-server-git", "2026.1.2")),
        ("uvx mcp-server-git@2026.1.2 --repository .", Package("PyPI", "mcp-server-git", "2026.1.2")),
        ("uvx --from evil[x]==1.0 harmless", Package("PyPI", "evil", "1.0")),
        ("uv tool run --python 3.12 thing", Package("PyPI", "thing", "")),
        ("pipx run thing==1.0", Package("PyPI", "thing", "1.0")),
        ("node server.js", None),
        ("python -m mcp_server_git", None),
        ("npx", None),
    ],
)  # fmt: skip
def test_the_package_is_read_from_the_command(command: str, package: Package | None) -> None:
    first, *rest = command.split()

    assert package_of(first, rest) == package


class Database:
    """Answers as the malware database does."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        # What it says to everything, where that is anything else.
        self.answer: Any = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                return

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(question)
                bad = question["package"]["name"] == "evil"
                answer = {"vulns": [{"id": "MAL-2026-1"}]} if bad else {"vulns": [{"id": "CVE-1"}]}
                if outer.answer is not None:
                    answer = outer.answer
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/query"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database()
    yield made
    made.close()


def configured(desk: Desk, policy: str, url: str, args: list[str]) -> Any:
    """A server that would be fetched by a runner which isn't really one."""
    runner = desk.project / "npx"
    runner.write_text("#!/bin/sh\nexit 7\n")
    runner.chmod(0o755)
    desk.home.mkdir(parents=True, exist_ok=True)
    said = {
        "mcp_servers": {"box": {"command": str(runner), "args": args}},
        "mcp": {"osv": policy, "osv_url": url},
    }
    (desk.home / "config.yaml").write_text(yaml.safe_dump(said))
    return desk.open(wait=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.mcp.client.connection.PAUSE_SECONDS", 0.02)


def test_a_package_known_as_malware_is_never_started(desk: Desk, database: Database) -> None:
    servers = configured(desk, "warn", database.url, ["-y", "evil@1.0.0"])

    assert servers.states["box"].reason.startswith(
        "the package evil is reported as malware: MAL-2026-1"
    )
    assert database.asked == [{"package": {"name": "evil", "ecosystem": "npm"}, "version": "1.0.0"}]


def test_a_clean_package_is_asked_about_once_a_day(desk: Desk, database: Database) -> None:
    servers = configured(desk, "block", database.url, ["-y", "good"])

    assert "exit code 7" in servers.states["box"].reason
    assert len(database.asked) == 1
    link = servers.states["box"].connection
    assert link.notes == ["good is not pinned to a version"]


def test_an_unreachable_database_is_stated_and_the_policy_decides(desk: Desk) -> None:
    nowhere = "http://127.0.0.1:9/v1/query"

    warned = configured(desk, "warn", nowhere, ["-y", "good@1.0.0"])
    blocked = configured(desk, "block", nowhere, ["-y", "good@1.0.0"])

    assert "exit code 7" in warned.states["box"].reason
    assert "can't be reached" in warned.states["box"].connection.notes[0]
    assert "not started unchecked" in blocked.states["box"].reason


@pytest.mark.parametrize(
    ("command", "pinned"),
    [
        ("npx -y @scope/server --flag", "npx -y @scope/server@1.2.3 --flag"),
        ("npx -y server@latest", "npx -y server@1.2.3"),
        ("npx --package=server run", "npx --package=server@1.2.3 run"),
        ("uvx mcp-server-git --repository .", "uvx mcp-server-git==1.2.3 --repository ."),
        ("uvx --from thing run-it", "uvx --from thing==1.2.3 run-it"),
    ],
)
def test_a_version_is_put_where_the_package_is_named(command: str, pinned: str) -> None:
    first, *rest = command.split()
    package = package_of(first, rest)
    assert package is not None

    assert " ".join((first, *with_version(rest, package, "1.2.3"))) == pinned


def test_the_persons_own_tool_is_asked_for_the_newest_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\n[ "$1 $2 $3" = "view server version" ] && echo 4.5.6\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    assert newest(Package("npm", "server", "")) == "4.5.6"
    assert newest(Package("npm", "other", "")) == ""


@pytest.mark.parametrize("answer", [[], {"vulns": "none"}, {"vulns": {"id": "MAL-1"}}])
def test_an_answer_that_is_no_report_is_no_word_on_a_package(
    desk: Desk, database: Database, answer: Any
) -> None:
    database.answer = answer

    servers = configured(desk, "block", database.url, ["-y", "good@1.0.0"])

    assert "not started unchecked" in servers.states["box"].reason


def test_a_report_with_odd_entries_is_read_for_the_others(desk: Desk, database: Database) -> None:
    database.answer = {"vulns": [5, None, {"no": "id"}, {"id": "MAL-2026-9"}]}

    servers = configured(desk, "warn", database.url, ["-y", "good@1.0.0"])

    assert "reported as malware: MAL-2026-9" in servers.states["box"].reason

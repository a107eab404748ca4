"""Export against a real collector on loopback: only when asked for, and never in anybody's way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hermes.core import ToolCall, ToolRegistry, tool
from hermes.core.config import Config
from hermes.core.errors import ConfigError
from hermes.runtime.app import App
from hermes.runtime.tracing import Exporter, exporter

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


class Collector(ThreadingHTTPServer):
    """Takes what is sent to it; answers with `status`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.status = 200
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[dict[str, Any]]:
        return [
            span
            for _, _, body in self.requests
            for resource in body["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.status == 200:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.requests.append((self.path, headers, body))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "HEADERS"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


def used(settings: dict[str, Any]) -> None:
    """A program that makes two calls with these settings."""
    registry = ToolRegistry()

    @tool(registry=registry, toolset="t", effect="read")
    def act(text: str = "") -> str:
        """Do it."""
        if not text:
            raise ValueError("nothing to do")
        return text

    app = App(registry)
    app.config = Config({"trace": settings})
    app.runtime.call_sync(ToolCall("act", {"text": SECRET}, id="c1"))
    app.runtime.call_sync(ToolCall("act", {}))
    app.close()


def test_spans_reach_a_collector_that_was_named(collector: Collector) -> None:
    used({"export": True, "otlp_endpoint": collector.url})

    (path, headers, body) = collector.requests[0]
    assert path == "/v1/traces"
    assert headers["content-type"] == "application/json"
    about = body["resourceSpans"][0]["resource"]["attributes"]
    assert {"key": "service.name", "value": {"stringValue": "hermes"}} in about
    good, bad = collector.spans
    assert good["name"] == "execute_tool act"
    assert (len(good["traceId"]), len(good["spanId"])) == (32, 16)
    assert int(good["endTimeUnixNano"]) >= int(good["startTimeUnixNano"]) > 10**18
    assert (good["kind"], good["status"]["code"], bad["status"]["code"]) == (1, 1, 2)
    assert {"key": "gen_ai.tool.call.id", "value": {"stringValue": "c1"}} in good["attributes"]
    assert SECRET not in json.dumps(collector.requests)


def test_nothing_is_sent_unless_the_settings_say_so(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)

    used({})
    used({"otlp_endpoint": collector.url})

    assert collector.requests == []


def test_the_usual_variables_count_when_export_is_on(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{collector.url}/base/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b, authorization=Bearer t")
    used({"export": True})

    path, headers, _ = collector.requests[0]
    assert path == "/base/v1/traces"
    assert (headers["x-team"], headers["authorization"]) == ("a b", "Bearer t")


def test_turned_off_means_nothing_at_all(collector: Collector, home: Any) -> None:
    used({"enabled": False, "export": True, "otlp_endpoint": collector.url})

    assert collector.requests == []
    assert not (home / "traces").exists()


@pytest.mark.parametrize("address", ["", "localhost:4318", "file:///etc/passwd"])
def test_an_address_that_is_none_is_said(address: str) -> None:
    with pytest.raises(ConfigError, match="no address"):
        exporter(address, {})


@pytest.mark.parametrize(
    ("endpoint", "environ", "url"),
    [
        ("http://a:4318", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://b"}, "http://a:4318/v1/traces"),
        ("http://a:4318/v1/traces", {}, "http://a:4318/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x"}, "http://c/x"),
    ],
)
def test_where_to(endpoint: str, environ: dict[str, str], url: str) -> None:
    assert exporter(endpoint, environ).url == url


def _line(number: int) -> dict[str, Any]:
    return {
        "trace_id": "0" * 32, "span_id": f"{number:016x}", "parent_span_id": "", "name": "n",
        "kind": "client", "start_time_unix_nano": 1, "end_time_unix_nano": 2, "status": "ok",
        "attributes": {"list": ["a", 1, True, 0.5]},
    }  # fmt: skip


def test_what_could_not_be_sent_is_sent_later(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.runtime.tracing._REST_SECONDS", 0.0)
    export = Exporter(f"{collector.url}/v1/traces")
    collector.status = 503
    export([_line(1)])
    assert collector.requests == []
    collector.status = 200
    export([_line(2)])
    export([_line(3)])

    assert [int(span["spanId"], 16) for span in collector.spans] == [1, 2, 3]
    values = collector.spans[0]["attributes"][0]["value"]["arrayValue"]["values"]
    assert [next(iter(value)) for value in values] == [
        "stringValue", "intValue", "boolValue", "doubleValue",
    ]  # fmt: skip


def test_a_collector_that_is_not_there_troubles_nobody() -> None:
    export = Exporter("http://127.0.0.1:9/v1/traces")
    for number in range(3):
        export([_line(number)])

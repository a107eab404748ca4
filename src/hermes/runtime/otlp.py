"""OTLP exporter: sends spans to an OpenTelemetry collector over HTTP, in OTLP's JSON encoding."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.core.errors import ConfigError
from hermes.core.json_text import to_json
from hermes.core.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

log = Log("hermes.tracing")

_SECONDS = 5.0
# How long a collector that does not answer is left alone, and what is kept for it meanwhile.
_REST_SECONDS = 30.0
_KEPT = 2_000
_KINDS = {"internal": 1, "client": 3}
_OK, _ERROR = 1, 2


def exporter(endpoint: str, environ: Mapping[str, str]) -> Exporter:
    """Exporter to an endpoint, by default the one in the environment.

    Raises `ConfigError` where there is none.
    """
    address = endpoint.strip() or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    whole = "" if endpoint.strip() else environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
    url = whole.strip() or (f"{address.rstrip('/')}/v1/traces" if address else "")
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"trace.export is on, and {url[:80]!r} is no address to send traces to",
            hint="hermes config set trace.otlp_endpoint http://127.0.0.1:4318",
        )
    url = url.replace("/v1/traces/v1/traces", "/v1/traces")
    return Exporter(url, _headers(environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")))


class Exporter:
    """Sends ended spans; failed ones are kept for the next request."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._headers = {**(headers or {}), "Content-Type": "application/json"}
        self._waiting: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._failing = False

    def __call__(self, lines: Sequence[dict[str, Any]]) -> None:
        """Send these, and those that are waiting."""
        with self._lock:
            self._waiting = [*self._waiting, *lines][-_KEPT:]
            if time.monotonic() < self._not_before:
                return
            trouble = self._post(to_json(body(self._waiting)).encode())
            if not trouble:
                self._waiting, self._failing = [], False
                return
            self._not_before = time.monotonic() + _REST_SECONDS
            if not self._failing:
                log.warning("traces can't be sent to %s: %s", self.url, trouble)
            self._failing = True

    def _post(self, data: bytes) -> str:
        """Send one request; the error text, or empty."""
        import http.client
        import urllib.request

        request = urllib.request.Request(self.url, data, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                answer.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            return str(error) or type(error).__name__
        return ""


def body(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Lines of ended spans as one request to a collector."""
    about = {"service.name": "hermes", "service.version": __version__}
    scope = {"name": "hermes", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs(about)},
                "scopeSpans": [{"scope": scope, "spans": [_span(line) for line in lines]}],
            }
        ]
    }


def _span(line: Mapping[str, Any]) -> dict[str, Any]:
    failed = line["status"] == "error"
    status: dict[str, Any] = {"code": _ERROR if failed else _OK}
    if failed and line.get("error"):
        status["message"] = line["error"]
    span = {
        "traceId": line["trace_id"],
        "spanId": line["span_id"],
        "name": line["name"],
        "kind": _KINDS[line["kind"]],
        # 64 bits are text in this form of JSON.
        "startTimeUnixNano": str(line["start_time_unix_nano"]),
        "endTimeUnixNano": str(line["end_time_unix_nano"]),
        "attributes": _pairs({**line["attributes"], "hermes.status": line["status"]}),
        "status": status,
    }
    return {**span, "parentSpanId": line["parent_span_id"]} if line["parent_span_id"] else span


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _headers(text: str) -> dict[str, str]:
    """`name=value,name=value`, as OpenTelemetry writes them."""
    from urllib.parse import unquote

    pairs = (part.partition("=") for part in text.split(","))
    return {unquote(name.strip()): unquote(value.strip()) for name, mark, value in pairs if mark}

"""Services on loopback that speak to the real libraries and run commands here."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.environments.host.process_listing import PID, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Answer = Callable[[str, str, dict[str, Any]], tuple[int, Any]]


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """An HTTP server: its address, and the requests that came so far as `METHOD PATH`."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

        def serve(self) -> None:
            """Answer whatever was asked."""
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            path = self.path.partition("?")[0]
            seen.append(f"{self.command} {path}")
            code, said = answer(self.command, path, body)
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            kind = "application/x-ndjson" if isinstance(said, bytes) else "application/json"
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    for verb in ("GET", "POST", "DELETE"):
        setattr(Handler, f"do_{verb}", Handler.serve)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def left_over() -> dict[str, str]:
    """The labels of a sandbox whose Hermes is gone."""
    return {**labels("t"), PID: "999999999"}


def vercel(method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Vercel's API, as far as its library needs it."""
    common = {
        "createdAt": 1, "updatedAt": 1, "memory": 2048, "vcpus": 1, "region": "iad1",
        "runtime": "x", "timeout": 60_000, "status": "running",
    }  # fmt: skip
    policy = {"mode": "allow-all"}
    tags = left_over() if "stale" in path or method == "GET" else {}
    sandbox = {
        **common, "name": "stale" if tags else "sb1", "currentSessionId": "s1",
        "persistent": False, "networkPolicy": policy, "tags": tags,
    }  # fmt: skip
    session = {**common, "id": "s1", "cwd": "/", "requestedAt": 1, "startedAt": 1}
    if method == "DELETE":
        return 200, {"sandbox": sandbox}
    if method == "GET" and path.endswith("/sandboxes"):
        return 200, {"sandboxes": [sandbox], "pagination": {"count": 1, "next": None}}
    if path.endswith(("/sandboxes", "/stale")):
        return 200, {"sandbox": sandbox, "session": session, "routes": []}
    if path.endswith("/snapshot"):
        snapshot = {
            "id": "snap_1", "sourceSessionId": "s1", "status": "created", "createdAt": 1,
            "updatedAt": 1, "sizeBytes": 1, "region": "iad1",
        }  # fmt: skip
        return 200, {"snapshot": snapshot, "session": session}
    if path.endswith("/cmd"):
        done = subprocess.run([body["command"], *body["args"]], capture_output=True, text=True)
        command = {
            "id": "c1", "name": body["command"], "args": body["args"], "cwd": "/",
            "sessionId": "s1", "exitCode": None, "startedAt": 1,
        }  # fmt: skip
        lines = [
            {"command": command},
            {"stream": "stdout", "data": done.stdout},
            {"stream": "stderr", "data": done.stderr},
            {"command": {**command, "exitCode": done.returncode}},
        ]
        return 200, "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    return 404, {"error": {"code": "not_found", "message": path}}


def daytona(address: Callable[[], str]) -> Answer:
    """Daytona's API, as far as its library needs it."""

    def answer(method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        sandbox = {
            "id": "sb1", "organizationId": "o1", "name": "sb1", "user": "daytona", "env": {},
            "labels": body.get("labels") or {}, "public": False, "networkBlockAll": False, "kvm": False, "target": "us",
            "cpu": 1, "gpu": 0, "memory": 1, "disk": 1, "state": "started",
            "toolboxProxyUrl": f"{address()}/toolbox",
        }  # fmt: skip
        if path.endswith("/process/execute"):
            done = subprocess.run(
                ["sh", "-c", body["command"]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            return 200, {"exitCode": done.returncode, "result": done.stdout.decode()}
        if method == "GET" or path.endswith("/stale"):
            sandbox |= {"id": "stale", "name": "stale", "labels": left_over()}
        if method == "GET" and path == "/api/sandbox":
            return 200, {"items": [sandbox], "nextCursor": None}
        if path.startswith("/api/sandbox"):
            return 200, sandbox
        return 404, {"message": path}

    return answer

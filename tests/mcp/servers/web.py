"""An MCP server over HTTP with a login of its own, in one thread: protected resource,
authorization server with registration, PKCE, refresh and device codes."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Web:
    """What the server has, and what it saw."""

    def __init__(self, *, login: bool = True) -> None:
        self.login = login
        self.tools: list[dict[str, Any]] = [
            {
                "name": "whoami",
                "description": "Who calls.",
                "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
            }
        ]
        self.valid: set[str] = set()
        self.refreshes: set[str] = set()
        self.seen: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, str]] = []
        self.expires_in = 3600
        # What a renewal leaves out, as some servers do.
        self.refresh_without_token = False
        self.refuse_token = False
        # Ways of getting a token that need nobody.
        self.machine_grants: set[str] = set()
        # Where somebody has to log in, if not here.
        self.login_server = ""
        self.metadata: dict[str, Any] = {}
        self.pending = 1
        # What is answered to whoever asks for a token, and for a code; and who is said to have it.
        self.odd_token: Any = None
        self.device: dict[str, Any] = {}
        self.login_servers: Any = None
        self.token_status = 0
        # Whether a refresh token is good once.
        self.rotates = False
        # Answers to those who say goodbye.
        self.lets_go = threading.Event()
        self.lets_go.set()
        self.forgotten: dict[str, Any] | None = None
        self.sessions: set[str] = set()
        self.challenges: dict[str, str] = {}
        self._count = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{self.base}/mcp"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def token(self) -> dict[str, Any]:
        """A fresh pair of tokens."""
        self._count += 1
        access, refresh = f"access-{self._count}", f"refresh-{self._count}"
        self.valid.add(access)
        self.refreshes.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "refresh_token": refresh,
            "scope": "tools",
        }


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            return

        def _send(self, status: int, body: Any = None, **headers: str) -> None:
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if data:
                self.send_header("Content-Type", "application/json")
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(data)

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def do_DELETE(self) -> None:
            self._body()
            web.lets_go.wait(60)
            self._send(200)

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            web.seen.append(("GET", path))
            said = dict(urllib.parse.parse_qsl(query))
            if path.startswith("/.well-known/oauth-protected-resource"):
                self._send(
                    200,
                    {
                        "resource": web.url,
                        "authorization_servers": web.login_servers
                        or [web.login_server or web.base],
                    },
                )
            elif path.startswith("/.well-known/oauth-authorization-server"):
                self._send(200, {
                    "issuer": web.base,
                    "authorization_endpoint": f"{web.base}/authorize",
                    "token_endpoint": f"{web.base}/token",
                    "registration_endpoint": f"{web.base}/register",
                    "device_authorization_endpoint": f"{web.base}/device",
                    "code_challenge_methods_supported": ["S256"],
                    "response_types_supported": ["code"],
                    **web.metadata,
                })  # fmt: skip
            elif path == "/authorize":
                web.challenges["code-1"] = said["code_challenge"]
                back = urllib.parse.urlencode({"code": "code-1", "state": said["state"]})
                self._send(302, None, Location=f"{said['redirect_uri']}?{back}")
            else:
                self._send(405)

        def do_POST(self) -> None:
            path = self.path
            web.seen.append(("POST", path))
            body = self._body()
            if path == "/mcp":
                self._mcp(body)
                return
            if path == "/register":
                said = json.loads(body)
                self._send(201, {**said, "client_id": "client-1", "token_endpoint_auth_method": "none"})  # fmt: skip
                return
            form = dict(urllib.parse.parse_qsl(body.decode()))
            web.bodies.append(form)
            if path == "/device":
                self._send(200, {"device_code": "dev-1", "user_code": "ABCD-EFGH", "interval": 0.01,
                                 "verification_uri": f"{web.base}/activate", "expires_in": 60, **web.device})  # fmt: skip
            elif path == "/token":
                self._token(form)
            else:
                self._send(404)

        def _token(self, form: dict[str, str]) -> None:
            kind = form.get("grant_type", "")
            if web.token_status:
                self._send(web.token_status, {"error": "temporarily_unavailable"})
            elif web.odd_token is not None:
                self._send(200, web.odd_token)
            elif web.refuse_token:
                self._send(400, {"error": "invalid_grant"})
            elif kind == "authorization_code":
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                wanted = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                right = web.challenges.get(form["code"]) == wanted
                self._send(200 if right else 400, web.token() if right else {"error": "invalid_grant"})  # fmt: skip
            elif kind == "refresh_token" and form["refresh_token"] in web.refreshes:
                fresh = web.token()
                if web.rotates:
                    web.refreshes.discard(form["refresh_token"])
                if web.refresh_without_token:
                    del fresh["refresh_token"]
                self._send(200, fresh)
            elif kind.endswith("device_code"):
                if web.pending:
                    web.pending -= 1
                    self._send(400, {"error": "authorization_pending"})
                else:
                    self._send(200, web.token())
            elif kind in web.machine_grants:
                self._send(200, {**web.token(), "refresh_token": None})
            else:
                self._send(400, {"error": "invalid_grant"})

        def _mcp(self, body: bytes) -> None:
            web.headers.append(dict(self.headers))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if web.login and token not in web.valid:
                where = f'Bearer resource_metadata="{web.base}/.well-known/oauth-protected-resource/mcp"'
                self._send(401, {"error": "unauthorized"}, WWW_Authenticate=where)
                return
            message = json.loads(body)
            method, ident = message.get("method"), message.get("id")
            if ident is None:
                self._send(202)
            elif method == "initialize":
                session = f"s{len(web.sessions) + 1}"
                web.sessions.add(session)
                self._send(200, _result(ident, {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "web", "version": "1"},
                }), mcp_session_id=session)  # fmt: skip
            elif method == "server/discover":
                self._send(200, {"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "?"}})  # fmt: skip
            elif self.headers.get("mcp-session-id") not in web.sessions:
                gone = web.forgotten and {"jsonrpc": "2.0", "id": ident, "error": web.forgotten}
                self._send(404, gone)
            elif method == "tools/list":
                self._send(200, _result(ident, {"tools": web.tools}))
            else:
                said = [{"type": "text", "text": token or "nobody"}]
                self._send(200, _result(ident, {"content": said}))

    return Handler


def _result(ident: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "result": result}

"""An MCP server for tests, with nothing but the standard library: it does as its script says.

peer.py SCRIPT      a JSON object, or the path of a file with one, read anew for each listing

tools           definitions, as they are listed; each is called `kind` or else its own name
page            how many tools are on one page
delay           seconds before the first answer
until           no answer before a file of this name is there
mute            never answer `initialize`
deaf            ignore SIGTERM
child           start a child that outlives us and ignores SIGTERM
noise           print what is no message
dies_of_discover  end when asked whether we speak the newer protocol
ignores         methods that are never answered
capabilities    more of them
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any


def script() -> dict[str, Any]:
    said = sys.argv[1]
    if not said.startswith("{"):
        with open(said, encoding="utf-8") as file:
            said = file.read()
    found: dict[str, Any] = json.loads(said)
    return found


SCRIPT = script()
lock = threading.Lock()
cancelled: set[Any] = set()
replies: dict[Any, Any] = {}
came = threading.Condition()


def send(message: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method: str, params: dict[str, Any]) -> Any:
    """A request of ours to the client; its answer."""
    ident = f"ours-{time.monotonic_ns()}"
    send({"id": ident, "method": method, "params": params})
    with came:
        came.wait_for(lambda: ident in replies, 20)
        return replies.pop(ident, None)


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def call(ident: Any, params: dict[str, Any]) -> dict[str, Any] | None:
    name, given = params["name"], params.get("arguments") or {}
    listed = {
        t["name"]: t for t in script().get("tools", []) if isinstance(t, dict) and "name" in t
    }
    kind = listed.get(name, {}).get("kind", name)
    if kind == "sleep":
        until = time.monotonic() + given["seconds"]
        while time.monotonic() < until and ident not in cancelled:
            time.sleep(0.01)
        return None if ident in cancelled else text("slept")
    if kind == "die":
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os._exit(3)
    if kind == "shell":
        ran = subprocess.run(["bash", "-c", given["command"]], capture_output=True, text=True)
        return text(ran.stdout)
    if kind == "env":
        return text(json.dumps(dict(os.environ)))
    if kind == "pid":
        return text(str(os.getpid()))
    if kind == "cancelled":
        return text(json.dumps(sorted(map(str, cancelled))))
    if kind == "stderr":
        sys.stderr.write(given["text"] + "\n")
        sys.stderr.flush()
        return text("written")
    if kind == "progress":
        token = params["_meta"]["progressToken"]
        for done in (1, 2, 3):
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": done, "total": 3, "message": f"step {done}"}})  # fmt: skip
        return text("done")
    if kind == "ask":
        time.sleep(given.get("after", 0))
        return text(json.dumps(ask(given["method"], given["params"])))
    if kind == "answer":
        return given["result"]  # type: ignore[no-any-return]
    if kind == "flood":
        for n in range(given["count"]):
            send(
                {
                    "method": "notifications/message",
                    "params": {"level": "info", "data": f"line {n}"},
                }
            )
            sys.stderr.write(f"error line {n}\n")
        return text("flooded")
    if kind == "huge":
        return text("x" * given["size"])
    if kind == "changed":
        send({"method": "notifications/tools/list_changed"})
        return text("told")
    if kind == "fail":
        raise ValueError("no such thing")
    return text(json.dumps({"tool": name, "arguments": given}))


def serve_call(ident: Any, params: dict[str, Any]) -> None:
    try:
        result = call(ident, params)
    except ValueError as error:
        send({"id": ident, "error": {"code": -32602, "message": str(error)}})
        return
    if result is not None:
        send({"id": ident, "result": result})


def tools(params: dict[str, Any]) -> dict[str, Any]:
    every = script().get("tools", [])
    page = SCRIPT.get("page") or len(every) or 1
    start = int(params.get("cursor") or 0)
    result: dict[str, Any] = {"tools": every[start : start + page]}
    if start + page < len(every):
        result["nextCursor"] = str(start + page)
    return result


def main() -> None:
    if SCRIPT.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if SCRIPT.get("child"):
        waits = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", waits], start_new_session=True)
    if SCRIPT.get("noise"):
        print("Server listening\n\n{not json", flush=True)
    time.sleep(SCRIPT.get("delay", 0))
    while SCRIPT.get("until") and not os.path.exists(SCRIPT["until"]):
        time.sleep(0.02)
    for line in sys.stdin:
        message = json.loads(line)
        method, ident, params = (
            message.get("method"),
            message.get("id"),
            message.get("params") or {},
        )
        if method in SCRIPT.get("ignores", []):
            continue
        if method is None:
            with came:
                replies[ident] = message.get("result", message.get("error"))
                came.notify_all()
        elif method == "initialize":
            if not SCRIPT.get("mute"):
                send({"id": ident, "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}, **SCRIPT.get("capabilities", {})},
                    "serverInfo": {"name": "peer", "version": "1"},
                }})  # fmt: skip
        elif method == "tools/list":
            send({"id": ident, "result": tools(params)})
        elif method == "tools/call":
            threading.Thread(target=serve_call, args=(ident, params), daemon=True).start()
        elif method == "notifications/cancelled":
            cancelled.add(params["requestId"])
        elif method == "server/discover" and SCRIPT.get("dies_of_discover"):
            sys.exit(1)
        elif ident is not None and not SCRIPT.get("mute"):
            send({"id": ident, "error": {"code": -32601, "message": "unknown method"}})
    if SCRIPT.get("deaf"):
        time.sleep(600)


main()

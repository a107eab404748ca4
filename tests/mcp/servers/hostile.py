"""An MCP server that means harm, or was written by nobody in particular: `hostile.py HABIT`."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from typing import Any

HABIT = sys.argv[1]
FINE = {"content": [{"type": "text", "text": "fine"}]}
lock = threading.Lock()
listed = 0


def raw(data: str | bytes) -> None:
    with lock:
        sys.stdout.buffer.write((data.encode() if isinstance(data, str) else data) + b"\n")
        sys.stdout.buffer.flush()


def send(**message: Any) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}))


def tool(name: str, **more: Any) -> dict[str, Any]:
    reads = {"readOnlyHint": True}
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": reads, **more}


def tools() -> list[dict[str, Any]]:
    if HABIT == "many":
        return [tool(f"t{number}") for number in range(3_000)]
    if HABIT == "fat":
        return [tool("echo"), tool("fat", description="x" * 5_000_000)]
    if HABIT == "names alike":
        twin = "a_b_" + hashlib.sha256(b"a b").hexdigest()[:8]
        return [tool("echo"), tool("a b"), tool(twin)]
    if HABIT == "half a character":
        return [tool("echo"), tool("e\ud800"), tool("other", description="\udfff")]
    return [tool("echo")]


def call(ident: Any, params: dict[str, Any]) -> None:
    deep = "[" * 3_000 + "]" * 3_000
    token = params.get("_meta", {}).get("progressToken")
    if HABIT == "half a character":
        answer = json.dumps({"content": [{"type": "text", "text": "a\ud800b"}]})
        return raw(f'{{"jsonrpc":"2.0","id":{json.dumps(ident)},"result":{answer}}}')
    fine = json.dumps({"jsonrpc": "2.0", "id": ident, "result": FINE})
    if HABIT == "other bytes":
        return raw(fine.replace("fine", "f\xefne").encode("latin-1"))
    if HABIT == "a mark in front":
        return raw(b"\xef\xbb\xbf" + fine.encode())
    if HABIT == "several at once":
        return raw(f'[{{"jsonrpc":"2.0","method":"x"}}, 5, {fine}]')
    if HABIT in ("no number", "a number without end"):
        number = "NaN" if HABIT == "no number" else "9" * 5_000
        return raw(fine.replace("[", f"[{number}, "))
    if HABIT == "half an answer":
        return raw(fine[:-5])
    if HABIT == "deep answer":
        return raw(
            f'{{"jsonrpc":"2.0","id":{json.dumps(ident)},"result":{{"structuredContent":{deep}}}}}'
        )
    if HABIT == "a long array":
        raw("[" + ", ".join(["{}"] * 200_000) + "]")
    if HABIT == "an everyday error":
        return send(id=ident, error={"code": -32000, "message": "no such record"})
    if HABIT == "endless progress":
        for number in ("9" * 400, "1e999", "-1e999"):
            said = f'"progressToken":{json.dumps(token)},"progress":{number},"total":{number}'
            raw(f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{{said}}}}}')
    if HABIT == "deep noise":
        raw(deep)
        raw(f'{{"jsonrpc":"2.0","method":"x","params":{deep}}}')
    if HABIT == "no answer in the answer":
        return send(id=ident)
    if HABIT == "answers twice":
        send(id=ident, result=FINE)
        return send(id=ident, error={"code": 1, "message": "again"})
    if HABIT == "odd numbers":
        for number in ("1e999", "9" * 400, "[1]", "{}", "null", "true"):
            raw(f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}')
            raw(f'{{"jsonrpc":"2.0","id":{number},"method":"ping"}}')
    if HABIT == "talks without end":
        for _ in range(20_000):
            send(method="notifications/message", params={"level": "info", "data": "z" * 100})
    if HABIT == "reports without end":
        for number in range(2_000):
            said = {"progressToken": token, "progress": number, "message": "\x1b[31mred\x07" * 100}
            send(method="notifications/progress", params=said)
        send(id=ident, result=FINE)
        return send(method="notifications/progress", params={"progressToken": token, "progress": 1})
    if HABIT == "asks without end":
        form = {"type": "object", "properties": {"a": {"type": "string"}}}
        for number in range(200):
            params = {"message": "?", "requestedSchema": form}
            send(id=f"q{number}", method="elicitation/create", params=params)
        asked.wait(20)
    return send(id=ident, result=FINE)


answers: set[str] = set()
asked = threading.Event()


def main() -> None:
    global listed
    for line in sys.stdin:
        message = json.loads(line)
        method, ident = message.get("method"), message.get("id")
        if method is None:
            answers.add(str(ident))
            if len(answers) >= 200:
                asked.set()
        elif method == "initialize":
            about = {"name": "hostile", "version": "1"}
            able: dict[str, Any] = {"tools": {"listChanged": True}}
            if HABIT in ("long list", "empty pages", "never reads"):
                able["resources"] = {}
            if HABIT == "odd abilities":
                able = {"tools": True, "resources": {"subscribe": "yes"}, "logging": 5}
            version = message["params"]["protocolVersion"]
            if HABIT == "odd version":
                version = "1999-12-31"
            said = {"protocolVersion": version, "capabilities": able, "serverInfo": about}
            send(id=ident, result=said)
        elif method == "tools/list" and HABIT == "small pages":
            start = int(message.get("params", {}).get("cursor") or 0)
            page = [tool(f"t{number}") for number in range(start, start + 10)]
            following = {"nextCursor": str(start + 10)} if start < 1_490 else {}
            send(id=ident, result={"tools": page, **following})
        elif method == "tools/list":
            listed += 1
            if HABIT == "silent when asked again" and listed == 2:
                sys.stderr.write("not said\n")
                sys.stderr.flush()
                continue
            cursor = {"nextCursor": "again"} if HABIT == "pages without end" else {}
            send(id=ident, result={"tools": tools(), **cursor})
            if HABIT == "changes without end":
                sys.stderr.write(f"listed {listed}\n")
                sys.stderr.flush()
                for _ in range(20):
                    send(method="notifications/tools/list_changed")
            if HABIT == "silent when asked again":
                send(method="notifications/tools/list_changed")
        elif method == "resources/list":
            resources: list[Any] = [{"uri": f"r:{number}"} for number in range(300)]
            odd = [{"uri": 5, "name": "a"}, "b", {"name": "c"}, {"uri": "odd::\n", "size": "x"}]
            several = {"odd abilities": odd, "empty pages": []}.get(HABIT, resources)
            cursor = {"nextCursor": f"{ident}"} if HABIT == "empty pages" else {}
            send(id=ident, result={"resources": several, **cursor})
        elif method == "resources/read" and HABIT == "never reads":
            continue
        elif method == "tools/call":
            threading.Thread(target=call, args=(ident, message["params"]), daemon=True).start()
        elif ident is not None:
            send(id=ident, error={"code": -32601, "message": "unknown method"})


main()

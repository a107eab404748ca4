"""Calls from a script to tools: each is a call of the runtime, with the session's identity.

The gate, hooks, limits, redaction, audit log and trace are those of a direct call. Added here: the
list of allowed tools, the limit on their number, and approval for the rest of the script.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING

from hermes.core.context import Answer
from hermes.core.entry import ToolCall
from hermes.core.errors import ToolError
from hermes.core.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hermes.core.context import ApprovalRequest, Cancellation, ToolContext
    from hermes.core.protocols import Approver

# Calls that a question names; further ones are counted.
_NAMED = 3
_MOST_NOTED = 200
# How long calls may take to stop after their script.
_END_SECONDS = 10.0


class ScriptCalls:
    """The calls of one script.

    Args:
        ctx: The call that runs the script.
        tools: Names of the tools that it may call.
        limit: How many calls it may make; `stop` is cancelled beyond that.
        stop: Ends the script.
    """

    def __init__(
        self, ctx: ToolContext, tools: Mapping[str, str], *, limit: int, stop: Cancellation
    ) -> None:
        runtime = ctx.services.runtime
        if runtime is None:
            raise ToolError("a script needs a runtime for its calls")
        self._runtime: Any = runtime
        self._ctx = ctx
        self._tools = frozenset(tools.values())
        self._limit = limit
        self._stop = stop
        self._lock = threading.Condition()
        self._count = 0
        self._under_way = 0
        self._made: Counter[str] = Counter()
        self._noted: list[dict[str, Any]] = []
        self._approver = _ScriptApprover(ctx.approver) if ctx.approver is not None else None

    @property
    def made(self) -> dict[str, int]:
        """How often each tool was called."""
        return dict(self._made)

    def serve(self, data: bytes) -> bytes:
        """Answer one request of the script: JSON in, JSON out."""
        try:
            request = json.loads(data)
            answer = self._answer(request if isinstance(request, dict) else {})
        except (ValueError, ToolError) as error:
            answer = _failure(str(error), getattr(error, "hint", None))
        return answer if isinstance(answer, bytes) else to_json(answer).encode()

    def close(self) -> None:
        """Stop the calls under way, wait for their end, and record all in the session."""
        self._stop.cancel("the script has ended")
        with self._lock:
            self._lock.wait_for(lambda: not self._under_way, _END_SECONDS)
        journal = self._ctx.services.journal
        if journal is not None and self._noted:
            journal.note("script", {"call": self._ctx.call_id, "calls": self._noted})

    def _answer(self, request: dict[str, Any]) -> dict[str, Any] | bytes:
        if "progress" in request:
            fraction = request.get("fraction")
            self._ctx.progress(
                str(request["progress"])[:1000],
                fraction=fraction if isinstance(fraction, (int, float)) else None,
            )
            return {}
        if "artifact" in request:
            return {"result": self._artifact(str(request["artifact"]))}
        tool, arguments = request.get("tool"), request.get("arguments")
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            return _failure("that is no call", None)
        return self._call(tool, arguments, int(request.get("line") or 0))

    def _call(self, tool: str, arguments: dict[str, Any], line: int) -> dict[str, Any] | bytes:
        if tool not in self._tools:
            return _failure(
                f"scripts may not call {tool!r:.80}", f"They may call {', '.join(self._tools)}."
            )
        with self._lock:
            self._count += 1
            number = self._count
            within = number <= self._limit
            if within:
                self._made[tool] += 1
                self._under_way += 1
        if not within:
            self._stop.cancel(f"it made more than {self._limit} calls to tools")
            return _failure(f"the limit of {self._limit} calls is reached", None)
        try:
            outcome = self._runtime.call_sync(
                ToolCall(tool, arguments, id=f"{self._ctx.call_id}.{number}"),
                self._context(line, tool, number),
            )
        finally:
            with self._lock:
                self._under_way -= 1
                self._lock.notify_all()
        if len(self._noted) < _MOST_NOTED:
            self._noted.append({"tool": tool, "line": line, "status": outcome.status})
        if not outcome.ok:
            return {"error": json.loads(outcome.content)}
        # The result is JSON already.
        content: bytes = outcome.content.encode("utf-8", "surrogatepass")
        return b'{"result":' + content + b"}"

    def _context(self, line: int, tool: str, number: int) -> ToolContext:
        """The script's own surroundings; it ends when the script does."""
        ctx = self._ctx.for_call("", "", self._stop, None)
        if self._approver is not None:
            ctx.approver = self._approver.at(line, self._made[tool], number)
        return ctx

    def _artifact(self, handle: str) -> str:
        artifacts = self._ctx.services.artifacts
        if artifacts is None:
            raise ToolError("there is no store of large results here")
        text, offset = "", 0
        while True:
            page = artifacts.read(handle, offset=offset)
            text += str(page["text"])
            offset = page.get("next_offset", 0)
            if not offset:
                return text


class _ScriptApprover:
    """Asks with the place in the script; remembers a yes for the rest of the script."""

    def __init__(self, ask: Approver) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        # What was approved for the rest of the script: a tool, for the same reasons.
        self._approved: set[tuple[str, tuple[str, ...]]] = set()
        self._asked: dict[str, list[str]] = {}

    def at(self, line: int, times: int, number: int) -> Approver:
        """The approver of one call."""

        def approve(request: ApprovalRequest) -> Any:
            return self._approve(request, line, times, number)

        return approve

    async def _approve(self, request: ApprovalRequest, line: int, times: int, number: int) -> Any:
        key = (request.tool, request.rules)
        with self._lock:
            if key in self._approved:
                return Answer("once", by="an approval for the rest of the script")
            before = list(self._asked.setdefault(request.tool, []))
            self._asked[request.tool].append(_short(request.arguments))
        shown = f"line {line}: " if line else ""
        past = f", call {times} of {request.tool} and {number} of all" if number > 1 else ""
        named = f"; before it: {', '.join(before[:_NAMED])}" if before else ""
        more = f" and {len(before) - _NAMED} more" if len(before) > _NAMED else ""
        request.reason = f"a script, {shown}{request.reason}{past}{named}{more}"
        request.batch = "the rest of this script"
        answer: Any = self._ask(request)
        if hasattr(answer, "__await__"):
            answer = await answer
        if answer == "batch":
            with self._lock:
                self._approved.add(key)
            return Answer("once", by=getattr(answer, "by", ""))
        return answer


def _short(arguments: Mapping[str, Any]) -> str:
    first = next(iter(arguments.values()), "")
    text = " ".join(str(first).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def _failure(reason: str, hint: str | None) -> dict[str, Any]:
    return {"error": {"error": reason, **({"hint": hint} if hint else {})}}

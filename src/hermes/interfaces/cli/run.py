"""`hermes run`: an agent carries out one request, with nobody at the keyboard needed."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from hermes.interfaces.cli.approval import TerminalApprover, TerminalQuestions, can_ask
from hermes.interfaces.cli.commands import (
    BUDGET,
    DONE,
    FAILED,
    INTERRUPTED,
    REFUSED,
    UsageError,
)
from hermes.interfaces.cli.showing import call_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.agent.agent import Agent
    from hermes.agent.loop import Result
    from hermes.core.context import ApprovalRequest
    from hermes.interfaces.cli.main import CliApp
    from hermes.runtime.events import Event

# How often a long wait is explained.
_WAIT_SECONDS = 30.0


def arguments(parser: ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="the request; `-` or nothing reads stdin"
    )
    parser.add_argument("--model", metavar="NAME", help="a model, or SERVICE/MODEL")
    parser.add_argument("--toolsets", metavar="A,B", help="only these toolsets")
    parser.add_argument("--profile", metavar="NAME", help="the profile of rights")
    parser.add_argument("--max-steps", type=int, metavar="N", help="how often the model is asked")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens of the whole run")
    parser.add_argument("--max-usd", type=float, metavar="X", help="what the run may cost")
    parser.add_argument("--max-seconds", type=float, metavar="S", help="how long it may take")
    parser.add_argument(
        "--yes-to", action="append", default=[], metavar="RULE", help="approve what this rule asks"
    )
    parser.add_argument("--resume", metavar="ID", help="go on with a session (`last`, or its id)")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    parser.add_argument("--stream-json", action="store_true", help="a JSON line for every event")
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but trouble")
    parser.set_defaults(run=_run)


def _run(app: CliApp, options: Namespace) -> int:
    text = " ".join(options.text)
    if text in ("", "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError('say what to do: hermes run "…"')
        text = sys.stdin.read()
    if not text.strip():
        raise UsageError("the request is empty")
    from hermes.stores.sessions.keeping import kept_sessions

    app.profile = options.profile
    with kept_sessions(app.config, app.note) as sessions:
        agent = _agent(app, options, sessions)
        try:
            return asyncio.run(_carry_out(app, agent, text, options))
        finally:
            agent.close()


def _agent(app: CliApp, options: Namespace, sessions: Any) -> Agent:
    from hermes.agent.agent import Agent
    from hermes.agent.budget import STEPS
    from hermes.mcp.client import attach

    servers = attach(app)
    for line in servers.wait() if servers else ():
        app.note(f"hermes: MCP server {line}")
    if can_ask():
        app.runtime.services["ask_person"] = TerminalQuestions(app)
    session = sessions.open(options.resume) if options.resume else None
    journal = session or sessions.begin(workspace=app.project, front_door="cli", model="")
    return Agent(
        options.model,
        toolsets=options.toolsets.split(",") if options.toolsets else None,
        approver=_Approver(app, options.yes_to),
        max_steps=options.max_steps or STEPS,
        max_tokens=options.max_tokens,
        max_usd=options.max_usd,
        max_seconds=options.max_seconds,
        app=app,
        journal=journal,
        front_door="cli",
    )


async def _carry_out(app: CliApp, agent: Agent, text: str, options: Namespace) -> int:
    show = _Show(app, quiet=options.quiet or options.json, lines=options.stream_json)
    agent.conversation.listen(show.model)
    end = app.runtime.events.subscribe(show.tool)
    turn = asyncio.ensure_future(agent.conversation.turn(text))
    _on_interrupt(agent, turn, show)
    watch = asyncio.ensure_future(show.watch())
    try:
        result = await turn
    except asyncio.CancelledError:
        app.note("hermes: interrupted; `hermes run --resume last …` goes on")
        return INTERRUPTED
    finally:
        watch.cancel()
        end()
        await agent.provider.close()
    _show_result(app, agent, result, options)
    _say_who_ends(app, agent)
    return _code(result)


def _say_who_ends(app: CliApp, agent: Agent) -> None:
    """Agents in the background end with the run; what they had done is kept."""
    for child in agent.children():
        if child.state in ("waiting", "running"):
            app.note(
                f"hermes: {child.handle} ends with this run; `hermes run --resume last …` can have "
                "it go on"
            )


def _on_interrupt(agent: Agent, turn: asyncio.Future[Result], show: _Show) -> None:
    """The first Ctrl-C stops the call under way, the second ends the turn."""
    pressed = 0

    def stop() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1 and agent.conversation.cancel_calls():
            show.say("stopping that; Ctrl-C again ends the turn")
        else:
            turn.cancel()

    try:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
    except (NotImplementedError, ValueError, RuntimeError):
        # No such handlers here: Ctrl-C ends the program, as everywhere.
        return


def _show_result(app: CliApp, agent: Agent, result: Result, options: Namespace) -> None:
    text = app.runtime.redactor.redact(result.text)
    if options.json or options.stream_json:
        from hermes.core.jsontext import to_json

        app.out(
            to_json(
                {
                    "type": "result",
                    "session": agent.id,
                    "text": text,
                    "ended": result.ended,
                    "reason": result.reason,
                    "steps": result.steps,
                    "usage": {
                        "input": result.usage.input,
                        "output": result.usage.output,
                        "cached": result.usage.cached,
                        "reasoning": result.usage.reasoning,
                    },
                    # Null where nobody knows the price.
                    "usd": None if agent.budget.unpriced else round(agent.budget.cost, 9),
                    "refused": list(result.refused),
                }
            )
        )
        return
    app.out(text)
    if not options.quiet:
        for one in result.refused:
            app.note(f"refused: {one}")


def _code(result: Result) -> int:
    if result.ended == "spent":
        return BUDGET
    if result.ended == "stopped":
        return FAILED
    return REFUSED if result.refused else DONE


class _Approver:
    """Says yes to the rules named beforehand; asks where somebody can be asked."""

    def __init__(self, app: CliApp, rules: list[str]) -> None:
        self._rules = set(rules)
        self._ask = TerminalApprover(app) if can_ask() else None

    def __call__(self, request: ApprovalRequest) -> str | None:
        """What the person said, or had said before; None when there is nobody."""
        if set(request.rules) <= self._rules:
            return "once"
        return self._ask(request) if self._ask is not None else None


class _Show:
    """What the person sees while it goes on: one line for each call, and what is awaited."""

    def __init__(self, app: CliApp, *, quiet: bool, lines: bool) -> None:
        self._app = app
        self._quiet = quiet
        self._lines = lines
        self._lock = threading.Lock()
        self._doing: dict[str, str] = {}
        self._since = time.monotonic()

    def say(self, text: str) -> None:
        """A remark."""
        if not self._quiet:
            self._app.note(text)

    def model(self, event: Any) -> None:
        """Something that the model said."""
        self._since = time.monotonic()
        kind = type(event).__name__
        if self._lines:
            if kind in ("TextDelta", "ReasoningDelta"):
                self._line(type=kind, text=event.text)
        elif kind == "Discarded":
            self.say(f"asking the model again: {event.reason}")
        elif kind == "Noted":
            self.say(event.text)
        elif kind == "Waiting":
            self.say(f"waiting {event.seconds:.0f} s: {event.reason}")

    def tool(self, event: Event) -> None:
        """Something that happened to a call."""
        self._since = time.monotonic()
        if event.kind == "started":
            self._doing[event.call_id] = call_line(
                event.tool, event.data.get("emoji") or "", event.data.get("arguments")
            )
            if self._lines:
                self._line(type="call", id=event.call_id, tool=event.tool, **event.data)
        elif event.kind == "finished":
            doing = self._doing.pop(event.call_id, event.tool)
            outcome = event.data["outcome"]
            if self._lines:
                self._line(type="outcome", id=event.call_id, status=outcome.status)
            else:
                mark = "✓" if outcome.ok else "✗"
                trouble = "" if outcome.ok else f": {outcome.error}"
                self.say(f"{mark} {doing} {outcome.seconds:.1f} s{trouble}")

    async def watch(self) -> None:
        """Say from time to time what is being waited for."""
        while True:
            await asyncio.sleep(1.0)
            if time.monotonic() - self._since >= _WAIT_SECONDS:
                self._since = time.monotonic()
                doing = ", ".join(dict.fromkeys(self._doing.values())) or "the model"
                self.say(f"still waiting for {doing}")

    def _line(self, **fields: Any) -> None:
        from hermes.core.jsontext import to_json

        with self._lock:
            self._app.out(to_json(fields))

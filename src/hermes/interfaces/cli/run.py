"""`hermes run`: run one request to its end without a person at the keyboard."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hermes.interfaces.cli.approval_prompt import can_ask, default_arguments
from hermes.interfaces.cli.chat import above_zero, agent_arguments, take_profile
from hermes.interfaces.cli.commands import BUDGET, DONE, FAILED, INTERRUPTED, REFUSED, UsageError
from hermes.interfaces.cli.progress import Progress
from hermes.interfaces.cli.terminal import end_signals, interruptible, signals_ignored

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

    from hermes.agent.agent import Agent
    from hermes.agent.loop import Result
    from hermes.core.context import ApprovalRequest
    from hermes.interfaces.cli.approval_prompt import LinePrompt
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Session, Sessions


_JSON_OPTIONS = ("--json", "--stream-json")
_USAGE = ("input", "output", "cached", "reasoning")


def run_result(agent: Agent | None, *, ended: str, **fields: Any) -> dict[str, Any]:
    """The JSON result: the given fields, and the usage of the agent so far for the others."""
    from hermes.core.model_protocol import Usage

    budget = agent.budget if agent is not None else None
    values = {
        "type": "result",
        "session": agent.id if agent is not None else None,
        "text": "",
        "ended": ended,
        "reason": "",
        "steps": budget.used_steps if budget is not None else 0,
        "usage": budget.usage if budget is not None else Usage(),
        # Null when a price is unknown.
        "usd": round(budget.cost, 9) if budget is not None and not budget.unpriced else None,
        "refused": [],
        **fields,
    }
    return values | {"usage": {name: getattr(values["usage"], name) for name in _USAGE}}


def usage_error(words: Sequence[str], reason: str) -> None:
    """Print the JSON result for an invalid command line, if its options ask for JSON."""
    options = words[: words.index("--")] if "--" in words else words
    # argparse accepts abbreviated options.
    if any(len(word) > 2 and name.startswith(word) for word in options for name in _JSON_OPTIONS):
        from hermes.core.json_text import to_json
        from hermes.interfaces.cli.terminal import Terminal

        terminal = Terminal()
        terminal.out(to_json(run_result(None, ended="failed", reason=reason)))
        terminal.finish()


_RESUME = "`hermes run --resume last …` continues it"


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="the request; `-` or nothing reads stdin"
    )
    agent_arguments(parser)
    limits = (
        ("--max-steps", int, "N", "requests to the model"),
        ("--max-tokens", int, "N", "tokens of the whole run"),
        ("--max-usd", float, "X", "cost of the whole run"),
        ("--max-seconds", float, "S", "duration of the whole run"),
    )
    for name, kind, metavar, line in limits:
        parser.add_argument(name, type=above_zero(kind), metavar=metavar, help=line)
    parser.add_argument(
        "--yes-to",
        action="append",
        default=[],
        metavar="RULE",
        help="approve calls that this rule asks about",
    )
    parser.add_argument("--resume", metavar="ID", help="resume a session (`last`, or its id)")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    parser.add_argument("--stream-json", action="store_true", help="a JSON line for every event")
    parser.add_argument("-q", "--quiet", action="store_true", help="only errors on stderr")
    parser.set_defaults(run=_run, usage_error=usage_error)


def _run(app: CliApp, options: Namespace) -> int:
    run = _Run(app, options)
    try:
        with interruptible():
            return run.execute(_request(options))
    except KeyboardInterrupt:
        run.report(ended="interrupted", reason="interrupted before it began")
        raise
    except BaseException as error:
        # Readers of JSON get a result in any case.
        run.report(ended="failed", reason=str(error) or type(error).__name__)
        raise


def _request(options: Namespace) -> str:
    text = " ".join(options.text)
    if text in ("", "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError('no request given: hermes run "…"')
        # Bytes that are no UTF-8 are replaced.
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the request is empty")
    return text


class _Run:
    """One run: its agent, its session, and its result."""

    def __init__(self, app: CliApp, options: Namespace) -> None:
        self._app = app
        self._options = options
        self._agent: Agent | None = None
        self._prompt = _prompt(app)
        self._closed = False
        self._reported = False
        self._awaited = "nothing"

    def execute(self, text: str) -> int:
        """Run the request; the exit code."""
        from hermes.stores.sessions.maintenance import open_sessions

        app = self._app
        take_profile(app, self._options)
        with open_sessions(app.config, app.note) as sessions, ExitStack() as until:
            self._agent = agent = self._new_agent(sessions, until)
            try:
                return asyncio.run(self._turn(agent, text))
            finally:
                with signals_ignored():
                    agent.close()

    def report(self, *, ended: str, **fields: Any) -> None:
        """Print the JSON result, once, if JSON was asked for."""
        agent, options = self._agent, self._options
        if self._reported or self._closed or not (options.json or options.stream_json):
            return
        from hermes.core.json_text import to_json
        from hermes.safety.redaction import Redactor

        self._reported = True
        # Without an agent there may be no runtime, whose redactor knows more secrets.
        redactor = agent.app.runtime.redactor if agent is not None else Redactor()
        result = run_result(agent, ended=ended, **fields)
        self._app.out(to_json(redactor.redact_value(result)))

    def _new_agent(self, sessions: Sessions, until: ExitStack) -> Agent:
        from hermes.mcp.client import attach
        from hermes.stores.sessions.session_db import created_session, locked_session

        app, options = self._app, self._options
        servers = attach(app)
        for line in servers.wait() if servers else ():
            app.note(f"hermes: MCP server {line}")
        if self._prompt is not None:
            app.runtime.services.ask_person = self._prompt.ask_person
        if not options.resume:
            with created_session(
                sessions, until, workspace=app.project, front_door="cli"
            ) as journal:
                return self._agent_for(journal)
        journal, remark = locked_session(sessions.open(options.resume), until)
        if remark:
            app.note(f"hermes: {remark}")
        return self._agent_for(journal)

    def _agent_for(self, journal: Session) -> Agent:
        from hermes.agent.agent import Agent
        from hermes.agent.budget import STEPS

        app, options = self._app, self._options
        return Agent(
            options.model,
            toolsets=options.toolsets,
            approver=_Approver(options.yes_to, self._prompt).approve,
            max_steps=options.max_steps or STEPS,
            max_tokens=options.max_tokens,
            max_usd=options.max_usd,
            max_seconds=options.max_seconds,
            app=app,
            journal=journal,
            front_door="cli",
        ).open()

    async def _turn(self, agent: Agent, text: str) -> int:
        app, options = self._app, self._options
        loop = asyncio.get_running_loop()
        turn = asyncio.ensure_future(agent.conversation.turn(text))

        def closed() -> None:
            self._closed = True
            loop.call_soon_threadsafe(turn.cancel)

        progress = Progress(
            app,
            app.runtime.redactor,
            closed=closed,
            calls=not options.json and not options.stream_json,
            silent=options.quiet,
            lines=options.stream_json,
        )
        agent.conversation.set_listener(progress.model_event)
        unsubscribe = app.runtime.events.subscribe(progress.tool_event)
        self._handle_signals(agent, turn, progress)
        waits = asyncio.ensure_future(progress.explain_waits())
        try:
            result = await turn
        except asyncio.CancelledError:
            self.report(ended="interrupted", reason=f"interrupted, waiting for {self._awaited}")
            reason = "stdout was closed by its reader" if self._closed else "interrupted"
            app.note(f"hermes: {reason}; {_RESUME}")
            return INTERRUPTED
        finally:
            waits.cancel()
            unsubscribe()
            if self._prompt is not None:
                self._prompt.close()
            await agent.provider.close()
        self._show(result)
        _note_background_agents(app, agent)
        return _exit_code(result)

    def _handle_signals(
        self, agent: Agent, turn: asyncio.Future[Result], progress: Progress
    ) -> None:
        """First Ctrl-C: refuse the question or stop the call. Second, or another signal: end."""
        interrupts = 0

        def stop() -> None:
            nonlocal interrupts
            interrupts += 1
            refused = self._prompt is not None and self._prompt.refuse()
            if interrupts == 1 and (refused or agent.conversation.cancel_calls()):
                progress.note("stopping that; Ctrl-C again ends the turn")
            else:
                end()

        def end() -> None:
            # Before the turn ends its calls.
            self._awaited = progress.awaited
            turn.cancel()

        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGINT, stop)
            for number in end_signals():
                loop.add_signal_handler(number, end)
        except (NotImplementedError, ValueError, RuntimeError):
            # No signal handlers on this platform: Ctrl-C ends the program.
            return

    def _show(self, result: Result) -> None:
        app, options = self._app, self._options
        text = app.runtime.redactor.redact(result.text)
        if options.json or options.stream_json:
            self.report(
                text=text,
                ended=result.ended,
                reason=result.reason,
                steps=result.steps,
                usage=result.usage,
                refused=list(result.refused),
            )
            return
        app.out(text)
        if not options.quiet:
            for refusal in result.refused:
                app.note(f"refused: {refusal}")


def _prompt(app: CliApp) -> LinePrompt | None:
    """The approval prompt; None without a terminal."""
    if not can_ask():
        return None
    from hermes.interfaces.cli.approval_prompt import LinePrompt

    return LinePrompt(app, lambda tool: default_arguments(app.registry, tool))


def _note_background_agents(app: CliApp, agent: Agent) -> None:
    """Background agents end with the run; their journals are kept."""
    for child in agent.children():
        if child.state in ("waiting", "running"):
            app.note(
                f"hermes: {child.handle} ends with this run; `hermes run --resume last …` can "
                "continue it"
            )


def _exit_code(result: Result) -> int:
    if result.ended == "spent":
        return BUDGET
    if result.ended == "stopped":
        return FAILED
    return REFUSED if result.refused else DONE


class _Approver:
    """Approves calls of the rules of `--yes-to`; asks about others if there is a terminal."""

    def __init__(self, rules: list[str], prompt: LinePrompt | None) -> None:
        self._rules = set(rules)
        self._prompt = prompt

    async def approve(self, request: ApprovalRequest) -> str | None:
        """The decision; None when there is no terminal to ask on."""
        if request.rules and self._rules.issuperset(request.rules):
            return "once"
        return await self._prompt.approve(request) if self._prompt is not None else None

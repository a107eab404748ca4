"""`hermes run`: run one request to its end without a person at the keyboard."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hermes.interfaces.cli.agent_options import above_zero, agent_arguments, take_profile
from hermes.interfaces.cli.approval_prompt import can_ask, usual_values
from hermes.interfaces.cli.commands import BUDGET, DONE, FAILED, INTERRUPTED, REFUSED, UsageError
from hermes.interfaces.cli.progress import Watching
from hermes.interfaces.cli.signals import heeded, interruptible, undisturbed

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

    from hermes.agent.agent import Agent
    from hermes.agent.loop import Result
    from hermes.core.context import ApprovalRequest
    from hermes.interfaces.cli.approval_prompt import Asking
    from hermes.interfaces.cli.main import CliApp
    from hermes.stores.sessions import Session, Sessions


# What asks for it.
_OPTIONS = ("--json", "--stream-json")
_USAGE = ("input", "output", "cached", "reasoning")


def result(agent: Agent | None, *, ended: str, **known: Any) -> dict[str, Any]:
    """The object: what is `known` of the end, and for the rest what the agent has used so far."""
    from hermes.core.messages import Usage

    budget = agent.budget if agent is not None else None
    fields = {
        "type": "result",
        "session": agent.id if agent is not None else None,
        "text": "",
        "ended": ended,
        "reason": "",
        "steps": budget.used_steps if budget is not None else 0,
        "usage": budget.usage if budget is not None else Usage(),
        # Null where nobody knows the price.
        "usd": round(budget.cost, 9) if budget is not None and not budget.unpriced else None,
        "refused": [],
        **known,
    }
    return fields | {"usage": {name: getattr(fields["usage"], name) for name in _USAGE}}


def misread(words: Sequence[str], why: str) -> None:
    """Print the object for a command line that is wrong, if its words ask for one."""
    options = words[: words.index("--")] if "--" in words else words
    # The start of an option's name will do, as everywhere.
    if any(len(word) > 2 and name.startswith(word) for word in options for name in _OPTIONS):
        from hermes.core.json_text import to_json
        from hermes.interfaces.cli.terminal import Terminal

        terminal = Terminal()
        terminal.out(to_json(result(None, ended="failed", reason=why)))
        terminal.finish()


_GO_ON = "`hermes run --resume last …` goes on"


def arguments(parser: ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="the request; `-` or nothing reads stdin"
    )
    agent_arguments(parser)
    limits = (
        ("--max-steps", int, "N", "how often the model is asked"),
        ("--max-tokens", int, "N", "tokens of the whole run"),
        ("--max-usd", float, "X", "what the run may cost"),
        ("--max-seconds", float, "S", "how long it may take"),
    )
    for name, kind, metavar, line in limits:
        parser.add_argument(name, type=above_zero(kind), metavar=metavar, help=line)
    parser.add_argument(
        "--yes-to", action="append", default=[], metavar="RULE", help="approve what this rule asks"
    )
    parser.add_argument("--resume", metavar="ID", help="go on with a session (`last`, or its id)")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end")
    parser.add_argument("--stream-json", action="store_true", help="a JSON line for every event")
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but trouble")
    parser.set_defaults(run=_run, misread=misread)


def _run(app: CliApp, options: Namespace) -> int:
    run = _Run(app, options)
    try:
        with interruptible():
            return run.carry_out(_request(options))
    except KeyboardInterrupt:
        run.tell(ended="interrupted", reason="interrupted before it began")
        raise
    except BaseException as error:
        # Whoever reads JSON gets some, whatever happens.
        run.tell(ended="failed", reason=str(error) or type(error).__name__)
        raise


def _request(options: Namespace) -> str:
    text = " ".join(options.text)
    if text in ("", "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError('say what to do: hermes run "…"')
        # A byte that is no UTF-8 is no reason to read nothing.
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the request is empty")
    return text


class _Run:
    """One request, from the agent that is made for it to the exit code."""

    def __init__(self, app: CliApp, options: Namespace) -> None:
        self._app = app
        self._options = options
        self._agent: Agent | None = None
        self._asking = _asking(app)
        self._unheard = False
        self._told = False
        self._awaited = "nothing"

    def carry_out(self, text: str) -> int:
        """Have the agent do it; the exit code."""
        from hermes.stores.sessions.retention import kept_sessions

        app = self._app
        take_profile(app, self._options)
        with kept_sessions(app.config, app.note) as sessions, ExitStack() as until:
            self._agent = agent = self._made(sessions, until)
            try:
                return asyncio.run(self._turn(agent, text))
            finally:
                with undisturbed():
                    agent.close()

    def tell(self, *, ended: str, **known: Any) -> None:
        """How it ended, for programs, once; nothing where none reads it."""
        agent, options = self._agent, self._options
        if self._told or self._unheard or not (options.json or options.stream_json):
            return
        from hermes.core.json_text import to_json
        from hermes.safety.redaction import Redactor

        self._told = True
        # What failed may be the making of the runtime, which knows more secrets than others do.
        redactor = agent.app.runtime.redactor if agent is not None else Redactor()
        fields = result(agent, ended=ended, **known)
        self._app.out(to_json(redactor.redact_value(fields)))

    def _made(self, sessions: Sessions, until: ExitStack) -> Agent:
        from hermes.mcp.client import attach
        from hermes.stores.sessions.session_lock import begun, held

        app, options = self._app, self._options
        servers = attach(app)
        for line in servers.wait() if servers else ():
            app.note(f"hermes: MCP server {line}")
        if self._asking is not None:
            app.runtime.services.ask_person = self._asking.ask_person
        if not options.resume:
            with begun(sessions, until, workspace=app.project, door="cli") as journal:
                return self._for(journal)
        journal, elsewhere = held(sessions.open(options.resume), until)
        if elsewhere:
            app.note(f"hermes: {elsewhere}")
        return self._for(journal)

    def _for(self, journal: Session) -> Agent:
        from hermes.agent.agent import Agent
        from hermes.agent.budget import STEPS

        app, options = self._app, self._options
        return Agent(
            options.model,
            toolsets=options.toolsets,
            approver=_Approver(options.yes_to, self._asking).approve,
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

        def unheard() -> None:
            self._unheard = True
            loop.call_soon_threadsafe(turn.cancel)

        show = Watching(
            app,
            app.runtime.redactor,
            unheard=unheard,
            calls=not options.json and not options.stream_json,
            silent=options.quiet,
            lines=options.stream_json,
        )
        agent.conversation.set_listener(show.model)
        end = app.runtime.events.subscribe(show.tool)
        self._on_interrupt(agent, turn, show)
        watch = asyncio.ensure_future(show.watch())
        try:
            done = await turn
        except asyncio.CancelledError:
            self.tell(ended="interrupted", reason=f"interrupted, waiting for {self._awaited}")
            why = "nobody reads what it prints any more" if self._unheard else "interrupted"
            app.note(f"hermes: {why}; {_GO_ON}")
            return INTERRUPTED
        finally:
            watch.cancel()
            end()
            if self._asking is not None:
                self._asking.close()
            await agent.provider.close()
        self._show(done)
        _say_who_ends(app, agent)
        return _code(done)

    def _on_interrupt(self, agent: Agent, turn: asyncio.Future[Result], show: Watching) -> None:
        """The first Ctrl-C says no to what is asked or stops the call, the second ends the turn.

        Told to end by other signals, it ends the turn at once, and says how far it got.
        """
        pressed = 0

        def stop() -> None:
            nonlocal pressed
            pressed += 1
            asked = self._asking is not None and self._asking.refuse()
            if pressed == 1 and (asked or agent.conversation.cancel_calls()):
                show.say("stopping that; Ctrl-C again ends the turn")
            else:
                end()

        def end() -> None:
            # Now: what is waited for ends with the turn.
            self._awaited = show.awaited
            turn.cancel()

        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGINT, stop)
            for number in heeded():
                loop.add_signal_handler(number, end)
        except (NotImplementedError, ValueError, RuntimeError):
            # No such handlers here: Ctrl-C ends the program, as everywhere.
            return

    def _show(self, done: Result) -> None:
        app, options = self._app, self._options
        text = app.runtime.redactor.redact(done.text)
        if options.json or options.stream_json:
            self.tell(
                text=text,
                ended=done.ended,
                reason=done.reason,
                steps=done.steps,
                usage=done.usage,
                refused=list(done.refused),
            )
            return
        app.out(text)
        if not options.quiet:
            for one in done.refused:
                app.note(f"refused: {one}")


def _asking(app: CliApp) -> Asking | None:
    """How the person can be asked; None where there is nobody."""
    if not can_ask():
        return None
    from hermes.interfaces.cli.approval_prompt import Asking

    return Asking(app, lambda tool: usual_values(app.registry, tool))


def _say_who_ends(app: CliApp, agent: Agent) -> None:
    """Agents in the background end with the run; what they had done is kept."""
    for child in agent.children():
        if child.state in ("waiting", "running"):
            app.note(
                f"hermes: {child.handle} ends with this run; `hermes run --resume last …` can have "
                "it go on"
            )


def _code(done: Result) -> int:
    if done.ended == "spent":
        return BUDGET
    if done.ended == "stopped":
        return FAILED
    return REFUSED if done.refused else DONE


class _Approver:
    """Says yes to the rules named beforehand; asks where somebody can be asked."""

    def __init__(self, rules: list[str], asking: Asking | None) -> None:
        self._rules = set(rules)
        self._asking = asking

    async def approve(self, request: ApprovalRequest) -> str | None:
        """What the person said, or had said before; None when there is nobody."""
        if request.rules and self._rules.issuperset(request.rules):
            return "once"
        return await self._asking.approve(request) if self._asking is not None else None

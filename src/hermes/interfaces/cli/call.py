"""`hermes call`: run one tool call, or a batch in the JSON protocol."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes.core.entry import ToolCall
from hermes.core.errors import HermesError
from hermes.interfaces.cli.approval_prompt import approve_all, can_ask, default_arguments
from hermes.interfaces.cli.commands import DONE, FAILED, REFUSED, UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.entry import ToolOutcome
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the tool; left out with --json")
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="KEY=VALUE",
        help="arguments; KEY=@FILE reads a file, KEY=- reads stdin, one {…} is all of them as JSON",
    )
    parser.add_argument(
        "--json", action="store_true", help='read {"tool_calls": […]} on stdin, print results'
    )
    parser.add_argument(
        "--yes", action="store_true", help="approve what this command would ask about"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.set_defaults(run=_call)


def _call(app: CliApp, options: Namespace) -> int:
    if options.json == bool(options.name):
        raise UsageError("give a tool's NAME, or --json with the calls on stdin")
    if options.yes:
        app.approver = approve_all
    elif can_ask():
        from hermes.interfaces.cli.approval_prompt import LinePrompt

        prompt = LinePrompt(app, lambda tool: default_arguments(app.registry, tool))
        app.approver = prompt.approve
    context = app.runtime.context(front_door="cli")
    if not options.quiet and app.stderr.isatty():
        app.runtime.events.subscribe(lambda event: _show(app, event))
    if options.json:
        return _protocol(app, context)
    if options.name.startswith("mcp-"):
        from hermes.mcp.client import find_tool

        for missing in find_tool(app, options.name):
            app.note(f"hermes: MCP server {missing}")
    call = ToolCall(options.name, read_arguments(options.arguments))
    outcome = app.runtime.call_sync(call, context)
    app.out(_readable(app, outcome))
    if not outcome.ok:
        app.error(_failure(outcome, unasked=app.approver is None))
    return _code([outcome])


def _failure(outcome: ToolOutcome, *, unasked: bool) -> HermesError:
    """The error line for a person."""
    if outcome.status == "refused":
        # The hint in the answer is for a model.
        askable = unasked and "nobody can be asked" in (outcome.error or "")
        hint = "`--yes` approves it beforehand" if askable else None
        return HermesError(str(outcome.error), hint=hint)
    value = outcome.value
    hint = value.get("hint") if isinstance(value, dict) else None
    return HermesError(str(outcome.error), hint=hint)


def _protocol(app: CliApp, context: ToolContext) -> int:
    from hermes.runtime.result_texts import read_calls, tool_results

    try:
        calls = read_calls(_stdin())
    except RecursionError:
        raise HermesError("the calls are nested too deeply") from None
    outcomes = app.runtime.call_many_sync(calls, context, at_once=app.config.get("tools.parallel"))
    app.out(tool_results(outcomes))
    return _code(outcomes)


def _code(outcomes: list[ToolOutcome]) -> int:
    if any(outcome.status == "refused" for outcome in outcomes):
        return REFUSED
    return DONE if all(outcome.ok for outcome in outcomes) else FAILED


def read_arguments(words: list[str]) -> dict[str, Any] | str:
    """The arguments after the tool's name: KEY=VALUE words, or one JSON object."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return words[0]
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r:.80} is not KEY=VALUE", hint="Quote what has spaces in it.")
        if key in arguments:
            # Said twice means a list.
            before = arguments[key] if isinstance(arguments[key], list) else [arguments[key]]
            arguments[key] = [*before, _value(value)]
        else:
            arguments[key] = _value(value)
    return arguments


def _value(text: str) -> str:
    if text == "-":
        return _stdin()
    if not text.startswith("@"):
        return text
    try:
        with open(text[1:], encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise HermesError(f"{text[1:]} can't be read: {error}") from None


def _stdin() -> str:
    if sys.stdin is None:
        raise HermesError("there is no stdin to read from")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HermesError(f"stdin is not UTF-8 text: {error}") from None


def _readable(app: CliApp, outcome: ToolOutcome) -> str:
    """The result for a person: text as it is, everything else as indented JSON."""
    import json

    value = outcome.value
    if isinstance(value, str):
        if not app.stdout.isatty():
            return value
        # What a tool brought must not move the cursor or change the window.
        return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _show(app: CliApp, event: Any) -> None:
    if event.kind == "progress":
        app.stderr.write(f"\r\033[K{event.tool}: {event.data['message']}")
        app.stderr.flush()
    elif event.kind == "finished":
        app.stderr.write("\r\033[K")
        app.stderr.flush()
    elif event.kind == "trouble":
        app.note(event.data["message"])

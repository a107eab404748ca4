"""Tables of commands: module, help line, effect of each action; importing it imports no command."""

from __future__ import annotations

from importlib import import_module

from hermes.core.errors import HermesError

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

# Command name -> (module in this package, help line).
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", 'run a request: hermes run "…"'),
    "chat": ("chat", "chat with an agent in the terminal (also: `hermes` alone)"),
    "resume": ("chat", "resume a session in the chat: hermes resume [ID]"),
    "model": ("model", "show, choose or test the model"),
    "setup": ("model", "find, test and save a model"),
    "sessions": ("sessions", "stored conversations: list, search, show, export, fork, delete"),
    "cost": ("cost", "tokens and cost by session, tool, agent or model"),
    "trace": ("trace", "traces: calls as a tree, with their durations"),
    "memory": ("memory", "memory entries; changes that wait for your review"),
    "tools": ("tools", "list, show and search the tools"),
    "toolsets": ("tools", "list and show groups of tools"),
    "call": ("call", "call a tool: hermes call NAME key=value …"),
    "tool": ("tools", "register tools written in YAML"),
    "mcp": ("mcp", "MCP servers: list, add, test, approve, log in; serve our own tools"),
    "environments": ("environments", "backends for commands: list, test, prune"),
    "ps": ("environments", "running commands of Hermes: list, kill"),
    "undo": ("undo", "revert file changes: hermes undo [TURN|CALL]"),
    "checkpoints": ("checkpoints", "the undo history: list, show, diff, restore, prune"),
    "plugins": ("doctor", "plugins: their tools, and errors"),
    "config": ("config", "read and change the settings"),
    "trust": ("permissions", "trust the content of a project folder"),
    "permissions": ("permissions", "permission profiles, and their verdict on a call"),
    "approvals": ("permissions", "permanent approvals; the verdict on a command"),
    "audit": ("trace", "the audit log: read, verify, export"),
    "doctor": ("doctor", "check the installation: problems and how to fix them"),
    "completion": ("completion", "print a completion script for bash, zsh or fish"),
}

# Command name -> (actions that only read, actions that change state, approve or start something).
# Below a command of Hermes itself, only the first ones run; `*` stands for every use of a command.
ACTIONS: dict[str, tuple[str, str]] = {
    "run": ("", "*"),
    "chat": ("", "*"),
    "resume": ("", "*"),
    "model": ("list", "use test"),
    "setup": ("", "*"),
    "sessions": ("list search show export stats", "rename delete fork doctor backup prune"),
    "cost": ("*", ""),
    "trace": ("list show", ""),
    "memory": ("list history", "review approve reject restore"),
    "tools": ("list show search", ""),
    "toolsets": ("list show", ""),
    "call": ("", "*"),
    "tool": ("list show", "register unregister"),
    "mcp": ("list test tools diff logs", "add remove approve login logout serve"),
    "environments": ("list test", "prune"),
    "ps": ("", "kill"),
    "undo": ("", "*"),
    "checkpoints": ("list show diff", "restore prune"),
    "plugins": ("list", "approve"),
    "config": ("list get path", "set edit"),
    "trust": ("list", "*"),
    "permissions": ("list show check", ""),
    "approvals": ("list test", "revoke"),
    "audit": ("tail verify export", ""),
    "doctor": ("*", ""),
    "completion": ("*", ""),
}


def changes_state(name: str, options: Namespace) -> bool:
    """Whether a command line changes state, says yes, or starts something."""
    values = vars(options)
    if values.get("output"):
        return True
    if values.get("dry_run"):
        return False
    reads, changes = ACTIONS.get(name, ("", "*"))
    # Without an action a command lists, unless it has none.
    action = values.get("action") or next(iter(values.get("words") or ()), "")
    if not action:
        return changes == "*"
    return reads != "*" and action not in reads.split()


# Documented in docs/command-line.md; scripts rely on them.
DONE, FAILED, USAGE, REFUSED, BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 130


class UsageError(HermesError):
    """Invalid usage: exit code 2."""


def add_arguments(command: str, parser: ArgumentParser) -> None:
    """Define the arguments of a command: `arguments` of its module, or `COMMAND_arguments`."""
    name, _ = COMMANDS[command]
    module = import_module(f"hermes.interfaces.cli.{name}")
    getattr(module, "arguments" if name == command else f"{command}_arguments")(parser)


def actions(parser: ArgumentParser, *, required: bool = False) -> Callable[..., ArgumentParser]:
    """A function that adds an action to a command, and returns the action's parser."""
    group = parser.add_subparsers(metavar="ACTION", required=required)

    def add(name: str, run: Any, help_line: str, *, json: bool = True) -> ArgumentParser:
        action = group.add_parser(name, help=help_line)
        action.set_defaults(run=run)
        if json:
            action.add_argument("--json", action="store_true", help="for programs")
        return action

    return add

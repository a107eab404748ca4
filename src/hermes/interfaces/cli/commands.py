"""Table of commands: name, module, help line; importing it imports no command."""

from __future__ import annotations

from hermes.core.errors import HermesError

# name -> (module in this package, help line)
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", 'an agent carries out a request: hermes run "…"'),
    "chat": ("chat", "talk with an agent in the terminal; `hermes` alone does that, too"),
    "resume": ("resume", "go on with a session in the chat: hermes resume [ID]"),
    "model": ("model", "which model is asked; choose or try one"),
    "setup": ("setup", "find a model, try it, remember it"),
    "sessions": ("sessions", "conversations: list, show, export, rename, delete, fork"),
    "cost": ("cost", "what was used and paid, by session, tool, agent or model"),
    "trace": ("trace", "what was done, within what, and how long it took"),
    "memory": ("memory", "what is remembered; what waits for your review"),
    "tools": ("tools", "list, show and search the tools"),
    "toolsets": ("toolsets", "list and show groups of tools"),
    "call": ("call", "call a tool: hermes call NAME key=value …"),
    "tool": ("tool", "register tools written in YAML"),
    "mcp": ("mcp", "MCP servers: list, add, test, approve, log in; serve our own tools"),
    "environments": ("environments", "where commands can run: list, test, prune"),
    "ps": ("ps", "what commands of Hermes run here; end one"),
    "undo": ("undo", "take back what an agent changed: hermes undo [TURN|CALL]"),
    "checkpoints": ("checkpoints", "what undo keeps: list, show, diff, restore, prune"),
    "plugins": ("plugins", "what each plugin brought, and why anything is missing"),
    "config": ("config", "read and change the settings"),
    "trust": ("trust", "trust the content of a project folder"),
    "permissions": ("permissions", "profiles of rights, and what they say of a call"),
    "approvals": ("approvals", "what was approved for good; what happens to a command"),
    "audit": ("audit", "the log of calls: read it, check that nobody changed it"),
    "doctor": ("doctor", "check the installation and say what is missing"),
    "completion": ("completion", "print a completion script for bash, zsh or fish"),
}

# Documented in docs/command-line.md; scripts rely on them.
DONE, FAILED, USAGE, REFUSED, BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 130


class UsageError(HermesError):
    """What was typed can't be meant; the exit code says so."""

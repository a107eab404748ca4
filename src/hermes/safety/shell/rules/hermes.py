"""Hermes' own files and switches, and other agents started without their approvals."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import ALWAYS, REFUSE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_GATE_SETTING = re.compile(
    r"approv|permission|safety|allow|deny|trust|gate|polic|yolo|security|sandbox|profile", re.I
)
_READING = frozenset(
    ("list", "show", "test", "get", "status", "path", "explain", "help", "ls", "check", "validate")
)


def _texts(command: Command) -> list[str]:
    return [word.text for word in command.operands]


def _changes_gate(command: Command) -> bool:
    texts = _texts(command)
    if not texts:
        return False
    if texts[0] in ("approvals", "approval", "permissions", "policy"):
        return len(texts) > 1 and texts[1] not in _READING
    if texts[0] == "mcp":
        # Whom to trust with tools of their own is for a person to say.
        return texts[1:2] not in ([], ["tools"], ["test"], ["logs"], ["diff"], ["serve"]) and (
            texts[1] not in _READING
        )
    if texts[0] == "memory":
        # What waits for a person's review is not for a tool to settle.
        return len(texts) > 1 and texts[1] not in (*_READING, "history")
    if texts[0] in ("trust", "untrust", "yolo"):
        return texts[1:2] not in (["list"], ["show"], ["status"])
    if texts[0] == "config" and len(texts) > 1 and texts[1] not in _READING:
        return len(texts) < 3 or bool(_GATE_SETTING.search(texts[2])) or "edit" in texts[1]
    return False


def _changes_config(command: Command) -> bool:
    texts = _texts(command)
    return texts[:1] == ["config"] and len(texts) > 1 and texts[1] not in _READING


def _without_approvals(command: Command) -> bool:
    texts = _texts(command)
    if command.has("--yolo", "--no-approval", "--dangerously-skip-permissions"):
        return True
    if any(
        pair[0] in ("--mode", "--approvals") and pair[1] in ("off", "relaxed")
        for pair in pairwise(word for arg in command.args for word in arg.split("=", 1))
    ):
        return True
    if texts[:1] in (["call"], ["run"], ["chat"], ["batch"], ["cron"], ["serve"], ["resume"]):
        return command.has("--yes", "-y", "--yes-to", "--approve-all", "--auto-approve") or any(
            flag.startswith("--yes") for flag in command.flags
        )
    return False


_AGENT_SWITCHES = re.compile(
    r"--(?:dangerously[\w-]*|yolo|full-auto|auto-approve[\w-]*|approve-all|allow-all[\w-]*|"
    r"no-approval[\w-]*|"
    r"trust-all[\w-]*|skip-permissions|yes-always|always-approve|bypass[\w-]*|force|no-confirm|"
    r"approval-mode=(?:yolo|full-auto|auto_edit|never)|permission-mode=bypassPermissions|"
    r"ask-for-approval=never)\Z"
)


def _agent_unguarded(command: Command) -> bool:
    args = command.args
    if any(_AGENT_SWITCHES.match(arg) for arg in args):
        return True
    pairs = set(pairwise(args))
    if pairs & {
        ("--approval-mode", "yolo"),
        ("--approval-mode", "full-auto"),
        ("--permission-mode", "bypassPermissions"),
        ("--ask-for-approval", "never"),
        ("-a", "never"),
        ("--sandbox", "danger-full-access"),
        ("-s", "danger-full-access"),
        ("--approval-mode", "never"),
    }:
        return True
    name = command.name
    if name == "cursor-agent":
        return "-f" in command.flags
    if name == "gemini" or name == "qwen":
        return "-y" in command.flags
    if name == "aider":
        return command.has("--yes", "--yes-always")
    return False


RULES = (
    Rule(
        "hermes.policy",
        ALWAYS,
        "It changes what Hermes itself may do: its permissions, approvals or trust.",
        programs="hermes",
        when=_changes_gate,
        severity=REFUSE,
        human_only=True,
        matches=(
            "echo x > ~/.hermes/config.yaml",
            "rm ~/.hermes/hermes_permissions.yaml",
            "hermes config set approvals.mode off",
            "hermes approvals allow 'rm *'",
            "hermes trust .",
            "hermes memory approve 1a2b3c4d",
            "hermes mcp approve files --yes",
            "cp evil.yaml .hermes/hermes_permissions.yaml",
            "sed -i 's/^mode:.*/mode: off/' ~/.hermes/config.yaml",
        ),
        passes=(
            "cat ~/.hermes/config.yaml",
            "hermes approvals list",
            "hermes doctor",
            "hermes memory history",
            "hermes mcp test files",
            "hermes config get model",
            "echo x > config.yaml",
        ),
    ),
    Rule(
        "hermes.configuration",
        ALWAYS,
        "It changes Hermes' configuration.",
        programs="hermes",
        when=_changes_config,
        matches=(
            "hermes config set model x",
            "hermes config edit",
            "hermes config unset model",
            "sed -i 's/^model:.*/model: x/' ~/.hermes/config.yaml",
        ),
        passes=("hermes config get model", "hermes config list", "hermes --version"),
    ),
    Rule(
        "hermes.files",
        ALWAYS,
        "It changes files that Hermes keeps for itself.",
        matches=(
            "echo x >> ~/.hermes/.env",
            "rm ~/.hermes/state.db",
            "cp s.md ~/.hermes/skills/x.md",
            "cp p.py .hermes/plugins/p.py",
        ),
        passes=(
            "echo x > .hermes/notes.md",
            "ls ~/.hermes",
            "cat ~/.hermes/logs/x.log",
            "echo x > hermes.txt",
        ),
    ),
    Rule(
        "hermes.environment",
        ALWAYS,
        "It points Hermes at other settings than its own.",
        human_only=True,
        matches=(
            "HERMES_HOME=/tmp/h hermes run x",
            "export HERMES_YOLO=1",
            "env HERMES_HOME=/tmp hermes chat",
        ),
        passes=("HERMES_LOG=debug hermes run x", "echo $HERMES_HOME", "hermes run x"),
    ),
    Rule(
        "hermes.unguarded",
        ALWAYS,
        "It starts Hermes with approvals answered in advance.",
        programs="hermes",
        when=_without_approvals,
        human_only=True,
        matches=(
            "hermes call terminal --yes",
            "hermes run --yes-to delete x",
            "hermes chat --yolo",
        ),
        passes=("hermes run x", "hermes call read_file", "hermes tools list"),
    ),
    Rule(
        "agent.unguarded",
        ALWAYS,
        "It starts an agent with its approvals off.",
        programs=(
            "claude codex gemini qwen aider goose opencode cursor-agent copilot amp droid crush "
            "openhands cline "
            "kiro kiro-cli q auggie plandex interpreter gptme kimi"
        ),
        when=_agent_unguarded,
        human_only=True,
        matches=(
            "claude --dangerously-skip-permissions",
            "codex --yolo x",
            "gemini --yolo -p x",
            "codex exec --full-auto x",
            "aider --yes-always x",
        ),
        passes=("claude -p x", "codex exec x", "gemini -p x", "claude --version"),
    ),
)

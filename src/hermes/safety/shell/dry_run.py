"""Dry runs, syntax checks and queries: commands that only report what they would do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.programs import DRY, DRY_SHORT, NEVER_DRY
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_NO = names("false no none 0 off $false")

_QUERIES = names(
    "show list get status query info describe view read print display dump enum ls inspect "
    "explain search history stat stats help version"
)
_QUERY_OPTION = re.compile(
    r"(?:--?|/)(?:list|show|get|status|query|enum|display|print|describe|info)[a-z-]*\Z", re.I
)
_QUERY_OPTIONS = {"pmset": frozenset(("-g",)), "scutil": frozenset(("--dns", "--proxy", "--nwi"))}
# Rules about programs of which a verb says what they do.
_MANAGING = (
    "windows.security",
    "windows.registry",
    "system.settings",
    "services.",
    "network.firewall",
    "disk.partitions",
)


def only_tries(command: Command) -> bool:
    """Whether a program was told to say what it would do, or to check its settings."""
    name = command.name
    if name == "mkfs" and "-n" in command.args:
        return command.words[0].text.endswith(("ext2", "ext3", "ext4", "mke2fs"))
    if name in NEVER_DRY and not (name == "rm" and "-WhatIf" in command.args):
        return False
    if name == "gsutil" and any(word.text == "rsync" for word in command.operands[:1]):
        # To its other verbs the same letter says which files to leave alone.
        return "-n" in command.flags
    short = DRY_SHORT.get(name)
    if short and not short.isdisjoint(command.flags):
        return True
    args = command.args
    for index, arg in enumerate(args):
        if arg == "--":
            break
        if arg[:1] != "-":
            continue
        option, _, value = arg.partition("=")
        if "=" not in arg:
            option, _, value = arg.partition(":")
        if option.lower().replace("_", "-") in DRY:
            value = value or " ".join(args[index + 1 : index + 2])
            return value.lower() not in _NO
    return short is not None and not short.isdisjoint(args[:1])


def only_asks(command: Command, rule: str) -> bool:
    """Whether the first verb of a program that a managing rule is about is a question."""
    if not rule.startswith(_MANAGING) or rule == "services.by-bus":
        return False
    options = _QUERY_OPTIONS.get(command.name)
    if options and not options.isdisjoint(command.args):
        return True
    for word in command.words[1:5]:
        text = word.text.lower()
        if text in _QUERIES or _QUERY_OPTION.match(text):
            return True
        if text in _CHANGES:
            return False
    return False


_CHANGES = names(
    "set add delete remove reset stop start restart disable enable create destroy rollback import "
    "load unload copy config flush change replace export-secret install uninstall mount unmount"
)

"""The rules, as data: one module per family, each rule with examples that the tests run.

structure.py    text that can't be read, unknown programs, fork bombs
remote_code.py  code that nobody has read: downloads, decoders, injected libraries
deletes.py      data lost past one ordinary file
disks.py        devices and file systems
system.py, permissions.py, services.py, packages.py
                system files, permissions, accounts, services, power, processes, packages
network.py      firewalls, listeners, reverse shells
secrets.py      credentials read or sent
git.py          local work, remote state, configuration and hooks
cloud.py, containers.py, databases.py
                clouds, registries, containers, clusters, databases
persistence.py  start-up files, schedulers, login keys
windows.py, windows_code.py  PowerShell and cmd
any_program.py, verbs.py, requests.py
                what means the same to every program: verbs, methods, addresses, modes
hermes.py       Hermes' own files and switches, other agents without approvals
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.rules import accounts as permissions
from hermes.safety.shell.rules import (
    any_program,
    cloud,
    containers,
    databases,
    deletes,
    disks,
    git,
    hermes,
    network,
    packages,
    persistence,
    secrets,
    services,
    structure,
    system,
    unread_code,
    windows,
    windows_code,
)

if TYPE_CHECKING:
    from hermes.safety.shell.rules.model import Rule

FAMILIES = (
    structure,
    unread_code,
    deletes,
    disks,
    system,
    permissions,
    services,
    packages,
    network,
    secrets,
    git,
    cloud,
    containers,
    databases,
    persistence,
    windows,
    windows_code,
    hermes,
    any_program,
)
RULES: dict[str, Rule] = {rule.key: rule for family in FAMILIES for rule in family.RULES}
RULES_BY_PROGRAM: dict[str, tuple[Rule, ...]] = {}
for _rule in RULES.values():
    for _program in _rule.programs:
        RULES_BY_PROGRAM[_program] = (*RULES_BY_PROGRAM.get(_program, ()), _rule)
RULES_FOR_ANY = tuple(rule for rule in any_program.RULES if not rule.programs)
RULES_FOR_OPENED = tuple(rule for rule in RULES_FOR_ANY if rule.key != "service.destroyed")

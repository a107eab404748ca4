"""`hermes approvals`: list permanent approvals; explain the verdict on a command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.config import set_value
from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, REFUSED
from hermes.runtime.gate_setup import FILE, profile_layers
from hermes.safety.approvals import Approvals, Grant, command_grant
from hermes.safety.permissions.checker import command_ruling
from hermes.safety.shell import detect_dangerous_command
from hermes.safety.workspace_bounds import outside

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="what was approved for good (the default)")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)
    revoke = actions.add_parser("revoke", help="take an approval back")
    revoke.add_argument("number", type=int, metavar="NUMBER", help="as `list` shows it")
    revoke.set_defaults(run=_revoke)
    test = actions.add_parser("test", help="what would happen to a command, layer by layer")
    test.add_argument("command", metavar="COMMAND")
    test.add_argument("--json", action="store_true", help="for programs")
    test.set_defaults(run=_test)


def _list(app: CliApp, options: Namespace) -> int:
    grants = _grants(app)
    if options.json:
        app.emit([grant._asdict() for grant in grants])
        return DONE
    app.table([(str(n), grant.rule, grant.about) for n, grant in enumerate(grants, 1)])
    if not grants:
        app.note("nothing is approved for good")
    return DONE


def _revoke(app: CliApp, options: Namespace) -> int:
    import json

    grants = _grants(app)
    if not 1 <= options.number <= len(grants):
        raise HermesError(f"there is no approval {options.number}", hint="hermes approvals list")
    gone = grants.pop(options.number - 1)
    set_value("command_allowlist", json.dumps([grant.line() for grant in grants]))
    app.out(f"No longer approved: {gone.about}")
    return DONE


def _test(app: CliApp, options: Namespace) -> int:
    layers = _layers(app, options.command)
    order = {"allow": 0, "ask": 1, "refuse": 2}
    action = max((layer["action"] for layer in layers), key=order.__getitem__)
    if options.json:
        app.emit({"action": action, "layers": layers})
    else:
        app.out(f"verdict: {action}")
        for layer in layers:
            app.out(f"{layer['action']:6}  {layer['rule'] or 'no rule'}  ({layer['source']})")
            app.out(_wrapped(layer["why"], app.width))
    return DONE if action == "allow" else REFUSED


def _layers(app: CliApp, command: str) -> list[dict[str, Any]]:
    """The verdict of each layer on a command, with its source."""
    said: list[dict[str, Any]] = []
    chosen = app.config.get("permissions.profile") or None
    for profile in profile_layers(app.project, chosen):
        ruling = command_ruling(profile, command, app.runtime.context())
        why = ruling.reason or f"profile {profile.name} has nothing against it"
        said.append(_said(ruling.action, ruling.rule, profile.source or FILE, why))
    approvals = Approvals(app.config.get("command_allowlist"))
    home = os.path.expanduser("~")
    verdict = detect_dangerous_command(command, cwd=app.project, home=home, workspace=app.project)
    for finding in verdict.findings:
        grant = command_grant(finding.rule, command, verdict.commands, cwd=app.project)
        approved = finding.severity == "ask" and bool(approvals.covered_by([grant], ""))
        start, end = finding.span
        why = f"{finding.description.rstrip('.')}: {command[start:end] or finding.command}"
        source = "approved for good" if approved else f"command rules, at {start}-{end}"
        said.append(_said("allow" if approved else finding.severity, finding.rule, source, why))
    if not verdict.findings:
        said.append(_said("allow", "", "command rules", "nothing dangerous was found"))
    for _, line, why in outside(verdict.writes, workspace=app.project, home=home):
        grant = command_grant("path:outside", command, verdict.commands, cwd=app.project)
        approved = bool(approvals.covered_by([grant], ""))
        source = "approved for good" if approved else "workspace"
        said.append(_said("allow" if approved else "ask", "path:outside", source, f"{why}: {line}"))
        break
    return said


def _wrapped(text: str, width: int) -> str:
    """A whole text, below the line that it explains."""
    from textwrap import fill

    margin = " " * 8
    return fill(text, max(width, 30), initial_indent=margin, subsequent_indent=margin)


def _said(action: str, rule: str, source: str, why: str) -> dict[str, Any]:
    return {"action": action, "rule": rule, "source": source, "why": why}


def _grants(app: CliApp) -> list[Grant]:
    return [g for line in app.config.get("command_allowlist") if (g := Grant.from_line(line))]

"""`hermes permissions`, `approvals` and `trust`: profiles, permanent approvals, trusted folders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.config import set_value
from hermes.core.errors import HermesError
from hermes.interfaces.cli.call import read_arguments
from hermes.interfaces.cli.commands import DONE, REFUSED, actions
from hermes.interfaces.cli.tools import unknown_tool
from hermes.runtime.gate_setup import FILE, find_profile, known_profiles, open_gate, profile_layers
from hermes.runtime.plugins import TrustStore, fingerprint
from hermes.safety.approvals import Approvals, Grant, command_grant
from hermes.safety.permissions.checker import LISTS, command_ruling
from hermes.safety.shell import detect_dangerous_command
from hermes.safety.workspace_bounds import outside

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.safety.permissions import Profile


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    add = actions(parser)
    add("list", _list, "the profiles there are (the default)")
    add("show", _show, "everything about one profile").add_argument("name", metavar="PROFILE")
    check = add("check", _check, "what the gate would say to a call")
    check.add_argument("tool", metavar="TOOL")
    check.add_argument("arguments", nargs="*", metavar="KEY=VALUE")
    check.add_argument("--profile", metavar="NAME", help="a profile other than the one in use")


def _list(app: CliApp, options: Namespace) -> int:
    used = {profile.name for profile in profile_layers(app.project, _chosen(app))}
    profiles = known_profiles()
    if options.json:
        app.emit([{**_plain(p), "in_use": p.name in used} for p in profiles.values()])
    else:
        rows = [(p.name, "in use" if p.name in used else "", p.source) for p in profiles.values()]
        app.table(rows)
    return DONE


def _show(app: CliApp, options: Namespace) -> int:
    profile = _plain(find_profile(options.name, known_profiles()))
    if options.json:
        app.emit(profile)
        return DONE
    for key, value in profile.items():
        if isinstance(value, dict):
            for name, limits in value.items():
                app.out(f"{key} of {name}:")
                app.table(
                    [(f"  {limit}", str(values)) for limit, values in limits.items() if values]
                )
        else:
            shown = ", ".join(value) if isinstance(value, (list, tuple)) else value
            app.out(f"{key}: {shown or 'nothing'}")
    return DONE


def _check(app: CliApp, options: Namespace) -> int:
    entry = app.registry.get(options.tool)
    if entry is None:
        raise unknown_tool(app, options.tool)
    gate = open_gate(app.registry, app.config, project=app.project, profile=options.profile)
    arguments = entry.arguments.read(read_arguments(options.arguments))
    ruling = gate.judge(entry, arguments, app.runtime.context(front_door="cli"))
    if options.json:
        app.emit({"action": ruling.action, "rule": ruling.rule, "reason": ruling.reason})
    else:
        app.table([("verdict", ruling.action), ("rule", ruling.rule), ("why", ruling.reason)])
    return DONE if ruling.action == "allow" else REFUSED


def _chosen(app: CliApp) -> str | None:
    return app.config.get("permissions.profile") or None


def _plain(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "source": profile.source,
        "allow": list(profile.allow),
        "deny": list(profile.deny),
        "approval_required": list(profile.approval_required),
        "restrictions": {
            key: {**{n: list(getattr(r, n)) for n in LISTS}, "parameters": r.parameters}
            for key, r in profile.restrictions.items()
        },
    }


def approvals_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_approvals_list, json=False)
    add = actions(parser)
    add("list", _approvals_list, "what was approved for good (the default)")
    revoke = add("revoke", _revoke, "take an approval back", json=False)
    revoke.add_argument("number", type=int, metavar="NUMBER", help="as `list` shows it")
    test = add("test", _test, "what would happen to a command, layer by layer")
    test.add_argument("command", metavar="COMMAND")


def _approvals_list(app: CliApp, options: Namespace) -> int:
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
    layers: list[dict[str, Any]] = []
    chosen = app.config.get("permissions.profile") or None
    for profile in profile_layers(app.project, chosen):
        ruling = command_ruling(profile, command, app.runtime.context())
        why = ruling.reason or f"profile {profile.name} has nothing against it"
        layers.append(_said(ruling.action, ruling.rule, profile.source or FILE, why))
    approvals = Approvals(app.config.get("command_allowlist"))
    home = os.path.expanduser("~")
    verdict = detect_dangerous_command(command, cwd=app.project, home=home, workspace=app.project)
    for finding in verdict.findings:
        grant = command_grant(finding.rule, command, verdict.commands, cwd=app.project)
        approved = finding.severity == "ask" and bool(approvals.covered_by([grant], ""))
        start, end = finding.span
        why = f"{finding.description.rstrip('.')}: {command[start:end] or finding.command}"
        source = "approved for good" if approved else f"command rules, at {start}-{end}"
        layers.append(_said("allow" if approved else finding.severity, finding.rule, source, why))
    if not verdict.findings:
        layers.append(_said("allow", "", "command rules", "nothing dangerous was found"))
    for _, line, why in outside(verdict.writes, workspace=app.project, home=home):
        grant = command_grant("path:outside", command, verdict.commands, cwd=app.project)
        approved = bool(approvals.covered_by([grant], ""))
        source = "approved for good" if approved else "workspace"
        layers.append(
            _said("allow" if approved else "ask", "path:outside", source, f"{why}: {line}")
        )
        break
    return layers


def _wrapped(text: str, width: int) -> str:
    """A whole text, below the line that it explains."""
    from textwrap import fill

    margin = " " * 8
    return fill(text, max(width, 30), initial_indent=margin, subsequent_indent=margin)


def _said(action: str, rule: str, source: str, why: str) -> dict[str, Any]:
    return {"action": action, "rule": rule, "source": source, "why": why}


def _grants(app: CliApp) -> list[Grant]:
    return [g for line in app.config.get("command_allowlist") if (g := Grant.from_line(line))]


def trust_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH",
        help="a folder to trust (.hermes/plugins of this project when left out); `list` shows "
        "what is trusted, `revoke PATH` ends it",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_trust)


def _trust(app: CliApp, options: Namespace) -> int:
    store = TrustStore()
    words = options.words or [os.path.join(app.project, ".hermes", "plugins")]
    if words == ["list"]:
        return _trust_list(app, store, options)
    if words[0] == "revoke":
        if len(words) != 2:
            raise HermesError("revoke needs one path")
        if not store.revoke(words[1]):
            raise HermesError(f"{words[1]} was not trusted")
        app.out(f"No longer trusted: {os.path.realpath(words[1])}")
        return DONE
    if len(words) != 1:
        raise HermesError("give one path")
    seen = store.give(words[0])
    app.out(f"Trusted as it is now: {os.path.realpath(words[0])} (sha256 {seen[:16]})")
    return DONE


def _trust_list(app: CliApp, store: TrustStore, options: Namespace) -> int:
    states = {
        path: "gone"
        if not os.path.exists(path)
        else "as trusted"
        if fingerprint(path) == seen
        else "changed since"
        for path, seen in store.all().items()
    }
    if options.json:
        app.emit(states)
    else:
        app.table(list(states.items()))
        if not states:
            app.note("no folder is trusted")
    return DONE

"""`hermes permissions`: show permission profiles and their verdict on a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.interfaces.cli.call import read_arguments
from hermes.interfaces.cli.commands import DONE, REFUSED
from hermes.interfaces.cli.tools import unknown_tool
from hermes.runtime.gate_setup import find_profile, known_profiles, open_gate, profile_layers
from hermes.safety.permissions.checker import LISTS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.safety.permissions import Profile


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="the profiles there are (the default)")
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="everything about one profile")
    show.add_argument("name", metavar="PROFILE")
    show.add_argument("--json", action="store_true", help="for programs")
    show.set_defaults(run=_show)
    check = actions.add_parser("check", help="what the gate would say to a call")
    check.add_argument("tool", metavar="TOOL")
    check.add_argument("arguments", nargs="*", metavar="KEY=VALUE")
    check.add_argument("--profile", metavar="NAME", help="a profile other than the one in use")
    check.add_argument("--json", action="store_true", help="for programs")
    check.set_defaults(run=_check)


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
                app.table([(f"  {limit}", str(found)) for limit, found in limits.items() if found])
        else:
            shown = ", ".join(value) if isinstance(value, (list, tuple)) else value
            app.out(f"{key}: {shown or 'nothing'}")
    return DONE


def _check(app: CliApp, options: Namespace) -> int:
    entry = app.registry.get(options.tool)
    if entry is None:
        raise unknown_tool(app, options.tool)
    gate = open_gate(app.registry, app.config, project=app.project, profile=options.profile)
    given = entry.arguments.read(read_arguments(options.arguments))
    ruling = gate.judge(entry, given, app.runtime.context(front_door="cli"))
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

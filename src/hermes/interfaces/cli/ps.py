"""`hermes ps`: list and stop the running commands of Hermes on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.environments.host.process_listing import ListedProcess
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list)
    parser.add_argument("--json", action="store_true", help="for programs")
    actions = parser.add_subparsers(metavar="ACTION")
    kill = actions.add_parser("kill", help="end a process and everything it started")
    kill.add_argument(
        "which", metavar="PID|NAME", help="a process id, a name, a task, or a word of the command"
    )
    kill.add_argument("--json", action="store_true", help="for programs")
    kill.set_defaults(run=_kill)


def _list(app: CliApp, options: Namespace) -> int:
    from hermes.environments.host.process_listing import list_processes

    found = list_processes()
    if options.json:
        app.emit([one.as_dict() for one in found])
        return DONE
    if not found:
        app.note("nothing runs")
        return DONE
    head = ("PID", "TASK", "NAME", "CPU", "MEMORY", "SECONDS", "COMMAND")
    app.table([head, *(_row(one) for one in found)])
    return DONE


def _row(one: ListedProcess) -> tuple[str, ...]:
    return (
        str(one.pid),
        one.task,
        one.called,
        f"{one.cpu_seconds:.1f} s",
        f"{one.memory // 1_000_000} MB",
        f"{one.seconds:.0f}",
        f"{one.command} (at {one.place})" if one.place else one.command,
    )


def _kill(app: CliApp, options: Namespace) -> int:
    from hermes.environments.host.process_listing import list_processes, terminate

    if not options.which.strip():
        raise HermesError("no process was named", hint="`hermes ps` lists them.")
    found = list_processes()
    wanted = [one for one in found if options.which in (str(one.pid), one.called, one.task)]
    wanted = wanted or [one for one in found if options.which == one.name]
    wanted = wanted or [one for one in found if options.which in one.command.split()]
    if not wanted:
        raise HermesError(
            f"no process of Hermes is {options.which!r}", hint="`hermes ps` lists them."
        )
    left = terminate(wanted)
    ended = [one.pid for one in wanted if one.pid not in left]
    if options.json:
        app.emit({"ended": ended, "left": left})
    else:
        for one in wanted:
            word = "still runs" if one.pid in left else "ended"
            app.out(f"{one.pid} {word}: {one.command}")
    return FAILED if left else DONE

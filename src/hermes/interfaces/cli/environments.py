"""`hermes environments` and `hermes ps`: backends for commands, and running commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE, FAILED, actions

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.environments.backends import Setting
    from hermes.environments.host.process_listing import ListedProcess
    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list)
    parser.add_argument("--json", action="store_true", help="for programs")
    add = actions(parser)
    add("list", _list, "the kinds there are, and which can be had here")
    test = add("test", _test, "start one, run a command, say what is enforced")
    test.add_argument("name", metavar="NAME")
    add("prune", _prune, "remove what a Hermes that is gone has left")


def _list(app: CliApp, options: Namespace) -> int:
    from hermes.environments.backends import BACKENDS

    used = chosen(app)
    rows = [
        {
            "name": backend.name,
            "what": backend.summary,
            "missing": backend.missing(),
            "chosen": backend.name == used,
        }
        for backend in BACKENDS.values()
    ]
    if options.json:
        app.emit(rows)
        return DONE
    app.table(
        [
            ("NAME", "CHOSEN", "HERE", "WHAT"),
            *(
                (str(row["name"]), "yes" if row["chosen"] else "", str(row["missing"] or "yes"),
                 str(row["what"]))
                for row in rows
            ),
        ]
    )  # fmt: skip
    return DONE


def _test(app: CliApp, options: Namespace) -> int:
    from hermes.environments.backends import backend
    from hermes.environments.isolation_test import probe_backend

    report = probe_backend(backend(options.name), setting_of(app))
    if options.json:
        app.emit(report)
    else:
        for name, value in report.items():
            shown = "; ".join(value) if isinstance(value, list) else value
            if shown not in ("", None):
                app.out(f"{name}: {shown}")
    return DONE if report["works"] and not report["problems"] else FAILED


def _prune(app: CliApp, options: Namespace) -> int:
    from hermes.environments import docker
    from hermes.environments.backends import BACKENDS, CLOUD
    from hermes.environments.cloud.provider import provider_of, prune
    from hermes.environments.sandbox import bwrap

    removed: dict[str, list[str]] = {"sandbox": bwrap.prune(), "docker": []}
    problem = ""
    used = chosen(app)
    if used in CLOUD and not BACKENDS[used].missing():
        try:
            removed[used] = prune(provider_of(used, setting_of(app)))
        except HermesError as error:
            problem = f"{used} was not asked: {error}"
    if not BACKENDS["docker"].missing():
        settings = docker.DockerSettings.read(setting_of(app))
        try:
            removed["docker"] = [
                container.id[:12] for container in docker.prune(docker.engine(settings))
            ]
        except HermesError as error:
            problem = f"docker was not asked: {error}"
    if options.json:
        app.emit({"removed": removed, "problem": problem})
        return DONE
    for kind, names in removed.items():
        for name in names:
            app.out(f"removed {kind} {name}")
    if not any(removed.values()):
        app.note("nothing was left over")
    if problem:
        app.note(problem)
    return DONE


def setting_of(app: CliApp) -> Setting:
    """A function that reads a setting by name, with a default for unknown names."""
    from hermes.core.config import DEFAULTS

    return lambda name, default: app.config.get(name) if name in DEFAULTS else default


def chosen(app: CliApp) -> str:
    """The kind of environment that tasks work in unless they say otherwise."""
    from hermes.environments.for_task import LOCAL, VARIABLE

    return os.environ.get(VARIABLE) or str(setting_of(app)("terminal.env_type", LOCAL))


def ps_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_ps_list)
    parser.add_argument("--json", action="store_true", help="for programs")
    add = actions(parser)
    kill = add("kill", _kill, "end a process and everything it started")
    kill.add_argument(
        "which", metavar="PID|NAME", help="a process id, a name, a task, or a word of the command"
    )


def _ps_list(app: CliApp, options: Namespace) -> int:
    from hermes.environments.host.process_listing import list_processes

    processes = list_processes()
    if options.json:
        app.emit([process.as_dict() for process in processes])
        return DONE
    if not processes:
        app.note("nothing runs")
        return DONE
    head = ("PID", "TASK", "NAME", "CPU", "MEMORY", "SECONDS", "COMMAND")
    app.table([head, *(_row(process) for process in processes)])
    return DONE


def _row(process: ListedProcess) -> tuple[str, ...]:
    return (
        str(process.pid),
        process.task,
        process.called,
        f"{process.cpu_seconds:.1f} s",
        f"{process.memory // 1_000_000} MB",
        f"{process.seconds:.0f}",
        f"{process.command} (at {process.place})" if process.place else process.command,
    )


def _kill(app: CliApp, options: Namespace) -> int:
    from hermes.environments.host.process_listing import list_processes, terminate

    if not options.which.strip():
        raise HermesError("no process was named", hint="`hermes ps` lists them.")
    processes = list_processes()
    wanted = [
        process
        for process in processes
        if options.which in (str(process.pid), process.called, process.task)
    ]
    wanted = wanted or [process for process in processes if options.which == process.name]
    wanted = wanted or [
        process for process in processes if options.which in process.command.split()
    ]
    if not wanted:
        raise HermesError(
            f"no process of Hermes is {options.which!r}", hint="`hermes ps` lists them."
        )
    left = terminate(wanted)
    ended = [process.pid for process in wanted if process.pid not in left]
    if options.json:
        app.emit({"ended": ended, "left": left})
    else:
        for process in wanted:
            word = "still runs" if process.pid in left else "ended"
            app.out(f"{process.pid} {word}: {process.command}")
    return FAILED if left else DONE

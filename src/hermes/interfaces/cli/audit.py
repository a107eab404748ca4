"""`hermes audit`: read the audit log and verify its hash chain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.paths import home_path
from hermes.interfaces.cli.commands import DONE, FAILED
from hermes.interfaces.cli.screen_text import time_text
from hermes.runtime.audit import lines, verify

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_tail, count=20, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    tail = actions.add_parser("tail", help="the newest calls (the default)")
    tail.add_argument("-n", "--count", type=int, default=20, metavar="N")
    tail.add_argument("--json", action="store_true", help="for programs")
    tail.set_defaults(run=_tail)
    check = actions.add_parser("verify", help="whether every line is as it was written")
    check.set_defaults(run=_verify)
    export = actions.add_parser("export", help="every line as JSON, one a line")
    export.set_defaults(run=_export)


def _tail(app: CliApp, options: Namespace) -> int:
    if options.count < 1:
        raise HermesError(f"--count must be at least 1, not {options.count}")
    newest = _lines()[-options.count :]
    if options.json:
        app.emit(newest)
        return DONE
    app.table([_row(line) for line in newest])
    if not newest:
        app.note("no calls yet")
    return DONE


def _verify(app: CliApp, options: Namespace) -> int:  # noqa: ARG001
    path = home_path("audit", "audit.jsonl")
    try:
        count, problem = verify(path)
    except FileNotFoundError:
        app.out("there is no log: no call was recorded, or it was deleted")
        return FAILED
    if problem is None:
        app.out(f"{count} lines, each as it was written")
        return DONE
    app.out(f"{count} lines hold; {problem}")
    return FAILED


def _export(app: CliApp, options: Namespace) -> int:  # noqa: ARG001
    for line in _lines():
        app.out(json.dumps(line, ensure_ascii=False))
    return DONE


def _lines() -> list[dict[str, Any]]:
    try:
        return list(lines(home_path("audit", "audit.jsonl")))
    except FileNotFoundError:
        return []


def _row(line: dict[str, Any]) -> tuple[str, ...]:
    at = time_text(line.get("at", 0), seconds=True)
    shown = json.dumps(line.get("arguments", {}), ensure_ascii=False)
    status, verdict = str(line.get("status", "?")), str(line.get("verdict", ""))
    how = status if verdict in ("allowed", "") else f"{status} ({verdict})"
    return at, str(line.get("tool", "?")), how, shown

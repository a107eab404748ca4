"""`hermes trace` and `hermes audit`: traces as a tree; the audit log."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.paths import home_path
from hermes.interfaces.cli.commands import DONE, FAILED, actions
from hermes.interfaces.cli.terminal import time_text
from hermes.runtime.audit import lines, verify
from hermes.runtime.tracing import INPUT, OUTPUT, SpanFiles, meant, traces

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from hermes.interfaces.cli.main import CliApp
    from hermes.runtime.tracing import Trace


_MARKS = {"ok": "", "open": "… ", "error": "✗ ", "refused": "⊘ ", "cancelled": "■ "}
_WORDS = {"open": "not ended", "cancelled": "cancelled"}


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_list, count=20, json=False)
    add = actions(parser)
    listing = add("list", _list, "those that began last first (the default)")
    listing.add_argument("-n", "--count", type=int, default=20, metavar="N")
    show = add("show", _show, "one as a tree")
    show.add_argument(
        "id", nargs="?", default="last", metavar="ID", help="a session, a trace, or `last`"
    )


def _list(app: CliApp, options: Namespace) -> int:
    if options.count < 1:
        raise HermesError(f"--count must be at least 1, not {options.count}")
    summaries = [trace.summary() for trace in _traces(app)[: options.count]]
    if options.json:
        app.emit(summaries)
        return DONE
    app.table([_row(summary) for summary in summaries])
    if not summaries:
        app.note("no traces yet")
    return DONE


def _row(summary: dict[str, Any]) -> tuple[str, ...]:
    at = time.strftime("%m-%d %H:%M", time.localtime(summary["started"]))
    cells = [summary["session"] or _label({"name": summary["name"], "attributes": {}})]
    counts = (("model_calls", "model"), ("tool_calls", "tool"), ("agents", "agent"))
    cells += [f"{summary[key]} {word}" for key, word in counts if summary[key]]
    if summary["input_tokens"] or summary["output_tokens"]:
        cells.append(f"{summary['input_tokens']:,}→{summary['output_tokens']:,}")
    cells += [f"{summary[key]} {key}" for key in ("errors", "open") if summary[key]]
    return summary["trace_id"][:8], at, _duration(summary["seconds"]), ", ".join(cells)


def _show(app: CliApp, options: Namespace) -> int:
    chosen = meant(_traces(app), options.id)
    if options.json:
        app.emit([{**trace.summary(), "tree": trace.spans} for trace in chosen])
        return DONE
    for trace in chosen:
        app.out(f"{trace.id[:8]}  {time_text(trace.started, seconds=True)}")
        for drawn, span in trace.tree():
            _draw(app, drawn, span)
    return DONE


def _draw(app: CliApp, drawn: str, span: dict[str, Any]) -> None:
    """Print a span: its branch, label and duration; an error on a line of its own."""
    status = span["status"]
    ended = span["end_time_unix_nano"]
    took = _duration((ended - span["start_time_unix_nano"]) / 1e9) if ended else "…"
    app.branch(drawn, f"{_MARKS.get(status, '')}{_label(span)}", took)
    trouble = str(span.get("error") or "") if status != "ok" else ""
    if trouble or status in _WORDS:
        ahead = drawn.replace("├ ", "│ ").replace("└ ", "  ")
        app.branch(f"{ahead}  ", trouble or _WORDS[status])


def _label(span: dict[str, Any]) -> str:
    """A short label for a span."""
    about = span["attributes"]
    kind = about.get("hermes.kind", "")
    if kind == "chat":
        tokens = f"{about.get(INPUT, 0):,}→{about.get(OUTPUT, 0):,}" if INPUT in about else ""
        purpose = f"({about['hermes.purpose']})" if about.get("hermes.purpose") else ""
        words = ("chat", about.get("gen_ai.request.model", ""), tokens, purpose)
        return " ".join(str(word) for word in words if word)
    if kind == "tool":
        return f"{about.get('gen_ai.tool.name', '?')} {_told(about)}".rstrip()
    if kind == "agent":
        return f"agent {about.get('gen_ai.agent.name', '')}"
    if kind == "turn":
        return f"turn {about.get('hermes.turn', '')}"
    if kind == "approval":
        answer = about.get("hermes.approval.answer", "")
        by = about.get("hermes.approval.by", "")
        return f"approval {answer}{f' by {by}' if by and answer != 'nobody' else ''}"
    name = str(span["name"])
    return name.removeprefix("execute_tool ")


def _told(about: dict[str, Any]) -> str:
    """The argument that says most of a call."""
    import json

    try:
        arguments = json.loads(about.get("gen_ai.tool.call.arguments") or "{}")
    except ValueError:
        # Cut, for it was long.
        return ""
    texts = [value for value in arguments.values() if isinstance(value, str)] if arguments else []
    return texts[0] if texts else ""


def _duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms" if seconds < 0.0995 else f"{seconds * 1000:.0f} ms"
    if seconds < 99.5:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _traces(app: CliApp) -> list[Trace]:
    found = traces(SpanFiles().read())
    if not found and not app.config.get("trace.enabled"):
        app.note("traces are turned off: hermes config set trace.enabled true")
    return found


def audit_arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.set_defaults(run=_tail, count=20, json=False)
    add = actions(parser)
    tail = add("tail", _tail, "the newest calls (the default)")
    tail.add_argument("-n", "--count", type=int, default=20, metavar="N")
    add("verify", _verify, "whether every line is as it was written", json=False)
    add("export", _export, "every line as JSON, one a line", json=False)


def _tail(app: CliApp, options: Namespace) -> int:
    if options.count < 1:
        raise HermesError(f"--count must be at least 1, not {options.count}")
    newest = _lines()[-options.count :]
    if options.json:
        app.emit(newest)
        return DONE
    app.table([_audit_row(line) for line in newest])
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


def _audit_row(line: dict[str, Any]) -> tuple[str, ...]:
    at = time_text(line.get("at", 0), seconds=True)
    shown = json.dumps(line.get("arguments", {}), ensure_ascii=False)
    status, verdict = str(line.get("status", "?")), str(line.get("verdict", ""))
    how = status if verdict in ("allowed", "") else f"{status} ({verdict})"
    return at, str(line.get("tool", "?")), how, shown

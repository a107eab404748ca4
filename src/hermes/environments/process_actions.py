"""Actions of the `process` tool: list, log, search, wait, write, signal."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.environments.command_wait import asks_for_secret, last_line, looks_like_prompt
from hermes.environments.terminal_result import exit_meaning
from hermes.text.regex_worker import SECONDS, RegexWorker, SlowPatternError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.environments.background import Background
    from hermes.environments.environment import Environment

PAGE = 20_000
_LONGEST_LINE = 500
_MOST_HITS = 200
_REST_SECONDS = 0.3


def find(environment: Environment | None, name: str | None) -> Background:
    """The process with a name or pid."""
    known = list(environment.processes()) if environment is not None else []
    if not name:
        raise ToolError("name which process", hint=_known(known))
    for one in reversed(known):
        if name in (one.name, str(one.pid)):
            return one
    if name.isdecimal():
        for one in known:
            if one.state == "running" and int(name) in one.pids():
                return one
    raise ToolError(f"no process of this task is called {name!r:.80}", hint=_known(known))


def _known(known: list[Background]) -> str:
    if not known:
        return "There is none; start one with process start or terminal background=true."
    return f"There is {', '.join(one.name for one in known)}."


def described(one: Background, *, full: bool = False) -> dict[str, Any]:
    """A process as the model sees it."""
    ended = one.ended_at or time.time()
    shown: dict[str, Any] = {
        "name": one.name,
        "pid": one.pid,
        "state": one.state,
        "command": one.command[:500],
        "seconds": round(ended - one.started_at, 1),
    }
    if one.left_behind:
        shown["left_behind"] = True
    if one.detached:
        shown["detached"] = True
    if one.exit_code is not None:
        shown["exit_code"] = one.exit_code
        meaning = exit_meaning(one.exit_code, one.command)
        if meaning and not one.killed_by:
            shown["meaning"] = meaning
    if one.killed_by:
        shown["killed_by"] = one.killed_by
    if full:
        shown["cwd"] = one.cwd
        shown["last_line"] = last_line(one.recent())
        if one.state == "running":
            shown.update(_live(one))
    return shown


def _live(one: Background) -> dict[str, Any]:
    pids = one.pids()
    shown: dict[str, Any] = {
        "pids": pids,
        "silent_seconds": round(time.time() - one.last_output_at, 1),
        "ports": one.ports(),
    }
    if waiting(one):
        shown["needs_input"] = last_line(one.recent()) or "it waits for input"
    return shown


def waiting(one: Background) -> bool:
    """Whether it waits for input."""
    return one.takes_input and (one.waits_for_input() or looks_like_prompt(one.recent()))


def types_secret(one: Background) -> bool:
    """Whether it asks for a password or another input without echo."""
    return one.takes_input and (one.hides_input() or asks_for_secret(one.recent()))


def log(
    one: Background, *, offset: int | None, tail: int | None, grep: str | None
) -> dict[str, Any]:
    """A page of a process's output, its last lines, or the lines that match."""
    if grep is not None:
        return _matching(one, grep, offset or 0)
    if tail is not None:
        text, start, total = one.log(limit=min(200_000, max(PAGE, tail * 200)))
        lines = text.splitlines()[-tail:] if tail else []
        text = "\n".join(lines)
        return _logged(one, {"text": text[-PAGE:], "total_bytes": total})
    text, start, total = one.log(offset, limit=PAGE)
    page: dict[str, Any] = {"text": text, "offset": start, "total_bytes": total}
    if offset is not None and start > offset:
        page["note"] = f"bytes {offset} to {start} are no longer kept"
    if start + PAGE < total and offset is not None:
        page["next_offset"] = start + PAGE
    elif offset is not None:
        page["next_offset"] = total
    return _logged(one, page)


def _logged(one: Background, page: dict[str, Any]) -> dict[str, Any]:
    return {"name": one.name, "state": one.state, **page}


def _matching(one: Background, grep: str, offset: int) -> dict[str, Any]:
    with matcher(grep) as wanted:
        return _searched(one, wanted, offset)


def _searched(one: Background, wanted: RegexWorker, offset: int) -> dict[str, Any]:
    hits: list[str] = []
    at, scanned, cut = offset, 0, ""
    while True:
        text, start, total = one.log(at, limit=200_000)
        if not text:
            break
        at = start + 200_000
        scanned += len(text)
        lines = (cut + text).split("\n")
        # The end of a page may be in mid-line.
        cut = lines.pop() if at < total else ""
        hits += [lines[number][:_LONGEST_LINE] for number in wanted.lines(lines)]
        if at >= total:
            break
    shown = hits[-_MOST_HITS:]
    page = {"lines": shown, "matches": len(hits), "scanned_chars": scanned, "next_offset": total}
    return _logged(one, page)


@contextmanager
def matcher(pattern: str) -> Iterator[RegexWorker]:
    """A matcher for a regular expression from the model."""
    try:
        made = RegexWorker(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"{pattern!r:.200} is no regular expression: {error}",
            hint="Escape special characters with a backslash.",
        ) from None
    try:
        yield made
    except SlowPatternError:
        raise ToolError(
            f"the search for {pattern!r:.200} was stopped after {SECONDS} s",
            hint="Use a simpler pattern: no repetition within a repetition.",
        ) from None
    finally:
        made.close()


def wait(
    ctx: ToolContext, one: Background, *, pattern: str | None, timeout: float
) -> dict[str, Any]:
    """Wait until a process ends, or until it prints something that matches."""
    if pattern is None:
        return _awaited(ctx, one, None, pattern, timeout)
    with matcher(pattern) as wanted:
        return _awaited(ctx, one, wanted, pattern, timeout)


def _awaited(
    ctx: ToolContext,
    one: Background,
    wanted: RegexWorker | None,
    pattern: str | None,
    timeout: float,
) -> dict[str, Any]:
    found: str | None = None
    whole = True
    seen = 0

    def shows() -> bool:
        nonlocal found, seen, whole
        assert wanted is not None
        text, start, total = one.log(max(0, seen - 10_000), limit=200_000)
        lines = text.split("\n")
        hits = wanted.lines(lines)
        if not hits:
            seen = min(start + 200_000, total)
            return False
        found, whole = lines[hits[0]][:_LONGEST_LINE], hits[0] + 1 < len(lines)
        return True

    begun = time.monotonic()
    came = one.wait(
        timeout, until=shows if wanted is not None else None, cancellation=ctx.cancellation
    )
    if not whole:
        # Programs print lines in pieces: wait for the rest of this one.
        one.wait(_REST_SECONDS, until=lambda: shows() and whole, cancellation=ctx.cancellation)
    shown = described(one)
    shown["waited_seconds"] = round(time.monotonic() - begun, 2)
    if found is not None:
        shown["matched"] = found
    if not came:
        awaited = f"{pattern!r} did not show" if pattern is not None else "it still runs"
        if pattern is not None and one.state != "running":
            awaited = f"it ended and {pattern!r} did not show"
        shown["note"] = f"cancelled: {awaited}" if ctx.cancelled else awaited
    shown["last_lines"] = one.recent(2000)[-1500:]
    return shown


def ports(running: list[Background]) -> dict[str, list[str]]:
    """The listening addresses of each process, as `address:port`."""
    found = {one.name: one.ports() for one in running}
    return {name: places for name, places in found.items() if places}


def typed(one: Background, data: str, *, enter: bool) -> dict[str, Any]:
    """Write to the process, and show its output within a moment."""
    _, _, before = one.log(limit=1)
    text = f"{data}\n" if enter else data
    one.write(text.encode("utf-8", "surrogateescape"))
    # Echo and answer come in pieces; a short silence ends them.
    until = time.monotonic() + 2.0
    total = before
    while time.monotonic() < until and one.state == "running":
        one.wait(0.3, until=lambda seen=total: one.log(limit=1)[2] > seen)  # type: ignore[misc]
        _, _, now = one.log(limit=1)
        if now == total:
            break
        total = now
    answer, _, _ = one.log(before, limit=PAGE)
    return {**described(one), "output": answer}


def signal_number(name: str) -> int:
    """The number of a signal, by its name or number."""
    import signal

    wanted = name.strip().upper()
    if wanted.isdecimal() and int(wanted) in {int(one) for one in signal.Signals}:
        return int(wanted)
    full = wanted if wanted.startswith("SIG") else f"SIG{wanted}"
    if full not in signal.Signals.__members__:
        raise ToolError(f"{name!r:.40} is no signal", hint="Use INT, TERM, HUP, KILL, USR1, ….")
    return int(signal.Signals[full])

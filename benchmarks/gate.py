"""How well and how fast the gate judges: commands, redaction, whole calls."""

from __future__ import annotations

import os
import statistics
import tempfile
from typing import TYPE_CHECKING

from benchmarks.calls import registry_of
from benchmarks.measure import Row, alternately_us, each_us
from benchmarks.shell import DATA, HOSTILE, action_of, cpu, read_corpus
from hermes.core import ToolCall
from hermes.runtime import Runtime
from hermes.runtime.audit import AuditLog
from hermes.safety import redact
from hermes.safety.gate import Gate
from hermes.safety.permissions import PermissionChecker
from hermes.safety.permissions.checker import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

_DENSE = (
    "python3 - <<'E'\nimport json\nfrom pathlib import Path\n"
    + "rows = json.loads(Path('a.json').read_text())\nprint(sum(r['n'] for r in rows if r))\n" * 20
    + "E\n"
)
_PROSE = "The build finished without errors; 214 files were written in 3.2 s. " * 15

# Before, a piece that is repeated, after: texts on which a careless pattern takes quadratic time.
_CODE = [
    ("node -e '", "\t", "'"),
    ("node -e '", "${", "'"),
    ("python3 -c '", "\n", "x=1'"),
    ("psql -c '", "\n", "'"),
    ("redis-cli <<'E'\n", "\n", "E\n"),
    ("sed '", "\n", "' a"),
    ("lftp -e '", "\n", "' host"),
    ("grep -o ", "-o", " .env"),
]


def rows() -> Iterator[Row]:
    """Recall and false alarms on our corpus, then the costs."""
    yield from _corpus()
    yield from _commands()
    yield Row("redact, 1 KB of ordinary text", each_us(lambda: redact(_PROSE)), "µs", 15)
    yield from _audit()


def _corpus() -> Iterator[Row]:
    entries = read_corpus()
    bad = [entry["command"] for entry in entries if entry["action"] != "allow"]
    good = [entry["command"] for entry in entries if entry["action"] == "allow"]
    missed = sum(action_of(command) == "allow" for command in bad)
    alarms = sum(action_of(command) != "allow" for command in good)
    yield Row("dangerous commands missed, own corpus", 100 * missed / len(bad), "%", 2)
    yield Row("ordinary commands asked about, own corpus", 100 * alarms / len(good), "%", 1)


def _commands() -> Iterator[Row]:
    ordinary = [entry["command"] for entry in read_corpus() if entry["action"] == "allow"]
    times = [_ms(command, rounds=3) for command in ordinary]
    yield Row("ordinary command, median", statistics.median(times) * 1000, "µs", 80)
    heredoc = "cat > f.txt <<'EOF'\n" + "a line of ordinary text, 36 characters\n" * 54 + "EOF\n"
    yield Row("2 KB heredoc", _ms(heredoc), "ms", 2)
    source = (DATA / "ordinary_python.txt").read_text()
    yield Row("2 KB heredoc of Python", _ms(f"python3 - <<'E'\n{source}E\n"), "ms", 2)
    yield Row("2 KB heredoc of dense Python", _ms(_DENSE), "ms", None)
    chain = "; ".join(f"echo {number}" for number in range(2_000))
    yield Row("2,000 commands", _ms(chain), "ms", 60)
    yield Row("100 KB of hostile nesting, worst", max(map(_ms, HOSTILE.values())), "ms", 250)
    yield Row("16 times as much hostile code, worst", max(map(_growth, _CODE)), "×", 32)


def _growth(code: tuple[str, str, str]) -> float:
    """How much longer 32 KB of a text take than 2 KB; 16 is linear."""
    before, piece, after = code
    small, large = (before + piece * (size // len(piece)) + after for size in (2_000, 32_000))
    return _ms(large) / _ms(small)


def _audit() -> Iterator[Row]:
    registry = registry_of()
    call = ToolCall("add", {"a": 1, "b": 2})
    with tempfile.TemporaryDirectory() as home:
        gate = Gate(PermissionChecker(registry, [STANDARD]))
        log = AuditLog(os.path.join(home, "audit.jsonl"))
        bare, whole = Runtime(registry, policy=gate), Runtime(registry, policy=gate, audit=log)
        cost = alternately_us(
            {"bare": lambda: bare.call_sync(call), "whole": lambda: whole.call_sync(call)}
        )
        whole.close()
    yield Row("the audit log, for one call", cost["whole"] - cost["bare"], "µs", 15)
    yield Row("a call through the real gate, audited", cost["whole"], "µs", 12)


def _ms(command: str, rounds: int = 5) -> float:
    return cpu(lambda: action_of(command), rounds) * 1000

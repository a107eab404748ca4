"""Accuracy and cost of the shell analyser on its corpus, with each command that it gets wrong.

python -m benchmarks.shell

`tests/data/shell_commands.jsonl` has a command and the action that it must get on each line. The
authors of lines with the origin `blind` had not seen the rules. The rules have been tuned to all
lines since, so the figures here are a regression test and no measure of unseen commands.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.safety.shell import detect_dangerous_command

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[1] / "tests" / "data"
CORPUS = DATA / "shell_commands.jsonl"
CWD, HOME = "/home/u/proj", "/home/u"
HOSTILE = {
    "parentheses": "(" * 100_000,
    "substitutions": "echo " + "$(" * 33_000 + "id" + ")" * 33_000,
    "quotes": "'" * 100_001,
    "backticks": "`" * 100_000,
    "braces": "echo " + "{a,b}" * 20_000,
    "ranges": "echo {1..999999} " * 5_900,
    "pipes": "|" * 100_000,
    "wrappers": "sudo " * 20_000,
    "one-word lines": "a\n" * 50_000,
    "closing words": "esac\n" * 20_000,
    "deleting lines": "rm some/long/path/to/a/file.txt\n" * 3_000,
    "nested shells": "sh -c 'sh -c \"echo a\"'\n" * 4_000,
    "Python lines": "python3 - <<'E'\n" + "f(x)\n" * 20_000 + "E\n",
}


def main() -> None:
    """Print the figures."""
    entries = read_corpus()
    for origin in ("tuned", "blind"):
        _report(origin, [entry for entry in entries if entry["origin"] == origin])
    ordinary = [entry["command"] for entry in entries if entry["action"] == "allow"]
    times = sorted(cpu(lambda text=text: action_of(text), 3) * 1e6 for text in ordinary)  # type: ignore[misc]
    print(f"ordinary command: median {statistics.median(times):.0f} us, worst {times[-1]:.0f} us")
    for name, text in HOSTILE.items():
        seconds = cpu(lambda text=text: action_of(text), 2)  # type: ignore[misc]
        print(f"100 KB of {name}: {seconds * 1e3:.0f} ms, {action_of(text)}")


def read_corpus() -> list[dict[str, str]]:
    """The lines of the corpus: `command`, `action`, `origin`."""
    return [json.loads(line) for line in CORPUS.read_text().splitlines()]


def action_of(command: str) -> str:
    """The action for a command in the corpus' own directory."""
    return detect_dangerous_command(command, cwd=CWD, home=HOME).action


def cpu(act: Callable[[], object], rounds: int) -> float:
    """The least CPU time of some rounds, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        act()
        best = min(best, time.process_time() - start)
    return best


def _report(title: str, entries: list[dict[str, str]]) -> None:
    results = [
        (entry["action"], action_of(entry["command"]), entry["command"]) for entry in entries
    ]
    dangerous = [result for result in results if result[0] != "allow"]
    ordinary = [result for result in results if result[0] == "allow"]
    missed = [result for result in dangerous if result[1] == "allow"]
    alarms = [result for result in ordinary if result[1] != "allow"]
    milder = [result for result in dangerous if result[0] == "refuse" and result[1] == "ask"]
    print(
        f"{title}: {len(entries)} commands, recall {1 - len(missed) / len(dangerous):.3f}, "
        f"false positives {len(alarms) / len(ordinary):.3f}, asked instead of refused {len(milder)}"
    )
    for expected, actual, command in missed + alarms + milder:
        print(f"  expected {expected}, got {actual}: {command!r}")


if __name__ == "__main__":
    main()

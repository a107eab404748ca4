"""How well and how fast commands are judged: recall, false positives, CPU time.

    python benchmarks/shell/run.py

`corpus.jsonl` has a command and the action it must get on each line; `held_out` marks those that
no rule was written against.
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

CORPUS = Path(__file__).with_name("corpus.jsonl")
CWD, HOME = "/home/u/proj", "/home/u"


def main() -> None:
    """Print the figures."""
    entries = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    for title, held_out in (("seen", False), ("held out", True)):
        _report(title, [entry for entry in entries if entry["held_out"] is held_out])
    ordinary = [entry["command"] for entry in entries if entry["action"] == "allow"]
    times = sorted(_cpu(lambda text=text: _judge(text)) * 1e6 for text in ordinary)  # type: ignore[misc]
    print(f"ordinary command: median {statistics.median(times):.0f} us, worst {times[-1]:.0f} us")
    heredoc = "cat > f.txt <<'EOF'\n" + "a line of ordinary text, 36 characters\n" * 54 + "EOF\n"
    print(f"2 KB heredoc: {_cpu(lambda: _judge(heredoc)) * 1e3:.2f} ms")
    for count in (1000, 2000, 4000):
        chain = "; ".join(f"echo {number}" for number in range(count))
        print(f"{count} commands: {_cpu(lambda chain=chain: _judge(chain)) * 1e3:.1f} ms")  # type: ignore[misc]
    for name, text in HOSTILE.items():
        seconds = _cpu(lambda text=text: _judge(text), rounds=2)  # type: ignore[misc]
        print(f"100 KB of {name}: {seconds * 1e3:.0f} ms, {_judge(text)}")


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


def _judge(command: str) -> str:
    return detect_dangerous_command(command, cwd=CWD, home=HOME).action


def _report(title: str, entries: list[dict[str, str]]) -> None:
    results = [(entry["action"], _judge(entry["command"]), entry["command"]) for entry in entries]
    dangerous = [result for result in results if result[0] != "allow"]
    ordinary = [result for result in results if result[0] == "allow"]
    missed = [result for result in dangerous if result[1] == "allow"]
    alarms = [result for result in ordinary if result[1] != "allow"]
    milder = [result for result in dangerous if result[0] == "refuse" and result[1] == "ask"]
    print(
        f"{title}: {len(entries)} commands, recall {1 - len(missed) / len(dangerous):.3f}, "
        f"false positives {len(alarms) / len(ordinary):.3f}, asked instead of refused {len(milder)}"
    )
    for expected, found, command in missed + alarms + milder:
        print(f"  expected {expected}, got {found}: {command!r}")


def _cpu(act: Callable[[], object], rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        act()
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    main()

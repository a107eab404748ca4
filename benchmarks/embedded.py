"""The embedded model at work: simple tasks, the same in other words, and chat that needs no tool.

    python -m benchmarks.embedded                 all of it
    python -m benchmarks.embedded FOLDER …        other tasks, written like those of examples/tasks

Each task is done in a fresh workspace by the agent as a person would use it, and judged by what
came of it: the files, the answer, the tools used. CPU time and tokens are counted, since the clock
says more about the neighbours than about the model.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.embedded.provider import EmbeddedModel

# How many of them have to be right.
GOOD_TASKS, GOOD_CHATS = 0.8, 0.9
# How many seconds ago files were changed, unless a case says otherwise.
_AGE = 5_000
TASKS = Path(__file__).parent.parent / "examples" / "tasks"


class Case(NamedTuple):
    """One message to the agent, and the judge's view of what should come of it."""

    name: str
    request: str
    files: dict[str, str]
    wanted: dict[str, Any]
    chat: bool = False


class Outcome(NamedTuple):
    """What came of it: nothing wrong, or what; and what it cost."""

    case: Case
    wrong: str
    text: str
    tools: tuple[str, ...]
    seconds: float
    cpu: float
    read: int
    cached: int
    written: int


def cases(folder: Path) -> Iterator[Case]:
    """The cases that a folder describes."""
    for path in sorted(folder.glob("*.toml")):
        data = tomllib.loads(path.read_text())
        for number, message in enumerate(data.get("messages", ()), 1):
            yield Case(f"{path.stem}-{number}", message, data["files"], data, chat=True)
        for task in data.get("task", ()):
            yield Case(f"{path.stem}, {task['name']}", task["request"], task["files"], task)
        for key in ("request", "reworded"):
            if key in data:
                name = path.stem if key == "request" else f"{path.stem}, reworded"
                yield Case(name, data[key], data["files"], data)


async def carry_out(case: Case, model: EmbeddedModel, root: Path) -> Outcome:
    """Do one case in a workspace of its own."""
    from hermes.agent.agent import Agent
    from hermes.core.registry import ToolRegistry
    from hermes.runtime.app import App

    work = root / re.sub(r"\W+", "-", case.name)
    for name, text in case.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
        changed = time.time() - case.wanted.get("ages", {}).get(name, _AGE)
        os.utime(work / name, (changed, changed))
    agent = Agent(model, workspace=str(work), app=App(ToolRegistry(), project=str(work)))
    began, cpu = time.monotonic(), _cpu(model)
    result = await agent.conversation.turn(case.request)
    seconds, cpu = time.monotonic() - began, _cpu(model) - cpu
    tools = tuple(use.name for one in agent.conversation.messages for use in one.calls)
    wrong = judge(case, work, result.text, tools)
    usage = result.usage
    agent.app.runtime.close_task(agent.id)
    return Outcome(
        case, wrong, result.text, tools, seconds, cpu,
        usage.input - usage.cached, usage.cached, usage.output,
    )  # fmt: skip


def judge(case: Case, work: Path, text: str, tools: tuple[str, ...]) -> str:
    """What is wrong with the outcome; nothing if it is right."""
    wanted = case.wanted
    if case.chat and tools:
        return f"used {', '.join(tools)}"
    changed = _changed(case, work)
    unnamed = changed - set(wanted.get("changed", ()))
    if unnamed:
        return f"changed {', '.join(sorted(unnamed))}"
    for pattern in wanted.get("answer", ()):
        if not re.search(pattern, text, re.IGNORECASE):
            return f"the answer lacks {pattern}"
    for pattern in wanted.get("never", ()):
        if re.search(pattern, text, re.IGNORECASE):
            return f"the answer says {pattern}"
    for name in wanted.get("folders", ()):
        if not (work / name).is_dir():
            return f"there is no folder {name}"
    for name, pattern in wanted.get("expect", {}).items():
        path = work / name
        if pattern == "(absent)":
            if path.exists():
                return f"{name} is still there"
        elif not path.is_file():
            return f"{name} is not there"
        elif not re.search(pattern, held := path.read_text(errors="replace")):
            return f"{name} holds {held!r:.80}"
    for name, members in wanted.get("archive", {}).items():
        inside = _packed(work / name)
        if not inside >= set(members):
            return f"{name} holds {sorted(inside)}"
    if "tools" in wanted and not set(tools) & set(wanted["tools"]):
        return "looked nowhere"
    return ""


def _packed(path: Path) -> set[str]:
    """The names in an archive; none if it is no archive."""
    names: list[str] = []
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    elif path.is_file() and tarfile.is_tarfile(path):
        with tarfile.open(path) as taped:
            names = taped.getnames()
    return {os.path.basename(name) for name in names}


def _changed(case: Case, work: Path) -> set[str]:
    now = {
        str(path.relative_to(work)): path.read_bytes() for path in work.rglob("*") if path.is_file()
    }
    before = {name: text.encode() for name, text in case.files.items()}
    return {name for name in now.keys() | before.keys() if now.get(name) != before.get(name)}


def _cpu(model: EmbeddedModel) -> float:
    """CPU seconds of the model's process so far."""
    import psutil

    if not model.pid:
        return 0.0
    times = psutil.Process(model.pid).cpu_times()
    return float(times.user + times.system)


async def run(folders: list[Path]) -> list[Outcome]:
    """Every case of these folders, one after the other, the model loaded once."""
    from hermes.embedded import embedded_model

    model = embedded_model()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as root:
        os.environ["HERMES_HOME"] = os.path.join(root, "home")
        try:
            for folder in folders:
                for case in cases(folder):
                    done = await carry_out(case, model, Path(root))
                    outcomes.append(done)
                    print(_line(done), flush=True)
        finally:
            await model.close()
    return outcomes


def _line(done: Outcome) -> str:
    mark = "✗" if done.wrong else "✓"
    cost = f"{done.seconds:5.1f} s, cpu {done.cpu:5.1f} s, {done.read:4} + {done.written:3} tokens"
    why = f"  {done.wrong}: {' '.join(done.text.split())[:200]}" if done.wrong else ""
    return f"{mark} {done.case.name:28} {cost}  {','.join(done.tools)}{why}"


def main(words: list[str]) -> int:
    """Run, print the table and the sums; 1 when fewer are right than there should be."""
    outcomes = asyncio.run(run([Path(word) for word in words] or [TASKS]))
    chats = [one for one in outcomes if one.case.chat]
    tasks = [one for one in outcomes if not one.case.chat]
    code = 0
    for what, some, share in (("tasks", tasks, GOOD_TASKS), ("chats", chats, GOOD_CHATS)):
        if some:
            right = sum(not one.wrong for one in some)
            code = code or int(right < share * len(some))
            mean = [
                sum(column) / len(some) for column in zip(*(one[4:] for one in some), strict=True)
            ]
            print(
                f"{what}: {right} of {len(some)}; on average {mean[0]:.1f} s, {mean[1]:.1f} CPU s, "
                f"{mean[2]:.0f} tokens read ({mean[3]:.0f} cached), {mean[4]:.0f} written; "
                f"longest {max(one.seconds for one in some):.0f} s"
            )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

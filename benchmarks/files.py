"""What the file tools cost, through the whole pipeline, beside doing the bare thing."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Row
from hermes.core import ToolCall
from hermes.runtime.app import App
from hermes.stores.checkpoints import Author, Checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_RG = Path(sys.executable).with_name("rg")


def rows() -> Iterator[Row]:
    """Reading, writing, editing, finding, keeping for undo."""
    with workspace() as call:
        yield from _reading(call)
        yield from _writing(call)
        yield from _editing(call)
        yield from _finding(call)
        yield from _keeping()
    yield from _huge()


@contextmanager
def workspace(settings: str = "") -> Iterator[Callable[..., Any]]:
    """A workspace on a real disk, and the tools in it; `settings` are those of its home."""
    before = os.getcwd(), os.environ.get("HERMES_HOME")
    folder = tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent)
    os.environ["HERMES_HOME"] = os.path.join(folder, "home")
    if settings:
        os.mkdir(os.environ["HERMES_HOME"], 0o700)
        Path(os.environ["HERMES_HOME"], "config.yaml").write_text(settings)
    work = os.path.join(folder, "work")
    os.mkdir(work)
    os.chdir(work)
    app = App()
    context = app.runtime.context()
    context.task.workspace = work
    numbers = itertools.count()

    def call(tool: str, **arguments: Any) -> Any:
        made = ToolCall(tool, arguments, id=str(next(numbers)))
        outcome = app.runtime.call_sync(made, context)
        return json.loads(outcome.content)

    try:
        yield call
    finally:
        app.close()
        os.chdir(before[0])
        if before[1] is None:
            del os.environ["HERMES_HOME"]
        else:
            os.environ["HERMES_HOME"] = before[1]
        shutil.rmtree(folder)


def _best(
    action: Callable[[], object], *, rounds: int = 7, clock: Callable[[], float] = time.process_time
) -> float:
    """Milliseconds of the fastest of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        began = clock()
        action()
        best = min(best, clock() - began)
    return best * 1000


def _reading(call: Callable[..., Any]) -> Iterator[Row]:
    Path("small.py").write_text("".join(f"value_{n} = {n}\n" for n in range(30)))
    read = lambda: [call("read_file", path="small.py") for _ in range(50)]  # noqa: E731
    yield Row("read_file, 30 lines (CPU)", _best(read) / 50, "ms", 0.5)
    Path("large.txt").write_text(
        "".join(f"line {n:07} of a large file, say\n" for n in range(300_000))
    )
    time.sleep(0.05)
    call("read_file", path="large.txt")
    page = lambda: call(  # noqa: E731
        "read_file", path="large.txt", offset=200_000, limit=500, force=True
    )
    page()
    yield Row("read_file, 10 MB, lines 200,000-200,500, again (CPU)", _best(page), "ms", 3)


def _writing(call: Callable[..., Any]) -> Iterator[Row]:
    texts = itertools.cycle(("hello\n", "hallo\n"))

    def bare() -> None:
        handle = os.open("bare", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(handle, b"hello\n")
        os.fsync(handle)
        os.close(handle)

    ours, plain = [], []
    for _ in range(40):
        plain.append(_best(bare, rounds=1, clock=time.perf_counter))
        write = lambda: call("write_file", path="a.txt", content=next(texts))  # noqa: E731
        ours.append(_best(write, rounds=1, clock=time.perf_counter))
    ratio = sorted(ours)[20] / sorted(plain)[20]
    yield Row("write_file, 6 bytes, kept for undo / bare fsync", ratio, "×", 10)


def _editing(call: Callable[..., Any]) -> Iterator[Row]:
    chance = random.Random(1)
    lines = [
        f"    value_{n} = compute({chance.randrange(10**6)}, 'text {n}')\n" for n in range(10_000)
    ]
    text = "".join(["def function():\n", *lines])
    wanted = lines[5_000]
    number = itertools.count()

    def edit(old: str) -> Callable[[], object]:
        def once() -> object:
            new = old.replace("value_", f"changed_{next(number)}_").strip() + "\n"
            return call("patch", path="code.txt", old_string=old, new_string=new)

        def fresh() -> float:
            # A content that the store has not seen before, as after anybody's edit.
            Path("code.txt").write_text(f"# {next(number)}\n{text}")
            began = time.process_time()
            once()
            return time.process_time() - began

        return fresh

    cases = {
        "patch, exact, 10,000 lines (CPU)": (wanted, 8),
        "patch, other white space, 10,000 lines (CPU)": (wanted.replace("    ", "\t", 1), 25),
        "patch, no match, 10,000 lines (CPU)": (wanted.replace("compute", "compote"), 100),
    }
    for what, (old, limit) in cases.items():
        once = edit(old)
        yield Row(what, min(once() for _ in range(7)) * 1000, "ms", limit)  # type: ignore[type-var]


def _finding(call: Callable[..., Any]) -> Iterator[Row]:
    chance = random.Random(2)
    words = ["alpha", "beta", "gamma", "delta", "value", "return", "import", "class"]
    for number in range(20_000):
        folder = Path(f"tree/{number % 40}/{number % 13}")
        folder.mkdir(parents=True, exist_ok=True)
        body = "\n".join(" ".join(chance.choices(words, k=8)) for _ in range(20))
        needle = "\nthe needle\n" if number % 5_000 == 7 else "\n"
        (folder / f"file_{number}.txt").write_text(body + needle)

    def rg(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([_RG, *arguments, "tree"], capture_output=True, check=True)

    def search(**arguments: Any) -> Callable[[], object]:
        return lambda: call("search_files", path="tree", **arguments)

    for what, ours, theirs, limit in (
        (
            "search, needle in 20,000 files / rg",
            search(pattern="the needle"),
            rg("the needle"),
            1.3,
        ),
        (
            "search, names of 20,000 files / rg --files",
            search(pattern="file_1234.txt", target="files"),
            rg("--files"),
            1.5,
        ),
    ):
        ours()
        theirs()
        pairs = [
            (_best(ours, rounds=1, clock=_all_cpu), _best(theirs, rounds=1, clock=_all_cpu))
            for _ in range(9)
        ]
        yield Row(what, min(p[0] for p in pairs) / min(p[1] for p in pairs), "× CPU", limit)


def _all_cpu() -> float:
    """Of this process and the children it waited for."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total


def _keeping() -> Iterator[Row]:
    with Checkpoints() as store:
        began = time.perf_counter()
        _command(store, "tree")
        yield Row("first command in 20,000 files, kept for undo", time.perf_counter() - began, "s")
        best = min(_command(store, "tree") for _ in range(7)) * 1000
        yield Row("command that changes 1 of 20,000 files, kept for undo (CPU)", best, "ms", 30)
    for number in range(20_000):
        os.makedirs(folder := f"large/{number // 100}/{number % 100}")
        for name in range(10):
            Path(folder, str(name)).write_bytes(b"%d %d\n" % (number, name))
    with Checkpoints() as store:
        _command(store, "large")
        best = min(_command(store, "large") for _ in range(7)) * 1000
        yield Row("command that changes 1 of 200,000 files, kept for undo (CPU)", best, "ms", 60)


def _command(store: Checkpoints, folder: str) -> float:
    """Seconds of CPU around a command that changes one file."""
    began = time.process_time()
    taken = store.snapshot(os.path.abspath(folder), Author())
    with open(os.path.join(folder, "changed"), "a", encoding="utf-8") as file:
        file.write("more\n")
    store.after_command(taken)
    return time.process_time() - began


def _huge() -> Iterator[Row]:
    """How much memory the first page of a gigabyte takes, in a process of its own."""
    script = (
        "import json, os, resource, sys\n"
        "from hermes.core import ToolCall\n"
        "from hermes.runtime.app import App\n"
        "app = App()\n"
        "read = lambda path: app.runtime.call_sync(ToolCall('read_file', {'path': path})).content\n"
        "read('small')\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "assert 'next_offset' in read('huge')\n"
        "print((peak() - before) / 1024)\n"
    )
    folder = tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent)
    try:
        Path(folder, "small").write_text("small\n")
        with open(os.path.join(folder, "huge"), "wb") as file:
            for _ in range(1024):
                file.write((b"x" * 1023 + b"\n") * 1024)
        environment = {**os.environ, "HERMES_HOME": os.path.join(folder, "home")}
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        yield Row("read_file, first page of 1 GB, memory", float(done.stdout), "MB", 30)
    finally:
        shutil.rmtree(folder)

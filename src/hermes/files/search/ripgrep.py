"""ripgrep engine: `count` counts matching lines per file, `locate` finds those of the page.

Skipped entries are counted from ripgrep's debug log.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from functools import lru_cache

from hermes.core.errors import ToolError
from hermes.core.paths import find_program
from hermes.files.search.query import Tally, ripgrep_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from hermes.files.search.query import Query, SearchDeadline
    from hermes.text.regex_worker import Spot

_VERSION = b"ripgrep 15."
_COMMON = ("--no-config", "--color=never", "--no-mmap", "--no-ignore-global", "--no-ignore-exclude",
           "--no-require-git", "--crlf",
           "--regex-size-limit=200M", "--dfa-size-limit=200M")  # fmt: skip
# What all arguments of one command may take together.
_MOST_ARGUMENTS = 30_000 if os.name == "nt" else 500_000
# With --crlf the lines of its output end in CRLF, too.
_COUNTED = re.compile(rb"\./([^\0]*)\0(\d+)\r?\n")
_SEARCHED = re.compile(rb"\n(\d+) files searched\n")
# It names no column for a match of nothing where the file ends.
_SPOT = re.compile(rb"\./([^\0]*)\0(\d+):(?:(\d+):)?(\d+):[^\n]*\n")
_SKIPPED = re.compile(rb": (?:Ignore\(IgnoreMatch\((Hidden|Gitignore)|(found binary data))")
_NAMED = re.compile(rb"ignoring (?:\./)?(.*): found binary data")
# PCRE2 gives up on a file where a pattern backtracks too much.
_FAILED = re.compile(rb"^rg: (?:\./)?(.*): (?:[^:]*\(os error \d+\)|PCRE2: error matching: [^:]*)$")
# A line that is UTF-8 and has no zeros.
_PLAIN = r"^[^\x00]*$"
_DEBUG = b"rg: DEBUG|"
_GLOB_SIGNS = re.compile(rb"[\\*?\[\]{}!]|[\x80-\xff]")
# Of the time that there is, how much the quick way may take before the one that can be stopped.
_QUICK_SHARE = 0.4


def find_ripgrep() -> str | None:
    """The program: the one that was installed with this one, else one on the path that is alike."""
    name = "rg.exe" if os.name == "nt" else "rg"
    sibling = os.path.join(os.path.dirname(sys.executable), name)
    return sibling if os.access(sibling, os.X_OK) else _on_path(os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _on_path(path: str) -> str | None:
    program = find_program("rg", path)
    if program is None:
        return None
    try:
        version = subprocess.run(
            [program, "--version"], capture_output=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # What it says on the side is read, and other versions may say it in other words.
    return program if version.stdout.startswith(_VERSION) else None


class Ripgrep:
    """Searches with the program at `program`, on this machine's disk."""

    def __init__(self, program: str) -> None:
        self._program = program

    def count(self, query: Query, watch: SearchDeadline) -> Tally:
        """How many lines match, file by file."""
        if query.among is not None and not query.most:
            return self._count_each(query, query.among, watch)
        log = _Log()
        output, finished = self._run([*_flags(query), "--stats", "--debug"], query, watch, log)
        tally = Tally()
        searched = _SEARCHED.search(output)
        tally.counts = _counts(output)
        if finished and searched:
            tally.scanned = int(searched[1]) - len(log.binary) - len(log.failed_files(query.root))
        else:
            # It tells how many files it has seen only at the end: again, in a way that it tells
            # of each, as long as there is time.
            log = _Log()
            output, tally.finished = self._run(
                [*_flags(query), "--include-zero", "--debug"], query, watch, log, share=1.0
            )
            seen = _counts(output)
            tally.scanned = len(seen)
            tally.counts |= {path: lines for path, lines in seen.items() if lines}
        log.put_into(tally)
        if query.among is not None:
            _narrow(tally, frozenset(query.among), log)
        return tally

    def _count_each(self, query: Query, among: Collection[str], watch: SearchDeadline) -> Tally:
        """The same for certain files: ripgrep walks to them, as it would on its own."""
        tally = Tally()
        seen: dict[str, int] = {}
        log = _Log()
        flags = [*_flags(query), "--include-zero"]
        if all("/" not in path for path in among):
            flags.append("--max-depth=1")
        for some in _batches(among):
            globs = [argument for path in some for argument in ("-g", _as_glob(path))]
            output, finished = self._run([*flags, *globs], query, watch, log, share=1.0)
            seen |= _counts(output)
            if not finished:
                tally.finished = False
                break
        wanted = frozenset(among)
        seen = {path: lines for path, lines in seen.items() if path in wanted}
        tally.counts = {path: lines for path, lines in seen.items() if lines}
        tally.scanned = len(seen)
        tally.skipped.unreadable = len(log.failed & wanted)
        if tally.finished:
            # It says nothing of those that it left out.
            tally.binary = sorted(wanted - seen.keys() - log.failed)
            tally.skipped.binary = len(tally.binary)
        return tally

    def odd(self, query: Query, watch: SearchDeadline) -> tuple[list[str], bool]:
        """The files that are no plain UTF-8, and whether those are all."""
        flags = [*_chosen(query), "--files-with-matches", "-0", "--text", "--invert-match"]
        batches: Iterable[list[str]] = [[]]
        if query.among is not None and not query.most:
            batches = _batches(query.among)
        paths_found: list[str] = []
        for some in batches:
            globs = [argument for path in some for argument in ("-g", _as_glob(path))]
            output, finished = self._run(
                [*flags, *globs], query, watch, _Log(), share=1.0, pattern=_PLAIN
            )
            paths_found += [
                os.fsdecode(path.removeprefix(b"./")) for path in output.split(b"\0")[:-1]
            ]
            if not finished:
                return paths_found, False
        if query.among is not None:
            wanted = frozenset(query.among)
            paths_found = [path for path in paths_found if path in wanted]
        return paths_found, True

    def locate(
        self, query: Query, takes: Mapping[str, int], watch: SearchDeadline
    ) -> dict[str, list[Spot]]:
        """Where the first lines of some files match: as many as are wanted of each."""
        flags = ["-n", "-b", "--column", "-0", "--no-heading", "--with-filename", "--max-columns=1"]
        flags.append(f"--max-count={max(takes.values())}")
        if query.choice.binary:
            flags.append("--text")
        located: dict[str, list[Spot]] = {path: [] for path in takes}
        for some in _batches(takes):
            paths = [f"./{path}" for path in some]
            output, _ = self._run(flags, query, watch, _Log(), share=1.0, paths=paths)
            for path, line, column, offset in _SPOT.findall(output):
                spots = located.get(os.fsdecode(path))
                if spots is not None:
                    spots.append((int(line), int(column or 1), int(offset)))
        return {path: spots[: takes[path]] for path, spots in located.items()}

    def _run(
        self,
        flags: Iterable[str | bytes],
        query: Query,
        watch: SearchDeadline,
        log: _Log,
        *,
        share: float = _QUICK_SHARE,
        paths: Iterable[str] = (".",),
        pattern: str = "",
    ) -> tuple[bytes, bool]:
        """Run ripgrep; its output, and whether it ended by itself."""
        if watch.expired:
            return b"", False
        if not pattern:
            flags = [*flags, *query.pattern.ripgrep_flags()]
        wanted = pattern or query.pattern.source
        command = [self._program, *_COMMON, *flags, "-e", wanted, "--", *paths]
        process = subprocess.Popen(
            command,
            cwd=query.root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with watch.over(process, seconds=watch.left * share):
            assert process.stdout is not None
            assert process.stderr is not None
            reader = threading.Thread(target=log.read, args=(process.stderr,), daemon=True)
            reader.start()
            output = process.stdout.read()
            reader.join()
            code = process.wait()
        # Raises when the search was cancelled, which ends the process too.
        _ = watch.expired
        if code > 1 and log.complaint:
            if "impossible to match" in log.complaint:
                # A NUL, which no text contains: Python searches for it.
                raise OSError(log.complaint)
            error = ripgrep_error(log.complaint, query.pattern)
            raise error or ToolError(f"ripgrep can't search for that: {log.complaint:.300}")
        return output, code in (0, 1, 2)


class _Log:
    """The debug log of ripgrep: skipped and unreadable files."""

    def __init__(self) -> None:
        self.hidden = self.ignored = 0
        self.binary: set[str] = set()
        self.failed: set[str] = set()
        self.complaint = ""

    def read(self, stream: Iterable[bytes]) -> None:
        """Take in every line."""
        for line in stream:
            match = _SKIPPED.search(line)
            if match is not None:
                self.hidden += match[1] == b"Hidden"
                self.ignored += match[1] == b"Gitignore"
                if match[2]:
                    named = _NAMED.search(line)
                    self.binary.add((named[1] if named else line).decode("utf-8", "replace"))
            elif not line.startswith(_DEBUG):
                failed = _FAILED.match(line.rstrip(b"\n"))
                if failed:
                    self.failed.add(failed[1].decode("utf-8", "replace"))
                elif self.complaint or line.startswith(b"rg: "):
                    self.complaint += line.removeprefix(b"rg: ").decode("utf-8", "replace")

    def failed_files(self, root: str) -> list[str]:
        """Unreadable files without folders, which ripgrep does not count as searched."""
        return [path for path in self.failed if not os.path.isdir(f"{root}/{path}")]

    def put_into(self, tally: Tally) -> None:
        """Add the numbers of skipped files to a tally."""
        skipped = tally.skipped
        skipped.hidden, skipped.ignored = self.hidden, self.ignored
        skipped.binary, skipped.unreadable = len(self.binary), len(self.failed)
        tally.binary = sorted(self.binary)


def _narrow(tally: Tally, wanted: frozenset[str], log: _Log) -> None:
    """Restrict a tally to certain files."""
    tally.counts = {path: lines for path, lines in tally.counts.items() if path in wanted}
    # ripgrep prints what is no UTF-8 in another way.
    odd = {path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in wanted}
    tally.binary = sorted(log.binary & odd)
    binary, failed = len(tally.binary), len(log.failed & odd)
    tally.skipped.binary, tally.skipped.unreadable = binary, failed
    if tally.finished:
        tally.scanned = len(wanted) - binary - failed


def _flags(query: Query) -> list[str]:
    flags = ["--count", "-0", "--with-filename", *_chosen(query)]
    if query.choice.binary:
        flags.append("--text")
    return flags


def _chosen(query: Query) -> list[str]:
    """Which files are looked into."""
    choice = query.choice
    flags = ["--glob=!.git"]
    if choice.hidden:
        flags.append("--hidden")
    if choice.ignored:
        flags.append("--no-ignore")
    elif not query.above:
        flags.append("--no-ignore-parent")
    return flags


def _counts(output: bytes) -> dict[str, int]:
    return {os.fsdecode(path): int(lines) for path, lines in _COUNTED.findall(output)}


def _as_glob(path: str) -> bytes:
    """A glob for one path; a byte that no glob can hold fits any, and is sorted out later."""
    escaped = _GLOB_SIGNS.sub(
        lambda sign: b"?" if sign[0] >= b"\x80" else b"\\" + sign[0], os.fsencode(path)
    )
    return b"/" + escaped


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    size = 0
    for path in paths:
        size += 2 * len(path) + 20
        if size > _MOST_ARGUMENTS and some:
            yield some
            some, size = [], 2 * len(path) + 20
        some.append(path)
    if some:
        yield some


@lru_cache(maxsize=1)
def _environment() -> dict[str, str]:
    """An empty environment, except for a variable that Windows needs."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}

"""Differences between two files: their inputs, the comparison, and its display."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import ToolError
from hermes.core.paths import find_program
from hermes.text.diff import excerpt, first_shown, groups, hunk_lines, line_changes, span
from hermes.text.encoding import codec_of, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, BinaryIO, Literal

    from hermes.environments.disk.protocol import Disk
    from hermes.text.diff import Change
    from hermes.text.encoding import Text


LONGEST_LINE = 2_000
_NO_NEWLINE = "\\ No newline at end of file"
_COLUMN = 72
# Letters of a long line in front of what changed in it.
_LEAD, _COLUMN_LEAD = 200, 20


class Pair(NamedTuple):
    """The lines of both inputs, the numbers of their first lines, and the changes."""

    old: Sequence[str]
    new: Sequence[str]
    old_first: int
    new_first: int
    changes: Sequence[Change]


def unified(pair: Pair, old_label: str, new_label: str, context: int) -> str:
    """The changes as a unified diff."""
    shown = [f"--- {old_label}", f"+++ {new_label}"]
    firsts = (pair.old_first, pair.new_first)
    for mark, line, start in hunk_lines(
        pair.old, pair.new, pair.changes, context=context, most=LONGEST_LINE, lead=_LEAD,
        firsts=firsts,
    ):  # fmt: skip
        shown.append(mark + cut(line.removesuffix("\n"), start))
        if mark != "@" and not line.endswith("\n"):
            shown.append(_NO_NEWLINE)
    return "\n".join(shown) + "\n"


def side_by_side(pair: Pair, context: int) -> str:
    """The changes in two columns: `|` changed, `<` only on the left, `>` only on the right."""
    rows: list[tuple[str, str, str]] = []
    for group in groups(pair.changes, context):
        start, end, begin, _ = span(group, context, len(pair.old))
        if rows:
            rows.append(("", "", ""))
        rows.append((f"line {start + pair.old_first}", " ", f"line {begin + pair.new_first}"))
        at = start
        for change in group:
            rows.extend((_cell(line), " ", _cell(line)) for line in pair.old[at : change.old_start])
            rows.extend(_changed_rows(pair, change))
            at = change.old_end
        rows.extend((_cell(line), " ", _cell(line)) for line in pair.old[at:end])
    width = max((len(left) for left, _, _ in rows), default=0)
    return "\n".join(f"{left:<{width}} {mark} {right}".rstrip() for left, mark, right in rows)


def places(pair: Pair) -> list[str]:
    """Where lines were changed, added or removed, one sentence each."""
    changes = []
    for change in pair.changes:
        old = _lines(change.old_start, change.old_end, pair.old_first)
        new = _lines(change.new_start, change.new_end, pair.new_first)
        if change.old_start == change.old_end:
            changes.append(f"{new} added")
        elif change.new_start == change.new_end:
            changes.append(f"{old} removed")
        else:
            changes.append(f"{old} changed to {new}")
    return changes


def _sides(pair: Pair, change: Change) -> tuple[Sequence[str], Sequence[str]]:
    old = pair.old[change.old_start : change.old_end]
    return old, pair.new[change.new_start : change.new_end]


def cut(line: str, start: int = 0) -> str:
    """A line as far as it is shown, from about a letter on."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{excerpt(line, start, LONGEST_LINE)} [{len(line) - LONGEST_LINE} more characters]"


def _changed_rows(pair: Pair, change: Change) -> Iterator[tuple[str, str, str]]:
    from itertools import zip_longest

    old, new = ([_plain(line) for line in side] for side in _sides(pair, change))
    starts = first_shown(old, new, most=_COLUMN - 2, lead=_COLUMN_LEAD)
    for left, right, start in zip_longest(old, new, starts):
        mark = ">" if left is None else "<" if right is None else "|"
        yield _cell(left or "", start), mark, _cell(right or "", start)


def _plain(line: str) -> str:
    return line.rstrip("\r\n").expandtabs(4)


def _cell(line: str, start: int = 0) -> str:
    return excerpt(_plain(line), start, _COLUMN - 2)


def _lines(start: int, end: int, first: int) -> str:
    if end - start == 1:
        return f"line {start + first}"
    return f"lines {start + first}-{end + first - 1}"


CHUNK = 256 * 1024


class Side(NamedTuple):
    """Bytes with a name for people; `read` opens them anew each time."""

    label: str
    size: int
    read: Callable[[], BinaryIO]

    @classmethod
    def of_bytes(cls, label: str, data: bytes) -> Side:
        """A side that is in memory already."""
        return cls(label, len(data), lambda: io.BytesIO(data))

    @classmethod
    def of_file(cls, label: str, disk: Disk, path: str) -> Side:
        """A file on a disk."""
        status = disk.status(path)
        return cls(label, 0 if status is None else status.size, lambda: disk.open(path))


class Apart(NamedTuple):
    """Where two sides differ: equal before `head` bytes and in the last `tail` ones."""

    head: int
    tail: int
    lines: int  # how many lines end before `head`


def differing(old: Side, new: Side, check: Callable[[int], object]) -> Apart | None:
    """The range in which two inputs differ; None if equal. `check` gets the bytes read."""
    with old.read() as left, new.read() as right:
        head = lines = 0
        while True:
            a, b = read_exactly(left, CHUNK), read_exactly(right, CHUNK)
            check(len(a) + len(b))
            if a != b:
                equal = _common(a, b)
                head += equal
                lines += a.count(b"\n", 0, equal)
                break
            if not a:
                return None
            head += len(a)
            lines += a.count(b"\n")
        tail = 0
        most = min(old.size, new.size) - head
        while tail < most:
            size = min(CHUNK, most - tail)
            left.seek(old.size - tail - size)
            right.seek(new.size - tail - size)
            a, b = read_exactly(left, size), read_exactly(right, size)
            check(len(a) + len(b))
            if a != b:
                tail += _common(a[::-1], b[::-1])
                break
            tail += size
    return Apart(head, tail, lines)


def stretch(side: Side, start: int, end: int) -> bytes:
    """The bytes of a side from `start` to `end`."""
    with side.read() as file:
        file.seek(start)
        return read_exactly(file, end - start)


def read_exactly(file: BinaryIO, size: int) -> bytes:
    """As many bytes as there are, at most `size`: a raw file may give fewer at a time."""
    data = file.read(size) or b""
    if len(data) in (0, size):
        return data
    pieces = [data]
    size -= len(data)
    while size and (data := file.read(size)):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


def digest(side: Side, check: Callable[[int], object]) -> str:
    """The SHA-256 of a side."""
    import hashlib

    sha256 = hashlib.sha256()
    with side.read() as file:
        while data := file.read(CHUNK):
            sha256.update(data)
            check(len(data))
    return sha256.hexdigest()


def _common(a: bytes, b: bytes) -> int:
    """How many bytes at the start are equal."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


if TYPE_CHECKING:
    Format = Literal["unified", "summary", "side_by_side"]

# How much of each side is compared line by line.
MOST_BYTES = 8 * 1024 * 1024
MOST_PLACES = 200
_WINDOW = 64 * 1024
# A line feed is one byte of its own in all but these.
_WIDE = ("utf-16", "utf-32")
_PRINTED = frozenset(b"\t\n\r\f\x08\x1b")


class _Part(NamedTuple):
    """The compared lines of an input, its encoding and the number of the first line."""

    lines: list[str]
    encoding: str
    first: int


def compare_contents(
    old: Side,
    new: Side,
    *,
    form: Format = "unified",
    context: int = 3,
    check: Callable[[int], object] = lambda _: None,
) -> dict[str, Any]:
    """The differences of two inputs as JSON for the model, always with `identical`."""
    apart = differing(old, new, check)
    if apart is None:
        return {"identical": True, "bytes": new.size}
    start, end = _looked_at(old, new, apart, context)
    left = _part(old, start, old.size - end, apart)
    right = _part(new, start, new.size - end, apart)
    if isinstance(left, str) or isinstance(right, str):
        reason = left if isinstance(left, str) else right
        return {**_by_bytes(old, new, apart, check), "reason": reason}
    pair = Pair(
        left.lines, right.lines, left.first, right.first, line_changes(left.lines, right.lines)
    )
    answer: dict[str, Any] = {
        "identical": False,
        "added": sum(change.new_end - change.new_start for change in pair.changes),
        "removed": sum(change.old_end - change.old_start for change in pair.changes),
    }
    if form == "unified":
        answer["diff"] = unified(pair, old.label, new.label, context)
    elif form == "side_by_side":
        answer["diff"] = side_by_side(pair, context)
    else:
        changes = places(pair)
        answer["changes"] = changes[:MOST_PLACES]
        if len(changes) > MOST_PLACES:
            answer["more_changes"] = len(changes) - MOST_PLACES
    if notes := _notes(left, right):
        answer["notes"] = notes
    return answer


def decoded(data: bytes) -> Text | None:
    """Bytes as text; None for binary data."""
    text = decode(data)
    # Told apart by what no text has, whatever the encoding.
    if text.tail or "\0" in text.text:
        return None
    if not text.certain and not _PRINTED.issuperset(byte for byte in set(data) if byte < 32):
        return None
    return text


def _looked_at(old: Side, new: Side, apart: Apart, context: int) -> tuple[int, int]:
    """Bytes to skip at the start and at the end: the common parts of long inputs."""
    if max(old.size, new.size) <= MOST_BYTES:
        return 0, 0
    # The lines around are wanted too: as many as fit into a window that is always affordable.
    before = stretch(old, max(0, apart.head - _WINDOW), apart.head)
    at = len(before)
    for _ in range(context + 1):
        at = before.rfind(b"\n", 0, max(at, 0))
    begin = old.size - apart.tail
    after = stretch(old, begin, begin + _WINDOW)
    stop = -1
    for _ in range(context + 1):
        stop = after.find(b"\n", stop + 1)
        if stop < 0:
            stop = len(after) - 1
            break
    return apart.head - len(before) + at + 1, apart.tail - stop - 1


def _part(side: Side, start: int, end: int, apart: Apart) -> _Part | str:
    """The lines between two offsets; or the reason why they are not compared."""
    if end - start > MOST_BYTES:
        return "too much is different to compare it line by line"
    if start == 0 and end == side.size:
        read = decoded(stretch(side, 0, side.size))
        return "not text" if read is None else _Part(_split(read.text), read.encoding, 1)
    data = stretch(side, start, end)
    # Judged by its beginning, like any other file; a window may cut a character in two.
    sample = stretch(side, 0, _WINDOW)
    read = decoded(sample[: sample.rfind(b"\n") + 1] or sample)
    if read is None or read.encoding.startswith(_WIDE) or b"\0" in data:
        return "too large to compare line by line, or not text"
    first = apart.lines - data.count(b"\n", 0, max(0, apart.head - start)) + 1
    mark = read.bom if start == 0 else b""
    text = data.removeprefix(mark).decode(codec_of(read.encoding), "replace")
    return _Part(_split(text), read.encoding, first)


def _split(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    if parts[-1]:
        lines.append(parts[-1])
    return lines


def _by_bytes(old: Side, new: Side, apart: Apart, check: Callable[[int], object]) -> dict[str, Any]:
    return {
        "identical": False,
        "first_difference": {"byte": apart.head, "line": apart.lines + 1},
        "old": {"bytes": old.size, "sha256": digest(old, check)},
        "new": {"bytes": new.size, "sha256": digest(new, check)},
    }


def _notes(old: _Part, new: _Part) -> list[str]:
    """Notes on encoding and line ends, which the lines do not show."""
    notes = []
    if old.encoding != new.encoding:
        notes.append(f"the encoding changed from {old.encoding} to {new.encoding}")
    ends = _line_ends(old.lines), _line_ends(new.lines)
    if ends[0] != ends[1] and "none" not in ends:
        notes.append(f"line endings changed from {ends[0]} to {ends[1]}")
    if len(old.lines) == len(new.lines):
        plain = [[line.rstrip("\r\n") for line in part.lines] for part in (old, new)]
        if plain[0] == plain[1]:
            notes.append("only line endings or encoding differ")
    if any(len(line) > LONGEST_LINE for part in (old, new) for line in part.lines):
        notes.append(f"lines are shown up to {LONGEST_LINE} characters")
    return notes


def _line_ends(lines: list[str]) -> str:
    carriage = sum(line.endswith("\r\n") for line in lines)
    feeds = sum(line.endswith("\n") for line in lines)
    if not carriage:
        return "LF" if feeds else "none"
    return "CRLF" if carriage == feeds else "mixed"


if TYPE_CHECKING:
    Said = subprocess.CompletedProcess[bytes]
    # A place and a script; exit code, output and errors of the script, run in the place's folder.
    Far = Callable[[str, str], tuple[int, bytes, bytes]]

MAX_COMMITTED_BYTES = 64 * 1024 * 1024
_SECONDS = 30
_SILENT = os.devnull
# No hooks, filters, conversion, pagers or prompts, and what is missing is not fetched.
_OPTIONS = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=",
    "-c",
    f"core.hooksPath={_SILENT}",
    "-c",
    "protocol.allow=never",
)
_SETTINGS = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": _SILENT,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def committed(
    real_path: str, check: Callable[[], object] = lambda: None, far: Far | None = None
) -> bytes | None:
    """The bytes of a file in `HEAD`; None where the commit does not have it.

    Args:
        check: Called again and again; may raise to stop.
        far: Runs a script beside the file, where the file is on another machine.
    """
    folder, name = os.path.split(real_path)

    def git(*words: str) -> Said:
        return run_git(folder, words, check) if far is None else _far_git(real_path, words, far)

    if far is None and not os.path.isdir(folder):
        raise ToolError(f"{folder} is no folder")
    top = git("rev-parse", "--show-toplevel")
    if top.returncode:
        raise ToolError(
            f"git has nothing for {real_path}: {_said(top)}",
            hint="Compare with another file instead.",
        )
    if git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode:
        raise ToolError(f"the repository of {real_path} has no commit yet")
    blob = f"HEAD:./{name}"
    listed = git("cat-file", "-s", blob)
    if listed.returncode:
        return None
    size = int(listed.stdout)
    if size > MAX_COMMITTED_BYTES:
        raise ToolError(
            f"{real_path} has {size} bytes in HEAD, more than {MAX_COMMITTED_BYTES} are not read"
        )
    content = git("cat-file", "blob", blob)
    if content.returncode:
        raise ToolError(f"{real_path} can't be read from HEAD: {_said(content)}")
    return content.stdout


def _far_git(real_path: str, words: tuple[str, ...], far: Far) -> Said:
    command = ["git", *_OPTIONS, *words]
    settings = [f"{name}={value}" for name, value in _SETTINGS.items()]
    code, out, err = far(real_path, shlex.join(["env", *settings, *command]))
    if code == 127:
        raise ToolError("git is not installed there")
    return subprocess.CompletedProcess(command, code, out, err)


def run_git(
    folder: str, words: tuple[str, ...], check: Callable[[], object] = lambda: None
) -> Said:
    """Run git in a folder without hooks, filters and the person's settings."""
    program = find_program("git")
    if program is None:
        raise ToolError("git is not installed here")
    command = [program, "-C", folder, *_OPTIONS, *words]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**_wanted(), **_SETTINGS},
        start_new_session=True,
    )
    with process:
        try:
            waited = 0.0
            while True:
                try:
                    out, err = process.communicate(timeout=0.2)
                except subprocess.TimeoutExpired:
                    check()
                    waited += 0.2
                    if waited > _SECONDS:
                        raise ToolError(f"git gave no answer in {_SECONDS} s") from None
                else:
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
        except BaseException:
            process.kill()
            raise


def _wanted() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}


def _said(done: Said) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit code {done.returncode}"

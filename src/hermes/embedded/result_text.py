"""Tool results as short plain text that a small model reads in seconds."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.embedded.arithmetic import counted_noun, has_heading, result, sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


# Tokens of a result: the engine reads them in a few seconds.
MOST = 500
# Characters of a line.
_LINE = 400
# Approximation of a token: a digit, a sign, a part of a word.
_TOKEN = re.compile(r"\d|[A-Za-z\u00c0-\u024f]{1,5}|[^\w\s]|\w|\n+| {2,}")
_WORD = re.compile(r"[^\W_]{3,}")
# Length of a stem: `closes`, `closing` and `closed` match.
_STEM = 5


def tokens(text: str) -> int:
    """Estimated tokens of a text."""
    return len(_TOKEN.findall(text))


def cut(text: str, most: int) -> str:
    """A text of at most `most` characters, cut in the middle."""
    if len(text) <= most:
        return text
    head, tail = text[: most * 3 // 4], text[-most // 4 :]
    return f"{head}\n[… {len(text) - most} characters left out …]\n{tail}"


def excerpt(text: str, about: str = "", *, most: int = MOST) -> str:
    """A text, or its relevant lines: the first, the last, and those that match `about`.

    Args:
        text: The whole text.
        about: Words that a relevant line contains.
        most: Tokens, approximately.
    """
    if tokens(text) <= most:
        return text
    lines = [cut(line, _LINE) for line in text.split("\n")]
    kept: set[int] = set()
    left = most
    for number in _order(lines, about):
        cost = tokens(lines[number]) + 1
        if number in kept or cost > left:
            continue
        kept.add(number)
        left -= cost
    return _joined(lines, kept)


def _order(lines: list[str], about: str) -> list[int]:
    """The line numbers by relevance."""
    numbers = range(len(lines))
    scores = _scores(lines, about)
    fitting = sorted((n for n in numbers if scores[n]), key=lambda n: (-scores[n], n))
    # Neighbours of a relevant line often complete it.
    around = [n + step for n in fitting[:5] for step in (0, 1, -1) if 0 <= n + step < len(lines)]
    return [*numbers[:5], *numbers[-2:], *around, *fitting[:40], *numbers]


def _scores(lines: list[str], about: str) -> list[float]:
    """Relevance of each line: rare words count more."""
    wanted = _stems(about)
    matches = [_stems(line) & wanted for line in lines]
    frequency = {stem: sum(stem in match for match in matches) for stem in wanted}
    return [sum(1 / frequency[stem] for stem in match) for match in matches]


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


def _joined(lines: list[str], kept: set[int]) -> str:
    """The kept lines in order, with a mark for each gap."""
    shown: list[str] = []
    missing = 0
    for number, line in enumerate(lines):
        if number not in kept:
            missing += 1
            continue
        if missing:
            shown.append(f"[… {missing} more lines …]")
            missing = 0
        shown.append(line)
    if missing:
        shown.append(f"[… {missing} more lines …]")
    return "\n".join(shown)


# Names of one kind in a listing.
_NAMES = 30


def listed(data: dict[str, Any], _: Mapping[str, Any], about: str = "") -> str:
    """A listing: names and counts by extension."""
    tree = str(data.get("tree", ""))
    if not tree:
        return "The folder is empty: 0 files."
    kinds: dict[str, list[str]] = {}
    folders, sizes = [], []
    for path, size in paths_of(tree):
        if path.endswith("/"):
            folders.append(path)
            continue
        kinds.setdefault(os.path.splitext(path)[1] or "without an ending", []).append(path)
        sizes.append((path, size))
    lines = [
        counted_noun(int(data.get("files", 0)), "file")
        + f", {counted_noun(len(folders), 'folder')}"
    ]
    if folders:
        lines[0] += f": {_some(folders)}"
    for kind, paths in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        lines.append(f"{len(paths)} {kind}: {_some(paths)}")
    sizes.sort(key=lambda pair: -_bytes(pair[1]))
    if len(sizes) > 1:
        # The listing may be incomplete.
        among = f" of the first {len(sizes)} files" if data.get("next_offset") else ""
        largest = ", ".join(f"{path} {size}" for path, size in sizes[:3])
        lines.append(f"(The largest{among}: {largest})")
        newest = ", ".join(f"{path} {when}" for path, when in data.get("newest") or ())
        lines += [f"(The newest{among}, changed last: {newest})"] if newest else []
    return excerpt("\n".join(lines), about)


def paths_of(tree: str) -> Iterator[tuple[str, str]]:
    """The paths in a tree, each with its note."""
    above: list[str] = []
    for line in tree.splitlines():
        level = (len(line) - len(line.lstrip())) // 2
        name, _, note = line.strip().partition("  ")
        del above[level:]
        yield "".join(above) + name, note
        if name.endswith("/"):
            above.append(name)


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMES} more" if len(paths) > _NAMES else ""
    return ", ".join(paths[:_NAMES]) + more


def _bytes(size: str) -> float:
    """Bytes of `1.5K` or `20B`."""
    match = re.fullmatch(r"([\d.]+)\s*([BKMGT])\w*", size)
    return float(match[1]) * 1024 ** "BKMGT".index(match[2]) if match else 0.0


if TYPE_CHECKING:
    Arguments = Mapping[str, Any]
    Data = dict[str, Any]

# Exit codes of a shell: not executable, command not found.
NOT_EXECUTABLE, NOT_FOUND = 126, 127
_TABLES = (".csv", ".tsv")


def read(data: Data, arguments: Arguments, about: str = "") -> str:
    """A file's text and size; of a long one the lines that match the request."""
    content = re.sub(r"(?m)^ *\d+\|", "", str(data.get("content", "")))
    lines = int(data.get("total_lines", 0))
    counted = f"{arguments['path']} has {counted_noun(lines, 'line')}"
    if len(content.splitlines()) >= lines:
        counted += f", {counted_noun(len(content.split()), 'word')}.{sums(content)}"
    return f"{excerpt(content, about)}\n\n({counted.rstrip('.')}.)"


def found(data: Data, arguments: Arguments, about: str = "") -> str:
    """Matching lines and their number."""
    matches = str(data.get("matches", ""))
    if not matches:
        return f"No file contains {arguments['text']!r}."
    if "words" in data:
        lead = f"{arguments['text']!r} as a whole is nowhere. Some of its words:"
        return f"{lead}\n{excerpt(matches, about)}"
    total, files = int(data.get("total_matches", 0)), int(data.get("files_matched", 0))
    times = "once" if total == 1 else f"{total} times"
    return f"{excerpt(matches, about)}\n\n(Found {times} in {counted_noun(files, 'file')}.)"


def counted(data: Data, arguments: Arguments, _: str = "") -> str:
    """Lines and words of each file and in total."""
    if data.get("exit_code"):
        return ran(data, arguments)
    text: list[str] = []
    counts: dict[str, int] = {}
    kinds: dict[str, list[int]] = {}
    edges = data.get("edges") or {}
    rows = str(data.get("stdout", "")).splitlines()
    # The last row is the total.
    for path, row in zip(dict.fromkeys(map(str, arguments["paths"])), rows, strict=False):
        columns = row.split(None, 2)
        if len(columns) < 2 or not all(map(str.isdigit, columns[:2])):
            continue
        first, unended = edges.get(path, ("", False))
        lines = counts[path] = int(columns[0]) + unended
        kinds.setdefault(os.path.splitext(path)[1], []).append(lines)
        line = f"{path}: {counted_noun(lines, 'line')}, {columns[1]} words"
        heading = re.split(r"[,;\t]", first)
        if path.lower().endswith(_TABLES) and lines > 1 and has_heading(heading, [["0"]]):
            line += f"; the first line is a heading, {counted_noun(lines - 1, 'row')} follow"
        text.append(line)
    groups = [
        (f"All {len(some)} {ending} files", some) for ending, some in kinds.items() if len(some) > 1
    ]
    if len(kinds) > 1:
        groups.append((f"All {len(counts)} files", list(counts.values())))
    text += [f"{name} together: {counted_noun(sum(some), 'line')}." for name, some in groups]
    text += _extremes(counts)
    return "\n".join(text)


def _extremes(counts: dict[str, int]) -> list[str]:
    """The files with the most and the fewest lines, where they are unique."""
    most, fewest = max(counts.values(), default=0), min(counts.values(), default=0)
    if most == fewest:
        return ["All have as many lines."] if len(counts) > 1 else []
    parts = []
    for word, count in (("most", most), ("fewest", fewest)):
        paths = [path for path in counts if counts[path] == count]
        if len(paths) == 1:
            parts.append(f"{word} in {paths[0]}")
    return [f"The {', the '.join(parts)}."] if parts else []


def wrote(data: Data, _: Arguments, __: str = "") -> str:
    """A written file."""
    done = "made" if data.get("created") else "replaced"
    return f"{data.get('path')} was {done}, {counted_noun(int(data.get('lines', 0)), 'line')}."


def patched(data: Data, _: Arguments, __: str = "") -> str:
    """The changed lines."""
    changed = [
        line
        for line in str(data.get("diff", "")).splitlines()
        if line[:1] in "+-" and not line.startswith(("+++", "---")) and not line.endswith(" lines")
    ]
    return f"{data.get('path')} was changed:\n" + cut("\n".join(changed), 800)


def output(data: Data) -> str:
    """The output of a command."""
    return "\n".join(
        str(data[key]).rstrip() for key in ("stdout", "output", "stderr") if data.get(key)
    )


def ran(data: Data, _: Arguments, about: str = "") -> str:
    """Output and exit code of a command."""
    code = data.get("exit_code", 0)
    end = "" if code == 0 else f"\n\n(It failed with exit code {code}.)"
    if code == NOT_FOUND:
        end += " There is no such program here; another one may do, such as python3 for python."
    elif code == NOT_EXECUTABLE:
        end += " It can't be run by its name; run it with bash or python3 before it."
    return f"{excerpt(output(data), about) or '(It printed nothing.)'}{end}"


def worked_out(data: Data, arguments: Arguments, _: str = "") -> str:
    """The value of an expression, or the error."""
    if not data.get("exit_code"):
        return result(output(data))
    wrong = output(data).rsplit("\n", 1)[-1]
    return f"{arguments['expression']} can't be worked out: {wrong}"


def added(data: Data, arguments: Arguments, _: str = "") -> str:
    """An appended text."""
    done = f"The text was added at the end of {arguments['path']}."
    return ran(data, arguments) if data.get("exit_code") else done


def moved(data: Data, arguments: Arguments, _: str = "") -> str:
    """A moved or copied file."""
    done = f"{arguments['path']} is now at {arguments['to']}."
    return ran(data, arguments) if data.get("exit_code") else done


def folder_made(data: Data, arguments: Arguments, _: str = "") -> str:
    """A new folder."""
    done = f"The folder {arguments['path']} was made. It is empty."
    return ran(data, arguments) if data.get("exit_code") else done


def deleted(data: Data, arguments: Arguments, _: str = "") -> str:
    """A deleted file."""
    return ran(data, arguments) if data.get("exit_code") else f"{arguments['path']} was deleted."


def measured(data: Data, _: Arguments, __: str = "") -> str:
    """Load, memory, disk and processes of the machine."""
    system, cpu, memory = (data.get(key) or {} for key in ("system", "cpu", "memory"))
    load = ", ".join(str(value) for value in cpu.get("load_average") or ())
    lines = [
        f"CPU: {cpu.get('percent')} % used, {cpu.get('cores')} cores, load average {load}",
        f"Memory: {_share(memory, 'available_gb')}",
    ]
    lines += [f"Disk: {_share(disk, 'free_gb')}" for disk in (data.get("disk") or [])[:1]]
    lines.append(
        f"System: {system.get('os')}, {system.get('machine')}, "
        f"up for {system.get('uptime_hours')} hours"
    )
    busiest = (data.get("processes") or {}).get("busiest") or []
    if busiest:
        named = ", ".join(
            f"{process.get('name')} ({process.get('cpu_percent')} %)" for process in busiest[:3]
        )
        lines.append(f"Busiest: {named}")
    return "\n".join(lines)


def _share(device: Arguments, free: str) -> str:
    total, used = device.get("total_gb"), device.get("used_percent")
    return f"{device.get(free)} GB free of {total} GB, {used} % used"


def packed(data: Data, arguments: Arguments, _: str = "") -> str:
    """A new archive."""
    sources = ", ".join(map(str, arguments["sources"]))
    members = [m for m in data.get("members") or () if isinstance(m, dict) and "size" in m]
    inside = f" It holds {counted_noun(len(members), 'file')}." if members else ""
    return f"{arguments['archive']} was made from {sources}, {data.get('size')} bytes.{inside}"


def unpacked(data: Data, arguments: Arguments, _: str = "") -> str:
    """Files unpacked from an archive."""
    paths = ", ".join(map(str, (data.get("paths") or [])[:20]))
    files = counted_noun(int(data.get("files", 0)), "file")
    return f"{files} unpacked into {arguments['folder']}: {cut(paths, 600)}"

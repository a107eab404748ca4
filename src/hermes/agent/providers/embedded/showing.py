"""What tools answered, in plain words: the text first, what was counted after it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.counting import has_heading, number, sums
from hermes.agent.providers.embedded.shortening import cut, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Arguments = Mapping[str, Any]
    Data = dict[str, Any]

# How a shell says that it may not run a file, and that it knows no such command.
NOT_EXECUTABLE, NOT_FOUND = 126, 127
_TABLES = (".csv", ".tsv")
# As many names of one kind as are told.
_NAMES = 30


def read(data: Data, given: Arguments, about: str = "") -> str:
    """A text and its size; of a long one what the request may be about."""
    content = re.sub(r"(?m)^ *\d+\|", "", str(data.get("content", "")))
    lines = int(data.get("total_lines", 0))
    counted = f"{given['path']} has {number(lines, 'line')}"
    if len(content.splitlines()) >= lines:
        counted += f", {number(len(content.split()), 'word')}.{sums(content)}"
    return f"{excerpt(content, about)}\n\n({counted.rstrip('.')}.)"


def listed(data: Data, _: Arguments, about: str = "") -> str:
    """Names by their kinds, and how many of each."""
    tree = str(data.get("tree", ""))
    if not tree:
        return "The folder is empty: 0 files."
    kinds: dict[str, list[str]] = {}
    folders, sizes = [], []
    for path, size in _paths(tree):
        if path.endswith("/"):
            folders.append(path)
            continue
        kinds.setdefault(os.path.splitext(path)[1] or "without an ending", []).append(path)
        sizes.append((path, size))
    lines = [number(int(data.get("files", 0)), "file") + f", {number(len(folders), 'folder')}"]
    if folders:
        lines[0] += f": {_some(folders)}"
    for kind, paths in sorted(kinds.items(), key=lambda one: -len(one[1])):
        lines.append(f"{len(paths)} {kind}: {_some(paths)}")
    sizes.sort(key=lambda one: -_bytes(one[1]))
    if len(sizes) > 1:
        largest = ", ".join(f"{path} {size}" for path, size in sizes[:3])
        lines.append(f"(The largest: {largest})")
    return excerpt("\n".join(lines), about)


def _paths(tree: str) -> Iterator[tuple[str, str]]:
    """The paths in a drawn tree, and what it says about each."""
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
    """How much `1.5K` or `20B` is."""
    match = re.fullmatch(r"([\d.]+)\s*([BKMGT])\w*", size)
    return float(match[1]) * 1024 ** "BKMGT".index(match[2]) if match else 0.0


def found(data: Data, given: Arguments, about: str = "") -> str:
    """Lines that match, and how many there are."""
    matches = str(data.get("matches", ""))
    if not matches:
        return f"No file contains {given['text']!r}."
    if "words" in data:
        lead = f"{given['text']!r} as a whole is nowhere. Some of its words:"
        return f"{lead}\n{excerpt(matches, about)}"
    total, files = int(data.get("total_matches", 0)), int(data.get("files_matched", 0))
    times = "once" if total == 1 else f"{total} times"
    return f"{excerpt(matches, about)}\n\n(Found {times} in {number(files, 'file')}.)"


def counted(data: Data, given: Arguments, _: str = "") -> str:
    """Lines and words of each file, and together."""
    if data.get("exit_code"):
        return ran(data, given)
    rows = [row.split("\t", 3) for row in str(data.get("stdout", "")).splitlines()]
    told: list[str] = []
    kinds: dict[str, list[int]] = {}
    for row in rows:
        if len(row) < 4 or not row[1].strip().isdigit():
            continue
        path, lines, words, first = row[0], int(row[1]), row[2].strip(), row[3]
        kinds.setdefault(os.path.splitext(path)[1], []).append(lines)
        line = f"{path}: {number(lines, 'line')}, {words} words"
        heading = re.split(r"[,;\t]", first)
        if path.lower().endswith(_TABLES) and lines > 1 and has_heading(heading, [["0"]]):
            line += f"; the first line is a heading, {number(lines - 1, 'row')} follow"
        told.append(line)
    groups = [(f"All {ending} files", some) for ending, some in kinds.items() if len(some) > 1]
    if len(kinds) > 1:
        groups.append(("All of them", [lines for some in kinds.values() for lines in some]))
    told += [f"{what} together: {number(sum(some), 'line')}." for what, some in groups]
    return "\n".join(told)


def wrote(data: Data, _: Arguments, __: str = "") -> str:
    """That a file was made or replaced."""
    done = "made" if data.get("created") else "replaced"
    return f"{data.get('path')} was {done}, {number(int(data.get('lines', 0)), 'line')}."


def patched(data: Data, _: Arguments, __: str = "") -> str:
    """The lines that changed."""
    changed = [
        line
        for line in str(data.get("diff", "")).splitlines()
        if line[:1] in "+-" and not line.startswith(("+++", "---")) and not line.endswith(" lines")
    ]
    return f"{data.get('path')} was changed:\n" + cut("\n".join(changed), 800)


def output(data: Data) -> str:
    """All that a command printed."""
    return "\n".join(
        str(data[key]).rstrip() for key in ("stdout", "output", "stderr") if data.get(key)
    )


def ran(data: Data, _: Arguments, about: str = "") -> str:
    """What a command printed, and how it ended."""
    code = data.get("exit_code", 0)
    end = "" if code == 0 else f"\n\n(It failed with exit code {code}.)"
    if code == NOT_FOUND:
        end += " There is no such program here; another one may do, such as python3 for python."
    elif code == NOT_EXECUTABLE:
        end += " It can't be run by its name; run it with bash or python3 before it."
    return f"{excerpt(output(data), about) or '(It printed nothing.)'}{end}"


def worked_out(data: Data, given: Arguments, _: str = "") -> str:
    """A number, or what is wrong with the expression."""
    if not data.get("exit_code"):
        return output(data)
    wrong = output(data).rsplit("\n", 1)[-1]
    return f"{given['expression']} can't be worked out: {wrong}"


def added(data: Data, given: Arguments, _: str = "") -> str:
    """That text was added."""
    done = f"The text was added at the end of {given['path']}."
    return ran(data, given) if data.get("exit_code") else done


def moved(data: Data, given: Arguments, _: str = "") -> str:
    """Where a file is now."""
    done = f"{given['path']} is now at {given['to']}."
    return ran(data, given) if data.get("exit_code") else done


def deleted(data: Data, given: Arguments, _: str = "") -> str:
    """That a file is gone."""
    return ran(data, given) if data.get("exit_code") else f"{given['path']} was deleted."


def measured(data: Data, _: Arguments, __: str = "") -> str:
    """The machine: load, memory, disk, processes."""
    system, cpu, memory = (data.get(key) or {} for key in ("system", "cpu", "memory"))
    load = ", ".join(str(one) for one in cpu.get("load_average") or ())
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
        named = ", ".join(f"{one.get('name')} ({one.get('cpu_percent')} %)" for one in busiest[:3])
        lines.append(f"Busiest: {named}")
    return "\n".join(lines)


def _share(one: Arguments, free: str) -> str:
    return f"{one.get('used_percent')} % used, {one.get(free)} GB free of {one.get('total_gb')} GB"


def packed(data: Data, given: Arguments, _: str = "") -> str:
    """What is in the new archive."""
    sources = ", ".join(map(str, given["sources"]))
    held = [one for one in data.get("members") or () if isinstance(one, dict) and "size" in one]
    inside = f" It holds {number(len(held), 'file')}." if held else ""
    return f"{given['archive']} was made from {sources}, {data.get('size')} bytes.{inside}"


def unpacked(data: Data, given: Arguments, _: str = "") -> str:
    """What came out of an archive."""
    paths = ", ".join(map(str, (data.get("paths") or [])[:20]))
    files = number(int(data.get("files", 0)), "file")
    return f"{files} unpacked into {given['folder']}: {cut(paths, 600)}"

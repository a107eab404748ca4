"""What tools answered, in plain words: the text first, what was counted after it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.counting import has_heading, number, sums
from hermes.agent.providers.embedded.expressions import result
from hermes.agent.providers.embedded.shortening import cut, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Arguments = Mapping[str, Any]
    Data = dict[str, Any]

# How a shell says that it may not run a file, and that it knows no such command.
NOT_EXECUTABLE, NOT_FOUND = 126, 127
_TABLES = (".csv", ".tsv")


def read(data: Data, given: Arguments, about: str = "") -> str:
    """A text and its size; of a long one what the request may be about."""
    content = re.sub(r"(?m)^ *\d+\|", "", str(data.get("content", "")))
    lines = int(data.get("total_lines", 0))
    counted = f"{given['path']} has {number(lines, 'line')}"
    if len(content.splitlines()) >= lines:
        counted += f", {number(len(content.split()), 'word')}.{sums(content)}"
    return f"{excerpt(content, about)}\n\n({counted.rstrip('.')}.)"


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
    told: list[str] = []
    counts: dict[str, int] = {}
    kinds: dict[str, list[int]] = {}
    edges = data.get("edges") or {}
    rows = str(data.get("stdout", "")).splitlines()
    # After several files comes a row with their sum.
    for path, row in zip(dict.fromkeys(map(str, given["paths"])), rows, strict=False):
        columns = row.split(None, 2)
        if len(columns) < 2 or not all(map(str.isdigit, columns[:2])):
            continue
        first, unended = edges.get(path, ("", False))
        lines = counts[path] = int(columns[0]) + unended
        kinds.setdefault(os.path.splitext(path)[1], []).append(lines)
        line = f"{path}: {number(lines, 'line')}, {columns[1]} words"
        heading = re.split(r"[,;\t]", first)
        if path.lower().endswith(_TABLES) and lines > 1 and has_heading(heading, [["0"]]):
            line += f"; the first line is a heading, {number(lines - 1, 'row')} follow"
        told.append(line)
    groups = [
        (f"All {len(some)} {ending} files", some) for ending, some in kinds.items() if len(some) > 1
    ]
    if len(kinds) > 1:
        groups.append((f"All {len(counts)} files", list(counts.values())))
    told += [f"{what} together: {number(sum(some), 'line')}." for what, some in groups]
    told += _extremes(counts)
    return "\n".join(told)


def _extremes(counts: dict[str, int]) -> list[str]:
    """Which file has the most lines and which the fewest, where that can be said."""
    most, fewest = max(counts.values(), default=0), min(counts.values(), default=0)
    if most == fewest:
        return ["All have as many lines."] if len(counts) > 1 else []
    told = []
    for word, count in (("most", most), ("fewest", fewest)):
        paths = [path for path in counts if counts[path] == count]
        if len(paths) == 1:
            told.append(f"{word} in {paths[0]}")
    return [f"The {', the '.join(told)}."] if told else []


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
        return result(output(data))
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


def folder_made(data: Data, given: Arguments, _: str = "") -> str:
    """That there is a folder."""
    done = f"The folder {given['path']} was made. It is empty."
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
    return f"{one.get(free)} GB free of {one.get('total_gb')} GB, {one.get('used_percent')} % used"


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

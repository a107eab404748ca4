"""State of one task: the files it names, results, failures, work left; and its report."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from hermes.embedded.result_text import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from hermes.embedded.file_guard import FileChange, NamedFiles
    from hermes.embedded.tools import SmallTool


# Claims of a change: `was saved`, `I have moved`, `Created a.txt`; not `the changed file`.
_CLAIM = re.compile(
    r"(?:\b(?:i|we|it|is|are|was|were|has|have|had|been|and)(?:['’][a-z]+)?(?:\s+(?:have|been|now"
    r"|just|also|\w+ly))*\s+|(?:^|[.!?:;\n])\W*)"
    r"(created|made|wrote|written|saved|stored|added|appended|changed|fixed|corrected|replaced"
    r"|updated|edited|deleted|removed|renamed|moved|copied|packed|compressed|zipped|unpacked"
    r"|extracted)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:no|not|nothing|never|cannot|none)\b|n['’]t\b", re.IGNORECASE)
# Paths, lines of a command's output and characters of a line in the report.
_PATHS = 12
_LINES, _LINE_LENGTH = 12, 200


def report(
    answer: str,
    changed: Sequence[FileChange],
    *,
    failed: Sequence[str] = (),
    ran: Sequence[tuple[str, str, int]] = (),
    missing: Sequence[str] = (),
    facts: Sequence[str] = (),
    seen: str = "",
) -> str:
    """The text for the person.

    Args:
        answer: The model's reply.
        changed: The changed files.
        failed: Failed calls that no later call made up for, one line each.
        ran: Commands with output and exit code.
        missing: Named paths that do not exist and that no call mentioned.
        facts: Facts from the results that the answer lacks.
        seen: The results of tools that only read.
    """
    lines = []
    for what in ("made", "changed", "moved", "deleted"):
        paths = [change.label for change in changed if change.what == what]
        if paths:
            more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
            lines.append(f"{what.capitalize()}: {', '.join(paths[:_PATHS])}{more}")
    if missing:
        lines.append(f"There is no {' and no '.join(missing[:3])}.")
    if not changed and claims(answer, seen):
        lines.append("No file was changed.")
    quoted = [_quoted(answer, *command) for command in ran[-2:]]
    # Failures come first: the answer may claim success.
    failures = "\n".join(f"Not done: {line.removeprefix('Not done: ')}" for line in failed)
    parts = [failures, answer.strip(), *quoted, *facts, "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)


def claims(reply: str, seen: str = "") -> bool:
    """Whether a reply claims a change; words that were read in a file are no claim."""
    read = seen.casefold()
    return any(
        match[1].casefold() not in read and not _DENIAL.search(_before(reply, match.start(1)))
        for match in _CLAIM.finditer(reply)
    )


def _before(text: str, end: int) -> str:
    """The sentence up to `end`."""
    return re.split(r"[.!?;\n]\s", text[:end])[-1]


def _quoted(answer: str, command: str, printed: str, code: int) -> str:
    """A command's output and exit code, where the answer lacks them."""
    reply = " ".join(answer.split())
    ended = f"`{command}` ended with code {code}." if code and str(code) not in reply else ""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if not lines or all(" ".join(line.split()) in reply for line in lines):
        return ended
    more = f"\n[… {len(lines) - _LINES} more lines]" if len(lines) > _LINES else ""
    shown = "\n".join(cut(line, _LINE_LENGTH) for line in lines[:_LINES])
    return f"`{command}` printed:\n{shown}{more}" + (f"\n{ended}" if ended else "")


# A line of a search result.
_MATCH = re.compile(r"(?m)^(.+?):\d+: ")
# Length up to which equal texts may be a coincidence.
_SHORT = 20
# Failed calls before the model may reply.
_TRIES = 2


class Task:
    """State of one task; `before` is the text of earlier turns.

    `results` are the results by call. `failures` are failed calls that no later call made up for,
    `outputs` the output of commands. `again`: the last call failed, and another one must be tried;
    `barred` and `only` are the tool that is not, or alone, allowed then; `only_reply`: no more
    calls. `notices` are texts that the model got instead of a result, `rejected` the replies that
    were not accepted, `unproved` the numbers written to a file that are in no result.
    """

    def __init__(
        self,
        text: str,
        named: NamedFiles,
        files: list[str],
        tools: dict[str, SmallTool],
        *,
        before: str = "",
    ) -> None:
        self.text = text
        self.before = before
        self.named = named
        self.files = files
        self.tools = tools
        self.results: dict[str, str] = {}
        self.failures: dict[tuple[str, str], str] = {}
        self.refusals: list[str] = []
        self.outputs: list[tuple[str, str, int]] = []
        self.doubted: set[str] = set()
        self.barred = ""
        self.cut_off = 0
        self.repeated = 0
        self.copied = False
        self.corrected = False
        self.measured = ""
        self.notices: list[str] = []
        self.unproved: dict[str, list[str]] = {}
        self.rejected: list[str] = []
        self.again = False
        self.only = ""
        self.only_looking = False
        self.only_reply = False
        self._acted: list[str] = []
        self._failing = ""
        self._touched_text = ""
        self._reminded: list[str] = []
        self._tries = 0

    @property
    def prompt(self) -> str:
        """All text that the model has read, in this turn and before it."""
        return "\n".join([self.before, self.text, *self.results.values()])

    @property
    def known(self) -> str:
        """All text that a reply may quote: the prompt, the calls, and the files."""
        return "\n".join([self.prompt, *self._acted, *self.files])

    @property
    def seen(self) -> str:
        """The results of tools that only read."""
        return "\n".join(
            shown
            for key, shown in self.results.items()
            if (name := json.loads(key)["tool"]) != "terminal" and not self.tools[name].writes
        )

    def repeats_notice(self, text: str) -> bool:
        """Whether a text repeats a notice or a reminder to the model."""
        words = " ".join(text.split()).strip("\"' ")
        notices = [" ".join(notice.split()) for notice in (*self.notices, *self._reminded)]
        return len(words) > _SHORT and any(words in notice for notice in notices)

    # -- progress ---------------------------------------------------------------------------------

    def note_success(self, tool: SmallTool, arguments: dict[str, Any], shown: str) -> None:
        """Record a successful call; drop the failures that it makes up for."""
        self.again = self.only_looking = False
        self._failing = ""
        self._acted.append(json.dumps(arguments, ensure_ascii=False))
        self._touched_text += f"\n{self._acted[-1]}"
        if tool.name == "search_files":
            self._touched_text += f"\n{shown}"
            paths = {path for path in _MATCH.findall(shown) if path in self.files}
            if len(paths) == 1 and shown.endswith("in 1 file.)"):
                self.named.describe(paths.pop(), str(arguments["text"]))
        kind, path = _key(tool, arguments)
        if kind == "write":
            self.refusals.clear()
            self.failures.pop((kind, path), None)
        else:
            self.failures = {
                key: why
                for key, why in self.failures.items()
                if key[0] != kind or not self._replaces(key[1], path)
            }

    def _replaces(self, lost: str, path: str) -> bool:
        """Whether `path` makes up for a file that could not be read."""
        # A file that the person named is only replaced by one of the same name elsewhere.
        return not self.named.target(lost) or os.path.basename(lost) == os.path.basename(path)

    def failed(self, tool: SmallTool, arguments: dict[str, Any], why: str) -> None:
        """Record a failed call."""
        kind, path = _key(tool, arguments)
        self._touched_text += f"\n{json.dumps(arguments, ensure_ascii=False)}"
        first = why.strip().partition("\n")[0]
        self.failures[kind, path] = f"{tool.name} {path}".strip() + f": {first}"
        # The model would repeat the same call.
        self.barred = tool.name if tool.name in (self._failing, "calculate") else ""
        self._failing = tool.name
        # A file that was not found must not be created instead.
        self.only_looking = kind == "read"
        self.note_failed_try()

    def refused(self, why: str) -> None:
        """Record a call that was refused."""
        if why not in self.refusals:
            self.refusals.append(why)
        self.note_failed_try()

    def note_failed_try(self) -> None:
        """Count a failed call: another one is tried before a reply."""
        self._tries += 1
        self.again = self._tries <= _TRIES

    def has_read(self, path: str) -> bool:
        """Whether the model has read or written this file."""
        return any(
            action["tool"] in ("read_file", "write_file", "patch")
            and action["args"].get("path") == path
            for action in map(json.loads, self.results)
        )

    def instead(self) -> list[str]:
        """Files that were read or found instead of one that could not be read."""
        lost = [path for kind, path in self.failures if kind == "read"]
        paths: list[str] = []
        for key, shown in self.results.items() if lost else ():
            action = json.loads(key)
            if action["tool"] == "read_file":
                paths.append(str(action["args"]["path"]))
            elif action["tool"] == "search_files":
                paths += _MATCH.findall(shown)
        return [path for path in dict.fromkeys(paths) if path in self.files and path not in lost]

    # -- work left ------------------------------------------------------------------------------

    def lacking(self, reply: str, *, changed: bool, exists: Callable[[str], bool]) -> str:
        """Reminder of a part of the request that is not done; else "".

        Args:
            reply: The model's reply.
            changed: Whether any file was changed.
            exists: Whether a path exists.
        """
        untouched = self.unread()
        absent = self.missing(exists)
        reminders = []
        if untouched:
            reminders.append(f"Nothing was done with {', '.join(untouched[:5])} yet.")
        if absent:
            reminders.append(f"There is no {' and no '.join(absent[:3])} yet.")
        if not changed and not reminders and claims(reply, self.seen):
            reminders.append("No file was changed or made yet.")
        reminder = " ".join(reminders)
        times = self._reminded.count(reminder)
        # A model that did something else instead is reminded twice.
        astray = bool(absent) and (changed or bool(self.doubted) or bool(self.refusals))
        if not reminder or times > (1 if astray else 0):
            return ""
        # An existing file can be read; after a change it may be the changed one.
        self.only_looking = bool(untouched) and not changed
        self.again = bool(untouched) or times > 0
        self._reminded.append(reminder)
        return reminder

    def unread(self) -> list[str]:
        """Named files that no call mentioned."""
        return [path for path in self.named.spelled if not self._touched(path)]

    def missing(self, exists: Callable[[str], bool]) -> list[str]:
        """Named paths that do not exist and that no call mentioned."""
        return [path for path in self.named.paths if not self._touched(path) and not exists(path)]

    def _touched(self, path: str) -> bool:
        return os.path.basename(path.rstrip("/")).casefold() in self._touched_text.casefold()

    def advice(self, text: str) -> str:
        """Advice after a search without a match."""
        words = text.casefold()
        named = [path for path in self.files if words in os.path.basename(path).casefold()]
        if named or self.named.files:
            return f"Read {' or '.join((named or self.named.files)[:3])} to see what it says."
        return "Search for another word, a single one, or read a file."


def _key(tool: SmallTool, arguments: dict[str, Any]) -> tuple[str, str]:
    """Key of a failure: a later success with the same key removes it."""
    if tool.writes:
        return "write", str(arguments[next(iter(tool.writes))])
    if tool.name in ("read_file", "count_lines"):
        return "read", ", ".join(map(str, arguments.get("paths") or [arguments.get("path", "")]))
    return tool.real, ""

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

    from hermes.embedded.file_guard import Changed, Named
    from hermes.embedded.tools import SmallTool


# That something was done: `was saved`, `I have moved`, `Created a.txt`; not `the changed file`.
_CLAIM = re.compile(
    r"(?:\b(?:i|we|it|is|are|was|were|has|have|had|been|and)(?:['’][a-z]+)?(?:\s+(?:have|been|now"
    r"|just|also|\w+ly))*\s+|(?:^|[.!?:;\n])\W*)"
    r"(created|made|wrote|written|saved|stored|added|appended|changed|fixed|corrected|replaced"
    r"|updated|edited|deleted|removed|renamed|moved|copied|packed|compressed|zipped|unpacked"
    r"|extracted)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:no|not|nothing|never|cannot|none)\b|n['’]t\b", re.IGNORECASE)
_SHOWN = 12
# As much of what a command printed as is repeated.
_LINES, _WIDE = 12, 200


def report(
    answer: str,
    changed: Sequence[Changed],
    *,
    failed: Sequence[str] = (),
    ran: Sequence[tuple[str, str, int]] = (),
    missing: Sequence[str] = (),
    facts: Sequence[str] = (),
    seen: str = "",
) -> str:
    """The text for the person.

    Args:
        answer: What the model said.
        changed: What became of which file.
        failed: Calls that did not work and that nothing made up for, in one line each.
        ran: Commands, what each printed and the code it ended with.
        missing: Paths that were named and are not there, though no call was about them.
        facts: What tools said that the answer does not say, or not as it is.
        seen: What tools that only look said.
    """
    lines = []
    for what in ("made", "changed", "moved", "deleted"):
        paths = [one.told for one in changed if one.what == what]
        if paths:
            more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
            lines.append(f"{what.capitalize()}: {', '.join(paths[:_SHOWN])}{more}")
    if missing:
        lines.append(f"There is no {' and no '.join(missing[:3])}.")
    if not changed and claims(answer, seen):
        lines.append("No file was changed.")
    quoted = [_quoted(answer, *one) for one in ran[-2:]]
    # What did not work comes first: the answer may speak as if it had.
    trouble = "\n".join(f"Not done: {line.removeprefix('Not done: ')}" for line in failed)
    parts = [trouble, answer.strip(), *quoted, *facts, "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)


def claims(reply: str, seen: str = "") -> bool:
    """Whether a reply says that something was changed; words that were read are no claim."""
    read = seen.casefold()
    return any(
        match[1].casefold() not in read and not _DENIAL.search(_before(reply, match.start(1)))
        for match in _CLAIM.finditer(reply)
    )


def _before(text: str, end: int) -> str:
    """What a sentence says up to there."""
    return re.split(r"[.!?;\n]\s", text[:end])[-1]


def _quoted(answer: str, command: str, printed: str, code: int) -> str:
    """What a command printed and how it ended, as far as the answer does not say it."""
    said = " ".join(answer.split())
    ended = f"`{command}` ended with code {code}." if code and str(code) not in said else ""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if not lines or all(" ".join(line.split()) in said for line in lines):
        return ended
    more = f"\n[… {len(lines) - _LINES} more lines]" if len(lines) > _LINES else ""
    shown = "\n".join(cut(line, _WIDE) for line in lines[:_LINES])
    return f"`{command}` printed:\n{shown}{more}" + (f"\n{ended}" if ended else "")


# A line of a file that a search found.
_MATCH = re.compile(r"(?m)^(.+?):\d+: ")
# A shorter text may be the same by chance.
_SHORT = 20
# As often a call may come to nothing before the model may say so.
_TRIES = 2


class Task:
    """What a turn knows of its request; `before` is what was said in earlier turns.

    `results` are what the calls gave, by call. `failures` are what did not work and nothing made
    up for, `outputs` what commands printed. `again` says that the last call came to nothing and
    another has to be tried, `barred` which tool not, `only` which one, `only_reply` that nothing
    more may be.
    `notices` are what the model was told instead of a result, `unsaid` the replies that were not
    taken, `unproved` the numbers that were written to a file and are in no result.
    """

    __slots__ = (
        "_acted", "_failing", "_given", "_reminded", "_tries", "again", "barred", "before",
        "copied", "corrected", "cut_off", "doubted", "failures", "files", "measured", "named",
        "notices", "only", "only_looking", "only_reply", "outputs", "refusals", "repeated",
        "results", "text", "tools", "unproved", "unsaid",
    )  # fmt: skip

    def __init__(
        self,
        text: str,
        named: Named,
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
        self.unsaid: list[str] = []
        self.again = False
        self.only = ""
        self.only_looking = False
        self.only_reply = False
        self._acted: list[str] = []
        self._failing = ""
        self._given = ""
        self._reminded: list[str] = []
        self._tries = 0

    @property
    def told(self) -> str:
        """All that the model was told, in this turn and before it."""
        return "\n".join([self.before, self.text, *self.results.values()])

    @property
    def known(self) -> str:
        """All that a reply may say: what the model was told, what it did, and what there is."""
        return "\n".join([self.told, *self._acted, *self.files])

    @property
    def seen(self) -> str:
        """What it was told by tools that only look."""
        return "\n".join(
            shown
            for key, shown in self.results.items()
            if (name := json.loads(key)["tool"]) != "terminal" and not self.tools[name].writes
        )

    def parrots(self, text: str) -> bool:
        """Whether a text is what the model was told instead of a result."""
        words = " ".join(text.split()).strip("\"' ")
        told = [" ".join(one.split()) for one in (*self.notices, *self._reminded)]
        return len(words) > _SHORT and any(words in one for one in told)

    # -- what was done --------------------------------------------------------------------------

    def did(self, tool: SmallTool, given: dict[str, Any], shown: str) -> None:
        """A call worked: what it makes up for is forgotten."""
        self.again = self.only_looking = False
        self._failing = ""
        self._acted.append(json.dumps(given, ensure_ascii=False))
        self._given += f"\n{self._acted[-1]}"
        if tool.name == "search_files":
            self._given += f"\n{shown}"
            found = {path for path in _MATCH.findall(shown) if path in self.files}
            if len(found) == 1 and shown.endswith("in 1 file.)"):
                self.named.describe(found.pop(), str(given["text"]))
        kind, path = _key(tool, given)
        if kind == "write":
            self.refusals.clear()
            self.failures.pop((kind, path), None)
        else:
            self.failures = {
                key: why
                for key, why in self.failures.items()
                if key[0] != kind or not self._made_up(key[1], path)
            }

    def _made_up(self, lost: str, path: str) -> bool:
        """Whether another file than the one that could not be read will do."""
        # What the person named is not what the model found instead, unless in another folder.
        return not self.named.target(lost) or os.path.basename(lost) == os.path.basename(path)

    def failed(self, tool: SmallTool, given: dict[str, Any], why: str) -> None:
        """A call did not work."""
        kind, path = _key(tool, given)
        self._given += f"\n{json.dumps(given, ensure_ascii=False)}"
        first = why.strip().partition("\n")[0]
        self.failures[kind, path] = f"{tool.name} {path}".strip() + f": {first}"
        # The same tool would be used in the same way.
        self.barred = tool.name if tool.name in (self._failing, "calculate") else ""
        self._failing = tool.name
        # Looking for something in vain is no reason to make it.
        self.only_looking = kind == "read"
        self.in_vain()

    def refused(self, why: str) -> None:
        """A call was not made, since it would have changed what nobody named."""
        if why not in self.refusals:
            self.refusals.append(why)
        self.in_vain()

    def in_vain(self) -> None:
        """The last call came to nothing: something else is tried before anything is said."""
        self._tries += 1
        self.again = self._tries <= _TRIES

    def has_read(self, path: str) -> bool:
        """Whether the model has seen or made the text of this file."""
        return any(
            action["tool"] in ("read_file", "write_file", "patch")
            and action["args"].get("path") == path
            for action in map(json.loads, self.results)
        )

    def instead(self) -> list[str]:
        """The files that were read or found in the place of one that could not be read."""
        lost = [path for kind, path in self.failures if kind == "read"]
        found: list[str] = []
        for key, shown in self.results.items() if lost else ():
            action = json.loads(key)
            if action["tool"] == "read_file":
                found.append(str(action["args"]["path"]))
            elif action["tool"] == "search_files":
                found += _MATCH.findall(shown)
        return [path for path in dict.fromkeys(found) if path in self.files and path not in lost]

    # -- what is still to be done -----------------------------------------------------------------

    def lacking(self, reply: str, *, changed: bool, there: Callable[[str], bool]) -> str:
        """What the request names and nothing was done about.

        Args:
            reply: What the model wants to say.
            changed: Whether any file was changed.
            there: Tells whether a path exists.
        """
        untouched = self.unread()
        absent = self.missing(there)
        told = []
        if untouched:
            told.append(f"Nothing was done with {', '.join(untouched[:5])} yet.")
        if absent:
            told.append(f"There is no {' and no '.join(absent[:3])} yet.")
        if not changed and not told and claims(reply, self.seen):
            told.append("No file was changed or made yet.")
        reminder = " ".join(told)
        times = self._reminded.count(reminder)
        # A model that did or tried something else instead is not let off at the first reminder.
        astray = bool(absent) and (changed or bool(self.doubted) or bool(self.refusals))
        if not reminder or times > (1 if astray else 0):
            return ""
        # A file that is there can be looked at; where things are changed, it may be one of them.
        self.only_looking = bool(untouched) and not changed
        self.again = bool(untouched) or times > 0
        self._reminded.append(reminder)
        return reminder

    def unread(self) -> list[str]:
        """The files that the request names and no call was about."""
        return [path for path in self.named.spelled if not self._touched(path)]

    def missing(self, there: Callable[[str], bool]) -> list[str]:
        """What the request names, is not there, and no call was about."""
        return [path for path in self.named.paths if not self._touched(path) and not there(path)]

    def _touched(self, path: str) -> bool:
        return os.path.basename(path.rstrip("/")).casefold() in self._given.casefold()

    def advice(self, text: str) -> str:
        """What to try when a search found nothing."""
        words = text.casefold()
        named = [path for path in self.files if words in os.path.basename(path).casefold()]
        if named or self.named.files:
            return f"Read {' or '.join((named or self.named.files)[:3])} to see what it says."
        return "Search for another word, a single one, or read a file."


def _key(tool: SmallTool, given: dict[str, Any]) -> tuple[str, str]:
    """What a failure is about: one that is made up for is forgotten."""
    if tool.writes:
        return "write", str(given[next(iter(tool.writes))])
    if tool.name in ("read_file", "count_lines"):
        return "read", ", ".join(map(str, given.get("paths") or [given.get("path", "")]))
    return tool.real, ""

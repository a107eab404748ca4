"""A request being carried out: what it names, what there is, what was done and what was not."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from hermes.agent.providers.embedded.doubting import numbers
from hermes.agent.providers.embedded.reporting import claims

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hermes.agent.providers.embedded.naming import Named
    from hermes.agent.providers.embedded.toolbox import SmallTool

_PACKED = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")
# With more files than this the model spells paths itself.
_SPELLED = 200
# What a request that names files is not about before these were looked at: a number that is worked
# out is made up, and so is one that belongs to the machine.
_AFTERWARDS = ("calculate", "system_info")
# As often a call may come to nothing before the model may say so.
_TRIES = 2


class Task:
    """What a turn knows of its request.

    `results` are what the calls gave, by call. `failures` are what did not work and nothing made
    up for, `outputs` what commands printed. `again` says that the last call came to nothing and
    another has to be tried, `barred` which tool not, `only_reply` that nothing more may be.
    """

    __slots__ = (
        "_failing", "_given", "_reminded", "_tries", "again", "barred", "copied", "cut_off",
        "doubted", "failures", "files", "named", "only_looking", "only_reply", "outputs",
        "refusals", "repeated", "results", "text", "tools",
    )  # fmt: skip

    def __init__(
        self, text: str, named: Named, files: list[str], tools: dict[str, SmallTool]
    ) -> None:
        self.text = text
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
        self.again = False
        self.only_looking = False
        self.only_reply = False
        self._failing = ""
        self._given = ""
        self._reminded: list[str] = []
        self._tries = 0

    @property
    def told(self) -> str:
        """All that the model was told in this turn."""
        return "\n".join([self.text, *self.results.values()])

    # -- what was done --------------------------------------------------------------------------

    def did(self, tool: SmallTool, given: dict[str, Any], shown: str) -> None:
        """A call worked: what it makes up for is forgotten."""
        self.again = self.only_looking = False
        self._failing = ""
        self._given += f"\n{json.dumps(given, ensure_ascii=False)}"
        if tool.name == "search_files":
            self._given += f"\n{shown}"
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
        self.failures[kind, path] = f"{tool.name} {path}".strip() + f": {why}"
        # The same tool would be used in the same way.
        self.barred = tool.name if tool.name in (self._failing, "calculate") else ""
        self._failing = tool.name
        # Looking for something in vain is no reason to make it.
        self.only_looking = kind == "read"
        self.in_vain()

    def refused(self, why: str) -> None:
        """A call was not made, since it would have changed what nobody named."""
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
        if not changed and not told and claims(reply):
            told.append("No file was changed or made yet.")
        reminder = " ".join(told)
        times = self._reminded.count(reminder)
        # A model that did or tried something else instead is not let off at the first reminder.
        astray = bool(absent) and (changed or bool(self.doubted) or bool(self.refusals))
        if not reminder or times > (1 if astray else 0):
            return ""
        # A file that is there can be looked at in any case.
        self.only_looking = bool(untouched)
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

    # -- what may be done -------------------------------------------------------------------------

    def signatures(self) -> dict[str, dict[str, Any]]:
        """The tools with what may stand for each argument: paths there are, or that were named."""
        known = list(dict.fromkeys([*self.files, *self.named.paths]))
        few = 0 < len(known) <= _SPELLED
        existing: Any = known if few else "string"
        meant = {*self.named.files, *self.named.paths}
        edited: Any = [path for path in self.files if path in meant] or existing
        counted = self.named.spelled or known
        added = list(dict.fromkeys([*self.named.files, *self.named.targets]))
        packed = [path for path in self.named.paths if path.lower().endswith(_PACKED)]
        archives = [path for path in known if path.lower().endswith(_PACKED)]
        folders = sorted({path.rpartition("/")[0] for path in self.files if "/" in path})
        listed = [".", *folders, *(path for path in self.named.paths if path not in self.files)]
        sources: Any = [*folders, *known] if few else "string"
        special = {
            ("directory_list", "path"): listed if few else "string",
            ("read_file", "path"): existing,
            ("count_lines", "paths"): tuple(counted) if few else "array",
            ("patch", "path"): edited,
            ("delete_file", "path"): edited,
            ("write_file", "path"): self.named.targets or "string",
            ("append_file", "path"): added or existing,
            ("calculate", "expression"): "expression",
            ("file_compress", "sources"): tuple(sources) if few else "array",
            ("file_compress", "archive"): packed or "string",
            ("file_extract", "archive"): archives or "string",
            ("copy_file", "path"): sources,
            ("move_file", "path"): sources,
        }
        return {
            tool.name: {
                argument: special.get((tool.name, argument), "string")
                for argument in tool.arguments
            }
            for tool in self.tools.values()
            if not (self.only_looking and tool.writes)
            and tool.name != self.barred
            and (tool.name != "file_extract" or archives)
            and not (tool.name in _AFTERWARDS and self.unread())
            and (tool.name != "calculate" or self._has_numbers())
        }

    def _has_numbers(self) -> bool:
        """Whether there is anything to work with at the beginning."""
        text = self.text
        for path in self.named.paths:
            text = text.replace(path, "")
        return bool(self.results or self.doubted or numbers(text))


def _key(tool: SmallTool, given: dict[str, Any]) -> tuple[str, str]:
    """What a failure is about: one that is made up for is forgotten."""
    if tool.writes:
        return "write", str(given[next(iter(tool.writes))])
    if tool.name in ("read_file", "count_lines"):
        return "read", ", ".join(map(str, given.get("paths") or [given.get("path", "")]))
    return tool.real, ""

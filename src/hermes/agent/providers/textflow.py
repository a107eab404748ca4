"""Text as it streams: reasoning in tags told apart, calls spelled as text held back.

What a person sees while an answer comes must not begin with the markup of a call that is only
recognised at its end. So whatever may become one is kept until the answer is complete; the rest
goes on at once.
"""

from __future__ import annotations

import re

_THINK = re.compile(r"\s*<(think|thinking|thought)>\n?")
_TAGS = ("<think>", "<thinking>", "<thought>")
_END = re.compile(r"</(?:think|thinking|thought)>\s*")
_LONGEST_END = len("</thinking>")
# A text without any of these spells no call; most never need the module that looks for them.
_SIGNS = re.compile(r"[<\[{]|f(?:u(?:n(?:c(?:t(?:o(?:o(?:l(?:s)?)?)?)?)?)?)?)?$|functools")

Parts = list[tuple[str, str]]


class TextFlow:
    """Takes pieces of text; gives what can be shown, as pairs of kind and text."""

    def __init__(self, names: frozenset[str], *, tags: bool, calls: bool) -> None:
        """A flow for one answer; `tags` looks for reasoning, `calls` for calls of these names."""
        self._names = names
        self._calls = calls
        self._state = "begin" if tags else "text"
        self._tags = tags
        self._tagged = False
        self._waiting = ""
        self._said: list[str] = []
        self._thought: list[str] = []
        self._shown = 0
        self.heard = False

    def feed(self, text: str) -> Parts:
        """What can be shown now that this has come."""
        self.heard = True
        self._waiting += text
        found: Parts = []
        if self._state == "begin":
            self._begin()
        if self._state == "thinking":
            found += self._think()
        if self._state == "text":
            found += self._say()
        return found

    def end(self, *, structured: bool) -> tuple[str, list[tuple[str, str]], str, Parts]:
        """The text, the calls in it, the reasoning, and what was held back of what is shown.

        `structured` says that calls were asked for properly, too: those spelled are the same.
        """
        rest: Parts = []
        if self._state == "thinking":
            self._thought.append(self._waiting)
            rest.append(("reasoning", self._waiting))
        else:
            self._said.append(self._waiting)
        self._waiting = ""
        text = "".join(self._said)
        text, late = self._late_reasoning(text)
        thought = "".join(self._thought) + late
        calls: list[tuple[str, str]] = []
        if self._calls and _SIGNS.search(text):
            from hermes.agent.providers.spelled import find_calls

            found = find_calls(text, self._names)
            text, calls = found.rest, [] if structured else found.calls
        if not late and (unshown := text[self._shown :]):
            rest.append(("text", unshown))
        return text, calls, thought, [part for part in rest if part[1]]

    def _begin(self) -> None:
        """Find out whether the answer begins with reasoning."""
        start = self._waiting.lstrip()
        if opening := _THINK.match(self._waiting):
            self._waiting = self._waiting[opening.end() :]
            self._state = "thinking"
            self._tagged = True
        elif start and not any(tag.startswith(start[: len(tag)]) for tag in _TAGS):
            self._state = "text"

    def _think(self) -> Parts:
        if not self._thought:
            self._waiting = self._waiting.lstrip("\n")
        if end := _END.search(self._waiting):
            thought, self._waiting = self._waiting[: end.start()], self._waiting[end.end() :]
            self._state = "text"
        else:
            safe = max(len(self._waiting) - _LONGEST_END, 0)
            thought, self._waiting = self._waiting[:safe], self._waiting[safe:]
        if not thought:
            return []
        self._thought.append(thought)
        return [("reasoning", thought)]

    def _say(self) -> Parts:
        if self._tagged and not self._shown:
            self._waiting = self._waiting.lstrip()
        if not self._calls:
            text, self._waiting = self._waiting, ""
        else:
            if not self._shown and self._waiting.lstrip()[:1] in ("", "{", "["):
                # Perhaps a call without marks; that shows at the end only.
                return []
            at = _first_mark(self._waiting)
            text, self._waiting = self._waiting[:at], self._waiting[at:]
        self._said.append(text)
        self._shown += len(text)
        return [("text", text)] if text else []

    def _late_reasoning(self, text: str) -> tuple[str, str]:
        """Text and reasoning of an answer whose opening tag was part of the prompt."""
        if not self._tags or self._tagged:
            return text, ""
        end = _END.search(text)
        if end is None or "`" in text[: end.start()] or "<think" in text[: end.start()]:
            return text, ""
        return text[end.end() :], text[: end.start()]


def _first_mark(text: str) -> int:
    """Where a call may begin; the length of the text when nowhere."""
    if not _SIGNS.search(text):
        return len(text)
    from hermes.agent.providers.spelled import first_mark

    return first_mark(text)

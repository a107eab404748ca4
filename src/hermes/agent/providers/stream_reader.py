"""Stream reader: collects a streamed answer; separates reasoning and tool calls from the text."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from hermes.core.messages import Message, ToolUse, Usage
from hermes.core.model_protocol import CallDelta, Done, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hermes.agent.providers.model_profiles import Profile
    from hermes.core.model_protocol import Event, Finish


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
            from hermes.agent.providers.text_calls import find_calls

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
    from hermes.agent.providers.text_calls import first_mark

    return first_mark(text)


_decode = msgspec.json.Decoder().decode

# What some models put around the name of a tool, as their templates spell calls.
_ADDED = re.compile(r"^functions?\.|:\d+$")
_FINISHES: dict[str, Finish] = {
    "tool_calls": "calls",
    "function_call": "calls",
    "tool_use": "calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filter",
    "content-filter": "filter",
    "safety": "filter",
    "refusal": "filter",
    "prohibited_content": "filter",
}


class _Draft:
    __slots__ = ("extra", "id", "key", "name", "parts", "size")

    def __init__(self, key: object, call_id: str) -> None:
        self.key = key
        self.id = call_id
        self.name = ""
        self.parts: list[str] = []
        self.size = 0
        self.extra: Any = None


class Answer:
    """Collects one answer."""

    def __init__(self, profile: Profile, tools: Sequence[dict[str, Any]]) -> None:
        self._profile = profile
        self.names = frozenset(_names(tools))
        self._flow = TextFlow(
            self.names, tags=profile.text_calls, calls=profile.text_calls and bool(tools)
        )
        self._reasoning: list[str] = []
        self._drafts: list[_Draft] = []
        # Why the model stopped, in the server's word; empty as long as it has not said.
        self.stopped = ""
        self.usage = Usage()
        self.model = ""
        self.extra: dict[str, Any] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing was said yet."""
        return not (self._flow.heard or self._reasoning or self._drafts)

    def say(self, text: str) -> list[Event]:
        """More of the text."""
        return [_delta(kind, part) for kind, part in self._flow.feed(text)]

    def think(self, text: str) -> list[Event]:
        """More of the reasoning."""
        self._reasoning.append(text)
        return [ReasoningDelta(text)]

    def call(
        self, key: object, *, call_id: str = "", name: str = "", arguments: str = ""
    ) -> list[Event]:
        """More of a call; `key` is its place in the answer, None when the server does not say."""
        draft = self._draft(key, call_id, name)
        if name and name != draft.name:
            # Some servers repeat the name with every piece, some send it in pieces.
            draft.name += name
        if arguments:
            draft.parts.append(arguments)
            draft.size += len(arguments)
        return [CallDelta(self._drafts.index(draft), draft.name, draft.size)]

    def keep_with_call(self, key: object, extra: Any) -> None:
        """Keep what the server wants to see again together with a call."""
        draft = next((d for d in reversed(self._drafts) if d.key == key), None)
        if draft is not None:
            draft.extra = extra

    def _draft(self, key: object, call_id: str, name: str) -> _Draft:
        same = [draft for draft in self._drafts if draft.key == key]
        found = same[-1] if same else None
        if found is None and key is None and self._drafts and not name:
            found = self._drafts[-1]
        if found is not None and name and call_id and found.id and call_id != found.id:
            # Another call under the same index, as some servers number all of them 0.
            found = None
        if found is not None and key is None and name and found.name:
            found = None
        if found is None:
            found = _Draft(key, str(call_id))
            self._drafts.append(found)
        found.id = found.id or str(call_id)
        return found

    def done(self, *, provider: str, model: str) -> tuple[list[Event], Done]:
        """What was held back of the text, and the whole answer."""
        finish = self._finish()
        text, spelled, thought, held = self._flow.end(structured=bool(self._drafts))
        calls, extras = self._calls(cut=finish == "length")
        if not calls:
            calls = [ToolUse(_fresh(), name, arguments) for name, arguments in spelled]
        extra = dict(self.extra)
        if any(item is not None for item in extras):
            extra["calls"] = extras
        reasoning = "".join(self._reasoning) + thought
        message = Message(
            "assistant",
            text,
            calls=tuple(calls),
            reasoning=reasoning,
            extra=extra,
        )
        if calls and finish != "length":
            finish = "calls"
        elif finish == "calls" and not calls:
            finish = "stop"
        events = [_delta(kind, part) for kind, part in held]
        done = Done(message, finish, self.usage, self.model or model, provider, model)
        return events, done

    def _finish(self) -> Finish:
        return _FINISHES.get(str(self.stopped).lower(), "stop")

    def _calls(self, *, cut: bool) -> tuple[list[ToolUse], list[Any]]:
        calls: list[ToolUse] = []
        extras: list[Any] = []
        for number, draft in enumerate(self._drafts, 1):
            raw = "".join(draft.parts)
            if not raw.strip():
                # A call that was cut before its arguments must not run with none.
                raw = "{" if cut and number == len(self._drafts) else "{}"
            pieces = _pieces(raw)
            names = _unglued(draft.name.strip(), self.names, len(pieces))
            if len(names) != len(pieces):
                # Several objects that no name is said for.
                names, pieces = names[:1], [raw]
            for place, (name, piece) in enumerate(zip(names, pieces, strict=True)):
                own = draft.id if draft.id and not place else _fresh()
                use = ToolUse(own, name, piece)
                if not _repeats(use, calls):
                    calls.append(use)
                    extras.append(draft.extra if not place else None)
        return calls, extras


def _pieces(raw: str) -> list[str]:
    """The objects of arguments that have several glued together; equal neighbours once."""
    try:
        _decode(raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        from hermes.core.arguments.json_repair import TextError, parse_each
        from hermes.core.arguments.json_values import same
    else:
        return [raw]
    pieces: list[tuple[Any, str]] = []
    try:
        for value, piece in parse_each(raw):
            if not isinstance(value, dict):
                return [raw]
            if not pieces or not same(value, pieces[-1][0]):
                pieces.append((value, piece))
    except (TextError, RecursionError):
        return [raw]
    return [piece for _, piece in pieces] or [raw]


def _repeats(use: ToolUse, calls: list[ToolUse]) -> bool:
    """Whether a server sent the same call, with the same id, a second time."""
    return any(use.id == other.id and use == other for other in calls)


def _unglued(name: str, known: frozenset[str], pieces: int) -> list[str]:
    """The names in a name that is several glued together; `pieces` times it when it is one."""
    if name in known or not name:
        return [name] * pieces
    bare = _ADDED.sub("", name)
    if bare in known:
        return [bare] * pieces
    found = _split(name, known)
    if not found:
        return [name] * pieces
    if len(set(found)) == 1:
        return found[:1] * pieces
    return found if len(found) == pieces else [name] * pieces


def _split(name: str, known: frozenset[str]) -> list[str]:
    """The known names that a text consists of, if it does; the longest that fits first."""
    ends: dict[int, list[str]] = {0: []}
    for at in range(len(name)):
        if at in ends:
            for other in known:
                end = at + len(other)
                if other and name.startswith(other, at) and end not in ends:
                    ends[end] = [*ends[at], other]
    return ends.get(len(name), [])


def _names(tools: Sequence[dict[str, Any]]) -> list[str]:
    return [tool["function"]["name"] for tool in tools if "function" in tool]


def _delta(kind: str, text: str) -> Event:
    return ReasoningDelta(text) if kind == "reasoning" else TextDelta(text)


def _fresh() -> str:
    return f"call_{os.urandom(6).hex()}"


def text_of(content: Any) -> str:
    """The text of a content that is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p.get("text") or "" for p in content if isinstance(p, dict))
    return ""


def arguments_text(value: Any) -> str:
    """Arguments as text, from servers that send them as an object, too."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def count(value: Any) -> int:
    """A number of tokens, whatever the server has in its place."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0

"""Stream reader: collects a streamed answer; separates reasoning and tool calls from the text."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from hermes.core.model_protocol import (
    CallDelta,
    Done,
    Message,
    ReasoningDelta,
    TextDelta,
    ToolUse,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hermes.agent.providers.model_profiles import Profile
    from hermes.core.model_protocol import Event, Finish


_THINK = re.compile(r"\s*<(think|thinking|thought)>\n?")
_TAGS = ("<think>", "<thinking>", "<thought>")
_END = re.compile(r"</(?:think|thinking|thought)>\s*")
_MAX_END = len("</thinking>")
# A text without any of these contains no call; the parser for calls is then not imported.
_CALL_MARKS = re.compile(r"[<\[{]|f(?:u(?:n(?:c(?:t(?:o(?:o(?:l(?:s)?)?)?)?)?)?)?)?$|functools")

Parts = list[tuple[str, str]]


class TextSplitter:
    """Splits streamed text into reasoning and text, as pairs of kind and piece."""

    def __init__(self, names: frozenset[str], *, tags: bool, calls: bool) -> None:
        """For one answer; `tags` looks for reasoning tags, `calls` for calls of these tools."""
        self._names = names
        self._calls = calls
        self._state = "begin" if tags else "text"
        self._tags = tags
        self._tagged = False
        self._waiting = ""
        self._text: list[str] = []
        self._reasoning_parts: list[str] = []
        self._shown = 0
        self.started = False

    def feed(self, text: str) -> Parts:
        """Add a piece; the parts that can be shown now."""
        self.started = True
        self._waiting += text
        parts: Parts = []
        if self._state == "begin":
            self._detect_reasoning()
        if self._state == "thinking":
            parts += self._take_reasoning()
        if self._state == "text":
            parts += self._take_text()
        return parts

    def end(self, *, structured: bool) -> tuple[str, list[tuple[str, str]], str, Parts]:
        """The whole text, the calls in it, the reasoning, and the parts not shown yet.

        `structured`: the answer has proper calls too, so calls in the text are duplicates.
        """
        rest: Parts = []
        if self._state == "thinking":
            self._reasoning_parts.append(self._waiting)
            rest.append(("reasoning", self._waiting))
        else:
            self._text.append(self._waiting)
        self._waiting = ""
        text = "".join(self._text)
        text, late = self._late_reasoning(text)
        thought = "".join(self._reasoning_parts) + late
        calls: list[tuple[str, str]] = []
        if self._calls and _CALL_MARKS.search(text):
            from hermes.agent.providers.text_calls import find_calls

            match = find_calls(text, self._names)
            text, calls = match.rest, [] if structured else match.calls
        if not late and (unshown := text[self._shown :]):
            rest.append(("text", unshown))
        return text, calls, thought, [part for part in rest if part[1]]

    def _detect_reasoning(self) -> None:
        """Decide whether the answer begins with reasoning."""
        start = self._waiting.lstrip()
        if opening := _THINK.match(self._waiting):
            self._waiting = self._waiting[opening.end() :]
            self._state = "thinking"
            self._tagged = True
        elif start and not any(tag.startswith(start[: len(tag)]) for tag in _TAGS):
            self._state = "text"

    def _take_reasoning(self) -> Parts:
        if not self._reasoning_parts:
            self._waiting = self._waiting.lstrip("\n")
        if end := _END.search(self._waiting):
            thought, self._waiting = self._waiting[: end.start()], self._waiting[end.end() :]
            self._state = "text"
        else:
            safe = max(len(self._waiting) - _MAX_END, 0)
            thought, self._waiting = self._waiting[:safe], self._waiting[safe:]
        if not thought:
            return []
        self._reasoning_parts.append(thought)
        return [("reasoning", thought)]

    def _take_text(self) -> Parts:
        if self._tagged and not self._shown:
            self._waiting = self._waiting.lstrip()
        if not self._calls:
            text, self._waiting = self._waiting, ""
        else:
            if not self._shown and self._waiting.lstrip()[:1] in ("", "{", "["):
                # Perhaps a call without marks; decided at the end.
                return []
            at = _first_mark(self._waiting)
            text, self._waiting = self._waiting[:at], self._waiting[at:]
        self._text.append(text)
        self._shown += len(text)
        return [("text", text)] if text else []

    def _late_reasoning(self, text: str) -> tuple[str, str]:
        """Text and reasoning of an answer whose opening tag stood in the prompt."""
        if not self._tags or self._tagged:
            return text, ""
        end = _END.search(text)
        if end is None or "`" in text[: end.start()] or "<think" in text[: end.start()]:
            return text, ""
        return text[end.end() :], text[: end.start()]


def _first_mark(text: str) -> int:
    """The index where a call may begin; the length of the text if nowhere."""
    if not _CALL_MARKS.search(text):
        return len(text)
    from hermes.agent.providers.text_calls import first_mark

    return first_mark(text)


_decode = msgspec.json.Decoder().decode

# Prefix and suffix of tool names in the templates of some models.
_DECORATION = re.compile(r"^functions?\.|:\d+$")
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


class _CallBuilder:
    __slots__ = ("extra", "id", "key", "name", "parts", "size")

    def __init__(self, key: object, call_id: str) -> None:
        self.key = key
        self.id = call_id
        self.name = ""
        self.parts: list[str] = []
        self.size = 0
        self.extra: Any = None


class AnswerBuilder:
    """Builds an answer from its pieces."""

    def __init__(self, profile: Profile, tools: Sequence[dict[str, Any]]) -> None:
        self._profile = profile
        self.names = frozenset(_names(tools))
        self._splitter = TextSplitter(
            self.names, tags=profile.text_calls, calls=profile.text_calls and bool(tools)
        )
        self._reasoning: list[str] = []
        self._drafts: list[_CallBuilder] = []
        # Finish reason of the server; empty until it sends one.
        self.stop_reason = ""
        self.usage = Usage()
        self.model = ""
        self.extra: dict[str, Any] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing has arrived yet."""
        return not (self._splitter.started or self._reasoning or self._drafts)

    def add_text(self, text: str) -> list[Event]:
        """Add a piece of text."""
        return [_delta(kind, part) for kind, part in self._splitter.feed(text)]

    def add_reasoning(self, text: str) -> list[Event]:
        """Add a piece of reasoning."""
        self._reasoning.append(text)
        return [ReasoningDelta(text)]

    def add_call(
        self, key: object, *, call_id: str = "", name: str = "", arguments: str = ""
    ) -> list[Event]:
        """Add a piece of a call; `key` is its index in the answer, or None."""
        draft = self._draft(key, call_id, name)
        if name and name != draft.name:
            # Some servers repeat the name with every piece, some send it in pieces.
            draft.name += name
        if arguments:
            draft.parts.append(arguments)
            draft.size += len(arguments)
        return [CallDelta(self._drafts.index(draft), draft.name, draft.size)]

    def set_call_extra(self, key: object, extra: Any) -> None:
        """Set data of a call that the server wants back with it."""
        draft = next((d for d in reversed(self._drafts) if d.key == key), None)
        if draft is not None:
            draft.extra = extra

    def _draft(self, key: object, call_id: str, name: str) -> _CallBuilder:
        same = [draft for draft in self._drafts if draft.key == key]
        draft = same[-1] if same else None
        if draft is None and key is None and self._drafts and not name:
            draft = self._drafts[-1]
        if draft is not None and name and call_id and draft.id and call_id != draft.id:
            # Another call under the same index: some servers number all of them 0.
            draft = None
        if draft is not None and key is None and name and draft.name:
            draft = None
        if draft is None:
            draft = _CallBuilder(key, str(call_id))
            self._drafts.append(draft)
        draft.id = draft.id or str(call_id)
        return draft

    def done(self, *, provider: str, model: str) -> tuple[list[Event], Done]:
        """The events not emitted yet, and the whole answer."""
        finish = self._finish()
        text, text_calls, reasoning, held = self._splitter.end(structured=bool(self._drafts))
        calls, extras = self._calls(cut=finish == "length")
        if not calls:
            calls = [ToolUse(_new_id(), name, arguments) for name, arguments in text_calls]
        extra = dict(self.extra)
        if any(item is not None for item in extras):
            extra["calls"] = extras
        reasoning = "".join(self._reasoning) + reasoning
        message = Message("assistant", text, calls=tuple(calls), reasoning=reasoning, extra=extra)
        if calls and finish != "length":
            finish = "calls"
        elif finish == "calls" and not calls:
            finish = "stop"
        events = [_delta(kind, part) for kind, part in held]
        done = Done(message, finish, self.usage, self.model or model, provider, model)
        return events, done

    def _finish(self) -> Finish:
        return _FINISHES.get(str(self.stop_reason).lower(), "stop")

    def _calls(self, *, cut: bool) -> tuple[list[ToolUse], list[Any]]:
        calls: list[ToolUse] = []
        extras: list[Any] = []
        for number, draft in enumerate(self._drafts, 1):
            raw = "".join(draft.parts)
            if not raw.strip():
                # A call that was cut before its arguments must not run with none.
                raw = "{" if cut and number == len(self._drafts) else "{}"
            pieces = _pieces(raw)
            names = _split_name(draft.name.strip(), self.names, len(pieces))
            if len(names) != len(pieces):
                # More objects than names.
                names, pieces = names[:1], [raw]
            for index, (name, piece) in enumerate(zip(names, pieces, strict=True)):
                call_id = draft.id if draft.id and not index else _new_id()
                use = ToolUse(call_id, name, piece)
                if not _repeats(use, calls):
                    calls.append(use)
                    extras.append(draft.extra if not index else None)
        return calls, extras


def _pieces(raw: str) -> list[str]:
    """Split concatenated JSON objects of arguments; equal neighbours count once."""
    try:
        _decode(raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        from hermes.core.arguments.json_repair import TextError, parse_each
        from hermes.core.arguments.reader import same
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
    """Whether a server sent the same call twice, with the same id."""
    return any(use.id == other.id and use == other for other in calls)


def _split_name(name: str, names: frozenset[str], pieces: int) -> list[str]:
    """Split concatenated tool names; a single name is repeated `pieces` times."""
    if name in names or not name:
        return [name] * pieces
    bare = _DECORATION.sub("", name)
    if bare in names:
        return [bare] * pieces
    parts = _known_parts(name, names)
    if not parts:
        return [name] * pieces
    if len(set(parts)) == 1:
        return parts[:1] * pieces
    return parts if len(parts) == pieces else [name] * pieces


def _known_parts(name: str, names: frozenset[str]) -> list[str]:
    """The known names whose concatenation is `name`; empty if it is none."""
    ends: dict[int, list[str]] = {0: []}
    for at in range(len(name)):
        if at in ends:
            for other in names:
                end = at + len(other)
                if other and name.startswith(other, at) and end not in ends:
                    ends[end] = [*ends[at], other]
    return ends.get(len(name), [])


def _names(tools: Sequence[dict[str, Any]]) -> list[str]:
    return [tool["function"]["name"] for tool in tools if "function" in tool]


def _delta(kind: str, text: str) -> Event:
    return ReasoningDelta(text) if kind == "reasoning" else TextDelta(text)


def _new_id() -> str:
    return f"call_{os.urandom(6).hex()}"


def text_of(content: Any) -> str:
    """The text of a content field: a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p.get("text") or "" for p in content if isinstance(p, dict))
    return ""


def arguments_text(value: Any) -> str:
    """Arguments as text; some servers send an object."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def count(value: Any) -> int:
    """A token count; 0 for anything that is not a positive number."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0

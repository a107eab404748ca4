"""`EmbeddedModel`: the embedded model as a provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes.core.messages import Message, ToolUse, Usage
from hermes.core.model_protocol import Done, ModelError, TextDelta, WindowError
from hermes.embedded.engine_client import WINDOW, Answer, Server
from hermes.embedded.grammar import actions
from hermes.embedded.prompts import TALKING, prefixes
from hermes.embedded.wheels import MODEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from typing import Any

    from hermes.core.model_protocol import Event, Finish, Request
    from hermes.embedded.download import Supply

# As long as an answer may get when nobody says otherwise.
ANSWER = 700
_CALLING = """

Answer with one JSON object: {"tool": name, "args": {…}} to call a tool, or {"reply": text}.
Tools:
"""


class EmbeddedModel:
    """A small model in a process of ours. Making one neither downloads nor starts anything."""

    name = "embedded"
    model = MODEL.name
    window = WINDOW

    def __init__(self, supply: Supply | None = None, *, threads: int = 0) -> None:
        """Make one; `threads` is what the machine has free if 0."""
        self._supply = supply
        self._threads = threads
        self._server: Server | None = None

    async def run_turn(self, conversation: Any, state: Any, request: str) -> Any:
        """Run a turn with prompts, tools and checks for a small model; see `TurnRunner`."""
        from hermes.embedded.conversation import EmbeddedTurn

        return await EmbeddedTurn(conversation, state).run(request)

    @property
    def pid(self) -> int:
        """The process that holds the model; 0 when there is none."""
        return self._server.pid if self._server else 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Ask with whatever tools there are: what compaction, tests and children need."""
        signatures = {
            tool["function"]["name"]: _signature(tool["function"].get("parameters") or {})
            for tool in request.tools
            if request.force in ("", tool["function"]["name"])
        }
        grammar = actions(signatures, reply=not request.force) if signatures else ""
        said = [*_told(request.messages, request.tools)]
        async for heard in self.ask(
            said,
            grammar=grammar,
            most=request.max_tokens or ANSWER,
            temperature=request.temperature or 0.0,
        ):
            if isinstance(heard, Answer):
                message, finish = _understood(heard, calls=bool(grammar))
                if grammar and message.text:
                    yield TextDelta(message.text)
                yield Done(message, finish, usage_of(heard), self.model, self.name)
            elif not grammar:
                yield TextDelta(heard)

    async def ask(
        self,
        said: Sequence[tuple[str, str]],
        *,
        grammar: str = "",
        most: int = ANSWER,
        temperature: float = 0.0,
        slot: int = TALKING,
    ) -> AsyncIterator[str | Answer]:
        """The answer to what was said, piece by piece and then as a whole.

        Args:
            said: Who said what: `system`, `user` or `assistant`, and the text.
            grammar: What the answer is held to (GBNF); nothing if empty.
            most: How many tokens it may have.
            temperature: 0 says the likeliest each time.
            slot: Which slot of the engine remembers it.
        """
        server = self._server or await self._started()
        question: dict[str, Any] = {
            "prompt": prompt_of(said),
            "max_tokens": most,
            "temperature": temperature,
            "id_slot": slot,
            "stop": ["<|im_end|>"],
        }
        if grammar:
            question["grammar"] = grammar
        try:
            async for heard in server.ask(question):
                yield heard
        except ModelError as error:
            if "context size" in str(error):
                raise WindowError(str(error), hint="Ask in smaller pieces.") from None
            raise

    async def _started(self) -> Server:
        """Have the model here, be it by fetching it; cancelling stops that."""
        import asyncio
        import threading

        from hermes.embedded.download import Supply, Teller

        supply, tell, stop = self._supply or Supply(), Teller(), threading.Event()
        try:
            supplied = await asyncio.to_thread(supply.get, tell, stop)
        except asyncio.CancelledError:
            stop.set()
            raise
        finally:
            tell.end()
        if self._server is None:
            kept = [closed(said) for said in prefixes()]
            self._server = Server(supplied, threads=self._threads, prefixes=kept)
        return self._server

    async def close(self) -> None:
        """End the model's process."""
        if self._server is not None:
            self._server.close()


def prompt_of(said: Iterable[tuple[str, str]]) -> str:
    """A conversation as the model was trained to read it, open for its answer."""
    return f"{closed(said)}<|im_start|>assistant\n"


def closed(said: Iterable[tuple[str, str]]) -> str:
    """The same, with nobody's turn yet."""
    return "".join(f"<|im_start|>{role}\n{_plain(text)}<|im_end|>\n" for role, text in said)


def usage_of(answer: Answer) -> Usage:
    """What an answer cost."""
    return Usage(answer.read + answer.cached, answer.written, cached=answer.cached)


def _plain(text: str) -> str:
    """A text that can't end a message and begin another."""
    return text.replace("<|", "< |")


def _told(
    messages: Iterable[Message], tools: Sequence[dict[str, Any]]
) -> Iterable[tuple[str, str]]:
    listing = ""
    if tools:
        lines = []
        for tool in tools:
            function = tool["function"]
            names = ", ".join(_signature(function.get("parameters") or {}))
            about = str(function.get("description") or "").strip().split("\n")[0]
            lines.append(f"- {function['name']}({names}): {about}")
        listing = _CALLING + "\n".join(lines)
    first = True
    for message in messages:
        if first and message.role != "system" and listing:
            yield "system", listing.strip()
        text = message.text
        if message.role == "system":
            yield "system", text + (listing if first else "")
        elif message.role == "tool":
            yield "user", f"Result of {message.name}:\n{text}"
        elif message.calls:
            use = message.calls[0]
            yield "assistant", f'{{"tool": {json.dumps(use.name)}, "args": {use.arguments}}}'
        else:
            yield message.role, text
        first = False


def _signature(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a tool needs; those that may be left out are."""
    properties = parameters.get("properties") or {}
    required = [name for name in parameters.get("required") or () if name in properties]
    return {name: _kind(properties[name]) for name in required}


def _kind(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return "value"
    words = schema.get("enum")
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        return words
    kind = schema.get("type")
    if kind == "array":
        inner = schema.get("items")
        return "array" if isinstance(inner, dict) and inner.get("type") == "string" else "value"
    return kind if kind in ("string", "number", "integer", "boolean", "object") else "value"


def _understood(answer: Answer, *, calls: bool) -> tuple[Message, Finish]:
    text = answer.text.strip()
    if answer.finish == "length":
        return Message("assistant", text), "length"
    if not calls:
        return Message("assistant", text), "stop"
    try:
        action = json.loads(text)
    except ValueError:
        return Message("assistant", text), "stop"
    if "reply" in action:
        return Message("assistant", str(action["reply"])), "stop"
    arguments = json.dumps(action["args"], ensure_ascii=False)
    return Message("assistant", calls=(ToolUse("", action["tool"], arguments),)), "calls"

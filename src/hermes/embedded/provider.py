"""`EmbeddedModel`: the embedded model as a provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes.core.model_protocol import (
    Done,
    Message,
    ModelError,
    TextDelta,
    ToolUse,
    Usage,
    WindowError,
)
from hermes.embedded.checks import actions
from hermes.embedded.engine_client import WINDOW, Completion, EngineClient
from hermes.embedded.prompts import CHAT_SLOT, prefixes
from hermes.embedded.wheels import MODEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from typing import Any

    from hermes.core.model_protocol import Event, Finish, Request
    from hermes.embedded.download import ModelDownload

# Default length of an answer in tokens.
ANSWER = 700
_CALLING = """

Answer with one JSON object: {"tool": name, "args": {…}} to call a tool, or {"reply": text}.
Tools:
"""


class EmbeddedModel:
    """A small model in a child process. The constructor neither downloads nor starts anything."""

    name = "embedded"
    model = MODEL.name
    window = WINDOW

    def __init__(self, download: ModelDownload | None = None, *, threads: int = 0) -> None:
        """Wire it; with `threads` 0 the engine uses the free cores."""
        self._download = download
        self._threads = threads
        self._client: EngineClient | None = None

    async def run_turn(self, conversation: Any, state: Any, request: str) -> Any:
        """Run a turn with prompts, tools and checks for a small model; see `TurnRunner`."""
        from hermes.embedded.conversation import EmbeddedTurn

        return await EmbeddedTurn(conversation, state).run(request)

    @property
    def pid(self) -> int:
        """The pid of the engine; 0 if it does not run."""
        return self._client.pid if self._client else 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Send a request with any tools; see `Provider`."""
        signatures = {
            tool["function"]["name"]: _signature(tool["function"].get("parameters") or {})
            for tool in request.tools
            if request.force in ("", tool["function"]["name"])
        }
        grammar = actions(signatures, reply=not request.force) if signatures else ""
        prompt = [*_messages(request.messages, request.tools)]
        async for piece in self.ask(
            prompt,
            grammar=grammar,
            most=request.max_tokens or ANSWER,
            temperature=request.temperature or 0.0,
        ):
            if isinstance(piece, Completion):
                message, finish = _parsed(piece, calls=bool(grammar))
                if grammar and message.text:
                    yield TextDelta(message.text)
                yield Done(message, finish, usage_of(piece), self.model, self.name)
            elif not grammar:
                yield TextDelta(piece)

    async def ask(
        self,
        prompt: Sequence[tuple[str, str]],
        *,
        grammar: str = "",
        most: int = ANSWER,
        temperature: float = 0.0,
        slot: int = CHAT_SLOT,
    ) -> AsyncIterator[str | Completion]:
        """The answer to a prompt, piece by piece and then as a whole.

        Args:
            prompt: Pairs of role (`system`, `user` or `assistant`) and text.
            grammar: A GBNF grammar for the answer; none if empty.
            most: Tokens of the answer.
            temperature: 0 is deterministic.
            slot: The slot of the engine that caches the prompt.
        """
        client = self._client or await self._start()
        request: dict[str, Any] = {
            "prompt": prompt_of(prompt),
            "max_tokens": most,
            "temperature": temperature,
            "id_slot": slot,
            "stop": ["<|im_end|>"],
        }
        if grammar:
            request["grammar"] = grammar
        try:
            async for piece in client.ask(request):
                yield piece
        except ModelError as error:
            if "context size" in str(error):
                raise WindowError(str(error), hint="Ask in smaller pieces.") from None
            raise

    async def _start(self) -> EngineClient:
        """Make the client; downloads model and engine if necessary. Can be cancelled."""
        import asyncio
        import threading

        from hermes.embedded.download import DownloadProgress, ModelDownload

        download = self._download or ModelDownload()
        progress, stop = DownloadProgress(), threading.Event()
        try:
            files = await asyncio.to_thread(download.get, progress, stop)
        except asyncio.CancelledError:
            stop.set()
            raise
        finally:
            progress.end()
        if self._client is None:
            texts = [closed(prefix) for prefix in prefixes()]
            self._client = EngineClient(files, threads=self._threads, prefixes=texts)
        return self._client

    async def close(self) -> None:
        """End the engine process."""
        if self._client is not None:
            self._client.close()


def prompt_of(messages: Iterable[tuple[str, str]]) -> str:
    """The messages in the model's chat template, open for the answer."""
    return f"{closed(messages)}<|im_start|>assistant\n"


def closed(messages: Iterable[tuple[str, str]]) -> str:
    """The messages in the model's chat template."""
    return "".join(f"<|im_start|>{role}\n{_plain(text)}<|im_end|>\n" for role, text in messages)


def usage_of(answer: Completion) -> Usage:
    """The tokens of an answer."""
    return Usage(answer.read + answer.cached, answer.written, cached=answer.cached)


def _plain(text: str) -> str:
    """A text without marks of the chat template."""
    return text.replace("<|", "< |")


def _messages(
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
    """The required arguments of a tool."""
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


def _parsed(answer: Completion, *, calls: bool) -> tuple[Message, Finish]:
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

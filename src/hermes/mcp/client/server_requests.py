"""Requests from a server: roots, elicitation and sampling, answered for the call they belong to.

A request is answered on the event loop of its call, by the interface that made the call: the
approval prompt and the model provider belong to that loop. Over HTTP, and where the server sends
its question as the result of a call, the call is known: `current_call` travels with the request.
Over stdio the protocol does not say to which call a request belongs. With several open calls the
question is then asked in the server's name, if the same person made all of them; otherwise it is
declined, as it is without an open call or without a person.
"""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mcp_types as types

from hermes.core.context import ApprovalRequest, Cancellation
from hermes.core.errors import ArgumentError, HermesError
from hermes.mcp.client.server_log import RateLimit
from hermes.mcp.untrusted_text import clean
from hermes.runtime.waits import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from concurrent.futures import Future
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.mcp.client.server_log import ServerLog
    from hermes.mcp.client.settings import Server

MAX_FIELDS = 30  # in one form
_MAX_OPEN = 4  # questions at the same time
_QUESTION_LIMIT = (20, 0.2)  # questions at once, and per second
_YES = ("once", "session", "always")

# The call that runs now, in a tuple; None where it is not known.
current_call: contextvars.ContextVar[tuple[Caller | None] | None] = contextvars.ContextVar(
    "hermes_mcp_current_call", default=None
)


class Caller:
    """The call that a server works for: its context and its event loop.

    Make it on the loop that awaits the call.
    """

    __slots__ = ("_loop", "_questions", "_variables", "context")

    def __init__(self, context: ToolContext) -> None:
        self.context = context
        self._loop = asyncio.get_running_loop()
        # With the trace of the call.
        self._variables = contextvars.copy_context()
        self._questions: set[_Question] = set()

    def same_person(self, other: Caller) -> bool:
        """Whether the same person answers the questions of both calls."""
        left, right = self.context, other.context
        if left.session_id or right.session_id:
            return (left.session_id, left.front_door) == (right.session_id, right.front_door)
        return left.task is right.task and left.approver == right.approver

    def same_model(self, other: Caller) -> bool:
        """Whether both calls use the same model and budget."""
        return self.context.services.sample == other.context.services.sample

    async def ask(self, question: Coroutine[Any, Any, Any], calls: Sequence[Caller]) -> Any:
        """Run a question on this call's loop, from any loop; None when the calls end first.

        Args:
            calls: The calls that the question may belong to, this one among them.
        """
        try:
            future = self._variables.copy().run(
                asyncio.run_coroutine_threadsafe, question, self._loop
            )
        except RuntimeError:
            # The loop is closed.
            question.close()
            return None
        entry = _Question(future, calls)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            entry.remove()

    def end(self) -> None:
        """The call is over: its questions are cancelled."""
        for question in tuple(self._questions):
            question.drop_call(self)


class _Question:
    """An open question and the calls that it may belong to; cancelled with the last of them."""

    __slots__ = ("_calls", "_future")

    def __init__(self, future: Future[Any], calls: Sequence[Caller]) -> None:
        self._future = future
        self._calls = set(calls)
        for call in calls:
            call._questions.add(self)  # noqa: SLF001 - the other half of this

    def drop_call(self, call: Caller) -> None:
        self._calls.discard(call)
        if not self._calls:
            self._future.cancel()

    def remove(self) -> None:
        for call in self._calls:
            call._questions.discard(self)  # noqa: SLF001


class _Addressee(NamedTuple):
    """The calls that a question may belong to; the last one's interface asks it."""

    calls: Sequence[Caller]
    certain: bool

    @property
    def call(self) -> Caller:
        return self.calls[-1]

    @property
    def context(self) -> ToolContext:
        return self.call.context

    @property
    def note(self) -> str:
        if self.certain:
            return ""
        return " (several of its calls are under way; it does not say for which)"


class ServerRequests:
    """The requests of one server."""

    def __init__(self, server: Server, log: ServerLog, project: str) -> None:
        self._server = server
        self._log = log
        self._project = project
        # None is a call without a person or a model.
        self._calls: list[Caller | None] = []
        self._tokens = server.sampling
        self._open = 0
        self._limit = RateLimit(*_QUESTION_LIMIT)
        self._excess_noted = False

    @contextmanager
    def for_call(self, call: Caller | None) -> Iterator[None]:
        """While the block runs, requests of the server may belong to `call`."""
        self._calls.append(call)
        token = current_call.set((call,))
        try:
            yield
        finally:
            current_call.reset(token)
            self._calls.remove(call)
            if call is not None:
                call.end()

    def _addressee(self) -> _Addressee | None:
        """The calls that the current request may belong to; None to decline it."""
        related = current_call.get()
        if related is not None:
            (call,) = related
            if call is None or call not in self._calls:
                return None
            return _Addressee([call], certain=True)
        calls = [call for call in self._calls if call is not None]
        if not calls:
            return None
        if not all(call.same_person(calls[0]) for call in calls):
            self._log.note("a question was refused: it does not say which call it belongs to")
            return None
        return _Addressee(calls, certain=len(self._calls) == 1)

    async def log_message(self, params: types.LoggingMessageNotificationParams) -> None:
        """Write a log message of the server to its log."""
        self._log.message(f"[{params.level}] {params.data}")

    async def roots(self, context: Any) -> types.ListRootsResult:
        """The workspace as the only root."""
        del context
        target = self._addressee()
        folders = {call.context.workspace for call in target.calls} if target is not None else set()
        folder = Path(folders.pop() if len(folders) == 1 else self._project)
        root = types.Root(uri=folder.as_uri(), name=folder.name)  # type: ignore[arg-type]
        return types.ListRootsResult(roots=[root])

    async def _ask(self, target: _Addressee | None, ask: Callable[..., Any], params: Any) -> Any:
        """The answer to a question; None without a person, or above the rate limit."""
        if target is None:
            return None
        if self._open >= _MAX_OPEN or not self._limit.allows():
            if not self._excess_noted:
                self._log.note("questions are refused: it asks too many")
            self._excess_noted = True
            return None
        self._excess_noted = False
        self._open += 1
        try:
            return await target.call.ask(ask(target, params), target.calls)
        finally:
            self._open -= 1

    # -- elicitation --------------------------------------------------------------------------

    async def elicit(
        self, context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the person to fill in a form, or to open a URL."""
        del context
        answer = await self._ask(self._addressee(), self._elicit, params)
        return answer or types.ElicitResult(action="cancel")

    async def _elicit(
        self, target: _Addressee, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        message = clean(params.message, 2000)
        if isinstance(params, types.ElicitRequestURLParams):
            return await self._open_url(target, message, str(params.url))
        schema = params.requested_schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        fields = properties if isinstance(properties, dict) else {}
        if len(fields) > MAX_FIELDS:
            return types.ElicitResult(action="decline")
        ask = target.context.services.ask_person
        if ask is None or not fields:
            return await self._consent(target, message, fields)
        title = f"{self._server.name} asks{target.note}: {message}"
        answers = await _fill_form(ask, title, fields, schema)
        if answers is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answers)

    async def _consent(
        self, target: _Addressee, message: str, fields: dict[str, Any]
    ) -> types.ElicitResult:
        """A yes or no to the default values of the form."""
        defaults = {
            name: field["default"]
            for name, field in fields.items()
            if isinstance(field, dict) and "default" in field
        }
        shown = {"message": message, "would answer": defaults}
        answer = await self._approve(target, "elicitation", shown, "wants an answer")
        if answer is None:
            return types.ElicitResult(action="cancel")
        if not answer:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=defaults)

    async def _open_url(self, target: _Addressee, message: str, url: str) -> types.ElicitResult:
        from hermes.mcp.client.http_client import open_in_browser, url_problem

        problem = url_problem(url, server_url=self._server.url)
        if problem:
            self._log.note(f"an address to visit was refused: {problem}")
            return types.ElicitResult(action="decline")
        shown = {"message": message, "address": url}
        answer = await self._approve(target, "elicitation", shown, "wants you to visit an address")
        if not answer:
            return types.ElicitResult(action="cancel" if answer is None else "decline")
        open_in_browser(url)
        return types.ElicitResult(action="accept")

    async def _approve(
        self, target: _Addressee, kind: str, shown: dict[str, Any], reason: str
    ) -> bool | None:
        """The person's answer; None without a person."""
        context = target.context
        if context.approver is None:
            return None
        request = ApprovalRequest(
            f"mcp-{self._server.name}:{kind}",
            shown,
            reason=f"the server {self._server.name} {reason}{target.note}",
            rule=f"mcp:{kind}",
            human_only=True,
            call_id=context.call_id if target.certain else "",
            front_door=context.front_door,
            agent_path=context.agent_path,
        )
        ask = Ask(context.approver, request, Cancellation(context.cancellation))
        answer = await ask.wait(context.service("runtime"))
        if answer is None:
            return None
        return answer is True or (isinstance(answer, str) and answer in _YES)

    # -- sampling -----------------------------------------------------------------------------

    async def sample(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask the agent's model, with the person's consent and within the token budget."""
        del context
        target = self._addressee()
        if target is not None and not all(target.call.same_model(call) for call in target.calls):
            return _refusal("it is not known which call this belongs to")
        answer = await self._ask(target, self._sample, params)
        return answer or _refusal("no model can be asked here")

    async def _sample(
        self, target: _Addressee, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData | None:
        sample = target.context.services.sample
        # A client of our own MCP server may have no model.
        if sample is None or not getattr(sample, "offered", True):
            return None
        if self._tokens <= 0:
            return _refusal("the tokens that this server may use are used up")
        messages = [
            {"role": message.role, "text": _text(message.content)} for message in params.messages
        ]
        shown = {"messages": messages, "system": params.system_prompt or ""}
        if not await self._approve(target, "sampling", shown, "wants to ask the model"):
            return _refusal("the person did not agree")
        limit = min(params.max_tokens, self._tokens)
        if limit <= 0:
            return _refusal("the tokens that this server may use are used up")
        # Reserved first, so that requests at the same time can't exceed the budget.
        self._tokens -= limit
        used = limit
        try:
            text, model, used = await sample(
                messages, system=params.system_prompt or "", max_tokens=limit
            )
        except HermesError as error:
            used = 0
            self._log.note(f"the model could not be asked: {error}")
            return _refusal("the model could not be asked")
        finally:
            self._tokens += limit - used
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=text),
            model=model,
            stop_reason="endTurn",
        )


def _refusal(reason: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=reason)


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(
        block.text if hasattr(block, "text") else f"[{block.type}]" for block in blocks
    )


# -- forms ------------------------------------------------------------------------------------


async def _fill_form(
    ask: Callable[[str, list[str]], Any], title: str, fields: dict[str, Any], schema: dict[str, Any]
) -> dict[str, Any] | None:
    """One question per field; None when a required field stays empty or a value is invalid."""
    from hermes.core.arguments import ArgumentReader

    required = schema.get("required") or []
    values: dict[str, Any] = {}
    for name, field in fields.items():
        field = field if isinstance(field, dict) else {}
        answer = await _answer(ask, f"{title}\n{_question(name, field)}", _choices(field))
        if answer:
            values[name] = _value(answer, field)
        elif "default" in field:
            values[name] = field["default"]
        elif name in required:
            return None
    try:
        reader = ArgumentReader({**schema, "type": "object", "properties": fields})
        content: dict[str, Any] = reader.read(values)
    except ArgumentError:
        return None
    return content


async def _answer(ask: Callable[[str, list[str]], Any], question: str, choices: list[str]) -> str:
    answer = await asyncio.to_thread(ask, question, choices)
    if hasattr(answer, "__await__"):
        answer = await answer
    text = str(answer or "").strip()
    if text not in choices and text.isdecimal() and 0 < int(text) <= len(choices):
        text = choices[int(text) - 1]
    return text


def _question(name: str, field: dict[str, Any]) -> str:
    title = clean(field.get("title"), 200) or name
    description = clean(field.get("description"), 500)
    default = f" [{field['default']}]" if "default" in field else ""
    return f"{title}{f' ({description})' if description else ''}{default}"


def _choices(field: dict[str, Any]) -> list[str]:
    if field.get("type") == "boolean":
        return ["yes", "no"]
    options = field.get("oneOf") or field.get("anyOf") or []
    constants = [str(opt["const"]) for opt in options if isinstance(opt, dict) and "const" in opt]
    return constants or [str(value) for value in field.get("enum") or []]


def _value(answer: str, field: dict[str, Any]) -> Any:
    if field.get("type") == "boolean":
        return answer.lower() in ("yes", "y", "true", "1", "ja")
    if field.get("type") == "array":
        return [part.strip() for part in answer.split(",") if part.strip()]
    return answer

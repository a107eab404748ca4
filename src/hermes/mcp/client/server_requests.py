"""Requests from a server to us: roots, elicitation and sampling, answered for the call they belong
to.
"""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import contextmanager
from typing import TYPE_CHECKING

import mcp_types as types

from hermes.core.context import ApprovalRequest, Cancellation
from hermes.core.errors import ArgumentError, HermesError
from hermes.mcp.client.rate_limit import Pace
from hermes.mcp.untrusted_text import plain
from hermes.runtime.waits import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from concurrent.futures import Future
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.mcp.client.server_log import Journal
    from hermes.mcp.client.settings import Server


if TYPE_CHECKING:
    Work = tuple["Behalf | None"]

# What is being done now, and for whom; None where that is not known.
working_for: contextvars.ContextVar[Work | None] = contextvars.ContextVar(
    "hermes_mcp_working_for", default=None
)


class Behalf:
    """Made in the loop that a call is awaited in.

    Front doors and providers belong to that loop and are no good in the thread of the connections.
    """

    __slots__ = ("_around", "_asked", "_loop", "context")

    def __init__(self, context: ToolContext) -> None:
        self.context = context
        self._loop = asyncio.get_running_loop()
        # What is traced in a question is part of the call.
        self._around = contextvars.copy_context()
        self._asked: set[_Question] = set()

    def same_person(self, other: Behalf) -> bool:
        """Whether whoever sits at this call's front door also sits at the other's."""
        one, two = self.context, other.context
        if one.session_id or two.session_id:
            return (one.session_id, one.front_door) == (two.session_id, two.front_door)
        return one.task is two.task and one.approver == two.approver

    def same_model(self, other: Behalf) -> bool:
        """Whether both calls' questions to a model would be asked, and counted, at one place."""
        return self.context.services.sample == other.context.services.sample

    async def ask(self, question: Coroutine[Any, Any, Any], calls: Sequence[Behalf]) -> Any:
        """What comes of a question, put from any loop; None when the calls end before that.

        Args:
            question: What is done in this call's loop.
            calls: Those that it may belong to, this one among them.
        """
        try:
            asked = self._around.copy().run(asyncio.run_coroutine_threadsafe, question, self._loop)
        except RuntimeError:
            # Its loop is closed.
            question.close()
            return None
        kept = _Question(asked, calls)
        try:
            return await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return None
        finally:
            kept.forget()

    def end(self) -> None:
        """The call is over: nobody waits for its questions any more."""
        for question in tuple(self._asked):
            question.without(self)


class _Question:
    """One that is open, and the calls that it may belong to; it ends with the last of them."""

    __slots__ = ("_asked", "_calls")

    def __init__(self, asked: Future[Any], calls: Sequence[Behalf]) -> None:
        self._asked = asked
        self._calls = set(calls)
        for call in calls:
            call._asked.add(self)  # noqa: SLF001 - the other half of this

    def without(self, call: Behalf) -> None:
        self._calls.discard(call)
        if not self._calls:
            self._asked.cancel()

    def forget(self) -> None:
        for call in self._calls:
            call._asked.discard(self)  # noqa: SLF001


class Whom:
    """Who is asked: the front door of a call, and whether the question is that call's own."""

    __slots__ = ("call", "calls", "sure")

    def __init__(self, calls: Sequence[Behalf], *, sure: bool) -> None:
        self.call = calls[-1]
        self.calls = calls
        self.sure = sure

    @property
    def context(self) -> ToolContext:
        """The surroundings of the call whose front door asks."""
        return self.call.context

    @property
    def call_id(self) -> str:
        """The call that the question belongs to; empty where that is not known."""
        return self.context.call_id if self.sure else ""

    async def ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """What comes of a question; None when nobody waits for the answer any more."""
        return await self.call.ask(question, self.calls)


async def asked(
    ask: Callable[[str, list[str]], Any], about: str, fields: dict[str, Any], schema: dict[str, Any]
) -> dict[str, Any] | None:
    """The answers by field, as the schema wants them; None when the person gave none."""
    from hermes.core.arguments import ArgumentReader

    required = schema.get("required") or []
    given: dict[str, Any] = {}
    for name, field in fields.items():
        field = field if isinstance(field, dict) else {}
        answer = await _answer(ask, f"{about}\n{_question(name, field)}", _choices(field))
        if answer:
            given[name] = _value(answer, field)
        elif "default" in field:
            given[name] = field["default"]
        elif name in required:
            return None
    try:
        reader = ArgumentReader({**schema, "type": "object", "properties": fields})
        read: dict[str, Any] = reader.read(given)
    except ArgumentError:
        # What the person said does not fit, and a form can't be argued with.
        return None
    return read


async def _answer(ask: Callable[[str, list[str]], Any], question: str, choices: list[str]) -> str:
    said = await asyncio.to_thread(ask, question, choices)
    if hasattr(said, "__await__"):
        said = await said
    text = str(said or "").strip()
    if text not in choices and text.isdecimal() and 0 < int(text) <= len(choices):
        text = choices[int(text) - 1]
    return text


def _question(name: str, field: dict[str, Any]) -> str:
    said = plain(field.get("title"), 200) or name
    more = plain(field.get("description"), 500)
    default = f" [{field['default']}]" if "default" in field else ""
    return f"{said}{f' ({more})' if more else ''}{default}"


def _choices(field: dict[str, Any]) -> list[str]:
    if field.get("type") == "boolean":
        return ["yes", "no"]
    options = field.get("oneOf") or field.get("anyOf") or []
    titled = [str(one["const"]) for one in options if isinstance(one, dict) and "const" in one]
    return titled or [str(value) for value in field.get("enum") or []]


def _value(answer: str, field: dict[str, Any]) -> Any:
    if field.get("type") == "boolean":
        return answer.lower() in ("yes", "y", "true", "1", "ja")
    if field.get("type") == "array":
        return [part.strip() for part in answer.split(",") if part.strip()]
    return answer


# How many fields a form may have; how many questions may be open at once, and how many may be put
# in a row.
MOST_QUESTIONS = 30
_MOST_OPEN = 4
_QUESTION_PACE = (20, 0.2)
_YES = ("once", "session", "always")


class Bridging:
    """One server's way to the people and the model behind the calls it serves."""

    def __init__(self, server: Server, journal: Journal, project: str) -> None:
        self._server = server
        self._journal = journal
        self._project = project
        # None stands for work that nobody can be asked about.
        self._calls: list[Behalf | None] = []
        self._tokens = server.sampling
        self._pending = 0
        self._pace = Pace(*_QUESTION_PACE)
        # Whether it stands in the log that there are too many.
        self._told = False

    @contextmanager
    def on_behalf_of(self, call: Behalf | None) -> Iterator[None]:
        """While a call is under way, its front door is asked."""
        self._calls.append(call)
        before = working_for.set((call,))
        try:
            yield
        finally:
            working_for.reset(before)
            self._calls.remove(call)
            if call is not None:
                call.end()

    def _whom(self) -> Whom | None:
        """Who answers what the server asks now; None where that is nobody, or not known."""
        related = working_for.get()
        if related is not None:
            (call,) = related
            # One that is over asks nobody any more, and never somebody else.
            return Whom([call], sure=True) if call is not None and call in self._calls else None
        calls = [call for call in self._calls if call is not None]
        if not calls:
            return None
        if not all(call.same_person(calls[0]) for call in calls):
            self._journal.note("a question was refused: it does not say which call it belongs to")
            return None
        return Whom(calls, sure=len(self._calls) == 1)

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Keep what the server logs."""
        self._journal.said(f"[{params.level}] {params.data}")

    async def roots(self, context: Any) -> types.ListRootsResult:
        """The folder that is worked in, and no other."""
        del context
        from pathlib import Path

        whom = self._whom()
        places = {call.context.workspace for call in whom.calls} if whom is not None else set()
        place = places.pop() if len(places) == 1 else self._project
        root = types.Root(uri=Path(place).as_uri(), name=Path(place).name)  # type: ignore[arg-type]
        return types.ListRootsResult(roots=[root])

    async def _put(self, whom: Whom | None, ask: Callable[..., Any], params: Any) -> Any:
        """What comes of a question; None where there is nobody, or where there were too many."""
        if whom is None:
            return None
        if self._pending >= _MOST_OPEN or not self._pace.allows():
            if not self._told:
                self._journal.note("questions are refused: it asks too many")
            self._told = True
            return None
        self._told = False
        self._pending += 1
        try:
            return await whom.ask(ask(whom, params))
        finally:
            self._pending -= 1

    # -- questions to a person ----------------------------------------------------------------

    async def elicit(
        self, context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the person what the server wants to know."""
        del context
        whom = self._whom()
        said = await self._put(whom, self._elicit, params)
        return said or types.ElicitResult(action="cancel")

    async def _elicit(self, whom: Whom, params: types.ElicitRequestParams) -> types.ElicitResult:
        message = plain(params.message, 2000)
        if isinstance(params, types.ElicitRequestURLParams):
            return await self._open(whom, message, str(params.url))
        schema = params.requested_schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        fields = properties if isinstance(properties, dict) else {}
        if len(fields) > MOST_QUESTIONS:
            return types.ElicitResult(action="decline")
        ask = whom.context.services.ask_person
        if ask is None or not fields:
            return await self._consent(whom, message, fields)

        about = f"{self._server.name} asks{_unsure(whom)}: {message}"
        answers = await asked(ask, about, fields, schema)
        if answers is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answers)

    async def _consent(
        self, whom: Whom, message: str, fields: dict[str, Any]
    ) -> types.ElicitResult:
        """A plain yes or no, with what the fields say for themselves."""
        shown = {"message": message, "would answer": _defaults(fields)}
        said = await self._approve(whom, "elicitation", shown, "wants an answer")
        if said is None:
            return types.ElicitResult(action="cancel")
        if not said:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=_defaults(fields))

    async def _open(self, whom: Whom, message: str, url: str) -> types.ElicitResult:
        from hermes.mcp.client.browser import open_address, refused_address

        wrong = refused_address(url, beside=self._server.url)
        if wrong:
            self._journal.note(f"an address to visit was refused: {wrong}")
            return types.ElicitResult(action="decline")
        shown = {"message": message, "address": url}
        said = await self._approve(whom, "elicitation", shown, "wants you to visit an address")
        if not said:
            return types.ElicitResult(action="cancel" if said is None else "decline")
        open_address(url)
        return types.ElicitResult(action="accept")

    async def _approve(self, whom: Whom, what: str, shown: dict[str, Any], why: str) -> bool | None:
        """What the person says; None where there is nobody."""
        context = whom.context
        if context.approver is None:
            return None
        request = ApprovalRequest(
            f"mcp-{self._server.name}:{what}",
            shown,
            reason=f"the server {self._server.name} {why}{_unsure(whom)}",
            rule=f"mcp:{what}",
            human_only=True,
            call_id=whom.call_id,
            front_door=context.front_door,
            agent_path=context.agent_path,
        )
        ask = Ask(context.approver, request, Cancellation(context.cancellation))
        said = await ask.wait(context.service("runtime"))
        if said is None:
            return None
        return said is True or (isinstance(said, str) and said in _YES)

    # -- questions to a model -----------------------------------------------------------------

    async def sample(
        self, context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask the agent's model, when the person agrees and the budget lasts."""
        del context
        whom = self._whom()
        if whom is not None and not all(whom.call.same_model(call) for call in whom.calls):
            return _refusal("it is not known which call this belongs to")
        said = await self._put(whom, self._sample, params)
        return said or _refusal("no model can be asked here")

    async def _sample(
        self, whom: Whom, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData | None:
        sample = whom.context.services.sample
        # Behind a front door of ours there may be somebody without a model.
        if sample is None or not getattr(sample, "offered", True):
            return None
        if self._tokens <= 0:
            return _refusal("the tokens that this server may use are used up")
        messages = [{"role": one.role, "text": _said(one.content)} for one in params.messages]
        shown = {"messages": messages, "system": params.system_prompt or ""}
        if not await self._approve(whom, "sampling", shown, "wants to ask the model"):
            return _refusal("the person did not agree")
        limit = min(params.max_tokens, self._tokens)
        if limit <= 0:
            # Another question was quicker.
            return _refusal("the tokens that this server may use are used up")
        # Set aside, so that questions put at once do not share what there is but once.
        self._tokens -= limit
        # A question that is broken off has cost something all the same.
        used = limit
        try:
            text, model, used = await sample(
                messages, system=params.system_prompt or "", max_tokens=limit
            )
        except HermesError as error:
            used = 0
            self._journal.note(f"the model could not be asked: {error}")
            return _refusal("the model could not be asked")
        finally:
            self._tokens += limit - used
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=text),
            model=model,
            stop_reason="endTurn",
        )


def _unsure(whom: Whom) -> str:
    return "" if whom.sure else " (several of its calls are under way; it does not say for which)"


def _refusal(why: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=why)


def _said(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(
        block.text if hasattr(block, "text") else f"[{block.type}]" for block in blocks
    )


def _defaults(fields: dict[str, Any]) -> dict[str, Any]:
    """What the server itself proposes."""
    return {
        name: field["default"]
        for name, field in fields.items()
        if isinstance(field, dict) and "default" in field
    }

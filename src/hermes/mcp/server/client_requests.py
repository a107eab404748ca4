"""Requests to the client of a call: elicitation, sampling and roots."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.core.context import Answer
from hermes.core.errors import UnavailableError
from hermes.core.json_text import to_json
from hermes.mcp.untrusted_text import valid_unicode
from hermes.safety.sanitise import clean_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from mcp.server.context import ServerRequestContext
    from mcp_types import ElicitRequestFormParams

    from hermes.core.context import ApprovalRequest
    from hermes.mcp.server.sessions import Context


_WHOLE = 4_000
_FIELD = "decision"
_ANSWER = "answer"


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client shows forms to a person."""
    offered = ctx.session.client_capabilities
    if offered is None or offered.elicitation is None:
        return False
    # Before there were two modes, there was this one, and nothing said so.
    return offered.elicitation.form is not None or offered.elicitation.url is None


def client_name(ctx: ServerRequestContext[Any, Any]) -> str:
    """Who the client says it is, in one plain line."""
    params = ctx.session.client_params
    if params is None:
        return "an unnamed client"
    name = f"{params.client_info.name} {params.client_info.version}"
    return " ".join(clean_text(name).split())[:80] or "an unnamed client"


def approval_form(request: ApprovalRequest) -> ElicitRequestFormParams:
    """The approval form of a call: its full arguments and the reason."""
    lines = [f"May {request.tool} run? {request.reason} [{', '.join(request.rules)}]"]
    given = [(name, value) for name, value in request.arguments.items() if value is not None]
    lines += [f"{name} = {_shown(value)}" for name, value in given]
    choices = decisions(request)
    return _one_field(
        "\n".join(lines),
        _FIELD,
        {
            "type": "string",
            "title": "Run it?",
            "description": "once; for this session; always, this exact call; or deny",
            "enum": list(choices),
            "default": "deny",
        },
    )


def decisions(request: ApprovalRequest) -> tuple[str, ...]:
    """The answers that a request can be given."""
    # What only a person may judge is judged each time.
    lasting = ("session",) if request.human_only else ("session", "always")
    return ("once", *lasting, "deny")


def decided(request: ApprovalRequest, result: Any, *, by: str) -> Answer | None:
    """The person's decision; None without an answer."""
    content = accepted(result)
    if content is None:
        return Answer("deny", by=by) if _declined(result) else None
    chosen = content.get(_FIELD)
    return Answer(chosen if chosen in decisions(request) else "deny", by=by)


def question_form(question: str, choices: Sequence[str]) -> ElicitRequestFormParams:
    """A question with a free answer; choices are listed, for any other answer may come."""
    lines = [question, *(f"{number}. {choice}" for number, choice in enumerate(choices, 1))]
    hint = "one of these, by number or in words, or something else" if choices else "in your words"
    return _one_field(
        "\n".join(lines), _ANSWER, {"type": "string", "title": "Answer", "description": hint}
    )


def answered(result: Any) -> str:
    """The person's answer; empty when declined."""
    content = accepted(result)
    return str(content.get(_ANSWER) or "") if content is not None else ""


def accepted(result: Any) -> dict[str, Any] | None:
    """The form as it was sent off; None where it was not."""
    if getattr(result, "action", None) != "accept":
        return None
    return dict(getattr(result, "content", None) or {})


def _declined(result: Any) -> bool:
    return getattr(result, "action", None) in ("decline", "cancel")


def form(message: str, schema: dict[str, Any]) -> ElicitRequestFormParams:
    """A form: its message, and its fields as JSON Schema."""
    from mcp_types import ElicitRequestFormParams

    return ElicitRequestFormParams(message=valid_unicode(message), requested_schema=schema)


def _one_field(message: str, field: str, schema: dict[str, Any]) -> ElicitRequestFormParams:
    return form(message, {"type": "object", "properties": {field: schema}, "required": [field]})


def _shown(value: object) -> str:
    """A value as the person has to see it: nothing hidden, long ones by both ends and a digest."""
    text = to_json(value)
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    if len(plain) <= _WHOLE:
        return plain
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    ends = _WHOLE // 2
    return f"{plain[:ends]} …[{len(text)} characters, sha256 {digest}]… {plain[-ends:]}"


if TYPE_CHECKING:
    Request = ElicitRequest | CreateMessageRequest | ListRootsRequest

_ANSWERS: dict[type[Any], tuple[type[Any], ...]] = {
    ElicitRequest: (ElicitResult,),
    CreateMessageRequest: (CreateMessageResult, CreateMessageResultWithTools),
    ListRootsRequest: (ListRootsResult,),
}


class ClientRequests:
    """The open requests of one call.

    `park` keeps the call until its client comes back and returns the token for that; `tell`
    announces that there is a request.
    """

    def __init__(self, park: Callable[[], str], tell: Callable[[], None]) -> None:
        self._park = park
        self._tell = tell
        self._mark = ""
        self._open: dict[str, tuple[Request, asyncio.Future[Any]]] = {}

    async def put(self, ctx: Context, request: Request, name: str) -> Any:
        """The client's answer; None when it can't be asked or its answer is invalid."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return await ctx.session.send_request(
                request,
                _ANSWERS[type(request)][0],
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        if not self._mark:
            self._mark = self._park()
        if not self._mark:
            return None
        key = name
        number = 1
        while key in self._open:
            number += 1
            key = f"{name}-{number}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[key] = request, future
        self._tell()
        try:
            return await future
        finally:
            del self._open[key]

    def result(self) -> InputRequiredResult | None:
        """All that is open, as the answer to a request; None where nothing is."""
        waiting = {
            key: request for key, (request, future) in self._open.items() if not future.done()
        }
        if not waiting:
            return None
        return InputRequiredResult(input_requests=waiting, request_state=self._mark)

    def answer(self, responses: Mapping[str, Any] | None) -> None:
        """Accept the client's answer under a token, which is then invalid."""
        self._mark = ""
        left = False
        for key, (request, future) in tuple(self._open.items()):
            answer = (responses or {}).get(key)
            if future.done():
                continue
            if isinstance(answer, _ANSWERS[type(request)]):
                future.set_result(answer)
            else:
                left = True
        if left:
            # It is asked again for what it did not bring.
            self._mark = self._park()
            if self._mark:
                self._tell()
                return
            for _, future in tuple(self._open.values()):
                if not future.done():
                    future.set_result(None)


if TYPE_CHECKING:
    Put = Callable[[Any, str], Awaitable[Any]]

# About how many bytes of text are a token.
_TOKEN_BYTES = 3.5


class ClientFeatures:
    """The services of one call that are the client's to give."""

    def __init__(self, ctx: Context, put: Put) -> None:
        self._put = put
        offered = ctx.session.client_capabilities
        self._sampling = offered is not None and offered.sampling is not None
        self._roots = offered is not None and offered.roots is not None
        # What a handler wanted in vain, by the protocol's names.
        self.missing: dict[str, Any] = {}
        model = Model(self)
        model.offered = self._sampling
        self.services = {"sample": model, "client_roots": self.roots}

    async def sample(
        self,
        messages: Sequence[dict[str, str]],
        *,
        system: str = "",
        max_tokens: int = 1000,
        name: str = "model",
    ) -> tuple[str, str, int]:
        """The answer of the client's model: text, model name and estimated tokens."""
        self._require("sampling", offered=self._sampling)
        said = [
            SamplingMessage(
                role="assistant" if one["role"] == "assistant" else "user",
                content=TextContent(text=valid_unicode(one["text"])),
            )
            for one in messages
        ]
        params = CreateMessageRequestParams(
            messages=said, system_prompt=valid_unicode(system) or None, max_tokens=max_tokens
        )
        answer = await self._put(CreateMessageRequest(params=params), name)
        if answer is None:
            raise UnavailableError("the client did not ask its model")
        blocks = answer.content if isinstance(answer.content, list) else [answer.content]
        text = "\n".join(block.text for block in blocks if isinstance(block, TextContent))
        size = sum(len(part.encode()) for part in (system, text))
        size += sum(len(one["text"].encode("utf-8", "replace")) for one in messages)
        return text, answer.model, int(size / _TOKEN_BYTES) + 1

    async def roots(self, name: str = "roots") -> list[dict[str, str]]:
        """The client's root folders. They grant no permission."""
        self._require("roots", offered=self._roots)
        answer = await self._put(ListRootsRequest(), name)
        if answer is None:
            raise UnavailableError("the client did not say which folders it works in")
        return [{"uri": str(root.uri), "name": root.name or ""} for root in answer.roots]

    def _require(self, capability: str, *, offered: bool) -> None:
        if not offered:
            self.missing[capability] = {}
            raise UnavailableError(_wanting(capability))

    def objection(self, why: str) -> MCPError | None:
        """The error for a client that lacks a capability the call needed."""
        if not any(_wanting(capability) in why for capability in self.missing):
            # It went on without, and failed of something else.
            return None
        return MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"this needs a client that offers {', '.join(self.missing)}",
            {"requiredCapabilities": self.missing},
        )


def _wanting(capability: str) -> str:
    return f"this client offers no {capability}"


class Model:
    """The service `sample`; `offered` says whether there is a model behind it."""

    def __init__(self, borrowed: ClientFeatures) -> None:
        self.offered = True
        self._borrowed = borrowed

    async def __call__(
        self, messages: Sequence[dict[str, str]], **options: Any
    ) -> tuple[str, str, int]:
        """As `Borrowed.sample`."""
        return await self._borrowed.sample(messages, **options)

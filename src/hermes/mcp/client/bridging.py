"""What a server may ask of us: where it may look, what a person says, what a model says.

Each goes to the front door of the call under way, in the loop of that call, for only there is
somebody to be asked. With no call under way, or nobody there, the server is told no.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import mcp_types as types

from hermes.core.context import ApprovalRequest, Cancellation
from hermes.core.errors import HermesError
from hermes.mcp.texts import plain
from hermes.runtime.needs import Ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.mcp.client.behalf import Behalf
    from hermes.mcp.client.journal import Journal
    from hermes.mcp.client.settings import Server

MOST_QUESTIONS = 30
_YES = ("once", "session", "always")


class Bridging:
    """One server's way to the people and the model behind the calls it serves."""

    def __init__(self, server: Server, journal: Journal, project: str) -> None:
        self._server = server
        self._journal = journal
        self._project = project
        self._calls: list[Behalf] = []
        self._tokens = server.sampling

    @contextmanager
    def on_behalf_of(self, call: Behalf | None) -> Iterator[None]:
        """While a call is under way, its front door is asked."""
        if call is None:
            yield
            return
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            call.end()

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Keep what the server logs."""
        self._journal.said(f"[{params.level}] {params.data}")

    async def roots(self, context: Any) -> types.ListRootsResult:
        """The folder that is worked in, and no other."""
        del context
        from pathlib import Path

        place = self._calls[-1].context.workspace if self._calls else self._project
        root = types.Root(uri=Path(place).as_uri(), name=Path(place).name)  # type: ignore[arg-type]
        return types.ListRootsResult(roots=[root])

    # -- questions to a person ----------------------------------------------------------------

    async def elicit(
        self, context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the person what the server wants to know."""
        del context
        said = None
        if self._calls:
            call = self._calls[-1]
            said = await call.ask(self._elicit(call.context, params))
        return said or types.ElicitResult(action="cancel")

    async def _elicit(
        self, context: ToolContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        message = plain(params.message, 2000)
        if isinstance(params, types.ElicitRequestURLParams):
            return await self._open(context, message, str(params.url))
        schema = params.requested_schema
        properties = schema.get("properties") if isinstance(schema, dict) else None
        fields = properties if isinstance(properties, dict) else {}
        if len(fields) > MOST_QUESTIONS:
            return types.ElicitResult(action="decline")
        ask = context.services.get("ask_person")
        if ask is None or not fields:
            return await self._consent(context, message, fields)
        from hermes.mcp.client.questions import asked

        answers = await asked(ask, f"{self._server.name} asks: {message}", fields, schema)
        if answers is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answers)

    async def _consent(
        self, context: ToolContext, message: str, fields: dict[str, Any]
    ) -> types.ElicitResult:
        """A plain yes or no, with what the fields say for themselves."""
        shown = {"message": message, "would answer": _defaults(fields)}
        said = await self._approve(context, "elicitation", shown, "wants an answer")
        if said is None:
            return types.ElicitResult(action="cancel")
        if not said:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=_defaults(fields))

    async def _open(self, context: ToolContext, message: str, url: str) -> types.ElicitResult:
        from hermes.mcp.client.browsing import open_address, refused_address

        wrong = refused_address(url, beside=self._server.url)
        if wrong:
            self._journal.note(f"an address to visit was refused: {wrong}")
            return types.ElicitResult(action="decline")
        shown = {"message": message, "address": url}
        said = await self._approve(context, "elicitation", shown, "wants you to visit an address")
        if not said:
            return types.ElicitResult(action="cancel" if said is None else "decline")
        open_address(url)
        return types.ElicitResult(action="accept")

    async def _approve(
        self, context: ToolContext, what: str, shown: dict[str, Any], why: str
    ) -> bool | None:
        """What the person says; None where there is nobody."""
        if context.approver is None:
            return None
        request = ApprovalRequest(
            f"mcp-{self._server.name}:{what}",
            shown,
            reason=f"the server {self._server.name} {why}",
            rule=f"mcp:{what}",
            human_only=True,
            call_id=context.call_id,
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
        said = None
        if self._calls:
            call = self._calls[-1]
            said = await call.ask(self._sample(call.context, params))
        return said or _refusal("no model can be asked here")

    async def _sample(
        self, context: ToolContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData | None:
        sample = context.services.get("sample")
        if sample is None:
            return None
        if self._tokens <= 0:
            return _refusal("the tokens that this server may use are used up")
        messages = [{"role": one.role, "text": _said(one.content)} for one in params.messages]
        shown = {"messages": messages, "system": params.system_prompt or ""}
        if not await self._approve(context, "sampling", shown, "wants to ask the model"):
            return _refusal("the person did not agree")
        limit = min(params.max_tokens, self._tokens)
        if limit <= 0:
            # Another question was quicker.
            return _refusal("the tokens that this server may use are used up")
        # Set aside, so that questions put at once do not share what there is but once.
        self._tokens -= limit
        used = 0
        try:
            text, model, used = await sample(
                messages, system=params.system_prompt or "", max_tokens=limit
            )
        except HermesError as error:
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

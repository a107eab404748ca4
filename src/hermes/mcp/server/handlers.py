"""Request handlers: the requests of the protocol, answered from an App."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    InputRequiredResult,
    ListPromptsResult,
    ListToolsResult,
    PromptReference,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes import __version__
from hermes.core.context import ToolContext
from hermes.core.entry import ToolCall
from hermes.mcp.server import offered_tools, resources
from hermes.mcp.server.calls import Call
from hermes.mcp.server.content import artifact_of, result_of
from hermes.mcp.server.notifications import notify_changed_lists, resources_changed
from hermes.mcp.server.sessions import Sessions, key_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Any

    from mcp.server.models import InitializationOptions
    from mcp_types import (
        CallToolRequestParams,
        CallToolResult,
        CompleteRequestParams,
        GetPromptResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        ReadResourceResult,
        SubscribeRequestParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
        UnsubscribeRequestParams,
    )

    from hermes.core.entry import ToolOutcome
    from hermes.mcp.server.sessions import Context, Session
    from hermes.runtime.app import App

_INSTRUCTIONS = (
    "Tools that work on this machine, each call judged by its owner's rules. Not every tool is"
    " listed: tool_search finds the others by need and adds them to the list. What was refused"
    " stays refused; do not try it in another way."
)


class AppServer:
    """Serves the tools of an App; `toolsets` to offer, those of the settings if None.

    `defer` offers a few tools and `tool_search` where there are many, as the settings say.
    `services` are added to those of the handlers.
    """

    def __init__(
        self,
        app: App,
        *,
        toolsets: Sequence[str] | None = None,
        defer: bool = True,
        services: Mapping[str, Any] | None = None,
    ) -> None:
        self.app = app
        # A name that nobody knows is said now, and not to the first client.
        app.definitions.chosen(None if toolsets is None else list(toolsets))
        self.sessions = Sessions(app, toolsets=toolsets, defer=defer, services=services)
        self.server: Server[Any] = _Server(
            "hermes",
            version=__version__,
            title="Hermes",
            instructions=_INSTRUCTIONS,
            lifespan=self._lifespan,
            get_tool_input_schema=self._schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._listen,
            on_subscribe_resource=self._watch_resource,
            on_unsubscribe_resource=self._unwatch_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        self.server.add_request_handler(
            "logging/setLevel", SetLevelRequestParams, self._set_log_level
        )
        # A span for each message that nobody collects; our own record is the audit log.
        self.server.middleware.clear()

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[None]:  # noqa: ARG002
        watching = asyncio.ensure_future(self.sessions.watch())
        try:
            yield
        finally:
            watching.cancel()
            await self.sessions.close_all()

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        entry = self.app.registry.resolve(name)
        return None if entry is None else entry.parameters

    async def _list_tools(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        _first_page(params)
        session = await self.sessions.of(ctx)
        return ListToolsResult(tools=session.offering.tools())

    async def _call_tool(
        self, ctx: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        session = await self.sessions.of(ctx)
        outcome = await self._carried_out(session, ctx, params)
        if isinstance(outcome, InputRequiredResult):
            return outcome
        handle = artifact_of(outcome)
        if handle is not None and session.left(handle, outcome.name):
            await resources_changed(session, ctx)
        await notify_changed_lists(session, ctx)
        return result_of(outcome)

    async def _carried_out(
        self,
        session: Session,
        ctx: Context,
        params: CallToolRequestParams | GetPromptRequestParams,
    ) -> ToolOutcome | InputRequiredResult:
        """A call from its beginning, or from where it had asked something, to where it is now."""
        if params.request_state is None:
            call = await self._begun(session, ctx, params)
        else:
            parked = session.take(params)
            if parked is None:
                raise MCPError(
                    INVALID_PARAMS, "that question is not open any more; call the tool again"
                )
            call = parked
            call.answer(params.input_responses)
        outcome = await call.attend(ctx)
        if not isinstance(outcome, InputRequiredResult) and not outcome.ok:
            objection = call.objection(outcome)
            if objection is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                raise objection
        return outcome

    async def _begun(
        self,
        session: Session,
        ctx: Context,
        params: CallToolRequestParams | GetPromptRequestParams,
    ) -> Call:
        if session.full:
            raise MCPError(INTERNAL_ERROR, "too many calls are under way; wait for some to end")
        prompt = isinstance(params, GetPromptRequestParams)
        entry = session.offering.resolve(params.name, prompt=prompt)
        if entry is None and prompt:
            raise MCPError(INVALID_PARAMS, f"no prompt is called {params.name[:80]!r}")
        if entry is None:
            # The runtime says what was meant, perhaps, and notes the call.
            outcome = await session.runtime.call(
                ToolCall(params.name, {}),
                ToolContext(
                    task=session.task,
                    session_id=session.id,
                    front_door="mcp",
                    services=session.offering.services,
                ),
            )
            hint = outcome.value.get("hint", "")
            raise MCPError(INVALID_PARAMS, f"{outcome.error}. {hint}".strip())
        call = Call(session, entry.name, params, ctx)
        session.began(call)
        return call

    async def _list_prompts(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        _first_page(params)
        return ListPromptsResult(prompts=(await self.sessions.of(ctx)).offering.prompts())

    async def _get_prompt(
        self, ctx: Context, params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        session = await self.sessions.of(ctx)
        outcome = await self._carried_out(session, ctx, params)
        if isinstance(outcome, InputRequiredResult):
            return outcome
        return offered_tools.prompt_result(
            outcome, session.offering.resolve(params.name, prompt=True)
        )

    async def _complete(self, ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        """Completion of a prompt argument or a URI variable."""
        session = await self.sessions.of(ctx)
        asked = params.argument
        values: list[str] = []
        if isinstance(params.ref, PromptReference):
            entry = session.offering.resolve(params.ref.name, prompt=True)
            if entry is not None:
                values = offered_tools.completions(entry, asked.name, asked.value)
        elif params.ref.uri == resources.TEMPLATE:
            values = [
                handle for handle in reversed(session.artifacts) if handle.startswith(asked.value)
            ]
        most = offered_tools.MOST_VALUES
        return CompleteResult(
            completion=Completion(
                values=values[:most], total=len(values), has_more=len(values) > most
            )
        )

    async def _set_log_level(self, ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        (await self.sessions.of(ctx)).log_level = params.level
        return EmptyResult()

    async def _list_resources(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        _first_page(params)
        return resources.listed(await self.sessions.of(ctx))

    async def _list_resource_templates(
        self,
        ctx: Context,
        params: PaginatedRequestParams | None,
    ) -> ListResourceTemplatesResult:
        _first_page(params)
        return resources.templates(await self.sessions.of(ctx))

    async def _read_resource(
        self, ctx: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        return await resources.read(await self.sessions.of(ctx), str(params.uri), ctx)

    async def _watch_resource(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        session = await self.sessions.of(ctx)
        # A large result never changes; whoever watches one has not been promised anything else.
        if not session.watch(str(params.uri)):
            raise MCPError(INVALID_PARAMS, "this client watches too many resources already")
        return EmptyResult()

    async def _unwatch_resource(
        self, ctx: Context, params: UnsubscribeRequestParams
    ) -> EmptyResult:
        (await self.sessions.of(ctx)).watched.pop(str(params.uri), None)
        return EmptyResult()

    async def _listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        session = await self.sessions.of(ctx)
        for uri in params.notifications.resource_subscriptions or ():
            # One too many is honoured and never told of, like one that is not there.
            session.watch(str(uri))
        with self.sessions.listening(key_of(ctx)):
            return await session.listen(ctx, params)


class _Server(Server["Any"]):
    """The SDK's server, which says to clients of the older era, too, that lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The answer to `initialize` in the older protocol."""
        changes = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(
            notification_options or changes, experimental_capabilities, extensions
        )


def _first_page(params: PaginatedRequestParams | None) -> None:
    """Everything fits on one page: any other can't have been meant."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "there is no such page; leave the cursor out")

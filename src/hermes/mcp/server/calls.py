"""One running call: progress, cancellation, and the wait for a person's answer."""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
import threading
from typing import TYPE_CHECKING

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, GetPromptRequestParams
from pydantic import ValidationError

from hermes.core.context import Cancellation, ToolContext
from hermes.core.entry import ToolCall
from hermes.mcp.server import client_requests, notifications
from hermes.mcp.server.client_requests import ClientFeatures, ClientRequests
from hermes.mcp.server.http_guard import GONE
from hermes.mcp.server.notifications import Progress
from hermes.runtime.parallel import claims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mcp.server.context import ServerRequestContext
    from mcp_types import (
        CallToolRequestParams,
        ElicitRequestFormParams,
        InputRequiredResult,
    )

    from hermes.core.context import Answer, ApprovalRequest
    from hermes.core.entry import ToolOutcome
    from hermes.mcp.server.client_requests import Request
    from hermes.mcp.server.sessions import Session
    from hermes.runtime.parallel import Turn

    Context = ServerRequestContext[Any, Any]

# How long a person has to answer.
ASK_SECONDS = 600.0
# How long a call that is told to stop is waited for; the runtime gives up on it before that.
_END_SECONDS = 5.0


class Call:
    """A call of a client, from its first request to its outcome."""

    def __init__(
        self,
        session: Session,
        tool: str,
        params: CallToolRequestParams | GetPromptRequestParams,
        ctx: Context,
    ) -> None:
        self.kind = type(params)
        self.name = params.name
        self.arguments = params.arguments
        self._tool = tool
        self.cancellation = Cancellation()
        self._id = f"mcp_{secrets.token_hex(6)}"
        self._claims: list[tuple[str, bool]] = []
        self._session = session
        self._ctx = ctx
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._questions = ClientRequests(lambda: session.park(self), self._tell)
        self._borrowed = ClientFeatures(ctx, self._put)
        # Its place in the row of calls that use the same things.
        self._turn: Turn | None = None
        # Whether it waits for one of the places for calls that run at once; whether it has one.
        self._queued = self._inside = False
        # How many of its questions are open.
        self._asking = 0
        # Two that end together come back in once.
        self._entering = asyncio.Lock()
        # Done when there is something to tell the client: a question, or the end.
        self._news: asyncio.Future[None] = self._loop.create_future()
        self._progress: Progress | None = None
        self._logs: notifications.Logs | None = None
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._ended)

    async def attend(self, ctx: Context) -> ToolOutcome | InputRequiredResult:
        """Wait, for one request of the client, until the call has ended or asks something.

        A client that cancels, or goes away, ends the call.
        """
        self._ctx = ctx
        if self._progress is not None:
            self._progress.attend(ctx.session)
        if self._logs is not None:
            self._logs.attend(ctx)
        gone = None if ctx.request is None else ctx.request.scope.get(GONE)
        forget = None if gone is None else gone.then(self._left)
        try:
            while True:
                await self._news
                if self._task.done():
                    return self._task.result()
                self._news = self._loop.create_future()
                asked = self._questions.result()
                if asked is not None:
                    return asked
        except asyncio.CancelledError:
            if self._task.cancelled():
                raise
            self.cancellation.cancel("the client cancelled it")
            if self._queued:
                self._task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._task], timeout=_END_SECONDS)
            raise
        finally:
            if forget is not None:
                forget()

    async def _told(self) -> None:
        """Wait until all progress so far is sent."""
        for each in (self._progress, self._logs):
            if each is not None:
                await each.told()

    def answer(self, responses: Mapping[str, Any] | None) -> None:
        """Continue with the client's answers; without one, the client is asked again."""
        self._questions.answer(responses)

    def objection(self, outcome: ToolOutcome) -> MCPError | None:
        """The client capability that the call needed and the client lacks."""
        return self._borrowed.objection(str(outcome.error))

    def _tell(self) -> None:
        if not self._news.done():
            self._news.set_result(None)

    def _left(self) -> None:
        # In the older era, nothing but the connection says so.
        self.cancellation.cancel("the client went away")

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    async def _run(self) -> ToolOutcome:
        session, ctx = self._session, self._ctx
        call = ToolCall(self._tool, self.arguments, id=self._id)
        services = session.offering.services.replace(**self._borrowed.services)
        if self.kind is GetPromptRequestParams:
            # It is none of the tools that are offered.
            services.offer = None
        approver = None
        if client_requests.can_ask(ctx):
            approver = self._approve
            services.ask_person, services.show_form = self._ask_person, self._show_form
        if ctx.meta is not None and "progress_token" in ctx.meta:
            self._progress = Progress(session.runtime.events, call.id, ctx.session)
        level = notifications.level_for(ctx, session.log_level)
        if level is not None:
            self._logs = notifications.Logs(session.runtime, call.id, ctx, level)
        context = ToolContext(
            task=session.task,
            session_id=session.id,
            front_door="mcp",
            approver=approver,
            cancellation=self.cancellation,
            services=services,
        )
        try:
            self._claims = claims(session.runtime, call, context)
            self._queued = True
            await self._enter()
            self._queued = False
            return await session.runtime.call(call, context)
        finally:
            self._leave()
            if self._progress is not None:
                await self._progress.close()
            if self._logs is not None:
                await self._logs.close()

    async def _enter(self) -> None:
        """Wait for the resources of the call, then for one of the slots of concurrent calls."""
        async with self._entering:
            if self._inside:
                return
            if self._turn is None:
                self._turn = self._session.turns.take(self._claims)
                await self._turn.come()
            await self._session.room.acquire()
            self._inside = True
            if self._asking:
                # Something else was asked meanwhile.
                self._leave(begun=True)

    def _leave(self, *, begun: bool = False) -> None:
        """Free the slot for other calls; the resources of a started call stay claimed."""
        if self._inside:
            self._inside = False
            self._session.room.release()
        if self._turn is not None and not begun:
            self._turn.end()
            self._turn = None

    def _ended(self, task: asyncio.Task[ToolOutcome]) -> None:
        self._session.ended(self)
        self._tell()
        if not task.cancelled():
            # Looked at here, or a call that nobody waits for any more would be reported as a bug.
            task.exception()

    async def _approve(self, request: ApprovalRequest) -> Answer | None:
        """Ask whether the call may run."""
        who = f"mcp client {client_requests.client_name(self._ctx)}"
        # Asked about a call that this one makes, it is in the middle of its own work.
        begun = request.call_id != self._id
        form = ElicitRequest(params=client_requests.approval_form(request))
        said = await self._ask(form, "approval", begun=begun)
        return client_requests.decided(request, said, by=who)

    def _ask_person(self, question: str, choices: list[str]) -> Any:
        """`clarify` for a handler; empty without an answer."""
        return self._shown(
            client_requests.question_form(question, choices), "answer", client_requests.answered
        )

    def _show_form(self, message: str, schema: dict[str, Any], name: str = "form") -> Any:
        """A form for a handler; its values, or None when it was not submitted."""
        return self._shown(client_requests.form(message, schema), name, client_requests.accepted)

    def _shown(
        self, form: ElicitRequestFormParams, name: str, read: Callable[[Any], object]
    ) -> Any:
        """The values of a form: directly for a handler in a thread, else as an awaitable."""

        async def asked() -> object:
            return read(await self._ask(ElicitRequest(params=form), name))

        if threading.get_ident() == self._thread:
            return asked()
        waiting = asyncio.run_coroutine_threadsafe(asked(), self._loop)
        forget = self.cancellation.on_cancel(waiting.cancel)
        try:
            return waiting.result()
        except concurrent.futures.CancelledError:
            return read(None)
        finally:
            forget()

    async def _put(self, request: Request, name: str) -> Any:
        """The same for a handler, whichever loop it runs in."""
        asked = self._ask(request, name)
        if asyncio.get_running_loop() is self._loop:
            return await asked
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, self._loop))

    async def _ask(self, request: Request, name: str, *, begun: bool = True) -> Any:
        """The client's answer to a request; None when it reached no one."""
        # People take their time; other calls may run meanwhile.
        self._asking += 1
        self._leave(begun=begun)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                # What was said before is heard before: the request may end with the question.
                await self._told()
                return await self._questions.put(self._ctx, request, name)
        except (TimeoutError, MCPError, ValidationError, anyio.ClosedResourceError):
            return None
        finally:
            self._asking -= 1
            if not self._asking:
                await self._enter()

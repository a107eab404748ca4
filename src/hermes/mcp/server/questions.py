"""What one call asks of its client: a form, its model, its folders; in the way of its era.

In the older era a question is a request of ours, answered while the client's request waits. In the
newer one a server may not ask: the client's request is answered with the questions that are open,
the call is parked, and the client comes back with the answers and the mark that it was given.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from hermes.mcp.server.sessions import Context

    Request = ElicitRequest | CreateMessageRequest | ListRootsRequest

_ANSWERS: dict[type[Any], tuple[type[Any], ...]] = {
    ElicitRequest: (ElicitResult,),
    CreateMessageRequest: (CreateMessageResult, CreateMessageResultWithTools),
    ListRootsRequest: (ListRootsResult,),
}


class Questions:
    """The questions of one call that are open.

    `park` keeps the call for its client to come back to, and gives the mark to come back with;
    `tell` says that there is something to be told.
    """

    def __init__(self, park: Callable[[], str], tell: Callable[[], None]) -> None:
        self._park = park
        self._tell = tell
        self._mark = ""
        self._open: dict[str, tuple[Request, asyncio.Future[Any]]] = {}

    async def put(self, ctx: Context, request: Request, name: str) -> Any:
        """What the client answers; None where it can't be told, or its answer is none."""
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
        said: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[key] = request, said
        self._tell()
        try:
            return await said
        finally:
            del self._open[key]

    def result(self) -> InputRequiredResult | None:
        """All that is open, as the answer to a request; None where nothing is."""
        waiting = {key: request for key, (request, said) in self._open.items() if not said.done()}
        if not waiting:
            return None
        return InputRequiredResult(input_requests=waiting, request_state=self._mark)

    def answer(self, responses: Mapping[str, Any] | None) -> None:
        """Take what the client brought, with a mark that counts no more."""
        self._mark = ""
        left = False
        for key, (request, said) in tuple(self._open.items()):
            answer = (responses or {}).get(key)
            if said.done():
                continue
            if isinstance(answer, _ANSWERS[type(request)]):
                said.set_result(answer)
            else:
                left = True
        if left:
            # It is asked again for what it did not bring.
            self._mark = self._park()
            if self._mark:
                self._tell()
                return
            for _, said in tuple(self._open.values()):
                if not said.done():
                    said.set_result(None)

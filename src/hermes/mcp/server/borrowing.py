"""What handlers may borrow from the client of a call: its model, and the names of its folders.

A client that has not offered one of these is not asked for it. In the newer era a request that
can't be done without is answered with what is missing, as the protocol wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

from hermes.core.errors import UnavailableError
from hermes.mcp.texts import whole

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from hermes.mcp.server.sessions import Context

    Put = Callable[[Any, str], Awaitable[Any]]

# About how many bytes of text are a token.
_TOKEN_BYTES = 3.5


class Borrowed:
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
        """What the client's model says: its text, its name, and about how many tokens it took."""
        self._require("sampling", offered=self._sampling)
        said = [
            SamplingMessage(
                role="assistant" if one["role"] == "assistant" else "user",
                content=TextContent(text=whole(one["text"])),
            )
            for one in messages
        ]
        params = CreateMessageRequestParams(
            messages=said, system_prompt=whole(system) or None, max_tokens=max_tokens
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
        """The folders that the client says it works in. What they are is no permission."""
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
        """What a client is told whose request came to nothing for want of what it did not offer."""
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

    def __init__(self, borrowed: Borrowed) -> None:
        self.offered = True
        self._borrowed = borrowed

    async def __call__(
        self, messages: Sequence[dict[str, str]], **options: Any
    ) -> tuple[str, str, int]:
        """As `Borrowed.sample`."""
        return await self._borrowed.sample(messages, **options)

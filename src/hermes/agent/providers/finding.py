"""What could be asked from here: keys in the environment, servers on this machine; and a try."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from hermes.agent.providers.protocol import Done, ModelError, Request
from hermes.agent.providers.services import SERVICES
from hermes.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes.agent.providers.protocol import Provider
    from hermes.agent.providers.services import Service
    from hermes.core.messages import Usage

_LOOK_SECONDS = 1.5
_WORD = "ready"
_TOOL = {
    "type": "function",
    "function": {
        "name": "report",
        "description": "Report a word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
}


class Candidate:
    """A service that could be used, and why."""

    __slots__ = ("model", "service", "why")

    def __init__(self, service: Service, model: str, why: str) -> None:
        self.service = service
        self.model = model
        self.why = why

    @property
    def spec(self) -> str:
        """How it is named to `choose`."""
        return f"{self.service.name}/{self.model}"


class Trial:
    """How a model did when it was asked to call a tool."""

    __slots__ = ("called", "done", "seconds")

    def __init__(self, done: Done, seconds: float, *, called: bool) -> None:
        self.done = done
        self.seconds = seconds
        self.called = called

    @property
    def usage(self) -> Usage:
        """What it cost."""
        return self.done.usage


def with_keys(environ: Mapping[str, str]) -> list[Candidate]:
    """The services that the environment has a key or an address for; nobody is asked."""
    found = []
    for service in SERVICES:
        names = (*service.keys, *service.addresses)
        said = next((name for name in names if environ.get(name, "").strip()), None)
        if said and service.model:
            found.append(Candidate(service, service.model, said))
    return found


async def candidates(environ: Mapping[str, str]) -> list[Candidate]:
    """Everything that could be asked from here; servers are asked for their models."""
    keyed, local = await asyncio.gather(_checked(with_keys(environ), environ), on_this_machine())
    return [*keyed, *local]


async def _checked(found: list[Candidate], environ: Mapping[str, str]) -> list[Candidate]:
    """The same with a model that is there: who gave an address has a server of their own."""
    for candidate in found:
        service = candidate.service
        address = service.own_address(environ)
        if address:
            key, wire = service.key(environ), service.wire
            names = await _quietly(service.name, address, key=key, wire=wire)
            if names and candidate.model not in names:
                candidate.model = names[0]
    return found


async def on_this_machine(services: Iterable[Service] | None = None) -> list[Candidate]:
    """The model servers that answer on loopback, each with its first model."""
    local = [s for s in (SERVICES if services is None else services) if s.local]
    lists = await asyncio.gather(*(_quietly(s.name, s.base_url) for s in local))
    return [
        Candidate(service, names[0], f"{service.base_url}, {len(names)} models")
        for service, names in zip(local, lists, strict=True)
        if names
    ]


async def _quietly(name: str, base_url: str, *, key: str = "", wire: str = "chat") -> list[str]:
    try:
        return await models_at(base_url, name=name, key=key, wire=wire, seconds=_LOOK_SECONDS)
    except ModelError:
        return []


async def models_at(
    base_url: str, *, name: str, key: str = "", wire: str = "chat", seconds: float = 20.0
) -> list[str]:
    """The names of the models that a server has."""
    import httpx2
    import msgspec

    from hermes.agent.providers.connection import is_loopback, shown_url
    from hermes.agent.providers.trouble import Later, refusal

    base_url = base_url.rstrip("/")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if wire == "anthropic":
        base_url = f"{base_url.removesuffix('/v1')}/v1"
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    where = f"{base_url}/models"
    try:
        async with httpx2.AsyncClient(
            timeout=seconds, trust_env=not is_loopback(base_url)
        ) as client:
            response = await client.get(where, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        message = f"{name} can't be reached at {shown_url(base_url)} ({type(error).__name__})"
        raise ModelError(message, hint="Look at the address, and whether it runs.") from None
    if response.status_code != 200:
        body = response.content.replace(key.encode(), b"***") if key else response.content
        found = refusal(response.status_code, response.headers, body, where=name, model="models")
        raise found.error if isinstance(found, Later) else found
    try:
        data = msgspec.json.decode(response.content)
        return sorted(str(item["id"]) for item in data["data"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise ModelError(f"{name} has no list of models at {shown_url(where)}") from None


async def try_out(provider: Provider) -> Trial:
    """Ask a model to call a tool: one real request."""
    began = time.monotonic()
    request = Request(
        (
            Message("system", "You call tools."),
            Message("user", f"Call the tool `report` with the word `{_WORD}`."),
        ),
        (_TOOL,),
        max_tokens=2000,
    )
    try:
        async for event in provider.stream(request):
            if isinstance(event, Done):
                called = any(use.name == "report" for use in event.message.calls)
                return Trial(event, time.monotonic() - began, called=called)
    finally:
        await provider.close()
    raise ModelError(f"{provider.name} ended without an answer")

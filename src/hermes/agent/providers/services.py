"""Model services by name: address, key and API of each; keys and local servers found; probes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from hermes.core.model_protocol import Done, Message, ModelError, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes.core.model_protocol import Provider, Usage


class Service(msgspec.Struct, frozen=True):
    """A service or local server with models."""

    name: str
    base_url: str
    # Default model; empty for a local server.
    model: str = ""
    # Environment variables for the key and the address; the first that is set counts.
    keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    wire: str = "chat"
    # Has models of many vendors, named `vendor/model`.
    many_vendors: bool = False
    local: bool = False
    port: int = 0

    def key(self, environ: Mapping[str, str]) -> str:
        """The key from the environment, or ""."""
        return next((k for name in self.keys if (k := environ.get(name, "").strip())), "")

    def env_address(self, environ: Mapping[str, str]) -> str:
        """The address from the environment, or ""."""
        address = next((u for name in self.addresses if (u := environ.get(name, "").strip())), "")
        return _as_url(address, self.port) if address else ""


# In order of preference: name, address, default model, variables of the key (OPENAI_API_KEY); "+"
# for a service with models of many vendors. OPENAI_BASE_URL and the like override the address.
_TABLE = """
openai https://api.openai.com/v1 gpt-5.1 OPENAI
anthropic https://api.anthropic.com claude-sonnet-4-5 ANTHROPIC
openrouter https://openrouter.ai/api/v1 deepseek/deepseek-chat OPENROUTER +
nous https://inference-api.nousresearch.com/v1 Hermes-4-405B NOUS +
deepseek https://api.deepseek.com/v1 deepseek-chat DEEPSEEK
qwen https://dashscope-intl.aliyuncs.com/compatible-mode/v1 qwen-plus DASHSCOPE,QWEN
zai https://api.z.ai/api/paas/v4 glm-4.6 ZAI,GLM,ZHIPUAI
moonshot https://api.moonshot.ai/v1 kimi-latest MOONSHOT,KIMI
minimax https://api.minimax.io/v1 MiniMax-M2 MINIMAX
mistral https://api.mistral.ai/v1 mistral-medium-latest MISTRAL
gemini https://generativelanguage.googleapis.com/v1beta/openai gemini-2.5-flash GEMINI,GOOGLE
xai https://api.x.ai/v1 grok-4 XAI
groq https://api.groq.com/openai/v1 openai/gpt-oss-120b GROQ +
together https://api.together.xyz/v1 Qwen/Qwen3-235B-A22B-Instruct-2507-tput TOGETHER +
fireworks https://api.fireworks.ai/inference/v1 accounts/fireworks/models/deepseek-v3p1 FIREWORKS +
"""
_ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "qwen": ("DASHSCOPE_BASE_URL", "QWEN_BASE_URL"),
    "zai": ("ZAI_BASE_URL", "GLM_BASE_URL"),
    "moonshot": ("MOONSHOT_BASE_URL", "KIMI_BASE_URL"),
}
_LOCAL = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}


def _service(line: str) -> Service:
    name, url, model, keys, *many = line.split()
    return Service(
        name,
        url,
        model,
        keys=tuple(f"{key}_API_KEY" for key in keys.split(",")),
        addresses=_ADDRESSES.get(name, (f"{name.upper()}_BASE_URL",)),
        wire="anthropic" if name == "anthropic" else "chat",
        many_vendors=bool(many),
    )


SERVICES: tuple[Service, ...] = (
    *map(_service, _TABLE.strip().splitlines()),
    *(
        Service(
            name,
            f"http://127.0.0.1:{port}/v1",
            addresses=("OLLAMA_HOST",) if name == "ollama" else (),
            many_vendors=True,
            local=True,
            port=port,
        )
        for name, port in _LOCAL.items()
    ),
    # Any other server with one of the three APIs; the address comes from the settings.
    Service("custom", "", keys=("HERMES_MODEL_KEY",), many_vendors=True),
)
BY_NAME = {service.name: service for service in SERVICES}


def _as_url(address: str, port: int) -> str:
    """An address as a URL; `OLLAMA_HOST` may be a bare host, or a listening address."""
    if "://" in address:
        return address
    host, colon, number = address.rpartition(":")
    if not colon or not number.isdecimal():
        host, number = address, str(port or 80)
    host = "127.0.0.1" if host in ("", "0.0.0.0", "[::]") else host
    return f"http://{host}:{number}/v1"


_PROBE_SECONDS = 1.5
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


class Candidate(msgspec.Struct):
    """A service that could be used, and the variable or address that says so."""

    service: Service
    model: str
    why: str

    @property
    def spec(self) -> str:
        """Its name for `--model`."""
        return f"{self.service.name}/{self.model}"


class ProbeResult(msgspec.Struct):
    """Result of a probe: the answer, and whether the model called the tool."""

    done: Done
    seconds: float
    called: bool

    @property
    def usage(self) -> Usage:
        """The tokens of the probe."""
        return self.done.usage


def keyed_candidates(environ: Mapping[str, str]) -> list[Candidate]:
    """The services with a key or an address in the environment; no request is sent."""
    candidates = []
    for service in SERVICES:
        names = (*service.keys, *service.addresses)
        variable = next((name for name in names if environ.get(name, "").strip()), None)
        if variable and service.model:
            candidates.append(Candidate(service, service.model, variable))
    return candidates


async def candidates(environ: Mapping[str, str]) -> list[Candidate]:
    """All usable services; servers are asked for their lists of models."""
    keyed, local = await asyncio.gather(
        _checked(keyed_candidates(environ), environ), local_candidates()
    )
    return [*keyed, *local]


async def _checked(candidates: list[Candidate], environ: Mapping[str, str]) -> list[Candidate]:
    """The candidates, each with a model that its server has where an address is set."""
    for candidate in candidates:
        service = candidate.service
        address = service.env_address(environ)
        if address:
            key, wire = service.key(environ), service.wire
            names = await _models_or_none(service.name, address, key=key, wire=wire)
            if names and candidate.model not in names:
                candidate.model = names[0]
    return candidates


async def local_candidates(services: Iterable[Service] | None = None) -> list[Candidate]:
    """The model servers on loopback, each with its first model."""
    local = [s for s in (SERVICES if services is None else services) if s.local]
    lists = await asyncio.gather(*(_models_or_none(s.name, s.base_url) for s in local))
    return [
        Candidate(service, names[0], f"{service.base_url}, {len(names)} models")
        for service, names in zip(local, lists, strict=True)
        if names
    ]


async def _models_or_none(
    name: str, base_url: str, *, key: str = "", wire: str = "chat"
) -> list[str]:
    try:
        return await list_models(base_url, name=name, key=key, wire=wire, seconds=_PROBE_SECONDS)
    except ModelError:
        return []


async def list_models(
    base_url: str, *, name: str, key: str = "", wire: str = "chat", seconds: float = 20.0
) -> list[str]:
    """The names of the models of a server."""
    import httpx2

    from hermes.agent.providers.connection import RetryLater, is_loopback, response_error, shown_url

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
        failure = response_error(
            response.status_code, response.headers, body, where=name, model="models"
        )
        raise failure.error if isinstance(failure, RetryLater) else failure
    try:
        data = msgspec.json.decode(response.content)
        return sorted(str(item["id"]) for item in data["data"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise ModelError(f"{name} has no list of models at {shown_url(where)}") from None


async def probe(provider: Provider) -> ProbeResult:
    """Send one real request, which asks the model to call a tool."""
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
                return ProbeResult(event, time.monotonic() - began, called)
    finally:
        await provider.close()
    raise ModelError(f"{provider.name} ended without an answer")

"""Model choice: from the option, the environment and the settings; with a fallback to the next
one.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from hermes.agent.providers.model_profiles import profile_of
from hermes.agent.providers.services import BY_NAME, SERVICES, Service
from hermes.core.errors import ConfigError
from hermes.core.model_protocol import Discarded, ModelError, WindowError
from hermes.core.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from typing import Any

    from hermes.core.config import Config
    from hermes.core.model_protocol import Event, Provider, Request


# How long one that failed for a passing reason is left alone.
_REST_SECONDS = 60.0


class Fallback:
    """A `Provider` made of several; a model that failed is asked again after a while.

    `name`, `model` and `window` are those of the model that would be asked next.
    """

    def __init__(
        self, providers: Sequence[Provider], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not providers:
            raise ValueError("a Fallback needs at least one model")
        self.providers = list(providers)
        self._clock = clock
        self._until: dict[int, float] = {}

    @property
    def name(self) -> str:
        """The service of the model in use."""
        return self.providers[self._order()[0]].name

    @property
    def model(self) -> str:
        """The model in use."""
        return self.providers[self._order()[0]].model

    @property
    def window(self) -> int:
        """The window of the model in use."""
        return self.providers[self._order()[0]].window

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask the first that can answer."""
        order = self._order()
        for place, number in enumerate(order):
            provider = self.providers[number]
            try:
                # `Provider` promises an iterator only; what closes at once is closed at once.
                events = cast("AsyncGenerator[Event, None]", provider.stream(request))
                async with aclosing(events):
                    async for event in events:
                        yield event
            except WindowError:
                # Another model would lose the conversation just the same; shortening helps.
                raise
            except ModelError as error:
                self._rest(number, error)
                if place + 1 == len(order):
                    raise
                following = self.providers[order[place + 1]]
                yield Discarded(f"{error}; asking {following.model} ({following.name})")
            else:
                self._until.pop(number, None)
                return

    async def close(self) -> None:
        """Close all of them."""
        for provider in self.providers:
            await provider.close()

    def _rest(self, number: int, error: ModelError) -> None:
        # A wrong key or name stays wrong.
        seconds = _REST_SECONDS if error.retryable else float("inf")
        self._until[number] = self._clock() + seconds

    def _order(self) -> list[int]:
        """Those in good health in order, then the others: asking them is better than nothing."""
        now = self._clock()
        numbers = range(len(self.providers))
        return sorted(numbers, key=lambda number: self._until.get(number, 0.0) > now)


EMBEDDED = "embedded"
_WIRES = ("chat", "responses", "anthropic")


class Choice:
    """A model, where it is, and how it was chosen."""

    __slots__ = ("base_url", "key", "model", "service", "why", "wire")

    def __init__(
        self, service: str, model: str, base_url: str, *, key: str, wire: str, why: str
    ) -> None:
        self.service = service
        self.model = model
        self.base_url = base_url
        self.key = key
        self.wire = wire
        self.why = why


def choose(config: Config, environ: Mapping[str, str], option: str | None = None) -> list[Provider]:
    """The models to ask, in order: the chosen one, then those to fall back on.

    Args:
        config: The settings; `model.*` counts.
        environ: The environment: keys, addresses and `HERMES_MODEL`.
        option: What was typed: a model's name, or `service/name`.
    """
    chosen = choice(config, environ, option)
    if chosen is None:
        return [_embedded()]
    choices = [chosen]
    for name in setting(config, "model.fallbacks", []):
        if name == EMBEDDED:
            continue
        found = _named(name, config, environ, "model.fallbacks")
        if (found.service, found.model) != (chosen.service, chosen.model):
            choices.append(found)
    return [provider(found, config, environ) for found in choices]


def chosen(config: Config, environ: Mapping[str, str], option: str | None = None) -> Provider:
    """The model to ask; one that stands for several when there are some to fall back on."""
    providers = choose(config, environ, option)
    if len(providers) == 1:
        return providers[0]

    return Fallback(providers)


def choice(config: Config, environ: Mapping[str, str], option: str | None = None) -> Choice | None:
    """The chosen model; None when that is the embedded one."""
    wanted = ((option, "the option"), (environ.get("HERMES_MODEL"), "HERMES_MODEL"))
    for name, why in wanted:
        if name and name.strip():
            if name.strip() == EMBEDDED:
                return None
            return _named(name.strip(), config, environ, why)
    name = str(setting(config, "model.name", ""))
    service = str(setting(config, "model.provider", ""))
    if EMBEDDED in (name, service):
        return None
    if service or setting(config, "model.base_url", ""):
        return _at(_service(service, config), name, config, environ, "the settings")
    if name:
        return _named(name, config, environ, "model.name")
    for found in SERVICES:
        if found.keys and _usable(found, environ):
            return _at(found, "", config, environ, _found_by(found, environ))
    return None


def provider(found: Choice, config: Config, environ: Mapping[str, str]) -> Provider:
    """A choice as something that can be asked."""
    import msgspec

    from hermes.agent.providers.http_model import RemoteModel

    profile = profile_of(found.model)
    if window := setting(config, "model.window", 0):
        profile = msgspec.structs.replace(profile, window=int(window))
    return RemoteModel(
        found.service,
        found.model,
        found.base_url,
        key=found.key,
        wire=found.wire,
        profile=profile,
        idle_timeout=idle_timeout(config, environ),
    )


def idle_timeout(config: Config, environ: Mapping[str, str]) -> float | None:
    """How long a model may be silent, if anybody said; None means the usual."""
    said: Any = environ.get("HERMES_MODEL_IDLE_TIMEOUT") or _raw(config, "model.idle_timeout")
    if said in (None, ""):
        return None
    try:
        seconds = float(said)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(
            f"the idle timeout of the model must be seconds, not {said!r:.40}",
            hint="HERMES_MODEL_IDLE_TIMEOUT=60",
        )
    return seconds


def setting(config: Config, name: str, default: Any) -> Any:
    """A setting, or a default where nobody declared it."""
    from hermes.core.config import DEFAULTS

    if name in DEFAULTS:
        return config.get(name)
    value = _raw(config, name)
    return default if value is None else value


def _raw(config: Config, name: str) -> Any:
    value: Any = config.values
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


# -- a name and the place it is meant for -------------------------------------------------------


def _named(name: str, config: Config, environ: Mapping[str, str], why: str) -> Choice:
    """The model of a name: at the service that it names, its maker's, or one that has them all."""
    for mark in ("/", ":"):
        first, found, rest = name.partition(mark)
        service = BY_NAME.get(first)
        # `openai/gpt-5` is also a name that services with models of many makers know.
        if found and service and (service.local or _usable(service, environ, config)):
            return _at(service, rest, config, environ, why)
    if name in BY_NAME:
        return _at(BY_NAME[name], "", config, environ, why)
    settings = str(setting(config, "model.provider", ""))
    if name == setting(config, "model.name", "") and settings:
        return _at(_service(settings, config), name, config, environ, why)
    maker = BY_NAME.get(profile_of(name).service)
    if maker and "/" not in name and _usable(maker, environ):
        return _at(maker, name, config, environ, why)
    if settings or setting(config, "model.base_url", ""):
        return _at(_service(settings, config), name, config, environ, why)
    usable = [found for found in SERVICES if found.keys and _usable(found, environ)]
    # Best one that has everything, or an address that somebody gave on purpose.
    usable.sort(key=lambda found: not (found.gathers or found.own_address(environ)))
    if usable:
        return _at(usable[0], name, config, environ, why)
    raise _nowhere(name, BY_NAME.get(name.partition("/")[0]) or maker)


def _at(
    service: Service, model: str, config: Config, environ: Mapping[str, str], why: str
) -> Choice:
    """A model at a service; raises `ModelError` where a key or an address is missing."""
    ours = _settings_are_for(service, config)
    base_url = service.own_address(environ)
    if not base_url and ours:
        base_url = str(setting(config, "model.base_url", ""))
    base_url = base_url or service.base_url
    if not base_url:
        raise ModelError(
            f"nobody said where {model or 'the model'} is",
            hint="hermes config set model.base_url https://…/v1",
        )
    key = service.key(environ)
    if ours and (variable := str(setting(config, "model.key_env", ""))):
        key = environ.get(variable, "").strip()
    if not key and base_url == service.base_url and not service.local:
        raise ModelError(
            f"{service.name} wants a key and there is none",
            hint=f"export {service.keys[0]}=…, or choose another model: hermes setup.",
        )
    name = model or (str(setting(config, "model.name", "")) if ours else "") or service.model
    if not name:
        raise ModelError(
            f"nobody said which model of {service.name} to ask",
            hint=f"hermes model list {service.name}, then hermes model use {service.name}/NAME.",
        )
    wire = str(setting(config, "model.api", "")) if ours else ""
    if wire and wire not in _WIRES:
        raise ConfigError(f"model.api must be one of {', '.join(_WIRES)}, not {wire!r:.40}")
    if not wire:
        official = base_url == service.base_url == BY_NAME["openai"].base_url
        wire = "responses" if official and profile_of(name).responses_only else service.wire
    return Choice(service.name, name, base_url, key=key, wire=wire, why=why)


def _settings_are_for(service: Service, config: Config) -> bool:
    """Whether address, key and API in the settings are meant for this service."""
    named = str(setting(config, "model.provider", ""))
    if not named:
        return service.name in ("openai", "custom") and bool(setting(config, "model.base_url", ""))
    return named == service.name


def _service(name: str, config: Config) -> Service:
    if not name and setting(config, "model.base_url", ""):
        return BY_NAME["custom"]
    if name not in BY_NAME:
        hint = did_you_mean(name, BY_NAME, f"There are: {', '.join(BY_NAME)}.")
        raise ConfigError(f"model.provider is {name!r:.40}, which is no service", hint=hint)
    return BY_NAME[name]


def _usable(service: Service, environ: Mapping[str, str], config: Config | None = None) -> bool:
    """Whether a key or an address says that a service is meant to be used."""
    if service.key(environ) or service.own_address(environ):
        return service.name != "custom" or config is not None
    return config is not None and _settings_are_for(service, config)


def _found_by(service: Service, environ: Mapping[str, str]) -> str:
    names = (*service.keys, *service.addresses)
    return next((name for name in names if environ.get(name)), service.name)


def _nowhere(name: str, maker: Service | None) -> ModelError:
    keys = [maker.keys[0]] if maker and maker.keys else ["OPENAI_API_KEY", "OPENROUTER_API_KEY"]
    return ModelError(
        f"nothing here can ask {name!r:.80}: there is no key and no server",
        hint=f"Set {' or '.join(keys)}, name a server (ollama/{name[:40]}), or: hermes setup.",
    )


def _embedded() -> Provider:
    """The model that needs no key and no server."""
    from hermes.embedded import embedded_model

    return embedded_model()

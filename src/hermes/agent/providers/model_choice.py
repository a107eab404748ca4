"""Model choice: from option, environment and settings; with a fallback to the next model."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import msgspec

from hermes.agent.providers.model_profiles import profile_of
from hermes.agent.providers.services import BY_NAME, SERVICES, Service
from hermes.core.errors import ConfigError, did_you_mean
from hermes.core.model_protocol import Discarded, ModelError, WindowError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from typing import Any

    from hermes.core.config import Config
    from hermes.core.model_protocol import Event, Provider, Request


# Pause for a model after a transient error.
_REST_SECONDS = 60.0


class Fallback:
    """A `Provider` of several models: after an error the next one is asked.

    `name`, `model` and `window` are those of the model that is asked first at the moment.
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
        """Ask the models in order until one answers."""
        order = self._order()
        for position, number in enumerate(order):
            provider = self.providers[number]
            try:
                # Closed at once if it is a generator, which `Provider` does not promise.
                events = cast("AsyncGenerator[Event, None]", provider.stream(request))
                async with aclosing(events):
                    async for event in events:
                        yield event
            except WindowError:
                # Compaction helps here, another model does not.
                raise
            except ModelError as error:
                self._rest(number, error)
                if position + 1 == len(order):
                    raise
                following = self.providers[order[position + 1]]
                yield Discarded(f"{error}; asking {following.model} ({following.name})")
            else:
                self._until.pop(number, None)
                return

    async def close(self) -> None:
        """Close all models."""
        for provider in self.providers:
            await provider.close()

    def _rest(self, number: int, error: ModelError) -> None:
        # A wrong key or model name does not become right.
        seconds = _REST_SECONDS if error.retryable else float("inf")
        self._until[number] = self._clock() + seconds

    def _order(self) -> list[int]:
        """Models without a recent error first, in order; then the others."""
        now = self._clock()
        numbers = range(len(self.providers))
        return sorted(numbers, key=lambda number: self._until.get(number, 0.0) > now)


EMBEDDED = "embedded"
_WIRES = ("chat", "responses", "anthropic")


class Choice(msgspec.Struct):
    """A chosen model: service, address, key, API, and the setting that chose it."""

    service: str
    model: str
    base_url: str
    key: str
    wire: str
    why: str


def chosen_providers(
    config: Config, environ: Mapping[str, str], option: str | None = None
) -> list[Provider]:
    """The models to ask, in order: the chosen one, then its fallbacks.

    Args:
        config: The settings; `model.*` counts.
        environ: The environment: keys, addresses and `HERMES_MODEL`.
        option: From the command line: a model's name, or `service/name`.
    """
    first = choice(config, environ, option)
    if first is None:
        return [_embedded()]
    choices = [first]
    for name in setting(config, "model.fallbacks", []):
        if name == EMBEDDED:
            continue
        fallback = _named(name, config, environ, "model.fallbacks")
        if (fallback.service, fallback.model) != (first.service, first.model):
            choices.append(fallback)
    return [provider(each, config, environ) for each in choices]


def chosen_provider(
    config: Config, environ: Mapping[str, str], option: str | None = None
) -> Provider:
    """The model to ask; a `Fallback` if the settings name more than one."""
    models = chosen_providers(config, environ, option)
    return models[0] if len(models) == 1 else Fallback(models)


def choice(config: Config, environ: Mapping[str, str], option: str | None = None) -> Choice | None:
    """The chosen model; None is the embedded one."""
    names = ((option, "the option"), (environ.get("HERMES_MODEL"), "HERMES_MODEL"))
    for name, why in names:
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
    for candidate in SERVICES:
        if candidate.keys and _usable(candidate, environ):
            return _at(candidate, "", config, environ, _found_by(candidate, environ))
    return None


def provider(choice: Choice, config: Config, environ: Mapping[str, str]) -> Provider:
    """The provider for a choice."""
    from hermes.agent.providers.http_model import HttpModel

    profile = profile_of(choice.model)
    if window := setting(config, "model.window", 0):
        profile = msgspec.structs.replace(profile, window=int(window))
    return HttpModel(
        choice.service,
        choice.model,
        choice.base_url,
        key=choice.key,
        wire=choice.wire,
        profile=profile,
        idle_timeout=idle_timeout(config, environ),
    )


def idle_timeout(config: Config, environ: Mapping[str, str]) -> float | None:
    """Seconds that a model may be silent, from environment or settings; None is the default."""
    value: Any = environ.get("HERMES_MODEL_IDLE_TIMEOUT") or _raw(config, "model.idle_timeout")
    if value in (None, ""):
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(
            f"the idle timeout of the model must be seconds, not {value!r:.40}",
            hint="HERMES_MODEL_IDLE_TIMEOUT=60",
        )
    return seconds


def setting(config: Config, name: str, default: Any) -> Any:
    """A setting; `default` if it is not declared."""
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


# -- model names ------------------------------------------------------------------------------


def _named(name: str, config: Config, environ: Mapping[str, str], why: str) -> Choice:
    """The service for a model name: the one it names, its vendor's, or one with many vendors."""
    for mark in ("/", ":"):
        first, separator, rest = name.partition(mark)
        service = BY_NAME.get(first)
        # `openai/gpt-5` is also a model name at services with many vendors.
        if separator and service and (service.local or _usable(service, environ, config)):
            return _at(service, rest, config, environ, why)
    if name in BY_NAME:
        return _at(BY_NAME[name], "", config, environ, why)
    settings = str(setting(config, "model.provider", ""))
    if name == setting(config, "model.name", "") and settings:
        return _at(_service(settings, config), name, config, environ, why)
    vendor = BY_NAME.get(profile_of(name).service)
    if vendor and "/" not in name and _usable(vendor, environ):
        return _at(vendor, name, config, environ, why)
    if settings or setting(config, "model.base_url", ""):
        return _at(_service(settings, config), name, config, environ, why)
    usable = [service for service in SERVICES if service.keys and _usable(service, environ)]
    # Preferably one with many vendors, or one whose address is set.
    usable.sort(key=lambda service: not (service.many_vendors or service.env_address(environ)))
    if usable:
        return _at(usable[0], name, config, environ, why)
    raise _no_service(name, BY_NAME.get(name.partition("/")[0]) or vendor)


def _at(
    service: Service, model: str, config: Config, environ: Mapping[str, str], why: str
) -> Choice:
    """A model of a service; raises `ModelError` if key, address or model name is missing."""
    configured = _settings_are_for(service, config)
    base_url = service.env_address(environ)
    if not base_url and configured:
        base_url = str(setting(config, "model.base_url", ""))
    base_url = base_url or service.base_url
    if not base_url:
        raise ModelError(
            f"the address of {model or 'the model'} is not set",
            hint="hermes config set model.base_url https://…/v1",
        )
    key = service.key(environ)
    if configured and (variable := str(setting(config, "model.key_env", ""))):
        key = environ.get(variable, "").strip()
    if not key and base_url == service.base_url and not service.local:
        raise ModelError(
            f"{service.name} wants a key and there is none",
            hint=f"export {service.keys[0]}=…, or choose another model: hermes setup.",
        )
    name = model or (str(setting(config, "model.name", "")) if configured else "") or service.model
    if not name:
        raise ModelError(
            f"no model of {service.name} is chosen",
            hint=f"hermes model list {service.name}, then hermes model use {service.name}/NAME.",
        )
    wire = str(setting(config, "model.api", "")) if configured else ""
    if wire and wire not in _WIRES:
        raise ConfigError(f"model.api must be one of {', '.join(_WIRES)}, not {wire!r:.40}")
    if not wire:
        official = base_url == service.base_url == BY_NAME["openai"].base_url
        wire = "responses" if official and profile_of(name).responses_only else service.wire
    return Choice(service.name, name, base_url, key=key, wire=wire, why=why)


def _settings_are_for(service: Service, config: Config) -> bool:
    """Whether address, key and API in the settings belong to this service."""
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
    """Whether a key or an address for a service is set."""
    if service.key(environ) or service.env_address(environ):
        return service.name != "custom" or config is not None
    return config is not None and _settings_are_for(service, config)


def _found_by(service: Service, environ: Mapping[str, str]) -> str:
    names = (*service.keys, *service.addresses)
    return next((name for name in names if environ.get(name)), service.name)


def _no_service(name: str, vendor: Service | None) -> ModelError:
    keys = [vendor.keys[0]] if vendor and vendor.keys else ["OPENAI_API_KEY", "OPENROUTER_API_KEY"]
    return ModelError(
        f"nothing here can ask {name!r:.80}: there is no key and no server",
        hint=f"Set {' or '.join(keys)}, name a server (ollama/{name[:40]}), or: hermes setup.",
    )


def _embedded() -> Provider:
    """The embedded model, which needs no key and no server."""
    from hermes.embedded import embedded_model

    return embedded_model()

"""Model families: context window, prices and quirks of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.model_protocol import Usage

Echo = Literal["", "calls", "all"]


class Prices(msgspec.Struct, frozen=True):
    """US dollars per million tokens; `cached` is input from a cache, `written` input to one."""

    input: float
    output: float
    cached: float = -1.0
    written: float = -1.0

    def cost(self, usage: Usage) -> float:
        """The cost of a request."""
        cached = self.input if self.cached < 0 else self.cached
        written = self.input if self.written < 0 else self.written
        fresh = max(usage.input - usage.cached - usage.written, 0)
        total = fresh * self.input + usage.cached * cached + usage.written * written
        return (total + usage.output * self.output) / 1_000_000


class Profile(msgspec.Struct, frozen=True):
    """Limits, prices and quirks of a model."""

    # Name of the vendor's own service in `services`.
    service: str = ""
    # Context window and longest answer in tokens; 0 if unknown.
    window: int = 0
    output: int = 8192
    prices: Prices | None = None
    # Tool calls and reasoning may come as plain text.
    text_calls: bool = True
    # Answers that are sent back with their reasoning.
    echo: Echo = ""
    # Reasoning model: takes no temperature, and `max_completion_tokens` instead of `max_tokens`.
    reasoning: bool = False
    # Call ids are nine letters and digits.
    nine_character_id: bool = False
    # No image input.
    no_images: bool = False
    # Prompt caching needs marks in the request.
    cache_marks: bool = False
    # Only available through the Responses API.
    responses_only: bool = False


def _family(service: str, window: int, output: int, *prices: float, **quirks: object) -> Profile:
    cost = Prices(*prices) if prices else None
    return msgspec.convert(
        {"service": service, "window": window, "output": output, "prices": cost, **quirks}, Profile
    )


_CLOSED = {"text_calls": False}
_GPT = {**_CLOSED, "reasoning": True}
_CLAUDE = {**_CLOSED, "cache_marks": True}
_K, _M = 1000, 1_000_000

# Prices are input, output, cached, written. They change: `model.prices` overrides them.
_FAMILIES: tuple[tuple[str, Profile], ...] = (
    # OpenAI
    (r"gpt-5(\.\d)?-pro|o[13]-pro|codex|deep-research", _family(
        "openai", 400 * _K, 128_000, 1.25, 10, 0.125, **_GPT, responses_only=True)),
    (r"gpt-5(\.\d)?-nano", _family("openai", 400 * _K, 128_000, 0.05, 0.4, 0.005, **_GPT)),
    (r"gpt-5(\.\d)?-mini", _family("openai", 400 * _K, 128_000, 0.25, 2, 0.025, **_GPT)),
    (r"gpt-5.*-chat", _family("openai", 128 * _K, 16_384, 1.25, 10, 0.125, **_CLOSED)),
    (r"gpt-5|gpt-[6-9]", _family("openai", 400 * _K, 128_000, 1.25, 10, 0.125, **_GPT)),
    (r"gpt-4\.1-nano", _family("openai", 1047576, 32_768, 0.1, 0.4, 0.025, **_CLOSED)),
    (r"gpt-4\.1-mini", _family("openai", 1047576, 32_768, 0.4, 1.6, 0.1, **_CLOSED)),
    (r"gpt-4\.1", _family("openai", 1047576, 32_768, 2, 8, 0.5, **_CLOSED)),
    (r"gpt-4o-mini", _family("openai", 128 * _K, 16_384, 0.15, 0.6, 0.075, **_CLOSED)),
    (r"gpt-4o|chatgpt", _family("openai", 128 * _K, 16_384, 2.5, 10, 1.25, **_CLOSED)),
    (r"gpt-4", _family("openai", 128 * _K, 4096, 10, 30, **_CLOSED)),
    (r"gpt-3", _family("openai", 16_385, 4096, 0.5, 1.5, **_CLOSED, no_images=True)),
    (r"o[134]-mini", _family("openai", 200 * _K, 100_000, 1.1, 4.4, 0.275, **_GPT)),
    (r"o[134]($|-)", _family("openai", 200 * _K, 100_000, 2, 8, 0.5, **_GPT)),
    (r"gpt-oss", _family("", 131_072, 32_768, 0.1, 0.5, no_images=True)),
    # Anthropic
    (r"claude.*haiku", _family("anthropic", 200 * _K, 64_000, 1, 5, 0.1, 1.25, **_CLAUDE)),
    (r"claude-3-opus|claude-opus-4([-.][01])?($|-20|@|:)", _family(
        "anthropic", 200 * _K, 32_000, 15, 75, 1.5, 18.75, **_CLAUDE)),
    (r"claude.*opus", _family("anthropic", 200 * _K, 64_000, 5, 25, 0.5, 6.25, **_CLAUDE)),
    (r"claude-3", _family("anthropic", 200 * _K, 8192, 3, 15, 0.3, 3.75, **_CLAUDE)),
    (r"claude", _family("anthropic", 200 * _K, 64_000, 3, 15, 0.3, 3.75, **_CLAUDE)),
    # Google, xAI
    (r"gemini.*flash-lite", _family("gemini", _M, 65_536, 0.1, 0.4, 0.025, **_CLOSED)),
    (r"gemini.*flash", _family("gemini", _M, 65_536, 0.3, 2.5, 0.075, **_CLOSED)),
    (r"gemini", _family("gemini", _M, 65_536, 1.25, 10, 0.31, **_CLOSED)),
    (r"grok.*fast|grok-code", _family("xai", 256 * _K, 30_000, 0.2, 0.5, 0.05, **_CLOSED)),
    (r"grok", _family("xai", 256 * _K, 30_000, 3, 15, 0.75, **_CLOSED)),
    # Open weights
    (r"hermes-?4.*405|hermes-?3.*405", _family("nous", 131_072, 16_384, 1, 3, no_images=True)),
    (r"hermes-\d|hermes-?[34]", _family("nous", 131_072, 16_384, 0.13, 0.4, no_images=True)),
    (r"deepseek-v4-pro", _family("deepseek", _M, 65_536, echo="calls", no_images=True)),
    (r"deepseek-v4", _family("deepseek", _M, 65_536, echo="calls", no_images=True)),
    (r"deepseek-r1-distill", _family("", 32_768, 8192, no_images=True)),
    (r"deepseek-(r1|reasoner)", _family(
        "deepseek", 128 * _K, 32_768, 0.28, 0.42, 0.028, echo="calls", no_images=True)),
    (r"deepseek", _family(
        "deepseek", 128 * _K, 8192, 0.28, 0.42, 0.028, echo="calls", no_images=True)),
    (r"qwen.*-vl", _family("qwen", 131_072, 8192, 0.2, 0.8)),
    (r"qwen3-coder|qwen.*-max|qwen.*-plus", _family(
        "qwen", 262_144, 65_536, 0.4, 1.6, no_images=True)),
    (r"qwen-?2\.5|qwen2", _family("qwen", 32_768, 8192, no_images=True)),
    (r"qwen|qwq", _family("qwen", 131_072, 16_384, no_images=True)),
    (r"glm-?4\.[5-9]v|glm.*v($|-)", _family("zai", 65_536, 16_384, 0.6, 1.8)),
    (r"glm", _family("zai", 200 * _K, 65_536, 0.6, 2.2, 0.11, echo="calls", no_images=True)),
    (r"kimi.*thinking|kimi-k2\.[5-9]", _family(
        "moonshot", 262_144, 32_768, 0.6, 2.5, 0.15, echo="calls")),
    (r"kimi|moonshot", _family("moonshot", 262_144, 16_384, 0.6, 2.5, 0.15, no_images=True)),
    (r"minimax", _family("minimax", 204_800, 65_536, 0.3, 1.2, 0.03, echo="calls", no_images=True)),
    (r"pixtral|mistral-(medium|small)|magistral", _family(
        "mistral", 131_072, 16_384, 0.4, 2, nine_character_id=True)),
    (r"mistral|mixtral|codestral|devstral|ministral", _family(
        "mistral", 131_072, 16_384, 0.4, 2, nine_character_id=True, no_images=True)),
    (r"llama-?4", _family("", 262_144, 16_384, 0.2, 0.6)),
    (r"llama-?3\.2.*vision", _family("", 131_072, 8192)),
    (r"llama", _family("", 131_072, 8192, no_images=True)),
    (r"gemma-?3", _family("", 131_072, 8192)),
    (r"gemma|phi|granite|command|nemotron|smollm|olmo", _family("", 32_768, 8192, no_images=True)),
)  # fmt: skip


def profile_of(model: str) -> Profile:
    """The profile of a model by its name, with or without a `vendor/` prefix."""
    name = model.lower().rpartition("/")[2]
    profile = _cache.get(name)
    if profile is None:
        matches = (profile for pattern, profile in _FAMILIES if _fits(pattern, name))
        profile = _cache[name] = next(matches, Profile())
    return profile


_cache: dict[str, Profile] = {}


def _fits(pattern: str, name: str) -> bool:
    # Compiling a pattern is slow: only those with a word of the name are compiled.
    words = re.findall("[a-z]{3,}", pattern)
    if words and not any(word in name for word in words):
        return False
    return re.search(rf"(?:^|[-_.:@~])(?:{pattern})", name) is not None


def prices_of(model: str, own: Iterable[str] = (), *, table: bool = True) -> Prices | None:
    """The prices of a model; None if unknown.

    Args:
        model: Its name, with or without a `vendor/` prefix.
        own: Lines of `model.prices`: a name (with `*` as wildcard), then dollars per million tokens
            of input, output and, optionally, cached input.
        table: Whether to look into the table of families too.
    """
    name = model.lower()
    for line in own:
        pattern, *numbers = line.replace("=", " ").split() or [""]
        if _name_matches(pattern.lower(), name):
            return _parse(numbers)
    return profile_of(model).prices if table else None


def _name_matches(pattern: str, name: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)


def _parse(numbers: list[str]) -> Prices | None:
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        return None
    return Prices(*values[:4]) if len(values) >= 2 else None

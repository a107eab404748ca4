"""Model families: context window, prices and quirks of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.core.messages import Usage

Echo = Literal["", "calls", "all"]


class Prices(msgspec.Struct, frozen=True):
    """US dollars per million tokens; `cached` is input from a cache, `written` input put there."""

    input: float
    output: float
    cached: float = -1.0
    written: float = -1.0

    def cost(self, usage: Usage) -> float:
        """What a request cost."""
        cached = self.input if self.cached < 0 else self.cached
        written = self.input if self.written < 0 else self.written
        fresh = max(usage.input - usage.cached - usage.written, 0)
        total = fresh * self.input + usage.cached * cached + usage.written * written
        return (total + usage.output * self.output) / 1_000_000


class Profile(msgspec.Struct, frozen=True):
    """What to expect of a model."""

    # The vendor's own service, as `services` calls it.
    service: str = ""
    # How many tokens a conversation, and one answer, may have; 0 when nobody said.
    window: int = 0
    output: int = 8192
    prices: Prices | None = None
    # Calls and reasoning may come as text.
    text_calls: bool = True
    # Which of its answers are sent back together with their reasoning.
    echo: Echo = ""
    # Thinks before it answers: no temperature, and the limit of the answer has another name.
    reasons: bool = False
    # Ids of calls have exactly nine letters and digits.
    nine_letters: bool = False
    # Sees no pictures.
    blind: bool = False
    # Wants marks for what it shall keep in its cache.
    cache_marks: bool = False
    # Answers the Responses API only.
    responses_only: bool = False


def _family(service: str, window: int, output: int, *prices: float, **habits: object) -> Profile:
    cost = Prices(*prices) if prices else None
    return msgspec.convert(
        {"service": service, "window": window, "output": output, "prices": cost, **habits}, Profile
    )


_CLOSED = {"text_calls": False}
_GPT = {**_CLOSED, "reasons": True}
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
    (r"gpt-3", _family("openai", 16_385, 4096, 0.5, 1.5, **_CLOSED, blind=True)),
    (r"o[134]-mini", _family("openai", 200 * _K, 100_000, 1.1, 4.4, 0.275, **_GPT)),
    (r"o[134]($|-)", _family("openai", 200 * _K, 100_000, 2, 8, 0.5, **_GPT)),
    (r"gpt-oss", _family("", 131_072, 32_768, 0.1, 0.5, blind=True)),
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
    (r"hermes-?4.*405|hermes-?3.*405", _family("nous", 131_072, 16_384, 1, 3, blind=True)),
    (r"hermes-\d|hermes-?[34]", _family("nous", 131_072, 16_384, 0.13, 0.4, blind=True)),
    (r"deepseek-v4-pro", _family("deepseek", _M, 65_536, echo="calls", blind=True)),
    (r"deepseek-v4", _family("deepseek", _M, 65_536, echo="calls", blind=True)),
    (r"deepseek-r1-distill", _family("", 32_768, 8192, blind=True)),
    (r"deepseek-(r1|reasoner)", _family(
        "deepseek", 128 * _K, 32_768, 0.28, 0.42, 0.028, echo="calls", blind=True)),
    (r"deepseek", _family(
        "deepseek", 128 * _K, 8192, 0.28, 0.42, 0.028, echo="calls", blind=True)),
    (r"qwen.*-vl", _family("qwen", 131_072, 8192, 0.2, 0.8)),
    (r"qwen3-coder|qwen.*-max|qwen.*-plus", _family("qwen", 262_144, 65_536, 0.4, 1.6, blind=True)),
    (r"qwen-?2\.5|qwen2", _family("qwen", 32_768, 8192, blind=True)),
    (r"qwen|qwq", _family("qwen", 131_072, 16_384, blind=True)),
    (r"glm-?4\.[5-9]v|glm.*v($|-)", _family("zai", 65_536, 16_384, 0.6, 1.8)),
    (r"glm", _family("zai", 200 * _K, 65_536, 0.6, 2.2, 0.11, echo="calls", blind=True)),
    (r"kimi.*thinking|kimi-k2\.[5-9]", _family(
        "moonshot", 262_144, 32_768, 0.6, 2.5, 0.15, echo="calls")),
    (r"kimi|moonshot", _family("moonshot", 262_144, 16_384, 0.6, 2.5, 0.15, blind=True)),
    (r"minimax", _family("minimax", 204_800, 65_536, 0.3, 1.2, 0.03, echo="calls", blind=True)),
    (r"pixtral|mistral-(medium|small)|magistral", _family(
        "mistral", 131_072, 16_384, 0.4, 2, nine_letters=True)),
    (r"mistral|mixtral|codestral|devstral|ministral", _family(
        "mistral", 131_072, 16_384, 0.4, 2, nine_letters=True, blind=True)),
    (r"llama-?4", _family("", 262_144, 16_384, 0.2, 0.6)),
    (r"llama-?3\.2.*vision", _family("", 131_072, 8192)),
    (r"llama", _family("", 131_072, 8192, blind=True)),
    (r"gemma-?3", _family("", 131_072, 8192)),
    (r"gemma|phi|granite|command|nemotron|smollm|olmo", _family("", 32_768, 8192, blind=True)),
)  # fmt: skip


def profile_of(model: str) -> Profile:
    """What to expect of a model, by its name; who made or serves it may stand before it."""
    name = model.lower().rpartition("/")[2]
    found = _found.get(name)
    if found is None:
        found = next((profile for pattern, profile in _FAMILIES if _fits(pattern, name)), Profile())
        _found[name] = found
    return found


_found: dict[str, Profile] = {}


def _fits(pattern: str, name: str) -> bool:
    # Compiling all of them takes longer than anything else here: only those that may fit are.
    words = re.findall("[a-z]{3,}", pattern)
    if words and not any(word in name for word in words):
        return False
    return re.search(rf"(?:^|[-_.:@~])(?:{pattern})", name) is not None


def prices_of(model: str, own: Iterable[str] = (), *, table: bool = True) -> Prices | None:
    """What a model costs; None when nobody said.

    Args:
        model: Its name; who serves or made it may stand before it.
        own: Lines of `model.prices`: a name (`*` stands for anything), then dollars per million
            tokens of input, output and, if known, cached input.
        table: Whether what is known of its family counts, too.
    """
    name = model.lower()
    for line in own:
        pattern, *numbers = line.replace("=", " ").split() or [""]
        if _meant(pattern.lower(), name):
            return _own(numbers)
    return profile_of(model).prices if table else None


def _meant(pattern: str, name: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)


def _own(numbers: list[str]) -> Prices | None:
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        return None
    return Prices(*values[:4]) if len(values) >= 2 else None

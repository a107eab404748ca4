"""Where models are: services by name, with their address, key and API; and local servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class Service(msgspec.Struct, frozen=True):
    """A place where models can be asked."""

    name: str
    base_url: str
    # The model that is asked when nobody chose one; empty for a server that has its own.
    model: str = ""
    # Variables that may hold the key, and the address; the first that is set counts.
    keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    wire: str = "chat"
    # Has models of many makers, under names such as `maker/model`.
    gathers: bool = False
    local: bool = False
    port: int = 0

    def key(self, environ: Mapping[str, str]) -> str:
        """The key, if there is one."""
        return next((k for name in self.keys if (k := environ.get(name, "").strip())), "")

    def own_address(self, environ: Mapping[str, str]) -> str:
        """The address that the environment gives it, if any."""
        found = next((u for name in self.addresses if (u := environ.get(name, "").strip())), "")
        return _as_url(found, self.port) if found else ""


# In the order in which they are looked for.
SERVICES: tuple[Service, ...] = (
    Service(
        "openai",
        "https://api.openai.com/v1",
        "gpt-5.1",
        keys=("OPENAI_API_KEY",),
        addresses=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    ),
    Service(
        "anthropic",
        "https://api.anthropic.com",
        "claude-sonnet-4-5",
        keys=("ANTHROPIC_API_KEY",),
        addresses=("ANTHROPIC_BASE_URL",),
        wire="anthropic",
    ),
    Service(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "deepseek/deepseek-chat",
        keys=("OPENROUTER_API_KEY",),
        addresses=("OPENROUTER_BASE_URL",),
        gathers=True,
    ),
    Service(
        "nous",
        "https://inference-api.nousresearch.com/v1",
        "Hermes-4-405B",
        keys=("NOUS_API_KEY",),
        addresses=("NOUS_BASE_URL",),
        gathers=True,
    ),
    Service(
        "deepseek",
        "https://api.deepseek.com/v1",
        "deepseek-chat",
        keys=("DEEPSEEK_API_KEY",),
        addresses=("DEEPSEEK_BASE_URL",),
    ),
    Service(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "qwen-plus",
        keys=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        addresses=("DASHSCOPE_BASE_URL", "QWEN_BASE_URL"),
    ),
    Service(
        "zai",
        "https://api.z.ai/api/paas/v4",
        "glm-4.6",
        keys=("ZAI_API_KEY", "GLM_API_KEY", "ZHIPUAI_API_KEY"),
        addresses=("ZAI_BASE_URL", "GLM_BASE_URL"),
    ),
    Service(
        "moonshot",
        "https://api.moonshot.ai/v1",
        "kimi-latest",
        keys=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        addresses=("MOONSHOT_BASE_URL", "KIMI_BASE_URL"),
    ),
    Service(
        "minimax",
        "https://api.minimax.io/v1",
        "MiniMax-M2",
        keys=("MINIMAX_API_KEY",),
        addresses=("MINIMAX_BASE_URL",),
    ),
    Service(
        "mistral",
        "https://api.mistral.ai/v1",
        "mistral-medium-latest",
        keys=("MISTRAL_API_KEY",),
        addresses=("MISTRAL_BASE_URL",),
    ),
    Service(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.5-flash",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        addresses=("GEMINI_BASE_URL",),
    ),
    Service(
        "xai",
        "https://api.x.ai/v1",
        "grok-4",
        keys=("XAI_API_KEY",),
        addresses=("XAI_BASE_URL",),
    ),
    Service(
        "groq",
        "https://api.groq.com/openai/v1",
        "openai/gpt-oss-120b",
        keys=("GROQ_API_KEY",),
        addresses=("GROQ_BASE_URL",),
        gathers=True,
    ),
    Service(
        "together",
        "https://api.together.xyz/v1",
        "Qwen/Qwen3-235B-A22B-Instruct-2507-tput",
        keys=("TOGETHER_API_KEY",),
        addresses=("TOGETHER_BASE_URL",),
        gathers=True,
    ),
    Service(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "accounts/fireworks/models/deepseek-v3p1",
        keys=("FIREWORKS_API_KEY",),
        addresses=("FIREWORKS_BASE_URL",),
        gathers=True,
    ),
    Service(
        "ollama",
        "http://127.0.0.1:11434/v1",
        addresses=("OLLAMA_HOST",),
        gathers=True,
        local=True,
        port=11434,
    ),
    Service("lmstudio", "http://127.0.0.1:1234/v1", gathers=True, local=True, port=1234),
    Service("llamacpp", "http://127.0.0.1:8080/v1", gathers=True, local=True, port=8080),
    Service("vllm", "http://127.0.0.1:8000/v1", gathers=True, local=True, port=8000),
    # Any other server that speaks one of the three APIs; its address comes from the settings.
    Service("custom", "", keys=("HERMES_MODEL_KEY",), gathers=True),
)
BY_NAME = {service.name: service for service in SERVICES}


def _as_url(address: str, port: int) -> str:
    """An address as a URL; `OLLAMA_HOST` may be just a host, also the one to listen on."""
    if "://" in address:
        return address
    host, colon, given = address.rpartition(":")
    if not colon or not given.isdecimal():
        host, given = address, str(port or 80)
    host = "127.0.0.1" if host in ("", "0.0.0.0", "[::]") else host
    return f"http://{host}:{given}/v1"

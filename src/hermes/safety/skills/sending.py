"""Which keys may go to which hosts: a service's own key to the service is how it is used."""

from __future__ import annotations

import re

# Where things are sent that nobody is to trace: catchers, pastes, tunnels, chat hooks.
CATCHERS = re.compile(
    r"(?i)\b(?:webhook\.site|requestbin\.\w+|pipedream\.net|requestcatcher\.com"
    r"|beeceptor\.com|hookbin\.com|oast\.\w+|interact\.sh|interactsh\.com"
    r"|burpcollaborator\.net|dnslog\.cn|canarytokens\.com|ngrok(?:-free)?\.(?:io|app|dev)"
    r"|trycloudflare\.com|loca\.lt|serveo\.net|localhost\.run"
    r"|discord(?:app)?\.com/api/webhooks|api\.telegram\.org/bot\d|transfer\.sh|file\.io"
    r"|0x0\.st|termbin\.com|ix\.io|paste\.\w+|pastebin\.com|hastebin\.com"
    r"|glot\.io|rentry\.\w+|anonfiles?\.\w+|gofile\.io|catbox\.moe|temp\.sh)"
    r"|https?://\d{1,3}(?:\.\d{1,3}){3}(?!\.)|https?://\[?[0-9a-f:]{4,}\]"
)
_LOCAL = re.compile(
    r"https?://(?:localhost|127\.|0\.0\.0\.0|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[::1\])"
)
_HOST = re.compile(r"(?:https?://|\bcurl\s+)(?:[^\s/\"'@]*@)?([A-Za-z0-9.\-]+\.[A-Za-z]{2,})")
_VARIABLE = re.compile(r"\$\{?([A-Z][A-Z0-9_]{2,})")
# Services whose keys open more than one thing, and words of the hosts that they belong to.
_SERVICES = {
    "OPENAI": "openai", "ANTHROPIC": "anthropic", "CLAUDE": "anthropic", "AWS": "amazonaws|aws",
    "GITHUB": "github|ghcr", "GH": "github|ghcr", "GITLAB": "gitlab", "HF": "huggingface",
    "HUGGINGFACE": "huggingface", "STRIPE": "stripe", "NPM": "npmjs", "PYPI": "pypi",
    "AZURE": "azure|microsoft|windows",
    "GOOGLE": "google", "GEMINI": "google", "GCP": "google", "SLACK": "slack", "DOCKER": "docker",
    "CLOUDFLARE": "cloudflare", "DATABASE": "-", "SSH": "-", "MNEMONIC": "-", "WALLET": "-",
    "SEED": "-",
}  # fmt: skip


def sends_elsewhere(command: str) -> bool:
    """Whether a command that sends a secret sends it to somebody it does not belong to."""
    if CATCHERS.search(command) and not _LOCAL.search(command):
        return True
    names = _VARIABLE.findall(command)
    hosts = " ".join(_HOST.findall(command)).lower()
    if not names:
        # The whole environment, a file, or what a command prints.
        return not re.search(r"(?i)authorization|x-api-key|--user|-u ", command)
    if not hosts:
        return False
    for name in names:
        owner = next((word for word in name.split("_") if word in _SERVICES), None)
        if owner and not re.search(_SERVICES[owner], hosts):
            return True
    return False

"""Code blocks and scripts, judged as the commands they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.skills.sending import sends_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.safety.shell.verdict import Finding as Danger

SHELLS = frozenset(
    ("", "sh", "bash", "zsh", "shell", "console", "terminal", "shell-session", "fish", "ksh")
)
# How each language is handed to the judge of commands.
_HANDED = {
    **dict.fromkeys(("python", "py", "python3"), "python3"),
    **dict.fromkeys(
        ("js", "javascript", "node", "mjs", "cjs", "ts", "typescript", "jsx", "tsx"), "node"
    ),
    "ruby": "ruby",
    "rb": "ruby",
    "perl": "perl",
    "pl": "perl",
}
POWERSHELLS = frozenset(("powershell", "ps1", "pwsh", "posh"))
CODE = frozenset((*_HANDED, *POWERSHELLS))

# What a skill has no business doing, by the beginnings of the rules' names. Deleting its own build
# folder, installing packages or restarting a service is asked about when it is done.
_BLOCKED = (
    "remote-code.pipe", "remote-code.substitution", "remote-code.downloaded",
    "persist.", "network.reverse-shell", "network.raw-socket", "secrets.read", "secrets.sent",
    "secrets.printed", "git.hooks", "hermes.policy",
    "hermes.unguarded", "delete.root-or-home", "delete.mirrored-home", "delete.home-cleaned",
    "windows.delete-everything", "windows.security",
)  # fmt: skip
_STORES = re.compile(
    r"(?i)\.ssh\b(?!/(?:config|known_hosts|authorized_keys)\b)(?!\S*\.pub\b)"
    r"|\.aws/(?:credentials|sso)|\.gnupg|\.kube/config|\.netrc|\.git-credentials"
    r"|\.docker/config|gcloud"
    r"|\.npmrc|\.pypirc|/etc/g?shadow|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|keychain"
    r"|login data|cookies\.sqlite|logins\.json|key4\.db"
    r"|wallet\.dat|\.bitcoin|\.ethereum|\.electrum|\.config/solana|\.password-store"
    r"|\.vault-token|\.azure|\.config/gh/|(?:~|\$HOME|/home/\w+|/root)/\.(?:hermes/|openclaw/"
    r"|claude/)?\.?(?:env|credentials)\b"
)
# A line for a start-up file that only sets a variable for the person's own programs.
_SETTING = re.compile(
    r"(?:echo|printf)\s+[\"']*(?:\\n)?(?:export\s+|set\s+-gx\s+)?(?!LD_|DYLD_|BASH_ENV"
    r"|PROMPT_COMMAND|ENV=)\w+[ =][^;&|`]*>>[^>]*$"
    r"|(?:echo|printf)\s+[\"']*(?:eval \"?\$\((?:\w+ (?:init|hook|shellenv|completion"
    r"|activate)\b[^)]*)|source\s|alias\s)[^;&|`]*>>[^>]*$"
)
# Where in a source text a danger of each family is likely to stand.
_HINTS = {
    "remote-code": r"exec|eval|system|popen|spawn|subprocess|\|\s*(?:ba|z)?sh\b|iex|Function\(",
    "persist": r"\.(?:bash|zsh)(?:rc|_profile)|\.z?profile|cron|authorized_keys|Launch|systemd",
    "secrets": _STORES.pattern,
    "network": r"socket|/dev/tcp|\bnc\b",
}


_STORE_IN_TEXT = re.compile(
    r"[\"'`][^\"'`\n]*(?:/|\\\\)\.(?:ssh/id_\w+|aws/credentials|config/solana/|ethereum|bitcoin|electrum|netrc"
    r"|git-credentials|gnupg)(?!\S*\.pub)[^\"'`\n]*[\"'`]"
)


def find_stores(text: str) -> Iterator[tuple[int, str, str]]:
    """Each place where a program names somebody's credentials and reads files."""
    match = _STORE_IN_TEXT.search(text)
    if match and re.search(r"\bopen\(|read_\w+\(|readFile", text):
        yield match.start(), "secrets.read", "It reads a private key or a store of credentials."


def find_dangers(text: str, language: str) -> Iterator[tuple[int, str, str]]:
    """Each thing in a piece of code that a skill must not do: where, which rule, why."""
    from hermes.safety.shell import detect_dangerous_command

    if language in SHELLS:
        shown = re.sub(r"(?m)^([ \t]*)[$%>] ", r"\1  ", text)
        for danger in detect_dangerous_command(shown, cwd=_CWD, home=_HOME).findings:
            if _counts(danger, shown, *danger.span):
                yield danger.span[0], danger.rule, danger.description
        return
    if language in POWERSHELLS:
        given = "pwsh -Command '" + text.replace("'", "'\\''") + "'"
    else:
        given = f"{_HANDED[language]} - <<'END_OF_SKILL'\n{text}\nEND_OF_SKILL\n"
    for danger in detect_dangerous_command(given, cwd=_CWD, home=_HOME).findings:
        hint = _HINTS.get(danger.rule.partition(".")[0])
        place = re.search(hint, text) if hint else None
        at = place.start() if place else 0
        end = text.find("\n", at) if "\n" in text[at:] else len(text)
        if danger.rule in ("secrets.sent", "network.reverse-shell") and not _SHELL_STARTED.search(
            text
        ):
            # A program of its own sends its key to its service, and a server has sockets.
            continue
        if _counts(danger, text, at, end):
            yield at, danger.rule, danger.description


_SHELL_STARTED = re.compile(
    r"(?:spawn|exec|call|run|Popen|system)\w*\s*\(\s*\[?[\"'`](?:/\w+)*/?(?:(?:ba|z|da)?sh"
    r"|cmd(?:\.exe)?|powershell)[\"'` ]"
    r"|dup2\("
)
_HOME = "/home/user"
_CWD = "/home/user/project"


def _counts(danger: Danger, text: str, at: int, end: int) -> bool:
    """Whether a danger is one that no skill needs."""
    if not danger.rule.startswith(_BLOCKED):
        return False
    line = text[text.rfind("\n", 0, at) + 1 : end].rpartition("\n")[2] + text[end:].split("\n")[0]
    about = f"{danger.command}\n{text[at:end]}\n{line}"
    needless = _NEEDLESS.get(danger.rule)
    return needless is None or needless(about, line.strip())


def _plants(about: str, line: str) -> bool:
    harmless = r"\.git/hooks|/completions?/|^(?:nano|vim?|code|emacs|open|ssh)\b"
    return not re.search(harmless, about, re.MULTILINE) and not _SETTING.search(line)


def _schedules(about: str, line: str) -> bool:
    if not re.search(r"\b(?:crontab|at|batch|atrm|schtasks|systemd-run)\b|Scheduled", about):
        return False
    return not re.search(r"\bcrontab\s+-[el]\b", about) or "|" in line


def _unread(about: str, line: str) -> bool:  # noqa: ARG001
    """Whether code is run unread, other than an installer where its maker publishes it."""
    links = re.findall(r"https?://[^\s\"'|)]+", about)
    return not links or not all(map(_INSTALLER.match, links))


_INSTALLER = re.compile(
    r"https://(?:astral\.sh/|sh\.rustup\.rs|bun\.(?:sh|com)/install|deno\.land/(?:x/)?install"
    r"|get\.docker\.com"
    r"|raw\.githubusercontent\.com/(?:Homebrew/install|nvm-sh/nvm)/|deb\.nodesource\.com/"
    r"|rpm\.nodesource\.com/"
    r"|tailscale\.com/install|ollama\.(?:com|ai)/install|install\.python-poetry\.org"
    r"|get\.pnpm\.io|fnm\.vercel\.app"
    r"|foundry\.paradigm\.xyz|get\.sdkman\.io|starship\.rs/install|claude\.ai/install"
    r"|cursor\.com/install"
    r"|get\.helm\.sh/|raw\.githubusercontent\.com/helm/|cli\.github\.com/"
    r"|nixos\.org/nix/install|mise\.run|pixi\.sh/)"
)
_NEEDLESS: dict[str, Callable[[str, str], bool]] = {
    "secrets.printed": lambda about, _: "dump-keychain" in about or "Safe Storage" in about,
    "git.hooks": lambda about, _: "--global" in about or "--system" in about,
    "secrets.read": lambda about, _: _STORES.search(about) is not None,
    "secrets.sent": lambda about, _: sends_elsewhere(about),
    "persist.startup-file": _plants,
    "persist.schedule": _schedules,
    "persist.login-key": lambda *_: False,
    "remote-code.pipe": _unread,
    "remote-code.substitution": _unread,
    "remote-code.downloaded": _unread,
}

"""Code blocks and scripts of a skill, analysed as the commands they are."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.safety.shell.verdict import Finding as Danger


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
    """Whether a command sends a secret to a host that is not its own service's."""
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


_DECODERS = frozenset(
    """b64decode b32decode a85decode b85decode urlsafe_b64decode fromhex unhexlify decompress
    decodebytes""".split()  # noqa: SIM905 - a table
)
_RUNS = frozenset(("exec", "eval", "compile", "__import__", "import_module", "getattr"))
_NETWORK = re.compile(
    r"\b(?:requests|httpx|aiohttp|urllib3?|http\.client|socket|smtplib|ftplib|paramiko"
    r"|websockets?)\b"
)
_SENDS = re.compile(
    r"\.(?:post|put|patch|request|send|sendall|sendmail|storbinary|urlopen)\s*\(|\burlopen\s*\("
)


def find_disguises(source: str) -> Iterator[tuple[int, str, str]]:
    """Each line where Python code hides the function it runs, or sends the environment away."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    built: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _disguised(node.value, built):
            built |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    sends = _NETWORK.search(source) and _SENDS.search(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = node.args[1:2] if _name(node) == "getattr" else node.args[:1]
            if _name(node) in _RUNS and any(_disguised(one, built) for one in given):
                yield node.lineno, "payload.disguised", "It puts together at run time what it runs."
            if sends and any(map(_is_environment, node.args)) and _name(node) in _WHOLE:
                yield node.lineno, "secrets.sent", "It sends the whole environment away."
        if (
            sends
            and isinstance(node, ast.Attribute)
            and node.attr == "items"
            and _is_environment(node.value)
        ):
            yield node.lineno, "secrets.sent", "It goes through the whole environment and sends."


_WHOLE = frozenset(
    ("dict", "dumps", "str", "repr", "list", "urlencode", "post", "put", "send", "sendall")
)


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        # `patch.dict(…)` is not `dict(…)`.
        return "" if function.attr == "dict" else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_environment(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and _name(node) == "dict" and len(node.args) == 1:
        return _is_environment(node.args[0])
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _disguised(node: ast.expr, built: set[str], depth: int = 0) -> bool:
    """Whether a text is put together from pieces, letter codes or an encoding."""
    if depth > 20:
        return True
    if isinstance(node, ast.Name):
        return node.id in built
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = (node.left, node.right)
        return all(_is_text(side, built) for side in sides)
    if isinstance(node, ast.Subscript):
        cut = node.slice
        backwards = isinstance(cut, ast.Slice) and isinstance(cut.step, ast.UnaryOp)
        return backwards and _is_text(node.value, built)
    if isinstance(node, ast.Call):
        name = _name(node)
        if name in _DECODERS or name == "chr":
            return True
        if name == "join":
            return any(_pieces(one) for one in node.args)
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        return (inner is not None and _disguised(inner, built, depth + 1)) or any(
            _disguised(one, built, depth + 1) for one in node.args
        )
    return False


def _is_text(node: ast.expr, built: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return _disguised(node, built)


def _pieces(node: ast.expr) -> bool:
    """A list of letters or of letter codes."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(isinstance(one, ast.Constant) for one in node.elts)
    return any(isinstance(one, ast.Call) and _name(one) == "chr" for one in ast.walk(node)) or (
        isinstance(node, ast.Call) and _name(node) in ("map", "reversed")
    )


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
    """Each place where a program that reads files names a credential store."""
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

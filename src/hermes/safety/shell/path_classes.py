"""Path classes: root, home, device, system directory, credential store, start-up file."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import TYPE_CHECKING

from hermes.core.paths import is_below
from hermes.safety.shell.scope import ENVIRONMENT, HOLE, SECRET, UNSET, names

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope, Word


_GLOB = re.compile(r"[*?\[]")
_ROOT_ENTRIES = names(
    "bin boot dev etc home lib opt proc root run sbin srv sys tmp usr var mnt media"
)
_HOME_ENTRIES = names(
    "Desktop Documents Downloads Music Pictures Videos projects src code work bin "
    ".bashrc .config .ssh .cache .local .profile .git .npm"
)
_SYSTEM = names(
    "/etc /boot /usr /bin /sbin /lib /lib32 /lib64 /libx32 /proc /sys /dev /efi /System /Library "
    "/var/spool/cron /var/spool/at /var/lib /var/db /run/systemd /var/run/docker.sock "
    "/run/docker.sock /opt/homebrew/etc /Windows /snap"
)
# Directories of which only a part belongs to the system.
_HALF_SYSTEM = frozenset(top.split("/")[1] for top in _SYSTEM if top.count("/") > 1)
_HARMLESS_DEVICES = re.compile(
    r"/dev/(null|zero|full|stdin|stdout|stderr|tty|ptmx|random|urandom|fd(/.*)?|shm(/.*)?|pts/.*)\Z"
)
_DISK = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|loop|md|dm-|mapper/|nbd|sr|block/|mem\Z|kmem\Z|"
    r"port\Z|ram|zram|"
    r"bcache|dasd|pmem|drbd|mtd|disk/)"
)
_ALIAS_ROOT = re.compile(r"/proc/(?:self|thread-self|\d+|" + HOLE + r")/root(?=/|\Z)")
_ALIAS_CWD = re.compile(r"/proc/(?:self|thread-self)/cwd(?=/|\Z)")
_TEMPORARY = ("/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/shm/")

_STARTUP = re.compile(
    r"\.(bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|"
    r"zlogin|zlogout|"
    r"kshrc|cshrc|tcshrc|login|inputrc|xinitrc|xprofile|xsession|xsessionrc|xsessionrc|"
    r"pam_environment|vimrc|"
    r"gvimrc|exrc|emacs|gdbinit|pythonrc|pythonstartup|irbrc|pryrc|Rprofile|tmux\.conf|screenrc|"
    r"gitconfig|"
    r"curlrc|wgetrc|lldbinit|psqlrc|sqliterc|duckdbrc|octaverc|ghci|iex\.exs|erlang|sbclrc|guile|"
    r"pdbrc|byebugrc|rdebugrc|perldb|tclshrc|wishrc|mongorc\.js|mongoshrc\.js|xonshrc|hgrc|"
    r"wezterm\.lua|ocamlinit|muttrc|mailcap)\Z"
    r"|\.ipython/profile_[^/]+/(?:startup/|ipython_config\.py)|\.jupyter/jupyter_[^/]*config\.py\Z"
    r"|\.julia/config/startup\.jl\Z|\.gradle/init(?:\.gradle|\.d/)|\.sbt/[\d.]+/"
    r"|\.cargo/config(?:\.toml)?\Z|\.hammerspoon/|\.config/(?:powershell|xonsh|awesome|bspwm|qtile|"
    r"openbox|wezterm|xmonad)/"
    r"|\.ssh/(authorized_keys2?|rc|config|environment)\Z"
    r"|\.(bashrc|profile|zshrc|zsh)\.d/|\.oh-my-zsh/custom/|\.oh-my-zsh/oh-my-zsh\.sh"
    r"|\.config/(fish|autostart|systemd|git|nvim|plasma-workspace/env|environment\.d|nushell|i3|"
    r"sway|hypr|"
    r"upstart|cron)(/|\Z)"
    r"|\.vim/(plugin|autoload|ftplugin)/|\.emacs\.d/init\.el|\.local/share/(systemd|autostart)/"
    r"|Library/(LaunchAgents|LaunchDaemons|StartupItems|Application "
    r"Support/com\.apple\.backgroundtask)"
    r"|\.local/lib/python[\d.]+/site-packages/(?:[^/]+\.pth|(?:user|site)customize\.py)\Z"
    r"|\.(?:claude|codex|cursor|gemini|qwen|windsurf|continue|opencode)/(?:[^/]+/)?"
    r"(?:settings|config|mcp|hooks|permissions)[^/]*\.(?:json|toml|ya?ml)\Z"
    r"|\.(?:claude|mcp)\.json\Z|\.pythonrc\.py\Z"
    r"|\.git/hooks/|\.kde/Autostart|\.git-templates?/|\.githooks/|\.direnvrc\Z"
    r"|AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup"
)
# A repository, or one inside it: what runs at a commit, and what says which programs git starts.
_GIT = re.compile(
    r"\.git/(?:modules/(?:.+/)?|worktrees/[^/]+/)?(?:hooks(?:/|\Z)|config(?:\.worktree)?\Z)"
)
_PROJECT_HERMES = re.compile(
    r"/\.hermes/(?:(?:audit|plugins|hooks|checkpoints|logs)(?:/|\Z)|config\.ya?ml\Z|state\.db|"
    r"[^/]*(?:trust|approv|allowlist|mcp)[^/]*\Z)"
)
_CREDENTIAL = re.compile(
    r"\.ssh(/(?!(known_hosts[^/]*|config|authorized_keys2?|environment|rc|[^/]*\.pub)\Z).*)?\Z"
    r"|\.(aws|gnupg|password-store|azure|oci)(/(?!config\Z).*)?\Z"
    r"|\.(netrc|_netrc|git-credentials|pgpass|my\.cnf|pypirc|vault-token|s3cfg|boto|htpasswd|"
    r"dockercfg|"
    r"smbcredentials|rhosts|databrickscfg|terraformrc|npmrc|cargo/credentials(\.toml)?|"
    r"gem/credentials|"
    r"m2/settings\.xml|kube/config|kube|docker/config\.json|config/gh/hosts\.yml|config/hub|"
    r"hermes/mcp-tokens(/.*)?|hermes/mcp/server-token|"
    r"config/gh|"
    r"config/gcloud(/.*)?|config/op(/.*)?|config/git/credentials|config/doctl/config\.yaml|"
    r"config/rclone/rclone\.conf|"
    r"terraform\.d/credentials\.tfrc\.json|config/google-chrome/.*|mozilla/firefox/.*|"
    r"config/chromium/.*|"
    r"local/share/keyrings(/.*)?|config/BraveSoftware/.*|electrum/.*|bitcoin/.*|ethereum/.*|"
    r"config/solana/.*|"
    r"bash_history|zsh_history|psql_history|mysql_history|python_history|"
    r"claude/\.credentials\.json|"
    r"codex/auth\.json|hermes/\.env|hermes/auth[^/]*|local/share/opencode/auth\.json|"
    r"config/anthropic/.*)\Z"
    r"|Library/(Keychains|Application Support/(Google/Chrome|Firefox|BraveSoftware)|"
    r"Cookies)(/.*)?\Z"
)
_SYSTEM_SECRET = re.compile(
    r"/etc/(shadow-?|gshadow-?|sudoers(\.d/.*)?|master\.passwd|ssl/private(/.*)?|"
    r"ssh/ssh_host_[^/]*key|"
    r"krb5\.keytab|ipsec\.secrets|wireguard(/.*)?|ppp/.*-secrets|kubernetes/(admin|kubelet)\.conf|"
    r"NetworkManager/system-connections(/.*)?|rancher/.*\.yaml|letsencrypt/(live|archive)/.*)\Z"
    r"|/proc/([^/]+)/(environ|mem|maps)\Z|/var/run/secrets(/.*)?\Z|/run/secrets(/.*)?\Z|/dev/(mem|"
    r"kmem)\Z"
    r"|/var/lib/(docker|kubelet|rancher)(/.*)?\Z|/private/var/db/dslocal/.*\Z"
)
_SECRET_NAME = re.compile(
    r"(.*/)?(\.env(\.(?!example\Z|sample\Z|template\Z|dist\Z|test\Z|defaults?\Z)[\w.-]+)?|"
    r"[^/]*\.env"
    r"|id_(rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk)|[^/]*\.(pem|p12|pfx|key|keystore|jks|kdbx|"
    r"ppk|asc|gpg|ovpn)"
    r"|\.netrc|\.git-credentials|\.pgpass|\.pypirc|credentials(\.json|\.csv|\.toml|\.ya?ml)?"
    r"|secrets?\.(json|ya?ml|toml|txt|env|ini)|service[-_]?account[^/]*\.json|\.htpasswd|"
    r"\.vault[-_]pass[^/]*"
    r"|token\.txt|tokens?\.json|passwords?\.(txt|csv)|client_secret[^/]*\.json|terraform\.tfvars|"
    r"[^/]*\.tfstate"
    r"|wallet\.dat|login\.keychain(-db)?|logins\.json|key[34]\.db|cookies\.sqlite)\Z"
)
_PUBLIC = re.compile(
    r"(cert|public|pub|ca|chain|bundle|cacert)[^/]*\.(pem|asc|gpg|key)\Z|\.pub\Z|\.env\.example\Z|"
    r"(?:example|sample|template|dist)\.(?:env|json|ya?ml|toml|ini|txt)\Z"
)
# What a project's tests are fed is no secret of anyone's.
_MADE_UP = re.compile(
    r"/(?:__)?(?:fixtures?|testdata|test-data|mocks?)(?:__)?/[^/]+\.(?:json|csv|txt|ya?ml)\Z"
)
_SECRETS = frozenset((SECRET, ENVIRONMENT))
_POLICY = re.compile(
    r"(config\.ya?ml|hermes_permissions\.ya?ml|permissions\.ya?ml|approvals?(\.[\w.]+)?(/.*)?|"
    r"trust(ed)?(\.[\w.]+)?(/.*)?|"
    r"command_allowlist[\w.]*|allowlist[\w.]*|policy(\.[\w.]+)?(/.*)?|\*)\Z"
)


def targets(word: Word, scope: Scope) -> list[str]:
    """The absolute paths an operand may mean; two when a variable in it may be empty."""
    text = word.text
    paths = []
    if UNSET in text:
        empty = text.replace(UNSET, "")
        # What a script uses it has from somewhere: its caller, another file, a prompt.
        if empty and not scope.script:
            paths.append(absolute(empty, scope))
        text = text.replace(UNSET, HOLE)
    paths.append(absolute(text, scope))
    return paths


def absolute(text: str, scope: Scope) -> str:
    """A path from the current directory, through the kernel's own names for root."""
    if text.startswith("file://"):
        text = text[7:]
    path = scope.absolute(text)
    if path.startswith("/proc/"):
        path = _ALIAS_CWD.sub(lambda _: scope.cwd, _ALIAS_ROOT.sub("", path)) or "/"
    if path.startswith("/private/"):
        path = path[8:]
    return path


def is_root(path: str, *, glob: bool = False) -> bool:
    """Whether a path is the root directory, or a glob for everything in it."""
    return path == "/" or (glob and _covers(path, "/", _ROOT_ENTRIES, 5))


def is_home(path: str, scope: Scope, *, glob: bool = False) -> bool:
    """Whether a path is a home directory, holds one, or is a glob for everything in it."""
    home = scope.home
    if path == home or home.startswith(path.rstrip("/") + "/"):
        return True
    parent, name = posixpath.split(path)
    if path in ("/root", "/home", "/Users") or (
        parent in ("/home", "/Users") and name and HOLE not in name
    ):
        return True
    return glob and (
        _covers(path, home, _HOME_ENTRIES, 4)
        or _fits(path, home)
        or (parent.count("/") == 2 and parent.startswith("/home/") and name == "*")
        or (parent == "/home" and _GLOB.search(name) is not None)
        or any(path == home[: -len(tail)] + "*" for tail in (posixpath.basename(home),) if tail)
    )


def _covers(path: str, base: str, entries: frozenset[str], enough: int) -> bool:
    """Whether a glob directly below `base` takes most of what is there."""
    parent, name = posixpath.split(path)
    while parent != base and _GLOB.search(name) and name.strip("*.") == "":
        parent, name = posixpath.split(parent)
    if parent != base or not _GLOB.search(name):
        return False
    hits = [
        entry
        for entry in entries
        if fnmatch.fnmatchcase(entry, name) and (entry[0] != "." or name[0] == ".")
    ]
    return len(hits) >= enough


def _fits(path: str, home: str) -> bool:
    """Whether a glob names the home directory or one that holds it."""
    patterns, names = path.split("/"), home.split("/")
    return len(patterns) <= len(names) and all(
        fnmatch.fnmatchcase(name, pattern) for pattern, name in zip(patterns, names, strict=False)
    )


def is_disk(path: str) -> bool:
    """Whether a path is a disk, a partition or the machine's memory."""
    return _DISK.match(path) is not None


def is_null(path: str) -> bool:
    """Whether writing there writes nowhere: the null device, a terminal, a pipe."""
    return path.startswith("/dev/") and _HARMLESS_DEVICES.match(path) is not None


def is_system(path: str, scope: Scope) -> bool:
    """Whether a path belongs to the operating system rather than to a project."""
    if is_null(path) or in_workspace(path, scope):
        return False
    if path == "/":
        return True
    if path[1:3] == ":/" and path[3:10].lower().startswith("windows"):
        return True
    start = path[1:].partition("/")[0]
    if "/" + start in _SYSTEM:
        return True
    return start in _HALF_SYSTEM and any(
        path == top or path.startswith(top + "/") for top in _SYSTEM if top.count("/") > 1
    )


def in_workspace(path: str, scope: Scope) -> bool:
    """Whether a path lies in the directory that the command was given for."""
    workspace = scope.workspace
    if workspace == "/" or workspace in _SYSTEM:
        return False
    return is_below(path, workspace)


def lies_outside(word: Word, scope: Scope) -> bool:
    """Whether an operand is certain to be a path outside the workspace."""
    if not word.known:
        return False
    path = absolute(word.text, scope)
    return not in_workspace(path, scope) and not is_below(path, scope.root)


def is_temporary(path: str) -> bool:
    """Whether a path lies below a directory for temporary files."""
    return path.startswith(_TEMPORARY)


def is_startup(path: str, scope: Scope) -> bool:
    """Whether something runs what is written there later: shells, logins, hooks, schedulers."""
    inside = _below_home(path, scope)
    if inside is not None and _STARTUP.match(inside):
        return True
    return path.endswith("/.husky") or (".git/" in path and _GIT.search(path) is not None)


def is_credential(path: str, scope: Scope) -> bool:
    """Whether a path is a private key or a store of credentials."""
    if is_kept_secret(path, scope) or (scope.written and _holds_secret(path, scope)):
        return True
    if scope.script:
        # A project's own programs read the project's own settings.
        return False
    if _SECRET_NAME.match(path) is None or _PUBLIC.search(path) is not None:
        return False
    return not (_MADE_UP.search(path) and in_workspace(path, scope))


def _holds_secret(path: str, scope: Scope) -> bool:
    """Whether the command text itself put a secret into a file."""
    known = scope.written.get(path)
    return known is not None and not _SECRETS.isdisjoint(known.tags)


def is_kept_secret(path: str, scope: Scope) -> bool:
    """Whether a path is a store of credentials of the user or the system, by its place alone."""
    inside = _below_home(path, scope)
    if inside is not None and _CREDENTIAL.match(inside):
        return True
    return _SYSTEM_SECRET.match(path) is not None


def _below_home(path: str, scope: Scope) -> str | None:
    home = scope.home
    if path.startswith(home + "/"):
        return path[len(home) + 1 :]
    if path.startswith("/root/"):
        return path[6:]
    if path.startswith(("/home/", "/Users/")):
        return path.split("/", 3)[3] if path.count("/") >= 3 else None
    return None


def is_policy(path: str, scope: Scope) -> bool:
    """Whether a path holds what Hermes may do: its permissions, approvals and trust."""
    if posixpath.basename(path) in ("hermes_permissions.yaml", "hermes_permissions.yml"):
        return True
    inside = hermes_part(path, scope)
    return inside is not None and (not inside or _POLICY.match(inside) is not None)


def is_project_setting(path: str) -> bool:
    """Whether a path is one of the files by which a project tells Hermes what to load or allow."""
    return "/.hermes/" in path and _PROJECT_HERMES.search(path) is not None


def hermes_part(path: str, scope: Scope) -> str | None:
    """The part of a path below Hermes' own directory; None when it is elsewhere."""
    moved = scope.variables.get("HERMES_HOME")
    if moved is None and "/.hermes" not in path:
        return None
    own = f"{scope.home}/.hermes"
    for base in (own if moved is None else moved.text, own, "/root/.hermes"):
        if is_below(path, base):
            return path[len(base) + 1 :]
    if path.startswith(("/home/", "/Users/")) and path.split("/")[3:4] == [".hermes"]:
        return "/".join(path.split("/")[4:])
    return None


def kind_of_delete(
    words: list[Word], scope: Scope, *, recursive: bool, found: bool = False
) -> str | None:
    """The rule that deleting these operands meets; None for one ordinary file."""
    if (recursive or found) and any(covers_everything(word, scope) for word in words):
        return "delete.root-or-home"
    if recursive:
        return "delete.recursive" if words else None
    if found:
        return "delete.each"
    if any(word.glob for word in words):
        return "delete.glob"
    if scope.loop and any(word.variables for word in words):
        return "delete.each"
    if scope.script:
        # Its own temporary files, whose names are made when it runs.
        words = [word for word in words if word.known]
    if len(words) > 1:
        return "delete.several"
    for word in words:
        for path in targets(word, scope):
            if is_temporary(path):
                continue
            if HOLE in path:
                return "delete.unknown"
            if not in_workspace(path, scope):
                return "delete.outside"
    return None


def covers_everything(word: Word, scope: Scope) -> bool:
    """Whether an operand is the root, a home directory, or all that is in one."""
    text = word.text
    if not text:
        return False
    # A plain name leads further down; only above home could that be the home directory.
    plain = not word.glob and text[0].isalnum() and ".." not in text and word.known
    if plain and not (scope.home + "/").startswith(scope.cwd.rstrip("/") + "/"):
        return False
    return any(
        is_root(path, glob=word.glob) or is_home(path, scope, glob=word.glob)
        for path in targets(word, scope)
    )


DELETERS = names("rm unlink srm grm rimraf del-cli remove-item ri rd rmdir del erase")
_POSIX = names("rm unlink srm grm rimraf del-cli")


def delete_rules(command: Command) -> list[str | None]:
    """The rules that a deleting program meets, by its operands and switches."""
    found = []
    if command.name in _POSIX:
        recursive = command.name in ("rimraf", "del-cli") or (
            command.name != "unlink" and command.has("-r", "-R", "--recursive")
        )
        found.append(
            kind_of_delete(
                command.operands, command.scope, recursive=recursive, found=command.found
            )
        )
    switches = {arg.lower() for arg in command.args}
    if command.name not in _POSIX | {"rmdir"} or switches & {"/s", "/q", "-recurse"}:
        found.append(_windows_rule(command, switches))
    return found


def _windows_rule(command: Command, switches: set[str]) -> str | None:
    words, scope = _windows_targets(command), command.scope
    if "/s" in switches or any(len(arg) > 1 and "-recurse".startswith(arg) for arg in switches):
        everything = any(covers_everything(word, scope) for word in words)
        return "windows.delete-everything" if everything else "windows.delete-tree"
    if command.name in ("rd", "rmdir", "rm"):
        return None
    unknown = any(word.text == HOLE for word in words) or (not words and command.stdin is not None)
    kind = kind_of_delete(words, scope, recursive=False, found=command.found)
    return "windows.delete-many" if unknown or kind else None


def _windows_targets(command: Command) -> list[Word]:
    """Operands of PowerShell, whose switches start with `-`, or of cmd, whose start with `/`."""
    from hermes.safety.shell.code.powershell import windows_path

    words = []
    for word in command.words[1:]:
        text = word.text
        if text.startswith("-") or (text.startswith("/") and len(text) in (2, 3)):
            continue
        if text.lower() in ("silentlycontinue", "stop", "ignore", "$true", "$false"):
            continue
        spelled = "\\" in word.raw or "$env" in word.raw.lower() or "%" in word.raw
        raw = word.raw.strip("\"'") if spelled else text
        part = word.part(windows_path(raw, command.scope))
        part.glob = "*" in part.text
        words.append(part)
    return words


def judge_found(command: Command, tops: list[Word], judge: Judge, *, filtered: bool) -> None:
    """`find … -delete`: a question, or a refusal when nothing limits it to a part of home."""
    if not filtered and any(covers_everything(top, command.scope) for top in tops):
        judge.blame("delete.root-or-home", command)
    else:
        judge.blame("delete.each", command)

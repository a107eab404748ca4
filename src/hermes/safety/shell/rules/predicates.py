"""Predicates of rules: the tests that a form of words and options can't express."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.file_flow import holds_private
from hermes.safety.shell.file_operands import READERS
from hermes.safety.shell.path_classes import (
    absolute,
    covers_everything,
    in_workspace,
    is_credential,
    is_disk,
    is_home,
    is_root,
    is_system,
    is_temporary,
    targets,
)
from hermes.safety.shell.path_rules import keeps_fields
from hermes.safety.shell.rules.any_program import takes_name
from hermes.safety.shell.scope import ARCHIVE, ENVIRONMENT, PRIVATE, SECRET, names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word

# Files and disks


def shrinks(command: Command) -> bool:
    """`truncate` to a fixed size."""
    sizes = command.values("-s", "--size")
    return not any(size.text.startswith(("+", ">", "%")) for size in sizes)


def fed_nothing(command: Command) -> bool:
    """`tee f < /dev/null`."""
    stdin = command.stdin
    return (stdin is not None and stdin.text == "") or any(
        redirect.target is not None and redirect.target.text == "/dev/null"
        for redirect in command.redirects
        if redirect.operator == "<"
    )


def to_remote(command: Command) -> bool:
    """The last operand is on another machine, as `host:path`."""
    return any(":" in word.text.partition("/")[0] for word in command.operands[-1:])


def onto_everything(command: Command) -> bool:
    """The last operand is the root or a home directory."""
    return any(covers_everything(word, command.scope) for word in command.operands[-1:])


def of_everything(command: Command) -> bool:
    """One of the operands is the root or a home directory."""
    return any(covers_everything(word, command.scope) for word in command.operands)


def at_home(command: Command) -> bool:
    """The current directory is the root or a home directory."""
    return is_root(command.scope.cwd) or is_home(command.scope.cwd, command.scope)


def on_disk(command: Command) -> bool:
    """One of the operands is a disk device."""
    return any(is_disk(absolute(word.text, command.scope)) for word in command.operands)


def takes_many(command: Command) -> bool:
    """Operands that a search or a pattern gives."""
    return command.found or any(word.glob for word in command.operands)


def names_drive(command: Command) -> bool:
    """A drive of Windows among the words: `C:`."""
    return any(len(word.raw) == 2 and word.raw[1] == ":" for word in command.words)


# Permissions

_SET_ID = re.compile(r"(?:^|,)[ugoa]*[+=][rwxXt]*s|^0?[2-7][0-7]{3}\Z")
_WORLD = re.compile(
    r"^0?[0-7]{0,2}[2367]\Z|(?:^|,)(?:[ugo]*o[ugo]*|a)?[+=][rxst]*w[rwxst]*\Z|^0?777\Z"
)


def sets_id(command: Command) -> bool:
    """A mode with the set-uid or set-gid bit."""
    given = command.texts[:1] if command.name == "chmod" else []
    given += [word.text for word in command.values("-m", "--mode", "--chmod")]
    return any(_SET_ID.search(text) for text in given)


def world_writable(command: Command) -> bool:
    """A mode by which everyone may write."""
    mode = "".join(command.texts[:1])
    return bool(_WORLD.search(mode)) and not mode.startswith(("+w", "u+w", "=w"))


def of_system(command: Command) -> bool:
    """An operand after the first one is a system file, or not the user's own with root rights."""
    scope = command.scope
    return any(
        is_system(path, scope)
        or (scope.elevated and not in_workspace(path, scope) and not is_temporary(path))
        for word in command.operands[1:]
        for path in targets(word, scope)
    )


def many_modes(command: Command) -> bool:
    """`chmod` on a pattern, but for making scripts executable."""
    if command.texts[:1] in (["+x"], ["u+x"], ["a+x"]) and command.name == "chmod":
        return False
    return command.found or any(word.glob for word in command.operands[1:])


def elevated(command: Command) -> bool:
    """It runs with more rights: `sudo` and the like."""
    return command.scope.elevated


def into_system(command: Command) -> bool:
    """`pip install --target /usr/…`."""
    given = command.values("-t", "--target", "--prefix", "--root")
    return any(word.text.startswith(("/usr", "/opt", "/etc")) for word in given)


def changes_source(command: Command) -> bool:
    """`npm config set registry http://…`: an index or shell of someone's choice."""
    texts = command.texts[2:] if command.texts[0] == "config" else command.texts[1:]
    name = texts[0].lower() if texts else ""
    if "registry" in name and "auth" not in name:
        # A mirror is usual; one that can be replaced on the way is not.
        return any(text.startswith("http://") for text in texts[1:])
    return _SOURCES.search(name) is not None


_SOURCES = re.compile(
    r"script-shell|ignore-scripts|node-options|index-url|proxy|trusted-host|find-links|_auth|"
    r"strict-ssl|cafile"
)


def kills_many(command: Command) -> bool:
    """`kill -1`, a process group, or the numbers that `pgrep` prints."""
    args = command.args
    numbers = args[1:] if args[:1] and args[0].startswith("-") and args[0] != "--" else args
    numbers = [arg for arg in numbers if arg.lstrip("-").isdigit()]
    if any(number in ("-1", "0", "1") for number in numbers):
        return not command.has("-l", "-0")
    if any(number.startswith("-") for number in numbers):
        return True
    return (command.found and not command.has("-0")) or any(
        stream is not None and "processes" in stream.tags
        for word in command.words[1:]
        for stream in (word.stream, *(command.scope.lookup(name).stream for name in word.variables))
    )


# Methods of D-Bus managers that change the system.
_METHOD = re.compile(
    r"(?:^|[./])(?:(?:Stop|Restart|TryRestart|Start|Reload|Kill|Reset|Freeze)\w*Unit\w*|"
    r"(?:Disable|Enable|Mask|Unmask|Link|Revert|Preset)UnitFiles\w*|Power\w*Off|Reboot\w*|Halt\w*|"
    r"Suspend\w*|Hibernate\w*|KExec|SoftReboot\w*|(?:Terminate|Kill)(?:User|Session|Seat|Machine)|"
    r"(?:Set|Delete|Create|Remove|Add|Install|Uninstall|Update|Format|Erase|Deactivate|Disconnect)"
    r"(?:Static|Pretty)?(?:Hostname|Time|Timezone|NTP|User|Users|Packages|Partition|Password\w*|"
    r"Connection|Rule|Zone|Service|Port|Locale|Image|Device|System)?|exit|logout)\Z"
)
_QUERY_METHOD = re.compile(r"(?:List|Get|Is|Can|Introspect|Ping|Subscribe)[A-Z]?\w*\Z")


def changes_by_bus(command: Command) -> bool:
    """`busctl call … StopUnit`."""
    args = command.args
    return any(_METHOD.search(arg) and not _QUERY_METHOD.search(arg) for arg in args) and (
        "monitor" not in args and "introspect" not in args
    )


# Git

# A single name is a branch or a file; with a usual suffix it is a file.
_FILE = re.compile(r"\.[a-z][a-z0-9]{0,4}\Z", re.I)
# A setting by which each later push overwrites the other side.
_FORCING = re.compile(
    r"remote\.[^=]+\.(?:push=\+|push=:[^=]|mirror(?:=(?!false|0|no|off)|\Z))", re.I
)
# A substitution that puts a colon before each branch of a list.
_REMADE = re.compile(r"\|.*\b(?:sed|awk|perl|xargs|printf)\b.*:", re.S)
_RUN_BY_GIT = names("core.hookspath core.fsmonitor core.sshcommand core.gitproxy init.templatedir")
_RUN_EVERYWHERE = re.compile(
    r"(?:alias\.|credential|url\.|include|filter\.|http\.|gpg|diff\.external|uploadpack|protocol\.|"
    r"core\.(?:pager|editor|askpass|attributesfile)\Z|sequence\.editor\Z)"
)


def names_files(command: Command) -> bool:
    """`git checkout -- f`, `git checkout HEAD f`, `git checkout .`, `git checkout a.py`."""
    texts = command.texts
    if len(texts) == 2 and _FILE.search(texts[1]) and "-t" not in command.flags:
        return True
    return "--" in command.args[:-1] or texts[1:2] in (["."], ["*"]) or len(texts) > 2


def rewrites_refs(command: Command) -> bool:
    """`git push origin +main`, `:old`, or references that another command lists."""
    if any(_FORCING.match(word.text) for word in command.values("-c")):
        return True
    if any(text.startswith(("+", ":")) and len(text) > 1 for text in command.texts[1:]):
        return True
    return any(
        not word.known and (command.found or _REMADE.search(word.raw))
        for word in command.operands[2:]
    )


def forces_pushes(command: Command) -> bool:
    """`git config remote.origin.push +main`."""
    pair = [text for text in command.texts[1:] if text not in ("set", "add")][:2]
    return len(pair) == 2 and _FORCING.match("=".join(pair)) is not None


def plants_program(command: Command) -> bool:
    """`git config` of a key that names a program, in this repository or for all of them."""
    args = command.args
    given = next(
        (b if a in ("-f", "--file") else a[7:])
        for a, b in [*pairwise(args), ("--file=", "")]
        if a in ("-f", "--file") or a.startswith("--file=")
    )
    texts = [text for text in command.texts[1:] if text not in (given, "set")]
    name = next((text.lower() for text in texts if "." in text), "")
    if len(texts) < 2 or not name:
        return False
    if name in _RUN_BY_GIT:
        return True
    wide = command.has("--global", "--system") or given.startswith((command.scope.home, "/etc/"))
    if name.startswith("alias.") and not any("!" in text for text in texts):
        return False
    return wide and _RUN_EVERYWHERE.match(name) is not None


# Remote services

_CLOUD_VERB = re.compile(
    r"(?:delete|destroy|terminate|remove|purge|deregister|disable|detach|revoke|reset|stop|"
    r"deallocate|deprovision|rb|rm|mv|batch-delete|del|drop|schedule-key-deletion|modify-db|"
    r"put-bucket-policy|put-bucket-acl|create-access-key|create-user|attach-user-policy|"
    r"attach-role-policy|put-user-policy|reboot|undelete-version|change-resource-record-sets|"
    r"authorize-security-group|empty-bucket|cancel|add-iam-policy|set-iam-policy)(?:\Z|-)"
)
_CLOUD_READ = re.compile(
    r"(?:list|describe|get|show|ls|help|version|info|logs?|tail|wait|cp|history)(?:\Z|-)"
)
_GIVING = names("pull publish invoke call create update upload download tail ssh submit ack")
# The verb may be a word, an option or a part of either: `del`, `-rm`, `service-instance-delete`.
_DESTROYING = re.compile(
    r"-{0,2}(?:[a-z]+[-:_])*(?:delete|destroy|remove|rm|rmr|purge|terminate|drop|wipe|reset|"
    r"force_reset|delete[A-Z]\w*|undefine|uninstall|unregister[a-z]*|nuke|flush|rb|del|delprefix)"
    r"(?:[-:_][a-z-]+)?\Z"
)
_QUERIES = names(
    "get status describe list ls show info logs inspect stat stats sub watch diff tail"
)


def destroys_cloud(command: Command) -> bool:
    """`aws SERVICE VERB`, `gcloud AREA THING VERB`: a verb that takes away comes first."""
    texts = command.texts
    if texts[:2] in (["s3", "mv"], ["s3", "sync"]):
        return False
    # A service may itself be called `logs`.
    for text in texts[1:2] if command.name == "aws" else texts[:5]:
        if _CLOUD_READ.match(text) or text in _GIVING:
            return False
        if _CLOUD_VERB.match(text):
            return True
    return False


def destroys_resource(command: Command) -> bool:
    """`tool area thing verb`; names of things come after the verb."""
    before = ""
    for text in command.args[:4]:
        named = text[:1] != "-" and takes_name(before)
        if not named and _DESTROYING.match(text):
            return True
        if text in _QUERIES:
            return False
        before = text
    return False


_HOST_MOUNT = re.compile(
    r"/(?::|etc|root|boot|dev|proc|sys|var/run/docker\.sock|run/docker\.sock|home/?:)|"
    r"(?:.*,)?(?:source|src)=/(?:,|etc|root|boot|var/run/docker\.sock|\Z)"
)


def escapes(command: Command) -> bool:
    """A container with the rights, the processes or the system files of this machine."""
    args = command.args
    if any(arg.startswith("--privileged") or arg == "--pid=host" for arg in args):
        return True
    given = [arg.partition("=")[2] for arg in args if arg.startswith(("--v", "--mount", "--cap-a"))]
    given += [b for a, b in pairwise(args) if a in ("-v", "--volume", "--mount", "--cap-add")]
    given += [arg[2:] for arg in args if arg.startswith("-v")]
    return any(text in ("ALL", "SYS_ADMIN") or _HOST_MOUNT.match(text) for text in given)


def from_output(command: Command) -> bool:
    """Names that another command prints: `docker kill $(docker ps -q)`."""
    return command.found or any(word.stream is not None for word in command.words)


def scales_to_zero(command: Command) -> bool:
    """`kubectl scale --replicas=0`."""
    return any(value.text == "0" for value in command.values("--replicas"))


_ADDRESS = re.compile(
    r"(?:[\w.-]+\s*@\s*)?(?:git\+|https?://|git://|(?:github|gitlab|bitbucket|gist):)"
)
_PACKAGE_RUNNERS = frozenset(("npx", "uvx", "bunx"))
_INSTALLING = names("install i add run exec x dlx eval cache pip tool")


def runs_package(command: Command) -> bool:
    """Code that is installed or run from an address instead of a registry."""
    texts = command.texts
    if command.name not in _PACKAGE_RUNNERS | {"pipx", "deno"} and (
        not texts or texts[0] not in _INSTALLING
    ):
        return False
    if command.name == "cargo":
        return texts[0] == "install" and command.has("--git")
    if command.name in _PACKAGE_RUNNERS or texts[:1] in (["exec"], ["x"], ["dlx"]):
        # The first word is what runs; the others are its arguments.
        texts = texts[:1] if command.name in _PACKAGE_RUNNERS else texts[1:2]
    given = command.values("-e", "--editable", "--from", "-p", "--package")
    return any(_ADDRESS.match(text) for text in [*texts, *(word.text for word in given)])


# Network and secrets

_LOCAL = re.compile(
    r"(?:https?://)?(?:[^/@]*@)?(?:localhost|127\.|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal)"
)
_SECRET_VARIABLE = re.compile(
    r"(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIAL)", re.I
)
_DROP_SITES = re.compile(
    r"transfer\.sh|0x0\.st|pastebin\.com|paste\.ee|ix\.io|termbin\.com|file\.io|bashupload\.com|"
    r"webhook\.site|requestbin|pipedream\.net|oshi\.at|temp\.sh|hastebin|dpaste|sprunge\.us|"
    r"clbin\.com|burpcollaborator|interact\.sh|oast\.|discord(?:app)?\.com/api/webhooks|"
    r"api\.telegram\.org|ngrok|gofile\.io|catbox\.moe|anonfiles"
)
_DATA = names(
    "-d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F --form -T "
    "--upload-file --post-data --post-file --body-data --body-file"
)
_NOT_FOR_OTHERS = PRIVATE | {ARCHIVE}


def binds_openly(command: Command) -> bool:
    """`ssh -L 0.0.0.0:…`, `iperf3 -s` without a local address, `nc -l` likewise."""
    texts = [word.text for word in command.values("-L", "-D", "-B", "--bind")]
    if command.name in ("ssh", "autossh"):
        return any(text.startswith(("0.0.0.0:", "*:")) for text in texts)
    texts += command.texts
    return not any(_LOCAL.match(text) and not text.startswith("0.0.0.0") for text in texts)


def sends_unknown(command: Command) -> bool:
    """A pipe of unknown content into a connection."""
    stdin = command.stdin
    if stdin is None or stdin.text is not None:
        return False
    return not any(_LOCAL.match(text) for text in command.texts)


def sends_secret(command: Command) -> bool:
    """`curl` with a secret variable, private input, or data for a public drop site."""
    addresses = [word for word in command.operands if word.text]
    if addresses and all(_LOCAL.match(word.text) for word in addresses):
        return False
    data, stdin = command.values(*_DATA), command.stdin
    from_pipe = not data or any(
        word.text in ("@-", "-", "@/dev/stdin") or word.text.endswith(("=@-", "=<-"))
        for word in data
    )
    if stdin is not None and stdin.tags & _NOT_FOR_OTHERS and from_pipe:
        return True
    for word in [*addresses, *data]:
        if any(_SECRET_VARIABLE.search(name) for name in word.variables):
            return True
        if word.stream is not None and word.stream.tags & _NOT_FOR_OTHERS:
            return True
    if command.scope.written and holds_private(READERS["curl"](command), command.scope):
        return True
    return bool(data) and any(_DROP_SITES.search(word.text) for word in addresses)


def looks_up_output(command: Command) -> bool:
    """A name lookup of something that a command prints."""
    return any(
        word.stream is not None or any(_SECRET_VARIABLE.search(name) for name in word.variables)
        for word in command.words[1:]
    )


def sends_on(command: Command) -> bool:
    """Private input, or a file that holds it, for a program that sends it away."""
    stdin, scope = command.stdin, command.scope
    if command.name == "sftp" and stdin is not None and stdin.text:
        return _is_secret([command.words[0].part(text) for text in stdin.text.split()], command)
    if command.name in ("gh", "glab") and command.args[1:2] == ["create"]:
        # A snippet is public to all who have its address.
        shared = command.args[0] in ("gist", "snippet") and _is_secret(
            command.operands[2:], command
        )
        return shared or (stdin is not None and bool(stdin.tags & PRIVATE))
    if scope.written and command.name in ("mail", "mutt", "scp", "sftp", "rclone"):
        words = [*command.operands, *command.values("-a", "-A", "--attach")]
        if holds_private(words, scope):
            return True
    # Between these two it stays on the machine when it is decrypted.
    kept = {SECRET, ENVIRONMENT} if command.name in ("openssl", "gpg") else PRIVATE
    return stdin is not None and bool(stdin.tags & kept)


def _is_secret(words: list[Word], command: Command) -> bool:
    scope = command.scope
    return any(is_credential(path, scope) for word in words for path in targets(word, scope))


_SECRETS = re.compile(r"(?:\w+,)*secrets?(?:[/,.]|\Z)")
_VALUES = re.compile(r"\.(?:data|stringData)\b|\bindex\b|base64decode")
_KEYS_OF_DATA = re.compile(r"range\s+(\$\w+)\s*,\s*(\$\w+)\s*:?=\s*\.data\s*\}\}(.*)", re.S)


def shows_secret(command: Command) -> bool:
    """`kubectl get secret -o …` in a form that shows values."""
    return (
        any(_SECRETS.match(text) for text in command.texts[1:2])
        and any(_shows_values(word.text) for word in command.values("-o", "--output"))
        and not keeps_fields(command)
    )


def _shows_values(text: str) -> bool:
    form, sign, template = text.partition("=")
    if text in ("name", "wide"):
        return False
    if not sign or form.endswith("-file"):
        return True
    match = _KEYS_OF_DATA.search(template)
    if match:
        return match.group(2) in match.group(3) or ".data" in match.group(3)
    return bool(_VALUES.search(template)) or template.strip("{}") in (".", "@", "$", ".items")


def shows_private_key(command: Command) -> bool:
    """`openssl rsa -in key` without an option that shows the public part alone."""
    return {"-pubout", "-pubin", "-noout"}.isdisjoint(command.args)


def of_credentials(command: Command) -> bool:
    """A setting of git's credentials is asked for."""
    return any("credential" in text for text in command.args)


# Windows

_EACH = re.compile(r"(?:\A|[{\s])(?:remove-item|ri|del|erase|rd|rmdir)(?:\Z|\s)", re.I)


def deletes_each(command: Command) -> bool:
    """`% { Remove-Item $_ }`."""
    return any(_EACH.search(arg) for arg in command.args)


_PROFILE = re.compile(r"\$\{?PROFILE\b|Microsoft\.(?:PowerShell|VSCode)_profile\.ps1", re.I)


def of_profile(command: Command) -> bool:
    """The start-up file of PowerShell is among the words."""
    return any(_PROFILE.search(word.raw) for word in command.words[1:])


def sets_null(command: Command) -> bool:
    """`Set-Content f $null`."""
    return any(
        tuple(word.variables) == ("null",) or word.text.lower() == "$null" for word in command.words
    )


def takes_address(command: Command) -> bool:
    """An address among the words of a program that would run what is there."""
    line = " ".join(word.raw.lower() for word in command.words[1:])
    return any(sign in line for sign in ("http:", "https:", "javascript:", "\\\\\\\\"))


def of_one_process(command: Command) -> bool:
    """`Stop-Process` by anything else than numbers."""
    return command.found or not any(text.isdigit() for text in command.texts)


# Hermes and other agents

_GATE_SETTING = re.compile(
    r"approv|permission|safety|allow|deny|trust|gate|polic|yolo|security|sandbox|profile", re.I
)
_AGENT_SWITCHES = re.compile(
    r"--(?:dangerously[\w-]*|yolo|full-auto|auto-approve[\w-]*|approve-all|allow-all[\w-]*|"
    r"no-approval[\w-]*|trust-all[\w-]*|skip-permissions|yes-always|always-approve|bypass[\w-]*|"
    r"force|no-confirm|approval-mode[= ](?:yolo|full-auto|auto_edit|never)|"
    r"permission-mode[= ]bypassPermissions|(?:ask-for-approval|approval-mode)[= ]never|"
    r"sandbox danger-full-access)\Z|-a never\Z|-s danger-full-access\Z"
)


def sets_gate(command: Command) -> bool:
    """`hermes config` of a setting that says what is allowed; or of one that is not named."""
    texts = command.texts
    return len(texts) < 3 or bool(_GATE_SETTING.search(texts[2])) or "edit" in texts[1]


def relaxes(command: Command) -> bool:
    """`--mode off`."""
    words = [word for arg in command.args for word in arg.split("=", 1)]
    return any(
        a in ("--mode", "--approvals") and b in ("off", "relaxed") for a, b in pairwise(words)
    )


def unguarded(command: Command) -> bool:
    """A switch by which an agent asks no more."""
    args = command.args
    return any(_AGENT_SWITCHES.match(text) for text in [*args, *map(" ".join, pairwise(args))])

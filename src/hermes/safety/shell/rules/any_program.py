"""Effects that look the same for every program: destructive verbs, HTTP methods, open addresses.

Nobody can list every such tool; their verbs are few. Programs whose words are names or text, and
those with rules of their own, are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.file_operands import READERS, WRITERS
from hermes.safety.shell.path_classes import absolute, is_disk
from hermes.safety.shell.programs import EXCEPT, PLAIN
from hermes.safety.shell.read_only import only_reads
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

# Programs whose words are text, file names, targets of a build or names of tests.
_TEXT = names(
    "git hub make gmake just task rake npm yarn pnpm bun deno npx node cargo go mvn gradle gradlew "
    "bazel pytest jest vitest mocha tox nox ctest phpunit rspec ginkgo playwright cypress cmake "
    "ninja meson python py pypy pip pip3 pipx uv poetry pdm conda mamba micromamba gem bundle "
    "composer "
    "rustup asdf nvm pyenv rbenv mise volta fnm sdk flutter dart pub nix brew apt apt-get dnf yum "
    "man tldr cheat apropos info whatis howdoi figlet cowsay say notify-send logger wall gum fzf "
    "sed awk gawk mawk perl ruby php lua tclsh tr code subl vim vi nvim nano emacs ed ex tmux "
    "screen docker podman nerdctl docker-compose podman-compose kubectl oc helm helmfile aws "
    "gcloud az gsutil "
    "systemctl service launchctl gh glab psql mysql sqlite3 duckdb ssh scp rsync find fd xargs "
    "watch time timeout hermes redis-cli valkey-cli mongosh mongo crontab export set unset local "
    "declare read eval source trap alias printf pwsh powershell cmd reg rg ag ack "
    "ssh-add pre-commit husky direnv eslint prettier ruff mypy black tsc webpack vite rollup "
    "esbuild claude codex gemini aider ollama llm mods sgpt jj svn fossil pass gpg openssl "
    "journalctl xattr setfacl iptables ip6tables ip nft pfctl ipset spack opam stack cabal raco "
    "vcpkg luarocks pixi rye hatch ni lerna nx ng proto sdkman cs coursier haxelib nimble shards "
    "dub tfenv kubectx kubens zellij pueue todo.sh nuget paket choco winget scoop "
    "snap flatpak dpkg rpm zypper pacman apk port emerge"
)
_STRONG = (
    "delete destroy purge terminate wipe nuke drop deprovision decommission unpublish yank forget "
    "obliterate erase expunge teardown undeploy undefine deregister unregister flushall flushdb "
    "truncate shred rmi delprefix unprovision deleteall mdelete dropall removeall revoke"
)
_WEAK = (
    "rm remove del reset prune flush disable clear clean gc rollback expire down rmr unlink stop "
    "retire deactivate"
)
# Weak verbs that need no noun after them.
_TAKING = names("rm remove del rmr")
_NOUNS = (
    "cluster db database instance bucket volume queue topic stack vm server host node namespace "
    "project app application site deployment environment backup snapshot archive artifact "
    "experiment secret token key user account role policy domain record zone dns release repo "
    "repository index collection table schema job workflow pipeline droplet disk network group "
    "org organization team tenant workspace machine container model dataset dataflow stream "
    "subscription function lambda distribution certificate cert webhook endpoint run runs channel "
    "message branch board issue page space object blob file files share member device all pod "
    "gateway lease resource deploy publish"
)
_FIRST_VERB = names(
    "show list get status query info describe view read print display dump ls inspect explain "
    "search find history help version add create new set update apply edit import export copy cp "
    "install build test push pull sync login logout init plan preview diff validate check lint "
    "start open watch tail logs log render convert generate upgrade publish upload download fetch "
    "routes about tree graph trace profile bench serve "
    "clone commit worker beat shell compile format fmt g generate migration scaffold make:migration"
)
_HARMLESS = re.compile(
    r"cache|alias|plugin|extension|completion|hook|theme|depend|package|lockfile|worktree|"
    r"temp|tmp|\btests?\b|comment|draft|remote|breakpoint|bookmark|todo|kernelspec|history",
    re.I,
)
_STRONG_WORDS = frozenset(_STRONG.split())
_WEAK_WORDS = frozenset(_WEAK.split())
_NOUN_WORDS = frozenset(
    [*_NOUNS.split(), *(noun + "s" for noun in _NOUNS.split()), "policies", "repositories"]
)
_PLAIN_WORD = re.compile(r"[A-Za-z][\w:.-]*\Z")
_PARTS = re.compile(r"[-_:.]|(?<=[a-z])(?=[A-Z])")
_OPTION = re.compile(
    r"--?(?:delete|destroy|purge|drop|wipe|nuke|erase|unregister|obliterate)"
    r"(?:-(?:all|everything|data|database|db|cluster|volumes?|topics?|groups?|records?))?\Z"
)
# A copy that takes away at the target what the source does not have.
_MIRRORS = frozenset(("sync", "mirror"))
_MIRRORING = re.compile(r"--(?:delete|remove|purge)(?:-[a-z]+)*(?:=(?:true|yes|1))?\Z")
_PATTERN = re.compile(
    r"-[gkqtm]\Z|--?(?:grep|filter|pattern|match|query|search|name|names|tag|label|title|message|"
    r"include|exclude|select|run|only|test|reason|description|comment|format|columns?|sort|type)\Z"
)
# Options whose next word is a name, whatever the program: `--group purge-worker`.
_NAMING = re.compile(
    r"--?(?:[a-z]+-)*(?:"
    + "|".join(sorted(set(_NOUNS.split()) - names("all run runs deploy publish files")))
    + r"|id|vhost|arn|config|path|dir|url|uri|addr|address|port|profile|region|prefix|suffix|owner|"
    r"client|service|consumer|producer|worker|context|kind|state|status|event|action|field|value|"
    r"pattern|category|level|env|output|input|from|to|source|target|bootstrap-server)\Z"
)
_DESTROYER = re.compile(r"(?:^|[-_])(?:nuke|wipe|destroy|purge|teardown)(?:$|[-_.])|\w{3}flush\Z")
_MOST_WORDS = 5
# Commands of PowerShell say in their first part what they do.
_CMDLET = re.compile(
    r"(?:Disable|Uninstall|Unregister|Dismount|Revoke|Reset|Suspend)-[A-Z]\w+\Z|"
    r"Clear-(?!Host|Variable|History|Screen)[A-Z]\w+\Z"
)
# What these keep is worth keeping: any verb that takes away needs no noun.
_KEEPERS = names(
    "borg borgmatic restic rustic duplicacy duplicity kopia tarsnap rdiff-backup bup zbackup attic "
    "barman pgbackrest wal-g velero flyway liquibase dvc lakefs nessie flarectl cloudflare-cli "
    "sidekiqctl rabbitmqadmin rabbitmqctl kafka-topics nats rsnapshot snapper timeshift btrbk "
    "zrepl sanoid"
)
_EXEMPT = _TEXT | PLAIN | frozenset(EXCEPT) | frozenset(READERS) | frozenset(WRITERS)
_LOOKING = ("get-", "select-", "write-", "test-", "where-", "findstr", "measure-", "show-")
# They read files too, but their verbs are verbs.
_MANAGERS = names("azcopy s3cmd s5cmd mc b2 rclone sops age wormhole transfer")


def destroys(command: Command) -> bool:
    """Whether a program is told to delete, empty or reset what it manages."""
    name = command.name
    if (name in _EXEMPT and name not in _MANAGERS) or name.startswith(_LOOKING):
        return False
    args = command.args
    if _CMDLET.match(command.words[0].text):
        return True
    if _DESTROYER.search(name) and args not in ([], ["--version"], ["--help"], ["list"]):
        return not any(_HARMLESS.search(arg) for arg in args)
    words = _words(command)
    if not _MIRRORS.isdisjoint(words[:2]) and any(_MIRRORING.match(arg) for arg in args):
        return True
    options = args[0] not in _FIRST_VERB and not any(word in _FIRST_VERB for word in words[1:2])
    match = _verb(words, alone=name in _KEEPERS) or (
        options and any(_OPTION.match(arg) for arg in args)
    )
    return match and not _HARMLESS.search(" ".join(words))


def _words(command: Command) -> list[str]:
    """The first operands, without those that an option takes for a pattern, a text or a name."""
    args = command.args
    words = [word.text for word in command.operands[:_MOST_WORDS]]
    for index, arg in enumerate(args[1:], 1):
        if arg in words and takes_name(args[index - 1]):
            words.remove(arg)
    return words


def takes_name(option: str) -> bool:
    """Whether an argument is an option after which a name, a text or a pattern stands."""
    if option[:1] != "-":
        return False
    return _PATTERN.match(option) is not None or _NAMING.match(option) is not None


def _verb(words: list[str], *, alone: bool) -> bool:
    before = ""
    for index, text in enumerate(words):
        if not _PLAIN_WORD.match(text):
            before = ""
            continue
        lowered = text.lower()
        if lowered in _FIRST_VERB or lowered.startswith("make:"):
            return False
        # A name that starts with a capital is a name: `generate migration DropTokens`.
        named = text[0].isupper() and not index
        parts = [lowered] if named else [part.lower() for part in _PARTS.split(text)]
        last = parts[-1]
        if last in _STRONG_WORDS or (parts[0] in _STRONG_WORDS and "." not in text):
            return True
        if parts[0] in _FIRST_VERB and len(parts) > 1 and index:
            return False
        weak = last if last in _WEAK_WORDS else parts[0] if "." not in text else ""
        if weak in _WEAK_WORDS:
            following = words[index + 1].lower() if index + 1 < len(words) else ""
            near = {before, following, *parts}
            if alone or near & _NOUN_WORDS or (text in _TAKING and following and index < 2):
                return True
            if text == "down" and not index:
                return True
        before = lowered
    return False


# Requests

_METHOD = re.compile(
    r"--?(?:X|request|(?:http-)?method|verb)(?:[=:]|\Z)|-[a-zA-Z]*X(?:delete\Z|\Z)", re.I
)
_CLIENTS = names("http https xh xhs httpie curlie ht hurl restish curl-impersonate")
_INDEX = re.compile(
    r":(?:9200|9201|5984|8983|6333|8086|2379)/[^/]*/?(?:\?.*)?\Z|:6443/|/api/v1/namespaces/"
)
_NEAR_HOST = re.compile(
    r"(?:https?://)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|host\.docker\.internal|"
    r"[\w-]+\.(?:local|localhost|test))?(?::\d+)?(?:/|\Z)"
)
_DELETING_PATH = re.compile(
    r"_delete_by_query|/delete[-_]?(?:series|all)\b|/(?:truncate|flushall)\b"
)
_REF = re.compile(r"git/refs?/|/branches/|force[-_]?(?:push|update)", re.I)
_FORCED = re.compile(r"force[\"']?\s*[=:]\s*[\"']?true", re.I)
_MUTATION = re.compile(r"mutation\b.*\b(?:delete|remove|archive|destroy|purge)[A-Z]\w*", re.S)


def _method(command: Command) -> str:
    """The method of a request, however its client spells that."""
    words = command.args
    for index, text in enumerate(words):
        if not text.startswith("-"):
            continue
        if not _METHOD.match(text):
            continue
        if text.lower().endswith("xdelete"):
            return "DELETE"
        _, sign, value = text.partition("=" if "=" in text else ":")
        return (value if sign else "".join(words[index + 1 : index + 2])).upper()
    if command.name in _CLIENTS:
        return next((word.text.upper() for word in command.operands if word.text.isalpha()), "")
    return ""


def deletes_by_request(command: Command) -> bool:
    """Whether a remote service is asked to delete something, or to overwrite a branch."""
    args = command.args
    if command.name in ("gh", "glab", "curl", "xh", "http") and any(
        _MUTATION.search(arg) for arg in args
    ):
        return True
    if any(_DELETING_PATH.search(arg) and "/" in arg and ":" in arg for arg in args):
        return True
    method = _method(command)
    if method in ("PATCH", "PUT", "POST"):
        line = " ".join(args)
        return bool(_REF.search(line) and _FORCED.search(line))
    if method != "DELETE":
        return False
    addresses = [
        arg for arg in args if not arg.startswith("-") and ("/" in arg or ":" in arg or "." in arg)
    ]
    if command.args[:1] in (["api"], ["rest"], ["raw-request"]):
        return True
    # Search engines and clusters keep much behind one short path, wherever they run.
    if any(_INDEX.search(address) for address in addresses):
        return True
    return not any(_NEAR_HOST.match(address) for address in addresses)


# Addresses

# Looked for before anything else: a command without one of these meets none of the rules here.
# The text is in small letters, and each way begins with a letter of its own: a pattern that minds
# no case, or begins with a condition, is several times as slow.
TELLING = re.compile(
    r"delet|destro|purge|terminat|wip|nuke|drop|deprov|decomm|unpub|yank|forget|obliter|erase|"
    r"expunge|teardown|undepl|undef|deregist|unregist|flush|trunc|rm(?<=\brm)|remov(?<=\bremov)|"
    r"del(?<=\bdel)(?:\b|prefix)|reset|prune|revok|disabl|clear|clean|gc(?<=\bgc)\b|rollback|"
    r"down(?:\b|grad)|expire|fresh|0\.0\.0\.0|\*(?<=[ =]\*)(?:[ :]|\Z)|::(?<=[ =\[]::)|"
    r"-all\b|_all\b|force|/dev/|stop|retire|deactiv|mutation|unlink|shred|uninstall|dismount|"
    r"suspend|public-access|unprov|--host(?: -|\Z)"
)

_EVERYONE = re.compile(r"(?:\w+://)?(?:0\.0\.0\.0|\[?::\]?|\*|0)(?::\d+)?\Z")
_LISTEN = re.compile(
    r"--?(?!allow|accept|no-|trusted)(?:[\w.]+[-_.])*(?:address|addr|host|hostname|bind|ip|listen|"
    r"addresses|interface|inspect|inspect-brk|inspect-wait|inspect-port)(?:[-_](?:address|addr|host|ip|addresses|to))*\Z"
)
# For these the option names whom to talk to, or where to look.
_TALKING = names(
    "curl wget psql mysql redis-cli ssh ping nc ncat mongosh ss netstat lsof grep rg nmap dig "
    "kafka-topics iptables ip nft ufw tcpdump tshark docker podman aws gcloud az terraform "
    "http https httpie xh wrk ab hey oha k6 vegeta siege telnet gdb lldb adb mosh nmap "
    "masscan dockerize git npx export echo printf set alias sed awk  rsync sqlmap "
    "firefox chromium google-chrome lynx w3m links elinks mysqldump pg_dump mqtt"
)


# Without one of these no option opens anything to all.
_OPEN_SIGNS = ("0.0.0.0", "*", "::", "--host", "_all", "-all", "public-access")
_OPEN_ADDRESS = re.compile(r"(?:tcp://|udp://|tcp:)?(?:0\.0\.0\.0|\[::\]|\*):\d+\Z")
_DEBUGGED = re.compile(r"\baddress=(?:\*|0\.0\.0\.0):\d+")
# The letters that stand for an address, a host or what is bound to one.
_SHORT_ADDRESS = re.compile(r"-(?:[aAbBhHiIlLsS]|host|addr|bind|listen|ip)\Z")
_ANYWHERE = re.compile(r"(?:\w+://)?(?:0\.0\.0\.0|\[::\]|::)(?::\d+)?\Z")
_ATTACHED = re.compile(
    r"(?:-[A-Za-z]|(?:[\w.]+[._])?(?:host|hostname|bind|listen|addr|address|ip)=)0\.0\.0\.0(?::\d+)?\Z"
)
_LISTENING = re.compile(r"(?:\w+_)?(?:RUN_HOST|BIND\w*|LISTEN\w*)\Z|HOST\Z|HOSTNAME\Z")
_SERVES = re.compile(r"serve|start|dev\b|run\b|up\b|preview|watch|listen|d\Z")
_CLIENT = re.compile(r"wait|curl|cat\Z|ping|client|probe|ready|bench|check|open\Z|test|cli\Z")


def opens_to_all(command: Command) -> bool:
    """Whether a server is told to listen on every address."""
    name = command.name
    if name in _TALKING or name in PLAIN:
        return False
    args = command.args
    line = " ".join(args)
    if not any(sign in line for sign in _OPEN_SIGNS):
        return opens_by_variable(command)
    if not _CLIENT.search(name) and any(
        _OPEN_ADDRESS.match(word.text) for word in command.operands[:4]
    ):
        return True
    for index, arg in enumerate(args):
        option, sign, value = arg.partition("=")
        if not sign:
            value = args[index + 1] if index + 1 < len(args) else ""
        if _LISTEN.match(option) and _EVERYONE.match(value):
            return value != "0" and "127.0.0.1" not in value
        if "jdwp" in arg and _DEBUGGED.search(arg):
            return True
        if arg in ("--bind_ip_all", "--bind-all", "--public-access"):
            return True
        if (
            _SHORT_ADDRESS.match(arg)
            and _ANYWHERE.match(value)
            and not only_reads(command, opened=False)
        ):
            return True
        if _ATTACHED.match(arg) or (arg == "--host" and value[:1] in ("", "-")):
            return True
    return opens_by_variable(command)


def opens_by_variable(command: Command) -> bool:
    """Whether the environment tells a server to listen everywhere: `HOST=0.0.0.0 npm start`."""
    given = [(name, word.text) for name, word in command.assignments]
    if command.scope.listening:
        given += [(name, value.text) for name, value in command.scope.variables.items()]
    own = command.name.upper() + "_HOST"
    return any(
        _ANYWHERE.match(text) and (name == own or _LISTENING.match(name)) for name, text in given
    ) and any(_SERVES.search(arg) for arg in [command.name, *command.args])


# Disk images

_IMAGE = re.compile(r"\.(?:img|iso|qcow2?|raw|vmdk|vdi|vhdx?|bin|dd|wic|gz|xz|zst|bz2|bmap)\Z")
_WRITING = names("convert copy write flash restore burn image clone put dd create")
_READS_DISKS = names(
    "file cat head xxd hexdump od strings losetup mount isoinfo fdisk parted sfdisk"
)


def writes_disk(command: Command) -> bool:
    """An image and a disk device as the last operand, for any program."""
    operands = command.operands
    if len(operands) < 2 or command.name in _READS_DISKS:
        return False
    if not is_disk(absolute(operands[-1].text, command.scope)):
        return False
    return operands[0].text in _WRITING or any(_IMAGE.search(word.text) for word in operands[:-1])

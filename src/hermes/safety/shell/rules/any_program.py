"""Rules for any program: destructive verbs, HTTP methods, open addresses, disks as targets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.read_only as looking
from hermes.safety.shell.path_classes import absolute, is_disk
from hermes.safety.shell.read_only_programs import PLAIN
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.rules.verbs import destroys
from hermes.safety.shell.scope import names
from hermes.safety.shell.verdict import ALWAYS, OUTSIDE, REFUSE, REMOTE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command


_METHOD = re.compile(
    r"--?(?:X|request|(?:http-)?method|verb)(?:[=:]|\Z)|-[a-zA-Z]*X(?:delete\Z|\Z)", re.I
)
_CLIENTS = names("http https xh xhs httpie curlie ht hurl restish curl-impersonate")
_INDEX = re.compile(
    r":(?:9200|9201|5984|8983|6333|8086|2379)/[^/]*/?(?:\?.*)?\Z|:6443/|/api/v1/namespaces/"
)
_NEAR = re.compile(
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
    return not any(_NEAR.match(address) for address in addresses)


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
_ADDRESS = re.compile(r"(?:tcp://|udp://|tcp:)?(?:0\.0\.0\.0|\[::\]|\*):\d+\Z")
_DEBUGGED = re.compile(r"\baddress=(?:\*|0\.0\.0\.0):\d+")
# The letters that stand for an address, a host or what is bound to one.
_SHORT = re.compile(r"-(?:[aAbBhHiIlLsS]|host|addr|bind|listen|ip)\Z")
_ANYWHERE = re.compile(r"(?:\w+://)?(?:0\.0\.0\.0|\[::\]|::)(?::\d+)?\Z")
_ATTACHED = re.compile(
    r"(?:-[A-Za-z]|(?:[\w.]+[._])?(?:host|hostname|bind|listen|addr|address|ip)=)0\.0\.0\.0(?::\d+)?\Z"
)
_LISTENING = re.compile(r"(?:\w+_)?(?:RUN_HOST|BIND\w*|LISTEN\w*)\Z|HOST\Z|HOSTNAME\Z")
_SERVES = re.compile(r"serve|start|dev\b|run\b|up\b|preview|watch|listen|d\Z")
_CLIENT = re.compile(r"wait|curl|cat\Z|ping|client|probe|ready|bench|check|open\Z|test|cli\Z")


def _opens_to_all(command: Command) -> bool:
    name = command.name
    if name in _TALKING or name in PLAIN:
        return False
    args = command.args
    line = " ".join(args)
    if not any(sign in line for sign in _OPEN_SIGNS):
        return opens_by_variable(command)
    if not _CLIENT.search(name) and any(_ADDRESS.match(word.text) for word in command.operands[:4]):
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
            _SHORT.match(arg)
            and _ANYWHERE.match(value)
            and not looking.only_reads(command, opened=False)
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


_SET_ID = re.compile(r"(?:^|,)[ugoa]*[+=][rwxXt]*s|^0?[2467][0-7]{3}\Z")


def _sets_id(command: Command) -> bool:
    values = command.values("-m", "--mode", "--chmod")
    return any(_SET_ID.search(value.text) for value in values)


_IMAGE = re.compile(r"\.(?:img|iso|qcow2?|raw|vmdk|vdi|vhdx?|bin|dd|wic|gz|xz|zst|bz2|bmap)\Z")
_WRITING = names("convert copy write flash restore burn image clone put dd create")
_READS_DISKS = names(
    "file cat head xxd hexdump od strings losetup mount isoinfo fdisk parted sfdisk"
)


def _writes_disk(command: Command) -> bool:
    operands = command.operands
    if len(operands) < 2 or command.name in PLAIN or command.name in _READS_DISKS:
        return False
    if not is_disk(absolute(operands[-1].text, command.scope)):
        return False
    return operands[0].text in _WRITING or any(_IMAGE.search(word.text) for word in operands[:-1])


RULES = (
    Rule(
        "disk.written",
        ALWAYS,
        "It writes to a disk device, over whatever is on it.",
        when=_writes_disk,
        severity=REFUSE,
        human_only=True,
        matches=(
            "sudo qemu-img convert -O raw disk.qcow2 /dev/sdb",
            "sudo bmaptool copy image.wic /dev/sdc",
            "usbimager image.iso /dev/sdb",
        ),
        passes=(
            "qemu-img convert -O raw a.qcow2 a.raw",
            "qemu-img info /dev/sdb",
            "smartctl -a /dev/sda",
        ),
    ),
    Rule(
        "service.destroyed",
        REMOTE,
        "It tells a program that manages something to delete, empty or reset it.",
        when=destroys,
        matches=(
            "celery -A app.tasks purge -f",
            "borg delete --glob-archives 'web-*' /mnt/repo",
            "java -jar jenkins-cli.jar -s https://ci.example.com/ delete-job old",
            "dotnet nuget delete Acme.Core 3.1.0",
            "confluent kafka topic delete orders",
            "airflow db reset -y",
            "cloud-nuke aws",
        ),
        passes=(
            "celery -A app inspect active",
            "java -jar app.jar",
            "rustup target remove wasm32-unknown-unknown",
            "pip cache purge",
            "pytest -k delete",
            "borg list /mnt/repo",
            "npx purgecss --css a.css",
        ),
    ),
    Rule(
        "service.deleted-by-request",
        REMOTE,
        "It asks a remote service to delete or overwrite something.",
        when=deletes_by_request,
        matches=(
            "curl -X DELETE https://api.example.com/users/1",
            "curl -sXDELETE https://es.example.com/index",
            "http DELETE https://api.example.com/users/1",
            "glab api --method DELETE projects/1/repository/branches/x",
            "az rest --method delete --url https://management.azure.com/x",
            "gh api --method PATCH repos/a/b/git/refs/heads/main -F force=true -f sha=1",
        ),
        passes=(
            "curl -X DELETE localhost:3000/items/1",
            "curl https://example.com/DELETE",
            "gh api -X POST repos/a/b/issues -f title=x",
            "http GET https://example.com",
        ),
    ),
    Rule(
        "network.open-address",
        REMOTE,
        "It listens on every address of this machine, open to others.",
        when=_opens_to_all,
        matches=(
            "kubectl port-forward --address 0.0.0.0 svc/db 5432:5432",
            "uvicorn app:app --host 0.0.0.0",
            "jupyter lab --ip='*'",
            "iperf3 -s -B 0.0.0.0",
            "HOST=0.0.0.0 npm run dev",
            "npx vite --host",
            "gdbserver 0.0.0.0:2345 ./bin/app",
            "python manage.py runserver '[::]:8000'",
        ),
        passes=(
            "uvicorn app:app --host 127.0.0.1",
            "kubectl port-forward svc/db 5432:5432",
            "ping 0.0.0.0",
            "gdbserver 127.0.0.1:2345 ./bin/app",
            "wait-for-it.sh 0.0.0.0:5432",
            "curl 0.0.0.0:8000/health",
            "psql --host 0.0.0.0",
            "DB_HOST=0.0.0.0 npm test",
            "npx vite --host localhost",
        ),
    ),
    Rule(
        "permissions.set-uid-made",
        OUTSIDE,
        "It makes a program that runs with its owner's rights.",
        programs="install ginstall mkdir rsync cp",
        when=_sets_id,
        matches=(
            "install -m 4755 x bin/x",
            "install --mode=u+s x bin/x",
            "sudo install -o root -m 6755 x /opt/x",
        ),
        passes=("install -m 755 x bin/x", "install -Dm644 a b", "mkdir -m 700 d"),
    ),
)

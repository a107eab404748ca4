"""Configuration managers that act on other machines by modules: Ansible, Salt, Puppet, D-Bus
managers.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from hermes.safety.shell.inner_command import run_line, run_words
from hermes.safety.shell.remote import elsewhere
from hermes.safety.shell.scope import names
from hermes.safety.shell.stream import ANYTHING, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope

_FREE = names("shell command raw script win_shell win_command expect")
_LOOKING = names(
    "ping win_ping setup debug stat fetch slurp find gather_facts assert wait_for uri_get "
    "package_facts service_facts getent ec2_instance_info k8s_info"
)
# An Ansible module, and the command that does the same; a field of the arguments in braces.
_MODULES = {
    **dict.fromkeys(
        names("copy template lineinfile blockinfile replace get_url ini_file assemble unarchive"),
        "tee {dest}{path}",
    ),
    "synchronize": "rsync -a{delete} {src} {dest}",
    **dict.fromkeys(
        names("service systemd systemd_service sysvinit win_service"), "systemctl {state} {name}"
    ),
    **dict.fromkeys(names("reboot win_reboot"), "reboot"),
    "shutdown": "poweroff",
    "user": "usermod {name}",
    "win_user": "usermod {name}",
    "group": "groupmod {name}",
    **dict.fromkeys(
        names("apt yum dnf package zypper pacman apk homebrew snap"), "apt-get install {name}"
    ),
    "cron": "crontab -r",
    "authorized_key": "tee ~/.ssh/authorized_keys",
    **dict.fromkeys(names("iptables ufw firewalld nftables"), "ufw reset"),
    **dict.fromkeys(names("filesystem parted lvg lvol mount"), "umount -a"),
    **dict.fromkeys(names("sysctl selinux seboolean hostname timezone"), "sysctl -w a=b"),
    "modprobe": "modprobe {name}",
}
_SALT = {
    "service": "systemctl {function} x",
    "system": "reboot",
    "pkg": "apt-get {function} x",
    "user": "userdel x",
    "group": "groupdel x",
    "shadow": "passwd x",
    "iptables": "iptables -F",
    "mount": "umount x",
    "ps": "pkill x",
    "cron": "crontab -r",
    "ssh": "tee ~/.ssh/authorized_keys",
}
_SALT_LOOKING = re.compile(
    r"(?:list|get|show|status|info|available|version|latest|is_|ping|items|item|find|stat|read|"
    r"uptime|refresh|enabled|missing|exists|check|disk|cpu|mem)"
)
_FIELD = re.compile(r"\{(\w+)\}")
_MEMBER = re.compile(
    r"(?:^|[./])(?:(?:Stop|Restart|TryRestart|Start|Reload|Kill|Reset|Freeze)\w*Unit\w*|"
    r"(?:Disable|Enable|Mask|Unmask|Link|Revert|Preset)UnitFiles\w*|Power\w*Off|Reboot\w*|Halt\w*|"
    r"Suspend\w*|Hibernate\w*|KExec|SoftReboot\w*|(?:Terminate|Kill)(?:User|Session|Seat|Machine)|"
    r"(?:Set|Delete|Create|Remove|Add|Install|Uninstall|Update|Format|Erase|Deactivate|Disconnect)"
    r"(?:Static|Pretty)?(?:Hostname|Time|Timezone|NTP|User|Users|Packages|Partition|Password\w*|"
    r"Connection|Rule|Zone|Service|Port|Locale|Image|Device|System)?|exit|logout)\Z"
)
_READING_CALL = re.compile(r"(?:List|Get|Is|Can|Introspect|Ping|Subscribe)[A-Z]?\w*\Z")


def _ansible(command: Command, judge: Judge) -> Stream:
    modules = [word.text.rpartition(".")[2] for word in command.values("-m", "--module-name")]
    module = modules[0] if modules else "command"
    given = command.values("-a", "--args")
    text = given[0].text if given else ""
    hosts = [word.text for word in command.operands[:1]]
    here = hosts in (["localhost"], ["127.0.0.1"])
    scope = command.scope.copy() if here else elsewhere(command)
    if command.has("-b", "--become", "-K"):
        scope.elevated = True
    if module in _FREE:
        line = re.sub(r"\b(?:chdir|creates|removes|executable|warn)=\S+\s*", "", text)
        _judge(line, command, judge, scope)
    elif module not in _LOOKING:
        _module(module, _fields(text), command, judge, scope)
    return ANYTHING


def _module(
    module: str, fields: dict[str, str], command: Command, judge: Judge, scope: Scope
) -> None:
    state = fields.get("state", "")
    if module == "file":
        path = fields.get("path") or fields.get("dest") or fields.get("name", "")
        line = f"rm -rf {path}" if state == "absent" else f"touch {path}"
        if fields.get("mode"):
            deep = "-R " if fields.get("recurse", "").lower() in ("yes", "true") else ""
            line += f"; chmod {deep}{fields['mode']} {path}"
        _judge(line, command, judge, scope)
        return
    form = _MODULES.get(module)
    if form is not None:
        fields.setdefault("state", "restart")
        if fields.get("delete", "").lower() in ("yes", "true"):
            fields["delete"] = " --delete"
        line = _FIELD.sub(lambda found: fields.get(found.group(1), ""), form)
        _judge(line, command, judge, scope)
    if state in ("absent", "terminated", "deleted", "killed"):
        judge.blame("service.destroyed", command)


def _fields(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    pairs = [word.partition("=") for word in words if "=" in word]
    if text.lstrip().startswith("{"):
        found = re.findall(r"[\"']?(\w+)[\"']?\s*:\s*[\"']?([^\"',}]+)", text)
        return {name: value.strip() for name, value in found}
    return {name: value for name, _, value in pairs}


def _judge(line: str, command: Command, judge: Judge, scope: Scope) -> None:
    judge.run_text(line, command.origin.vague(), scope)


def _salt(command: Command, judge: Judge) -> Stream | None:
    """`salt TARGET module.function ARGS`."""
    words = command.words
    for index, word in enumerate(words[1:], 1):
        module, dot, function = word.text.partition(".")
        if not dot or not word.text.replace(".", "").replace("_", "").isalpha():
            continue
        scope = elsewhere(command)
        rest = words[index + 1 :]
        if module == "cmd":
            return run_line(rest[:1], command, judge, scope=scope) if rest else None
        if module == "state" and not any(w.text.lower() == "test=true" for w in rest):
            if not _SALT_LOOKING.match(function):
                judge.blame("infrastructure.changed", command)
        elif module == "file" and function in ("remove", "rmdir"):
            _judge("rm -rf " + " ".join(w.text for w in rest), command, judge, scope)
        elif module == "file" and function in ("write", "append", "copy", "replace", "manage_file"):
            _judge("tee " + " ".join(w.text for w in rest[:1]), command, judge, scope)
        elif module in _SALT and not _SALT_LOOKING.match(function):
            _judge(_SALT[module].replace("{function}", function), command, judge, scope)
        return None
    return None


def _puppet(command: Command, judge: Judge) -> Stream | None:
    texts = [word.text for word in command.operands]
    changes = texts[:1] in (["apply"], ["agent"]) or (
        texts[:1] == ["resource"] and any("=" in text for text in texts)
    )
    if changes and not command.has("--noop"):
        judge.blame("infrastructure.changed", command)
    return None


def _bus(command: Command, judge: Judge) -> Stream | None:
    """`busctl call`, `gdbus call`, `dbus-send`: the method says what a manager will do."""
    args = command.args
    if any(_MEMBER.search(arg) and not _READING_CALL.search(arg) for arg in args) and (
        "monitor" not in args and "introspect" not in args
    ):
        judge.blame("services.by-bus", command)
    return None


def _after_dashes(command: Command, judge: Judge) -> Stream | None:
    """`fab -H HOST -- LINE`."""
    texts = [word.text for word in command.words]
    if "--" in texts:
        rest = command.words[texts.index("--") + 1 :]
        run_line(rest, command, judge, scope=elsewhere(command))
    return None


def _knife(command: Command, judge: Judge) -> Stream | None:
    operands = command.operands
    if [word.text for word in operands[:1]] == ["ssh"] and len(operands) > 2:
        run_line(operands[2:3], command, judge, scope=elsewhere(command))
    return None


def _psexec(command: Command, judge: Judge) -> Stream | None:
    words = command.words[1:]
    while words and (words[0].raw.startswith(("\\", "-", "/", "@")) or "\\" in words[0].text):
        words = words[2 if words[0].text in ("-u", "-p", "-w", "-r") else 1 :]
    return run_words(words, command, judge, scope=elsewhere(command)) if words else None


def _scripts(command: Command, judge: Judge) -> Stream | None:
    """`az vm run-command invoke --scripts LINE`, `aws ssm send-command --parameters …`."""
    words = command.words
    for index, word in enumerate(words[:-1]):
        if word.text in ("--scripts", "--parameters") and {"run-command", "send-command"} & set(
            command.args
        ):
            for found in re.findall(r"commands?=\[?\"?([^\"\]]+)", words[index + 1].text) or [
                words[index + 1].text
            ]:
                _judge(found, command, judge, elsewhere(command))
    return None


ADMINISTRATION: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "ansible": _ansible,
    **dict.fromkeys(("salt", "salt-call", "salt-ssh"), _salt),
    "puppet": _puppet,
    **dict.fromkeys(("busctl", "gdbus", "dbus-send", "qdbus", "qdbus6"), _bus),
    **dict.fromkeys(
        ("fab", "colima", "limactl", "distrobox", "toolbox", "minikube"), _after_dashes
    ),
    "knife": _knife,
    **dict.fromkeys(("psexec", "psexec64", "winrs", "paexec"), _psexec),
    **dict.fromkeys(("az", "aws"), _scripts),
}

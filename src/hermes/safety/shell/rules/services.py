"""Services, the kernel, power, and processes killed by name or all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.scope import names
from hermes.safety.shell.verdict import OUTSIDE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_READ_ONLY_SERVICES = names(
    "status show list-units list-unit-files list-timers list-sockets list-jobs is-active "
    "is-enabled is-failed cat "
    "help list-dependencies get-default show-environment is-system-running list-machines --version"
)


def _changes_service(command: Command) -> bool:
    texts = [word.text for word in command.operands]
    name = command.name
    if name == "systemctl":
        return bool(texts) and texts[0] not in _READ_ONLY_SERVICES
    if name in ("service", "rc-service"):
        return len(texts) > 1 and texts[1] not in ("status",)
    if name == "launchctl":
        return bool(texts) and texts[0] not in (
            "list",
            "print",
            "print-disabled",
            "help",
            "version",
            "dumpstate",
            "blame",
        )
    if name == "brew":
        return texts[:1] == ["services"] and texts[1:2] not in ([], ["list"], ["info"])
    if name in (
        "supervisorctl",
        "pm2",
        "rc-update",
        "update-rc.d",
        "chkconfig",
        "sv",
        "initctl",
        "sc",
        "net",
    ):
        stops = (
            "stop",
            "restart",
            "reload",
            "delete",
            "kill",
            "shutdown",
            "remove",
            "disable",
            "off",
            "down",
            "start",
            "del",
            "config",
            "defaults",
            "enable",
            "add",
        )
        return any(text in stops for text in texts)
    if name == "nginx":
        return bool(command.values("-s")) or "-s" in command.args
    return name in ("apachectl", "a2ensite", "a2dissite", "sysctl") and _writes_setting(
        command, texts
    )


def _writes_setting(command: Command, texts: list[str]) -> bool:
    if command.name == "sysctl":
        return command.has("-w", "--write", "-p", "--load", "--system") or any(
            "=" in text for text in texts
        )
    if command.name == "apachectl":
        return any(text in ("stop", "restart", "graceful", "start") for text in texts)
    return True


def _logs_cleared(command: Command) -> bool:
    return any(flag.startswith(("--vacuum", "--rotate", "--flush")) for flag in command.flags)


def _kills_many(command: Command) -> bool:
    if command.name == "kill":
        args = command.args
        pids = [arg for arg in args if arg.lstrip("-").isdigit()]
        if args[:1] and args[0].startswith("-") and args[0] not in ("--",):
            pids = [arg for arg in args[1:] if arg.lstrip("-").isdigit()]
        if any(pid in ("-1", "0", "1") for pid in pids):
            return not command.has("-l", "-0")
        if any(pid.startswith("-") for pid in pids):
            return True
        return (command.found and not command.has("-0")) or any(
            stream is not None and "processes" in stream.tags
            for word in command.words[1:]
            for stream in (
                word.stream,
                *(command.scope.lookup(name).stream for name in word.variables),
            )
        )
    return not command.has("-l", "--list", "-V", "--version", "-0")


RULES = (
    Rule(
        "services.changed",
        OUTSIDE,
        "It starts, stops or reconfigures a system service or a kernel setting.",
        programs=(
            "systemctl service rc-service launchctl brew supervisorctl pm2 rc-update update-rc.d "
            "chkconfig sv "
            "initctl sc net nginx apachectl a2ensite a2dissite sysctl"
        ),
        when=_changes_service,
        matches=(
            "systemctl stop nginx",
            "sudo service ssh restart",
            "systemctl disable ufw",
            "sysctl -w a.b=1",
            "launchctl unload x",
        ),
        passes=(
            "systemctl status nginx",
            "service ssh status",
            "sysctl -a",
            "launchctl list",
            "brew services list",
        ),
    ),
    Rule(
        "services.by-bus",
        OUTSIDE,
        "It asks a manager of the system to stop, change or shut down something.",
        matches=(
            (
                "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 "
                "org.freedesktop.systemd1.Manager StopUnit ss docker.service replace"
            ),
            (
                "gdbus call --system --dest org.freedesktop.login1 --object-path "
                "/org/freedesktop/login1 --method org.freedesktop.login1.Manager.PowerOff true"
            ),
            (
                "dbus-send --system --dest=org.freedesktop.systemd1 /org/freedesktop/systemd1 "
                "org.freedesktop.systemd1.Manager.RestartUnit string:x string:replace"
            ),
        ),
        passes=(
            "busctl list",
            (
                "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 "
                "org.freedesktop.systemd1.Manager ListUnits"
            ),
            "gdbus introspect --system --dest org.freedesktop.login1 --object-path /",
        ),
    ),
    Rule(
        "services.kernel",
        OUTSIDE,
        "It loads or removes kernel modules or changes how the machine boots.",
        programs=(
            "modprobe insmod rmmod depmod update-grub grub-install grub-mkconfig efibootmgr kexec "
            "dracut "
            "mkinitcpio update-initramfs bootctl bcdedit nvram csrutil"
        ),
        when=lambda command: (
            not command.has("-l", "--list", "-v", "--version", "-p", "--show-depends", "-n")
            and [w.text for w in command.operands[:1]] not in (["status"], ["list"])
        ),
        matches=("modprobe loop", "sudo rmmod kvm", "grub-install /dev/sda", "csrutil disable"),
        passes=("lsmod", "modinfo kvm", "csrutil status", "uname -r"),
    ),
    Rule(
        "services.logs-cleared",
        OUTSIDE,
        "It deletes system logs.",
        programs="journalctl logrotate wevtutil auditctl",
        when=lambda command: (
            _logs_cleared(command)
            or (command.name == "wevtutil" and "cl" in command.args)
            or (command.name == "auditctl" and command.has("-D", "-e"))
            or (command.name == "logrotate" and command.has("-f", "--force"))
        ),
        matches=(
            "journalctl --vacuum-time=1s",
            "sudo journalctl --rotate",
            "logrotate -f x.conf",
            "auditctl -D",
        ),
        passes=("journalctl -u x", "journalctl --since today", "logrotate -d x.conf"),
    ),
    Rule(
        "power.off",
        OUTSIDE,
        "It shuts the machine down, restarts it or sends it to sleep.",
        programs=(
            "shutdown reboot halt poweroff init telinit pm-suspend pm-hibernate restart-computer "
            "stop-computer loginctl rtcwake"
        ),
        when=lambda command: (
            (
                (command.name not in ("init", "telinit", "loginctl", "rtcwake"))
                or (command.name == "rtcwake" and not {"no", "show", "-l"} & set(command.args))
                or (
                    command.name == "loginctl"
                    and any(
                        w.text
                        in (
                            "poweroff",
                            "reboot",
                            "terminate-user",
                            "kill-session",
                            "terminate-session",
                        )
                        for w in command.operands
                    )
                )
                or [w.text for w in command.operands[:1]] in (["0"], ["6"], ["1"], ["s"])
            )
            and not command.has("-c", "--version")
        ),
        matches=("sudo reboot", "shutdown -h now", "init 0", "poweroff"),
        passes=("uptime", "last reboot", "shutdown -c", "npm init", "git init"),
    ),
    Rule(
        "process.kill-by-name",
        OUTSIDE,
        "It kills every process that fits a name.",
        programs="killall pkill killall5 skill slay taskkill xkill fkill kill-port killport",
        when=_kills_many,
        matches=(
            "killall node",
            "pkill -f server.py",
            "sudo pkill -9 java",
            "taskkill /F /IM node.exe",
        ),
        passes=("pgrep node", "kill 1234", "killall -l", "pkill --version"),
    ),
    Rule(
        "process.kill-all",
        OUTSIDE,
        "It kills processes that nobody named one by one.",
        programs="kill fuser",
        when=lambda command: (
            _kills_many(command) if command.name == "kill" else command.has("-k", "--kill")
        ),
        matches=(
            "kill -9 -1",
            "kill $(pgrep node)",
            "pgrep x | xargs kill",
            "kill -9 1",
            "fuser -k 8080/tcp",
        ),
        passes=("kill 1234", "kill -9 1234", "kill %1", "kill -l", "kill -0 1", "fuser 8080/tcp"),
    ),
)

"""The system: files, permissions, accounts, services, power, processes, packages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.paths import in_workspace, is_system, is_temporary, targets
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_SET_ID = re.compile(r"(?:^|,)[ugoa]*[+=][rwxXt]*s|^0?[2-7][0-7]{3}\Z")
_WORLD = re.compile(
    r"^0?[0-7]{0,2}[2367]\Z|(?:^|,)(?:[ugo]*o[ugo]*|a)?[+=][rxst]*w[rwxst]*\Z|^0?777\Z"
)
_RECURSIVE = ("-R", "--recursive")


def _mode(command: Command) -> str:
    # A mode may start with a dash: `chmod -x file`.
    return command.operands[0].text if command.operands else ""


def _sets_id(command: Command) -> bool:
    return bool(_SET_ID.search(_mode(command)))


def _opens_to_all(command: Command) -> bool:
    mode = _mode(command)
    return bool(_WORLD.search(mode)) and not mode.startswith(("+w", "u+w", "=w"))


def _on_system(command: Command) -> bool:
    return any(
        is_system(path, command.scope)
        or (
            command.scope.elevated
            and not in_workspace(path, command.scope)
            and not is_temporary(path)
        )
        for word in command.operands[1:]
        for path in targets(word, command.scope)
    )


def _several(command: Command) -> bool:
    return command.found or any(word.glob for word in command.operands[1:])


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
            word.stream is not None and "processes" in word.stream.tags
            for word in command.words[1:]
        )
    return not command.has("-l", "--list", "-V", "--version", "-0")


_INSTALLS = names(
    "install remove purge autoremove upgrade dist-upgrade full-upgrade reinstall update-grub "
    "erase downgrade "
    "localinstall groupinstall swap add del dup patch build-dep autoclean clean unhold hold mark "
    "system-upgrade rebase override uninstall rollback deinstall delete refresh tap cask"
)


def _changes_packages(command: Command) -> bool:
    name = command.name
    texts = [word.text for word in command.operands]
    if command.has(
        "--dry-run",
        "-s",
        "--simulate",
        "--just-print",
        "--download-only",
        "--print-uris",
        "--no-act",
    ):
        return False
    if name == "dpkg":
        return command.has(
            "-i",
            "--install",
            "-r",
            "--remove",
            "-P",
            "--purge",
            "--force-all",
            "--configure",
            "--unpack",
        )
    if name == "rpm":
        cluster = next((flag for flag in command.args if flag.startswith("-")), "")
        return "q" not in cluster[:2] and (
            command.has("-i", "-U", "-e", "-F", "--install", "--erase", "--upgrade")
        )
    if name == "pacman":
        first = next((flag for flag in command.args if flag.startswith("-")), "")
        return (
            first[1:2] in ("S", "R", "U") and first not in ("-Ss", "-Si", "-Sl", "-Sg")
        ) or command.has("--sync", "--remove")
    if name in ("brew", "port"):
        return bool(texts) and texts[0] in (
            "uninstall",
            "remove",
            "rm",
            "autoremove",
            "tap",
            "untap",
            "upgrade",
            "cleanup",
            "install",
            "reinstall",
            "unlink",
        )
    if name == "snap" or name == "flatpak":
        return bool(texts) and texts[0] in (
            "install",
            "remove",
            "refresh",
            "uninstall",
            "update",
            "revert",
            "disable",
        )
    if name == "nix-env":
        return command.has("-i", "-e", "-u", "--install", "--uninstall", "--upgrade", "-iA")
    if name in (
        "emerge",
        "slackpkg",
        "installpkg",
        "removepkg",
        "pkgin",
        "pkg_add",
        "pkg_delete",
        "dpkg-reconfigure",
        "alien",
    ):
        return not command.has("-p", "--pretend", "-s", "--search")
    if name == "softwareupdate":
        return command.has("-i", "--install", "-a")
    if name in ("winget", "choco", "scoop"):
        return bool(texts) and texts[0] in ("install", "uninstall", "upgrade", "remove", "update")
    return bool(texts) and texts[0] in _INSTALLS


def _system_pip(command: Command) -> bool:
    texts = [word.text for word in command.operands]
    if not texts or texts[0] not in ("install", "uninstall"):
        return False
    if command.scope.elevated or command.has("--break-system-packages"):
        return True
    return any(
        value.text.startswith(("/usr", "/opt", "/etc"))
        for value in command.values("-t", "--target", "--prefix", "--root")
    )


def _global_npm(command: Command) -> bool:
    texts = [word.text for word in command.operands]
    return command.scope.elevated and texts[:1] in (
        ["install"],
        ["i"],
        ["uninstall"],
        ["add"],
        ["global"],
        ["remove"],
        ["update"],
    )


RULES = (
    Rule(
        "system.write",
        "It changes files that belong to the operating system.",
        matches=(
            "echo x > /etc/hosts",
            "sudo cp app /usr/local/bin/",
            "sudo sed -i s/a/b/ /etc/ssh/sshd_config",
            "tar xzf a.tgz -C /usr/local",
            "ln -sf /x /usr/bin/python",
            "mv a /boot/grub/grub.cfg",
        ),
        passes=(
            "cat /etc/hosts",
            "cp /etc/hosts .",
            "echo x > etc/hosts",
            "echo x > /dev/null",
            "ls /usr/bin",
        ),
    ),
    Rule(
        "system.elevated-write",
        "It writes outside the project and home with another user's rights.",
        matches=("sudo cp a /opt/app/", "echo x | sudo tee /srv/x.conf", "sudo touch /opt/x"),
        passes=("sudo cp a b", "cp a /opt/app/", "sudo touch /tmp/x"),
    ),
    Rule(
        "system.elevated-script",
        "It runs a script or build with another user's rights.",
        matches=("sudo bash install.sh", "sudo make install", "sudo python3 setup.py install"),
        passes=("bash install.sh", "make install", "sudo ls"),
    ),
    Rule(
        "permissions.recursive",
        "It changes permissions or owners of everything below a directory.",
        programs="chmod chown chgrp setfacl chattr xattr",
        flags="-R --recursive",
        matches=("chmod -R 755 .", "sudo chown -R me:me /srv", "chgrp --recursive staff x"),
        passes=("chmod 644 a.txt", "chown me a.txt", "ls -R"),
    ),
    Rule(
        "permissions.many",
        "It changes permissions or owners of many files at once.",
        programs="chmod chown chgrp",
        when=_several,
        matches=("chmod 600 *", "find . -type f -exec chmod 644 {} +", "chown me *.txt"),
        passes=("chmod +x run.sh", "chmod 600 key.txt", "chown me a.txt"),
    ),
    Rule(
        "permissions.set-uid",
        "It lets a program run with its owner's rights.",
        programs="chmod",
        when=_sets_id,
        matches=("chmod u+s ./x", "chmod 4755 x", "chmod +s x", "sudo chmod g+s dir"),
        passes=("chmod 755 x", "chmod u+x x", "chmod 0644 x"),
    ),
    Rule(
        "permissions.capabilities",
        "It gives a program rights that belong to root.",
        programs="setcap",
        when=lambda command: not command.has("-v", "-h") and bool(command.operands),
        matches=("setcap cap_net_admin+ep ./x", "sudo setcap cap_setuid+ep x", "setcap -r x"),
        passes=("getcap x", "setcap -h", "setcap -v cap_net_raw+ep x"),
    ),
    Rule(
        "permissions.world-writable",
        "It lets everyone on the machine write there.",
        programs="chmod",
        when=_opens_to_all,
        matches=("chmod 777 x", "chmod o+w x", "chmod a+rwx x", "chmod 666 x"),
        passes=("chmod 755 x", "chmod u+w x", "chmod +x x", "chmod 600 x"),
    ),
    Rule(
        "permissions.system",
        "It changes permissions or owners of system files.",
        programs="chmod chown chgrp chattr",
        when=_on_system,
        matches=(
            "chmod 644 /etc/shadow",
            "sudo chown me /usr/local/bin/x",
            "chmod 600 /etc/passwd",
        ),
        passes=("chmod 644 a", "chown me a", "ls -l /etc/passwd"),
    ),
    Rule(
        "accounts.changed",
        "It adds, removes or changes user accounts, groups or who may become root.",
        programs=(
            "useradd adduser userdel deluser usermod groupadd groupdel groupmod addgroup delgroup "
            "gpasswd "
            "chpasswd vipw vigr visudo chsh chfn newusers dscl sysadminctl passwd chage pw"
        ),
        when=lambda command: (
            not (
                command.name == "dscl"
                and any(w.text in ("-read", "-list", ".") for w in command.words[1:3])
                and not any(t in ("-create", "-delete", "-append", "-passwd") for t in command.args)
            )
            and not (
                command.name in ("passwd", "chage")
                and command.has("-S", "--status", "-l", "--list")
            )
        ),
        matches=(
            "useradd bob",
            "sudo usermod -aG docker me",
            "passwd root",
            "echo a:b | chpasswd",
            "chsh -s /bin/zsh",
        ),
        passes=("id bob", "getent passwd", "grep bob /etc/passwd", "groups"),
    ),
    Rule(
        "accounts.root-shell",
        "It opens a shell with all rights, in which nothing is checked any more.",
        human_only=True,
        matches=("sudo -i", "sudo su -", "sudo bash", "su root"),
        passes=("sudo ls", "sudo -l", "su -c 'ls' bob"),
    ),
    Rule(
        "services.changed",
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
        "services.kernel",
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
        "It shuts the machine down, restarts it or sends it to sleep.",
        programs=(
            "shutdown reboot halt poweroff init telinit pm-suspend pm-hibernate restart-computer "
            "stop-computer "
            "loginctl"
        ),
        when=lambda command: (
            (
                (command.name not in ("init", "telinit", "loginctl"))
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
        "It kills every process that fits a name.",
        programs="killall pkill killall5 skill slay taskkill xkill",
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
    Rule(
        "packages.system",
        "It installs, removes or upgrades software for the whole machine.",
        programs=(
            "apt apt-get aptitude dnf yum microdnf zypper apk pacman yay paru dpkg rpm brew port "
            "snap flatpak "
            "nix-env emerge slackpkg installpkg removepkg pkg pkgin pkg_add pkg_delete opkg "
            "rpm-ostree tdnf xbps-install "
            "xbps-remove eopkg softwareupdate winget choco scoop dpkg-reconfigure alien urpmi swupd"
        ),
        when=_changes_packages,
        matches=(
            "apt install nmap",
            "sudo apt-get remove -y x",
            "dnf install x",
            "pacman -S x",
            "brew install jq",
            "dpkg -i x.deb",
        ),
        passes=(
            "apt list --installed",
            "apt-cache search x",
            "brew list",
            "dpkg -l",
            "pacman -Q",
            "apt show x",
        ),
    ),
    Rule(
        "packages.system-language",
        "It installs packages into the system's own language runtime.",
        programs="pip pipx gem npm yarn pnpm cpan easy_install",
        when=lambda command: (
            _system_pip(command) if command.name in ("pip",) else _global_npm(command)
        ),
        matches=(
            "sudo pip install x",
            "pip install --break-system-packages x",
            "sudo npm install -g x",
            "sudo gem install x",
        ),
        passes=("pip install x", "npm install x", "npm ci", "pip install -r requirements.txt"),
    ),
    Rule(
        "system.settings",
        "It changes settings of the whole machine.",
        programs=(
            "timedatectl hostnamectl localectl hostname date hwclock defaults spctl tccutil "
            "scutil pmset "
            "systemsetup dconf gsettings update-alternatives alternatives ldconfig locale-gen "
            "dpkg-divert pam-auth-update authconfig tmutil"
        ),
        when=lambda command: _changes_setting(command),
        matches=(
            "timedatectl set-timezone UTC",
            "sudo hostname x",
            "date -s '2020-01-01'",
            "spctl --master-disable",
        ),
        passes=(
            "timedatectl",
            "hostname",
            "date",
            "date +%s",
            "date -d yesterday",
            "defaults read x",
        ),
    ),
)


def _changes_setting(command: Command) -> bool:
    name = command.name
    texts = [word.text for word in command.operands]
    if name == "date":
        return command.has("-s", "--set")
    if name == "hostname":
        return bool(texts) and not command.flags
    if name in ("timedatectl", "hostnamectl", "localectl"):
        return any(text.startswith("set-") for text in texts)
    if name == "defaults":
        return texts[:1] in (["write"], ["delete"])
    if name in ("dconf", "gsettings"):
        return texts[:1] in (["write"], ["set"], ["reset"], ["load"])
    if name == "spctl":
        return command.has("--master-disable", "--global-disable", "--disable", "--add")
    if name == "tmutil":
        return any(
            text in ("delete", "disable", "deletelocalsnapshots", "removedestination")
            for text in texts
        )
    if name == "hwclock":
        return command.has("-w", "-s", "--set", "--systohc", "--hctosys")
    if name in ("scutil", "systemsetup"):
        return any("set" in arg.lower() for arg in command.args[:1])
    if name == "pmset":
        return not (texts[:1] == [] and command.has("-g"))
    if name in ("update-alternatives", "alternatives"):
        return command.has("--install", "--set", "--remove", "--config", "--auto", "--remove-all")
    return True

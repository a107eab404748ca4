"""Software and settings of the whole machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.scope import names
from hermes.safety.shell.verdict import OUTSIDE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

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
        "--simulate",
        "--just-print",
        "--download-only",
        "--print-uris",
        "--no-act",
    ) or (name in ("apt", "apt-get", "aptitude") and command.has("-s")):
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
        return (first[1:2] in ("S", "R", "U") and not re.match(r"-S[silgp]", first)) or command.has(
            "--sync", "--remove"
        )
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
    if name == "zypper" and texts[:1] and texts[0] in ("in", "rm", "up", "dup", "ref", "si"):
        return True
    if name == "nix-collect-garbage":
        return True
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


RULES = (
    Rule(
        "packages.system",
        OUTSIDE,
        "It installs, removes or upgrades software for the whole machine.",
        programs=(
            "apt apt-get aptitude dnf dnf5 yum microdnf zypper apk pacman yay paru dpkg rpm brew "
            "port snap flatpak nix-collect-garbage "
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
        OUTSIDE,
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
        OUTSIDE,
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

"""Dry runs, syntax checks and queries: commands that only report what they would do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

# However a program spells it: `_` and `-` are the same, and so are capitals.
_DRY = names(
    "--dry-run --dryrun --dry --simulate --what-if --whatif --noop --no-op --no-act --just-print "
    "--recon --preview --preview-only --plan-only --print-only --no-execute --validate-only "
    "--check-only --test-only --show-only --list-only --assumeno --assume-no --pretend --why-run "
    "--syntax-check --configtest --validate-config -whatif -dryrun -dry-run -simulate"
)
# By program, where the option is short or means something else to others.
_SHORT = {
    **dict.fromkeys(
        names("zfs zpool rclone s3cmd borg restic rsync just rename prename stow hg"), "-n"
    ),
    **dict.fromkeys(names("make gmake bmake"), "-n --question -q"),
    **dict.fromkeys(names("nginx sshd dhcpd php-fpm openvpn angie"), "-t -T"),
    **dict.fromkeys(names("httpd apache2 apachectl apache2ctl"), "-t -S"),
    **dict.fromkeys(names("apt apt-get aptitude apk"), "-s"),
    **dict.fromkeys(names("lvremove vgremove pvremove lvchange vgchange"), "-t --test"),
    **dict.fromkeys(names("ansible ansible-playbook"), "-C --check --list-hosts --list-tasks"),
    **dict.fromkeys(names("tmpreaper tmpwatch rpm"), "-t --test"),
    **dict.fromkeys(names("iptables-restore ip6tables-restore"), "-t --test"),
    "visudo": "-c --check",
    "haproxy": "-c",
    "nft": "-c --check",
    "brew": "-n",
    "pacman": "-p --print",
    "emerge": "-p",
    "zypper": "-D",
    "chef-client": "-W",
    "wipefs": "-n",
    "sfdisk": "-n",
    "sgdisk": "-P",
    "fsck": "-N -n",
    "shutdown": "-k",
    "logrotate": "-d --debug",
    "postfix": "check",
    "squid": "-k",
    "pulumi": "preview",
    "dovecot": "-n",
}
_SHORT_NAMES = {name: frozenset(text.split()) for name, text in _SHORT.items()}
# They know nothing of the kind, and not all of them stop at an option that they do not know.
_NEVER = names(
    "rm grm unlink srm shred dd tee mv cp ln chmod chown chgrp truncate kill killall pkill reboot "
    "halt poweroff find xargs sh bash zsh dash ksh fish eval exec sudo env mkfs rmdir del erase rd "
    "reg format crontab tar unzip cat echo printf"
)
_NO = names("false no none 0 off $false")
# Programs that carry code or commands, which a dry run leaves alone.
TRIED = names("parallel just make gmake bmake ansible bq task mask")

_QUERIES = names(
    "show list get status query info describe view read print display dump enum ls inspect "
    "explain search history stat stats help version"
)
_QUERY_OPTION = re.compile(
    r"(?:--?|/)(?:list|show|get|status|query|enum|display|print|describe|info)[a-z-]*\Z", re.I
)
_QUERY_OPTIONS = {"pmset": frozenset(("-g",)), "scutil": frozenset(("--dns", "--proxy", "--nwi"))}
# Rules about programs of which a verb says what they do.
_MANAGING = (
    "windows.security",
    "windows.registry",
    "system.settings",
    "services.",
    "network.firewall",
    "disk.partitions",
)


def only_tries(command: Command) -> bool:
    """Whether a program was told to say what it would do, or to check its settings."""
    name = command.name
    if name == "mkfs" and "-n" in command.args:
        return command.words[0].text.endswith(("ext2", "ext3", "ext4", "mke2fs"))
    if name in _NEVER and not (name == "rm" and "-WhatIf" in command.args):
        return False
    if name == "gsutil" and any(word.text == "rsync" for word in command.operands[:1]):
        # To its other verbs the same letter says which files to leave alone.
        return "-n" in command.flags
    short = _SHORT_NAMES.get(name)
    if short and not short.isdisjoint(command.flags):
        return True
    args = command.args
    for index, arg in enumerate(args):
        if arg == "--":
            break
        if arg[:1] != "-":
            continue
        option, _, value = arg.partition("=")
        if "=" not in arg:
            option, _, value = arg.partition(":")
        if option.lower().replace("_", "-") in _DRY:
            value = value or " ".join(args[index + 1 : index + 2])
            return value.lower() not in _NO
    return short is not None and not short.isdisjoint(args[:1])


def only_asks(command: Command, rule: str) -> bool:
    """Whether the first verb of a program that a managing rule is about is a question."""
    if not rule.startswith(_MANAGING):
        return False
    options = _QUERY_OPTIONS.get(command.name)
    if options and not options.isdisjoint(command.args):
        return True
    for word in command.words[1:5]:
        text = word.text.lower()
        if text in _QUERIES or _QUERY_OPTION.match(text):
            return True
        if text in _CHANGES:
            return False
    return False


_CHANGES = names(
    "set add delete remove reset stop start restart disable enable create destroy rollback import "
    "load unload copy config flush change replace export-secret install uninstall mount unmount"
)

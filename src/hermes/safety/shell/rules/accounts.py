"""Rules for permissions, owners, accounts and root rights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.path_classes import in_workspace, is_system, is_temporary, targets
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import INSIDE, OUTSIDE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

_SET_ID = re.compile(r"(?:^|,)[ugoa]*[+=][rwxXt]*s|^0?[2-7][0-7]{3}\Z")
_WORLD = re.compile(
    r"^0?[0-7]{0,2}[2367]\Z|(?:^|,)(?:[ugo]*o[ugo]*|a)?[+=][rxst]*w[rwxst]*\Z|^0?777\Z"
)


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
    if _mode(command) in ("+x", "u+x", "a+x") and command.name == "chmod":
        return False
    return command.found or any(word.glob for word in command.operands[1:])


def _listing(name: str) -> tuple[str, ...]:
    # The letter lists an account's dates for one, and locks the account for the other.
    return ("-l",) if name == "chage" else ()


RULES = (
    Rule(
        "permissions.recursive",
        INSIDE,
        "It changes permissions or owners of everything below a directory.",
        programs="chmod chown chgrp setfacl chattr xattr",
        flags="-R --recursive",
        matches=("chmod -R 755 .", "sudo chown -R me:me /srv", "chgrp --recursive staff x"),
        passes=("chmod 644 a.txt", "chown me a.txt", "ls -R"),
    ),
    Rule(
        "permissions.many",
        INSIDE,
        "It changes permissions or owners of many files at once.",
        programs="chmod chown chgrp",
        when=_several,
        matches=("chmod 600 *", "find . -type f -exec chmod 644 {} +", "chown me *.txt"),
        passes=("chmod +x run.sh", "chmod 600 key.txt", "chown me a.txt"),
    ),
    Rule(
        "permissions.set-uid",
        OUTSIDE,
        "It lets a program run with its owner's rights.",
        programs="chmod",
        when=_sets_id,
        matches=("chmod u+s ./x", "chmod 4755 x", "chmod +s x", "sudo chmod g+s dir"),
        passes=("chmod 755 x", "chmod u+x x", "chmod 0644 x"),
    ),
    Rule(
        "permissions.capabilities",
        OUTSIDE,
        "It gives a program rights that belong to root.",
        programs="setcap",
        when=lambda command: not command.has("-v", "-h") and bool(command.operands),
        matches=("setcap cap_net_admin+ep ./x", "sudo setcap cap_setuid+ep x", "setcap -r x"),
        passes=("getcap x", "setcap -h", "setcap -v cap_net_raw+ep x"),
    ),
    Rule(
        "permissions.world-writable",
        INSIDE,
        "It lets everyone on the machine write there.",
        programs="chmod",
        when=_opens_to_all,
        matches=("chmod 777 x", "chmod o+w x", "chmod a+rwx x", "chmod 666 x"),
        passes=("chmod 755 x", "chmod u+w x", "chmod +x x", "chmod 600 x"),
    ),
    Rule(
        "permissions.system",
        OUTSIDE,
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
        OUTSIDE,
        "It adds, removes or changes user accounts, groups or who may become root.",
        programs=(
            "useradd adduser userdel deluser usermod groupadd groupdel groupmod addgroup delgroup "
            "gpasswd "
            "chpasswd vipw vigr visudo chsh chfn newusers dscl sysadminctl passwd chage pw net "
            "pwconv homectl realm"
        ),
        when=lambda command: (
            not (
                command.name == "dscl"
                and any(w.text in ("-read", "-list", ".") for w in command.words[1:3])
                and not any(t in ("-create", "-delete", "-append", "-passwd") for t in command.args)
            )
            and not (
                command.name == "net"
                and not (
                    command.args[:1] in (["user"], ["localgroup"], ["group"], ["accounts"])
                    and len(command.args) > 2
                )
            )
            and not (
                command.name in ("passwd", "chage")
                and command.has("-S", "--status", "--list", *_listing(command.name))
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
        OUTSIDE,
        "It opens a shell with all rights, in which nothing is checked any more.",
        human_only=True,
        matches=("sudo -i", "sudo su -", "sudo bash", "su root"),
        passes=("sudo ls", "sudo -l", "su -c 'ls' bob"),
    ),
)

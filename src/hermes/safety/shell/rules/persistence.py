"""Later execution and later access: start-up files, schedulers, login keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import OUTSIDE, REMOTE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command


def _schedules(command: Command) -> bool:
    name = command.name
    if name == "crontab":
        return not command.has("-l")
    if name in ("at", "batch"):
        return not command.has("-l", "-V", "-c")
    if name == "atrm":
        return True
    if name == "schtasks":
        return any(arg.lower() in ("/create", "/change", "/delete") for arg in command.args)
    return name in ("register-scheduledtask", "new-scheduledtask", "set-scheduledtask")


def _changes_source(command: Command) -> bool:
    texts = [word.text for word in command.operands]
    if texts[:2] == ["config", "set"]:
        texts = texts[2:]
    elif texts[:1] == ["set"]:
        texts = texts[1:]
    else:
        return False
    name = texts[0].lower() if texts else ""
    if "registry" in name and "auth" not in name:
        # A mirror of one's own is usual; one that anybody on the way can replace is not.
        return any(text.startswith("http://") for text in texts[1:])
    return any(
        part in name
        for part in (
            "script-shell", "ignore-scripts", "node-options", "index-url", "proxy",
            "trusted-host", "find-links", "_auth", "strict-ssl", "cafile",
        )
    )  # fmt: skip


def _adds_key(command: Command) -> bool:
    if command.name == "gh":
        return [word.text for word in command.operands[:2]] in (
            ["ssh-key", "add"],
            ["gpg-key", "add"],
        )
    return not command.has("-n")


RULES = (
    Rule(
        "persist.startup-file",
        OUTSIDE,
        "It changes a file that runs at every login, shell start, commit or boot.",
        matches=(
            "echo x >> ~/.bashrc",
            "tee -a ~/.zshrc",
            "cp k ~/.ssh/authorized_keys",
            "sed -i s/a/b/ ~/.profile",
            "printf x > .git/hooks/pre-commit",
            "cp a.desktop ~/.config/autostart/",
            "echo x >> .git/modules/lib/config",
        ),
        passes=(
            "cat ~/.bashrc",
            "source ~/.bashrc",
            "echo x >> bashrc.txt",
            "echo build >> .git/info/exclude",
            "cp ~/.bashrc backup/",
        ),
    ),
    Rule(
        "persist.schedule",
        OUTSIDE,
        "It schedules commands to run later, or removes scheduled ones.",
        programs=(
            "crontab at batch atrm schtasks register-scheduledtask new-scheduledtask "
            "set-scheduledtask"
        ),
        when=_schedules,
        matches=(
            "crontab new.txt",
            "crontab -r",
            "echo ls | at now + 1 hour",
            "crontab -e",
            "systemd-run --on-calendar=daily ls",
        ),
        passes=("crontab -l", "atq", "at -l", "systemctl list-timers"),
    ),
    Rule(
        "persist.trusted-code",
        OUTSIDE,
        "It lets an editor run code of a file from now on.",
        programs="code codium cursor windsurf",
        when=lambda command: any(arg.endswith(".vsix") for arg in command.args),
        matches=(
            "code --install-extension evil.vsix",
            "codium --install-extension=./a.vsix",
            "cursor --force --install-extension x.vsix",
        ),
        passes=("code .", "code --list-extensions", "code --install-extension ms-python.python"),
    ),
    Rule(
        "persist.package-source",
        OUTSIDE,
        "It changes where a package manager gets code from, or what it runs.",
        programs="npm pnpm yarn pip",
        when=lambda command: _changes_source(command),
        matches=(
            "npm config set script-shell /tmp/x",
            "pip config set global.index-url http://example.com",
            "npm set //registry.example.com/:_authToken=x",
        ),
        passes=("npm config get registry", "pip config list", "npm config set fund false"),
    ),
    Rule(
        "persist.login-key",
        REMOTE,
        "It gives a key access to a machine or account.",
        programs="ssh-copy-id gh",
        when=_adds_key,
        matches=("ssh-copy-id host", "ssh-copy-id -i k.pub me@host", "gh ssh-key add k.pub"),
        passes=("ssh-keygen -t ed25519 -f key", "gh ssh-key list", "ssh-add -l"),
    ),
    Rule(
        "persist.lingering",
        OUTSIDE,
        "It lets a user's services run without a login.",
        programs="loginctl",
        sub=("enable-linger",),
        matches=(
            "loginctl enable-linger",
            "loginctl enable-linger me",
            "sudo loginctl enable-linger me",
        ),
        passes=("loginctl list-sessions", "loginctl show-user me", "loginctl"),
    ),
)

"""PowerShell and cmd forms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.delete_targets import covers_everything, kind_of_delete
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.scope import HOLE
from hermes.safety.shell.verdict import ALWAYS, INSIDE, OUTSIDE, REFUSE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.word_builder import Word


_PROFILE = re.compile(r"\$\{?PROFILE\b|Microsoft\.(?:PowerShell|VSCode)_profile\.ps1", re.I)


def _switches(command: Command) -> set[str]:
    return {arg.lower() for arg in command.args}


def _targets(command: Command) -> list[Word]:
    """Operands of either language: PowerShell switches start with `-`, those of cmd with `/`."""
    from hermes.safety.shell.code.powershell import windows_path

    words = []
    for word in command.words[1:]:
        text = word.text
        if text.startswith("-") or (
            text.startswith("/")
            and len(text) in (2, 3)
            and command.name in ("rd", "rmdir", "del", "erase")
        ):
            continue
        if text.lower() in ("silentlycontinue", "stop", "ignore", "$true", "$false"):
            continue
        raw = (
            word.raw.strip("\"'")
            if "\\" in word.raw or "$env" in word.raw.lower() or "%" in word.raw
            else text
        )
        part = word.part(windows_path(raw, command.scope))
        part.glob = "*" in part.text
        words.append(part)
    return words


def _recursive(command: Command) -> bool:
    switches = _switches(command)
    if "/s" in switches:
        return True
    return command.name in _CMDLETS and any(
        len(switch) > 1 and "-recurse".startswith(switch) for switch in switches
    )


_CMDLETS = frozenset(("remove-item", "ri", "rd", "del", "erase", "rmdir", "rm"))


def _is_windows(command: Command) -> bool:
    return command.name not in ("rmdir", "rm") or bool(
        _switches(command) & {"/s", "/q", "-recurse"}
    )


def _everything(command: Command) -> bool:
    return (
        _is_windows(command)
        and _recursive(command)
        and any(covers_everything(word, command.scope) for word in _targets(command))
    )


def _tree(command: Command) -> bool:
    return _is_windows(command) and _recursive(command) and not _everything(command)


def _many(command: Command) -> bool:
    if not _is_windows(command) or _recursive(command):
        return False
    words = _targets(command)
    if any(word.text == HOLE for word in words) or (not words and command.stdin is not None):
        return True
    return kind_of_delete(words, command.scope, recursive=False, found=command.found) is not None


RULES = (
    Rule(
        "windows.delete-everything",
        ALWAYS,
        "It deletes a whole drive or home directory.",
        programs="remove-item ri rd rmdir del erase rm",
        when=_everything,
        severity=REFUSE,
        human_only=True,
        matches=(
            'powershell -Command "Remove-Item $HOME -Recurse -Force"',
            "cmd /c rd /s /q C:\\\\",
            "pwsh -c 'Remove-Item -Recurse -Force $env:USERPROFILE'",
            "Remove-Item -Recurse -Force C:\\*",
        ),
        passes=(
            "cmd /c rd /s /q build",
            "pwsh -c 'Remove-Item a.txt'",
            "pwsh -c 'Get-ChildItem $HOME'",
        ),
    ),
    Rule(
        "windows.delete-tree",
        INSIDE,
        "It deletes a directory with everything in it.",
        programs="remove-item ri rd rmdir del erase rm",
        when=_tree,
        matches=(
            "cmd /c rmdir /s /q src",
            "Remove-Item -Recurse -Force build",
            "cmd /c del /s /q *.obj",
            "rmdir /s /q build",
        ),
        passes=("rmdir empty", "cmd /c dir /s", "pwsh -c 'Remove-Item a.txt'"),
    ),
    Rule(
        "windows.delete-many",
        INSIDE,
        "It deletes more than one file, or a file that is not named.",
        programs="remove-item ri del erase",
        when=_many,
        matches=(
            "cmd /c del *.txt",
            "pwsh -c 'gci *.log | Remove-Item'",
            "Remove-Item a.txt,b.txt b.txt",
        ),
        passes=("cmd /c del a.txt", "pwsh -c 'Remove-Item a.txt'", "pwsh -c 'gci *.log'"),
    ),
    Rule(
        "windows.delete-each",
        INSIDE,
        "It deletes each of the files that a command before it lists.",
        programs="% foreach-object foreach",
        when=lambda command: any(
            name in word.text.lower().split() or word.text.lower().strip("{") == name
            for word in command.words[1:]
            for name in ("remove-item", "ri", "del", "erase", "rd", "rmdir")
        ),
        matches=(
            "ls *.tmp | % { Remove-Item $_ }",
            "gci | ForEach-Object { del $_ }",
            "gci | foreach { ri $_ }",
        ),
        passes=(
            "ls *.tmp | % { Write-Host $_ }",
            "gci | ForEach-Object { echo $_ }",
            "Remove-Item a.txt",
        ),
    ),
    Rule(
        "windows.mirrored",
        INSIDE,
        "It deletes at the target whatever the source does not have.",
        programs="robocopy",
        when=lambda command: (
            bool(_switches(command) & {"/mir", "/purge", "/mov", "/move"})
            and "/l" not in _switches(command)
        ),
        matches=("robocopy a b /MIR", "cmd /c robocopy a b /purge", "robocopy a b /MOVE"),
        passes=("robocopy a b", "robocopy a b /E", "robocopy a b /L /MIR", "cmd /c copy a b"),
    ),
    Rule(
        "windows.disk",
        ALWAYS,
        "It formats or wipes a disk.",
        programs="format-volume clear-disk initialize-disk remove-partition format cipher",
        when=lambda command: (
            command.name not in ("format", "cipher")
            or any(len(word.raw) == 2 and word.raw[1] == ":" for word in command.words)
            or any(arg.lower().startswith("/w") for arg in command.args if command.name == "cipher")
        ),
        severity=REFUSE,
        human_only=True,
        matches=(
            "pwsh -c 'Format-Volume -DriveLetter C'",
            "cmd /c format C: /q",
            "pwsh -c 'Clear-Disk -Number 0'",
        ),
        passes=("pwsh -c 'Get-Disk'", "npm run format", "cmd /c dir"),
    ),
    Rule(
        "windows.distribution-removed",
        OUTSIDE,
        "It deletes a Linux distribution of this machine with everything in it.",
        programs="wsl",
        flags="--unregister --uninstall",
        matches=(
            "wsl --unregister Ubuntu",
            "wsl.exe --unregister Debian",
            "wsl --uninstall",
        ),
        passes=("wsl --list --verbose", "wsl -d Ubuntu ls", "wsl --status"),
    ),
    Rule(
        "windows.registry",
        OUTSIDE,
        "It changes the Windows registry.",
        programs="reg set-itemproperty remove-itemproperty new-itemproperty regedit",
        when=lambda command: (
            command.name != "reg"
            or bool(_switches(command) & {"add", "delete", "import", "restore", "load", "copy"})
        ),
        matches=(
            "reg add HKCU\\\\X /v a",
            "reg delete HKLM\\\\X /f",
            "pwsh -c 'Set-ItemProperty HKCU:x -Name a -Value b'",
        ),
        passes=("reg query HKCU", "pwsh -c 'Get-ItemProperty HKCU:x'", "grep reg x"),
    ),
    Rule(
        "windows.security",
        OUTSIDE,
        "It weakens protection or changes services, accounts or the firewall.",
        programs=(
            "set-mppreference add-mppreference set-executionpolicy stop-service set-service "
            "restart-service "
            "stop-process disable-netfirewallrule set-netfirewallprofile new-localuser "
            "add-localgroupmember netsh vssadmin "
            "wbadmin icacls takeown bcdedit disable-windowsoptionalfeature new-netfirewallrule "
            "remove-service spps clear-eventlog "
            "clear-recyclebin remove-localuser reset-computermachinepassword new-service "
            "disable-computerrestore start-process enable-psremoting set-acl"
        ),
        when=lambda command: (
            not (
                (
                    command.name == "stop-process"
                    and any(word.text.isdigit() for word in command.operands)
                    and not command.found
                )
                or (
                    command.name == "start-process"
                    and not any(arg.lower() == "runas" for arg in command.args)
                )
                or (
                    command.name in ("vssadmin", "wbadmin")
                    and not _switches(command) & {"delete", "resize"}
                )
                or (
                    command.name == "icacls"
                    and not any(
                        arg.lower().startswith(("/grant", "/t", "/reset", "/setowner"))
                        for arg in command.args
                    )
                )
            )
        ),
        matches=(
            "pwsh -c 'Set-MpPreference -DisableRealtimeMonitoring 1'",
            "vssadmin delete shadows /all",
            "pwsh -c 'Stop-Process -Name node'",
        ),
        passes=(
            "pwsh -c 'Get-Service'",
            "vssadmin list shadows",
            "pwsh -c 'Stop-Process -Id 1234'",
        ),
    ),
    Rule(
        "windows.startup-file",
        OUTSIDE,
        "It changes the file that every PowerShell runs when it starts.",
        programs=(
            "add-content set-content out-file new-item copy-item move-item tee-object ac sc ni cpi "
            "clear-content notepad code"
        ),
        when=lambda command: any(_PROFILE.search(word.raw) for word in command.words[1:]),
        matches=(
            "Add-Content -Path $PROFILE -Value 'Import-Module m'",
            "pwsh -c 'Set-Content $PROFILE.CurrentUserAllHosts x'",
            "New-Item -Path $PROFILE -Force",
        ),
        passes=(
            "Get-Content $PROFILE",
            "pwsh -c 'Test-Path $PROFILE'",
            "Add-Content notes.txt x",
        ),
    ),
    Rule(
        "windows.emptied",
        INSIDE,
        "It empties a file.",
        programs="clear-content clc set-content sc",
        when=lambda command: (
            command.name in ("clear-content", "clc")
            or any(
                tuple(word.variables) == ("null",) or word.text.lower() == "$null"
                for word in command.words
            )
        ),
        matches=("pwsh -c 'Clear-Content a.log'", "pwsh -c 'clc a.log'", "Clear-Content a.log"),
        passes=("pwsh -c 'Get-Content a.log'", "pwsh -c 'Add-Content a.log x'", "clear"),
    ),
)

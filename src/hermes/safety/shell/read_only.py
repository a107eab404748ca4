"""Read-only and dry-run uses of programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.path_classes import targets
from hermes.safety.shell.programs import (
    DRY,
    DRY_SHORT,
    EXCEPT,
    GIT_SETTINGS,
    LISTING,
    LISTING_SWITCHES,
    MOST_OPERANDS,
    NEVER_DRY,
    OPENED,
    OPENED_ALONE,
    OPERANDS_EXCEPT,
    PLAIN,
    SUBCOMMANDS,
    VERSIONED,
)
from hermes.safety.shell.scope import HOLE, UNSET, names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command, Redirect
    from hermes.safety.shell.scope import Scope, Word


_PLACES = ("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/")
_NOWHERE = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
_TELLING = names(
    "PATH BASH_ENV ENV IFS SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND NODE_OPTIONS JAVA_TOOL_OPTIONS "
    "_JAVA_OPTIONS PAGER EDITOR VISUAL LESSOPEN LESSCLOSE LESS MANPAGER BROWSER TAR_OPTIONS "
    "RIPGREP_CONFIG_PATH KUBECONFIG DOCKER_HOST DOCKER_CONTEXT CDPATH"
)
_TELLING_STARTS = ("LD_", "DYLD_", "GIT_", "PYTHON", "PERL", "RUBY", "HERMES_", "BASH_FUNC", "JQ_")
_SED_ADDRESS = r"(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/)(?:,\s*(?:\+?\d+|\$|/(?:[^/\\\n]|\\.)*/))?!?\s*)?"
_SED = re.compile(
    rf"\s*(?:{_SED_ADDRESS}(?:[pdq=]|s([/|#,:@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1"
    r"[gpiI0-9]*)\s*(?:[;\n]\s*|\Z))+\Z"
)
_SED_OPTION = re.compile(r"-[nErsuz]+\Z|--(?:quiet|silent|regexp-extended|null-data)\Z")
_AWK_DANGER = re.compile(r"[>|@]|system|getline")
_TAR_LIST = re.compile(r"-?[vzjJa]*t[vzjJa]*f?\Z")


def changes_meaning(name: str) -> bool:
    """Whether a variable decides which programs run, or what they do besides reading."""
    return name in _TELLING or name.startswith(_TELLING_STARTS)


def writes_nowhere(redirect: Redirect, scope: Scope) -> bool:
    """Whether a redirection leaves every file as it was."""
    if not redirect.writes or redirect.target is None:
        return True
    word = redirect.target
    return word.text in _NOWHERE or all(path in _NOWHERE for path in targets(word, scope))


def only_reads(command: Command, *, opened: bool) -> bool:
    """Whether a command changes nothing itself; `opened` when what it starts was judged too."""
    first = command.words[0].text
    if "/" in first and not first.startswith(_PLACES):
        return False
    if any(changes_meaning(name) for name, _ in command.assignments):
        return False
    variables = command.scope.variables
    if variables and any(map(changes_meaning, variables)):
        return False
    name = command.name
    if name in PLAIN:
        return True
    if name in OPENED:
        return (opened or name in OPENED_ALONE) and _is_free(_own(command), OPENED[name])
    if name in EXCEPT:
        return _is_free(command.words[1:], EXCEPT[name])
    args = command.args
    if name in VERSIONED and args in (["--version"], ["-V"], ["version"]):
        return name != "java" or args != ["-V"]
    if name in MOST_OPERANDS:
        return _has_few(command)
    if name in SUBCOMMANDS:
        return _has_subcommand(command)
    special = _OTHERS.get(name)
    return special is not None and special(command)


def _own(command: Command) -> list[Word]:
    """The options of a wrapper itself, up to its first operand."""
    own = []
    for word in command.words[1:]:
        if not word.text.startswith("-"):
            break
        own.append(word)
    return own


def _is_free(words: list[Word], forbidden: str) -> bool:
    """Whether no word is, or could turn out to be, one of these options."""
    if not forbidden:
        return True
    options = forbidden.split()
    for word in words:
        text = word.text
        if _could_be_option(word):
            return False
        if text[:1] != "-" or len(text) < 2:
            continue
        given = text.partition("=")[0]
        for option in options:
            if len(option) == 2:
                if text[1] != "-" and option[1] in text:
                    return False
            elif given == option or (len(given) > 2 and option.startswith(given)):
                return False
    return True


def _could_be_option(word: Word) -> bool:
    text = word.text
    return text[:1] in (HOLE, UNSET) or (word.glob and text[:1] in ("*", "?", "["))


def _has_few(command: Command) -> bool:
    words = command.words[1:]
    if any(_could_be_option(word) or word.glob for word in words):
        return False
    operands = [word for word in command.operands if not word.text.startswith("+")]
    return len(operands) <= MOST_OPERANDS[command.name] and _is_free(
        words, OPERANDS_EXCEPT[command.name]
    )


def _has_subcommand(command: Command) -> bool:
    subs = SUBCOMMANDS[command.name]
    operands = command.operands
    texts = [word.text for word in operands[:2]]
    words = command.words[1:]
    if command.name == "git":
        settings = command.values("-c")
        if any(not word.text.lower().startswith(GIT_SETTINGS) for word in settings):
            return False
        if any(word.text.startswith(("--exec-path=", "--config-env")) for word in words):
            return False
        # What stands before the subcommand is git's own.
        start = next((i for i, word in enumerate(words) if operands and word is operands[0]), 0)
        words = words[start:]
        if texts[:1] and texts[0] in LISTING:
            listed = _lists(command, texts[0], words[1:])
            if listed or " ".join(texts) not in subs:
                return listed
    for key in (" ".join(texts), " ".join(texts[:1])):
        if key in subs and key:
            return _is_free(words, subs[key])
    return not operands and bool(words) and "" in subs and _is_version(command)


def _is_version(command: Command) -> bool:
    return command.args in (["--version"], ["--help"], ["help"], ["version"])


def _lists(command: Command, sub: str, words: list[Word]) -> bool:
    flags = [word.text.partition("=")[0] for word in words if word.text.startswith("-")]
    if any(_could_be_option(word) for word in words):
        return False
    if any(flag not in LISTING[sub] for flag in flags):
        return False
    operands = len(command.operands) - 1
    if sub == "symbolic-ref":
        return operands == 1
    if sub == "config":
        return bool(flags) and (
            "--list" in flags or "-l" in flags or not LISTING_SWITCHES[sub].isdisjoint(flags)
        )
    return not operands or not LISTING_SWITCHES.get(sub, frozenset()).isdisjoint(flags)


def _sed(command: Command) -> bool:
    words = command.words[1:]
    while words and _SED_OPTION.match(words[0].text):
        words = words[1:]
    if words and words[0].text == "-e":
        words = words[1:]
    if not words or not _SED.match(words[0].text):
        return False
    return not any(_could_be_option(word) or word.text.startswith("-") for word in words[1:])


def _awk(command: Command) -> bool:
    words = command.words[1:]
    while words and words[0].text[:2] in ("-F", "-v"):
        words = words[1 if len(words[0].text) > 2 else 2 :]
    if not words or words[0].text.startswith("-") or not words[0].known:
        return False
    return not _AWK_DANGER.search(words[0].text) and not any(
        _could_be_option(word) for word in words[1:]
    )


def _tar(command: Command) -> bool:
    args = command.args
    return bool(args) and _TAR_LIST.match(args[0]) is not None and _no_options(command.words[2:])


def _unzip(command: Command) -> bool:
    return command.args[:1] in (["-l"], ["-v"], ["-Z1"]) and _no_options(command.words[2:])


def _no_options(words: list[Word]) -> bool:
    return not any(
        _could_be_option(word) or word.text.startswith("-") or ":" in word.text for word in words
    )


def _python(command: Command) -> bool:
    return command.memo.get("pure") == "yes"


_OTHERS = {
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "tar": _tar,
    "unzip": _unzip,
    "python": _python,
}


_NO = names("false no none 0 off $false")

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
    if name in NEVER_DRY and not (name == "rm" and "-WhatIf" in command.args):
        return False
    if name == "gsutil" and any(word.text == "rsync" for word in command.operands[:1]):
        # To its other verbs the same letter says which files to leave alone.
        return "-n" in command.flags
    short = DRY_SHORT.get(name)
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
        if option.lower().replace("_", "-") in DRY:
            value = value or " ".join(args[index + 1 : index + 2])
            return value.lower() not in _NO
    return short is not None and not short.isdisjoint(args[:1])


def only_asks(command: Command, rule: str) -> bool:
    """Whether the first verb of a program that a managing rule is about is a question."""
    if not rule.startswith(_MANAGING) or rule == "services.by-bus":
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

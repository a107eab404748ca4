"""Key names: reads of settings or secrets that show names or sizes, never values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command

# They say how much or whether, whatever the file is.
_COUNTING = names("wc md5sum sha1sum sha256sum sha512sum b2sum cksum sum")
_COUNTS = {
    "grep": "-c -q -l -L --count --quiet --silent --files-with-matches --files-without-match",
    "rg": "-c -q -l --count --quiet --files-with-matches",
    "cmp": "-s --silent --quiet",
    "diff": "-q --brief",
}
_COUNTS["egrep"] = _COUNTS["fgrep"] = _COUNTS["ggrep"] = _COUNTS["grep"]
# All that these do with a file goes on through the pipe.
_PRINTING = names("cat tac nl head tail sort uniq grep egrep fgrep rg less bat tr")
_EDITING = names("sed gsed awk gawk mawk cut xargs")
# Signs of a script that it sends what it reads elsewhere.
_ACTS = re.compile(
    r"system|getline|[>|]|(?:^|[^\w\\])[wWe](?:\s|$)|/[a-z0-9]*[we][a-z0-9]*(?:\s|$)"
)
# A file of `NAME=value` lines, of which these show what stands before the sign.
_SETTINGS = re.compile(r"(?:.*/)?(?:\.env(?:\.[\w.-]+)?|[^/]*\.env)\Z")
_SED_NAMES = re.compile(
    r"s([/|#,])(?:\[=\]|=|\\s\*=|[ ]\*=|\(=\)|\^?\(\[\^=\][*+]\)=)\.[*+]\$?\1[^.&]*?\1g?p?\Z"
)
_SED_KEPT = re.compile(r"\\[2-9]|&")
_AWK_NAMES = re.compile(r"\s*(?:/[^/]*/\s*)?(?:!?NF\s*)?\{\s*print\s*\(?\s*\$1\s*\)?\s*\}\s*\Z")
_ONLY_NAMES = re.compile(
    r"\^\(?(?:\[(?:\^=|[A-Za-z0-9_#-]+)\][*+]?|\\w[*+])+\)?=?\Z|\[[A-Z_0-9]+\][*+]=\Z"
)
_JQ_NAMES = re.compile(r"\bkeys(?:_unsorted)?\b|\.metadata\b|\.type\b|\blength\b|\.kind\b")
_JQ_VALUES = re.compile(
    r"\.data\.|\.data\[|\.data\s*(?:\||\Z)(?!\s*(?:keys|length))|@base64d|values|"
    r"(?:\A|[,|(])\s*\.\s*(?:\Z|[,|)])|\.\[\]|\.\."
)


def counts_only(command: Command) -> bool:
    """Whether a command says how much there is, or whether something is there, and no more."""
    if command.name in _COUNTING:
        return True
    options = _COUNTS.get(command.name)
    return options is not None and command.has(*options.split())


def names_only(command: Command, path: str) -> bool:
    """Whether a command that reads a file of settings shows the names in it alone."""
    if counts_only(command):
        return True
    if _SETTINGS.match(path) is None:
        return False
    return (
        _takes_names(command.name, command.args)
        or keeps_names(command)
        or _loads(command)
        or _edits(command)
    )


def is_settings_file(path: str) -> bool:
    """Whether a file is one of `NAME=value` lines."""
    return _SETTINGS.match(path) is not None


def _edits(command: Command) -> bool:
    """Whether a command changes a file in place, and so shows nothing of it."""
    return command.name in ("sed", "gsed") and any(
        flag.startswith(("-i", "--in-place")) for flag in command.flags
    )


def _loads(command: Command) -> bool:
    """Whether what a command prints becomes variables of a program, as with `env $(cat .env)`."""
    scope = command.scope
    if not scope.loads or command.name not in _PRINTING | _EDITING:
        return False
    return hands_on([command.name, *command.args]) and all(
        redirect.descriptor == "2" for redirect in command.redirects
    )


def hands_on(words: list[str]) -> bool:
    """Whether a command of a pipeline prints what it reads to the next one and nowhere else."""
    if words[:1] == ["xargs"]:
        return all(word[:1] in ("-", "\\") or word.isdigit() for word in words[1:])
    return words[:1] != [] and (
        words[0] in _PRINTING
        or (words[0] in _EDITING and not any(_ACTS.search(word) for word in words[1:]))
    )


def keeps_names(command: Command) -> bool:
    """Whether what a command prints goes straight through a filter that keeps names alone."""
    after = command.scope.follows
    if not after or command.name not in _PRINTING:
        return False
    if any(redirect.writes for redirect in command.redirects):
        return False
    name, args = after[0], after[1:]
    if name in ("grep", "egrep") and not any(arg in ("-o", "-oE", "-oP", "-Eo") for arg in args):
        return any(arg in ("-c", "-q") for arg in args)
    return name in _COUNTING or _takes_names(name, args)


def keeps_fields(command: Command) -> bool:
    """Whether a document goes straight into a filter that shows its keys or its labels."""
    after = command.scope.follows
    if not after or after[0] not in ("jq", "yq", "gojq"):
        return False
    query = " ".join(arg for arg in after[1:] if not arg.startswith("-"))
    return bool(_JQ_NAMES.search(query)) and not _JQ_VALUES.search(query)


def _takes_names(name: str, args: list[str]) -> bool:
    line = " ".join(args)
    if name == "cut":
        by_sign = any(arg.replace(" ", "") in ("-d=", "--delimiter==") for arg in args) or (
            "-d =" in line
        )
        return by_sign and ("-f1" in args or "-f 1" in line or "--fields=1" in args)
    script = next((arg for arg in args if not arg.startswith("-")), "")
    if name in ("sed", "gsed"):
        return bool(_SED_NAMES.match(script)) and not _SED_KEPT.search(script.split(script[1])[2])
    if name in ("awk", "gawk", "mawk"):
        by_sign = "-F=" in args or "-F =" in line
        script = next((arg for arg in args if "{" in arg), "")
        return by_sign and bool(_AWK_NAMES.match(script))
    if name in ("grep", "egrep", "ggrep", "rg"):
        only = any(arg[:1] == "-" and arg[1:2] != "-" and "o" in arg for arg in args)
        script = script.removesuffix("(?==)").removesuffix("\\K=")
        return (only or "--only-matching" in args) and bool(_ONLY_NAMES.match(script))
    return False

"""Path rules: writes, reads and deletes judged by their target, for any program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.path_classes as path_classes
from hermes.safety.shell.file_flow import carry, remember
from hermes.safety.shell.file_operands import READERS, USES_KEYS, WRITERS, moved_from, output_words
from hermes.safety.shell.programs import PLAIN
from hermes.safety.shell.read_only import writes_nowhere
from hermes.safety.shell.scope import HOLE, SECRET_FILES, names
from hermes.safety.shell.verdict import OUTSIDE

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command, Redirect
    from hermes.safety.shell.scope import Scope, Stream, Word


_IN_PLACE = names(
    "put set delete del merge edit update replace unset append -i -I --in-place --inplace inplace "
    "-w --write --fix --overwrite --set"
)


def edits_in_place(command: Command) -> bool:
    """Whether a program that nobody here knows says that it changes the files it is given."""
    return not _IN_PLACE.isdisjoint(command.args)


_KEPT = ("/etc/", "/proc/", "/run/", "/var/")
_HERE = tuple(
    f"/dev/{kind}/{host}"
    for kind in ("tcp", "udp")
    for host in ("127.0.0.1/", "localhost/", "::1/", "[::1]/")
)
_OBEYING = names("sh bash zsh dash ksh ash fish python perl ruby php node lua")
# What these print is known when there is nothing to print.
_ECHOING = names("echo print printf cat tac head tail grep egrep fgrep sort uniq nl cut")
_SILENT = frozenset((":", "true", "false"))


def write_rule(path: str, scope: Scope) -> str | None:
    """The rule that writing to a path meets, whatever is written."""
    if path.startswith("/dev/"):
        if path_classes.is_null(path):
            return None
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return "network.raw-socket"
        if path_classes.is_disk(path):
            return "disk.overwrite"
    if path_classes.is_policy(path, scope):
        return "hermes.policy"
    if path_classes.hermes_part(path, scope) is not None or path_classes.is_project_setting(path):
        return "hermes.files"
    if path_classes.is_startup(path, scope):
        return "persist.startup-file"
    if path_classes.is_system(path, scope):
        return "system.write"
    if (
        scope.elevated
        and path.startswith("/")
        and not (
            path_classes.in_workspace(path, scope)
            or path_classes.is_temporary(path)
            or path.startswith(scope.home + "/")
            or HOLE in path
        )
    ):
        return "system.elevated-write"
    return None


def judge_write(word: Word, text: str, scope: Scope, judge: Judge) -> None:
    """Report a write by where it goes, and note the place for whoever knows the workspace."""
    if word.text == "/dev/null":
        return
    places = path_classes.targets(word, scope)
    # A variable that is set elsewhere: where it leads can't be told, and empty is the rarer case.
    judge.wrote(places[-1], text, scope)
    for path in places:
        rule = write_rule(path, scope)
        if rule:
            judge.report(rule, word.origin, text, scope=scope)
            return


def judge_redirects(
    command: Command | None,
    redirects: list[Redirect],
    scope: Scope,
    output: Stream | None,
    judge: Judge,
) -> None:
    """Report redirections that write to a guarded place or empty a file."""
    for redirect in redirects:
        target = redirect.target
        if target is None:
            if scope.descriptors and redirect.copies:
                _use_descriptor(redirect, scope, judge)
            if redirect.operator == "<&" and command is not None and _obeys(command):
                judge.blame("remote-code.unknown-input", command)
            continue
        if judge.reads_only and not writes_nowhere(redirect, scope):
            judge.reads_only = False
        text = f"{command.text if command else ''} {redirect.operator} {target.text}".strip()
        if _probes_here(redirect, target.text, command):
            continue
        if redirect.writes:
            judge_write(target, text, scope, judge)
            if (
                command is not None
                and command.name == "exec"
                and redirect.empties
                and redirect.descriptor not in ("", "1", "2")
                and not _goes_nowhere(target, scope)
            ):
                scope.descriptors[redirect.descriptor] = text
            if (
                redirect.empties
                and (_says_nothing(command, output) or _reads_itself(command, target))
                and not _goes_nowhere(target, scope)
                and (target.known or not scope.script)
            ):
                kind = OUTSIDE if path_classes.lies_outside(target, scope) else None
                judge.report("delete.emptied", redirect.origin, text, scope=scope, kind=kind)
            elif (
                command is not None
                and redirect.operator in (">", ">|", ">>", "&>", ">&", "&>>")
                and output is not None
            ):
                remember(target, scope, output, append=redirect.operator.endswith(">>"))
        elif redirect.operator == "<" and target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            judge.report("network.raw-socket", redirect.origin, text, scope=scope)


def _use_descriptor(redirect: Redirect, scope: Scope, judge: Judge) -> None:
    """Report a file that is closed again with nothing in it: `exec 3>f; exec 3>&-`."""
    if redirect.copies != "-":
        scope.descriptors.pop(redirect.copies, None)
        return
    text = scope.descriptors.pop(redirect.descriptor, None)
    if text is not None:
        judge.report("delete.emptied", redirect.origin, text, scope=scope)


def _probes_here(redirect: Redirect, text: str, command: Command | None) -> bool:
    """Whether a connection leads to this machine, and to no shell that would obey it."""
    if not text.startswith(_HERE) or command is None:
        return text.startswith(_HERE)
    if command.name == "exec" and redirect.descriptor in ("", "0"):
        # From then on the shell itself reads from there.
        return False
    return command.name not in _OBEYING


def _obeys(command: Command) -> bool:
    """Whether an interpreter runs what it reads from something that was opened before."""
    # The grammar takes the descriptor of `0<&5` for an operand.
    return command.name in _OBEYING and all(word.text.isdigit() for word in command.operands)


def _says_nothing(command: Command | None, output: Stream | None) -> bool:
    """Whether a command prints nothing, so that its output can only empty the target."""
    if command is None or command.name in _SILENT:
        return True
    text = output.text if output is not None else None
    return command.name in _ECHOING and text is not None and not text.strip("\n")


def _reads_itself(command: Command | None, target: Word) -> bool:
    """Whether a filter reads what its own output has just emptied: `sort f > f`."""
    if command is None or not any(target.text == word.text for word in command.words[1:]):
        return False
    reader = READERS.get(command.name)
    return reader is not None and any(word.text == target.text for word in reader(command))


def _goes_nowhere(target: Word, scope: Scope) -> bool:
    return any(path_classes.is_null(path) for path in path_classes.targets(target, scope))


def _remember_link(command: Command) -> None:
    """Follow a link that this text makes, so that writes through it are seen where they land."""
    operands = command.operands
    scope = command.scope
    if len(operands) != 2 or not (operands[0].known and operands[1].known) or len(scope.links) > 50:
        return
    link = scope.absolute(operands[1].text)
    scope.links[link] = scope.absolute(operands[0].text)


def judge_command(command: Command, judge: Judge) -> None:
    """Report what a program writes to, or reads from, a guarded place."""
    name = command.name
    scope = command.scope
    writer = WRITERS.get(name)
    if writer is not None:
        targets = writer(command)
        for word in targets:
            judge_write(word, command.text, scope, judge)
        if scope.written or command.stdin is not None:
            carry(command, targets)
        if name in ("ln", "gln"):
            _remember_link(command)
        for word in moved_from(command):
            _judge_moved(word, command, judge)
    judge_outputs(command, judge)
    reader = READERS.get(name)
    if reader is not None:
        judge_reads(reader(command), command, judge)
    elif name not in USES_KEYS:
        judge_shown(command.words[1:], command, judge)


def judge_reads(words: list[Word], command: Command, judge: Judge) -> None:
    """Report a file that a program reads when it is a private key or a store of credentials."""
    scope = command.scope
    if command.found and command.stdin is not None and SECRET_FILES in command.stdin.tags:
        judge.blame("secrets.read", command)
        return
    for word in words:
        for path in path_classes.targets(word, scope):
            if path_classes.is_credential(path, scope) and not names_only(command, path):
                judge.blame("secrets.read", command)
                if _leaves(command):
                    judge.blame("secrets.sent", command)
                return


# Programs that send the files among their operands to another machine.
_UPLOADERS = names(
    "curl wget http https xh httpie curlie scp sftp rclone nc ncat netcat aws gsutil gcloud az "
    "azcopy s3cmd s5cmd mc b2 mail mutt sendmail ftp tftp smbclient croc wormhole"
)
_LOCAL = re.compile(
    r"(?:https?://)?(?:[^/@]*@)?(?:localhost|127\.|\[::1\]|0\.0\.0\.0|host\.docker\.internal)"
)


def _leaves(command: Command) -> bool:
    """Whether a program that reads a credential sends it to another machine."""
    operands = [word.text for word in command.operands]
    if command.name == "rsync":
        return any(":" in text.partition("/")[0] for text in operands[-1:])
    return command.name in _UPLOADERS and not any(_LOCAL.match(text) for text in operands)


def judge_shown(words: list[Word], command: Command, judge: Judge) -> None:
    """Report a store of credentials among the words of a program that nobody here knows.

    Hermes' own policy likewise, where the program says that it edits what it is given.
    """
    scope = command.scope
    for word in words:
        text = word.text
        if not _could_be_hidden(text):
            continue
        if text[0] == "-":
            text = text.partition("=")[2]
        for path in path_classes.targets(word.part(text), scope) if text else ():
            if path_classes.is_kept_secret(path, scope):
                judge.blame("secrets.read", command)
                return
            if path_classes.is_policy(path, scope) and edits_in_place(command):
                judge.blame("hermes.policy", command)
                return


def _could_be_hidden(text: str) -> bool:
    """Whether a word may name what a home directory or the system keeps to itself."""
    return text[:1] == "." or "/." in text or text.startswith(_KEPT)


def judge_outputs(command: Command, judge: Judge) -> None:
    """Report what a program makes by its options, or the folder that it works in."""
    if len(command.words) > 1 and command.name not in PLAIN:
        for word in output_words(command):
            judge_write(word, command.text, command.scope, judge)


def _judge_moved(word: Word, command: Command, judge: Judge) -> None:
    scope = command.scope
    places = path_classes.targets(word, scope)
    judge.wrote(places[-1], command.text, scope)
    for path in places:
        if path_classes.is_root(path, glob=word.glob) or path_classes.is_home(
            path, scope, glob=word.glob
        ):
            gone = any(operand.text.startswith("/dev/null") for operand in command.operands[-1:])
            judge.blame("delete.root-or-home" if gone else "delete.moved-home", command)
            return
        rule = write_rule(path, scope)
        if rule:
            judge.blame(rule, command)
            return


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
# `cut -d= -f1`, `sed 's/=.*//'`, `awk -F= '{print $1}'`, `grep -o '^[A-Z_]*'`: the names alone.
_NAMES = re.compile(
    r"cut (?:.* )?(?:-d ?|--delimiter=)=(?: .*)? (?:-f ?|--fields=)1(?: .*)?|"
    r"g?sed (?:-[rE] )?s([/|#,])(?:\[=\]|=|\\s\*=|[ ]\*=|\(=\))\.[*+]\$?\1[^.&\\]*\1g?p?(?: .*)?|"
    r"[gm]?awk -F ?= (?:/[^/]*/ ?)?\{ ?print ?\(?\$1\)? ?\}(?: .*)?|"
    r"(?:[ef]?grep|rg) (?:.* )?(?:-\w*o\w*|--only-matching)(?: -\S+)* "
    r"\^?\(?\[[\^=\w#-]+\][*+]?(?:\[\w+\][*+])?\)?=?(?: .*)?"
)
_LONGEST_FILTER = 200
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
    line = " ".join([name, *args])
    return len(line) < _LONGEST_FILTER and _NAMES.fullmatch(line) is not None

"""Analysis of one simple command: assignments, redirections, then the program by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes.safety.shell.output_model as output_model
import hermes.safety.shell.path_rules as path_rules
from hermes.safety.shell.builtins import BUILTINS, judge_assignment
from hermes.safety.shell.code.interpreters import INTERPRETERS
from hermes.safety.shell.command import Command, Redirect, run_words
from hermes.safety.shell.file_flow import code_at
from hermes.safety.shell.file_operands import READERS, WRITERS, works_elsewhere
from hermes.safety.shell.find_xargs import FINDERS
from hermes.safety.shell.path_classes import DELETERS, delete_rules, in_workspace
from hermes.safety.shell.programs import PLAIN, TRIED
from hermes.safety.shell.read_only import only_asks, only_reads, only_tries
from hermes.safety.shell.rules.any_program import TELLING, opens_by_variable
from hermes.safety.shell.rules.table import FORMS, FORMS_FOR_ANY, FORMS_FOR_OPENED
from hermes.safety.shell.scope import (
    ANYTHING,
    DECODED,
    HOLE,
    NETWORK,
    NOTHING,
    UNSET,
    Scope,
    Stream,
    Value,
    names,
)
from hermes.safety.shell.script_files import run_file
from hermes.safety.shell.shells import SHELLS, run_known
from hermes.safety.shell.wrappers import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.rules.model import Form
    from hermes.safety.shell.scope import Word


# Each gives the output of what it ran, or None to go on with the rules for the program itself.
SPECIAL: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **BUILTINS,
    **WRAPPERS,
    **INTERPRETERS,
    **FINDERS,
    **SHELLS,
}


# Looking at the machine as root is the use of these.
_USUAL_AS_ROOT = names(
    "tcpdump tshark perf iotop iftop htop top atop btop nethogs nmap ping traceroute mtr tracepath "
    "dmidecode lshw hwinfo blkid smartctl nvme ethtool iw iwlist arp lsmod modinfo dpkg-query "
    "updatedb locate needrestart sync bpftrace powertop sensors turbostat efibootmgr "
    "lvs vgs pvs lvdisplay vgdisplay pvdisplay lvscan vgscan pvscan findmnt xfs_info dumpe2fs "
    "iostat mpstat sar pidstat lsscsi lsns lslocks lsipc repquota"
)
_MOST_CALLS = 6
_LONGEST_NAME = 1024
_SYSTEM_PROGRAMS = ("/usr/", "/bin/", "/sbin/", "/opt/homebrew/", "/snap/bin/")
# What some runners and systems start from the current folder by its bare name.
_RUN_FROM_HERE = (".py", ".exe", ".bat", ".cmd", ".ps1")
_RESERVED = names("! { } if then else elif fi do done while until esac")
_LEAVES_OPEN = names("exec : true false")
_HELPS = frozenset(("--help", "-help"))
# As the last word alone: `aws s3 rm help`.
_HELP_LAST = (["help"], ["-h"], ["/?"])
_NAMED_PROGRAMS = names(
    "python cc make node go npm pip cargo sudo git docker kubectl bash perl ruby rm"
)
# Variables that projects use for a program whose usual name is known.
_PROGRAM_VARIABLES = {
    "PYTHON3": "python", "CXX": "c++", "EDITOR": "vi", "VISUAL": "vi", "PAGER": "less",
    "SHELL": "bash",
    **{name.upper(): name for name in _NAMED_PROGRAMS},
}  # fmt: skip


def run_simple(
    words: list[Word],
    assignments: list[tuple[str, Word]],
    redirects: list[Redirect],
    scope: Scope,
    stdin: Stream | None,
    judge: Judge,
) -> Stream:
    """Judge a simple command as parsed and say what it would print."""
    for redirect in redirects:
        if redirect.stream is not None and redirect.descriptor in ("", "0"):
            stdin = redirect.stream
    for name, word in assignments:
        judge_assignment(name, word, scope, judge)
    if not words:
        for name, word in assignments:
            scope.assign(name, Value([word.text]))
        if redirects:
            path_rules.judge_redirects(None, redirects, scope, stdin, judge)
        return NOTHING
    command = Command(words, scope, stdin=stdin, redirects=redirects, assignments=assignments)
    output = run_command(command, judge)
    return redirected(command, redirects, output, judge) if redirects else output


def redirected(command: Command, redirects: list[Redirect], output: Stream, judge: Judge) -> Stream:
    """Judge where a command's output goes, and say what is left of it for a pipe."""
    path_rules.judge_redirects(command, redirects, command.scope, output, judge)
    if any(redirect.writes and redirect.descriptor in ("", "1") for redirect in redirects):
        # Errors that were sent along first go on where the output would have gone.
        along = any(r.descriptor == "2" and not r.writes for r in redirects)
        return ANYTHING if along else NOTHING
    return output


def run_command(command: Command, judge: Judge) -> Stream:
    """Judge a program with its words and say what it would print."""
    if not judge.step():
        judge.reads_only = False
        return ANYTHING
    judge.commands.append([word.text for word in command.words])
    scope, name = command.scope, command.name
    first = command.words[0]
    if scope.descriptors and name not in _LEAVES_OPEN:
        # Whatever runs now may write to a file that stands open.
        scope.descriptors.clear()
    if not 0 < len(first.text) < _LONGEST_NAME:
        judge.blame("text.unknown-program", command)
        return ANYTHING
    if not first.known or (first.glob and name not in ("[", "[[")):
        return _unknown_program(command, judge)
    if name in _RESERVED:
        # Words of the grammar where a program should be: `time { …; }`, or no valid shell at all.
        if name not in ("!", "{", "}"):
            judge.blame("text.unreadable", command)
        return run_words(command.words[1:], command, judge)
    if scope.elevated and (name in scope.aliases or name in scope.functions):
        judge.blame("system.elevated-script", command)
    if name in scope.functions and name not in scope.calls:
        return _call(command, judge)
    if name in scope.aliases:
        return _alias(command, judge)
    path = first.raw.replace("\\", "/") if first.raw.startswith(".\\") else first.text
    if "/" in path or path.endswith(_RUN_FROM_HERE):
        known = code_at(path, scope)
        if known is not None:
            return run_known(known, path, command, judge)
        run_file(path, command, judge, args=command.args)
    if first.text.startswith("/etc/init.d/") and command.args != ["status"]:
        judge.blame("services.changed", command)
    special = SPECIAL.get(name)
    output = None
    opened = judge.opened
    if special is not None:
        tried = name in TRIED and only_tries(command)
        output = ANYTHING if tried else special(command, judge)
    astray = scope.cwd != scope.workspace and not in_workspace(scope.cwd, scope)
    if judge.reads_only or astray:
        reads = only_reads(command, opened=judge.opened != opened)
        judge.reads_only = judge.reads_only and reads
        if astray and not reads:
            # What it changes is not known, but it starts from there.
            judge.wrote(scope.cwd, command.text, scope)
    if output is not None:
        judge_rules(command, judge, opened=judge.opened != opened)
        if works_elsewhere(name):
            path_rules.judge_outputs(command, judge)
        return output
    if scope.elevated and not _is_usual(command):
        judge.blame("system.elevated-script", command)
    judge_rules(command, judge)
    path_rules.judge_command(command, judge)
    return output_model.output(command)


def _is_usual(command: Command) -> bool:
    """Whether a program with more rights is one whose uses the rules and tables tell apart."""
    first, name = command.words[0].text, command.name
    if "/" in first and not first.startswith(_SYSTEM_PROGRAMS):
        return False
    return (
        name in FORMS
        or name in DELETERS
        or name in WRITERS
        or name in READERS
        or name in SPECIAL
        or name in _USUAL_AS_ROOT
        or only_reads(command, opened=False)
    )


def judge_rules(command: Command, judge: Judge, *, opened: bool = False) -> None:
    """Report every rule about this program that applies.

    A command that this one starts was judged already: its verbs are not this one's.
    """
    name = command.name
    own = FORMS.get(name)
    deletes = name in DELETERS
    if name in PLAIN and own is None:
        return
    args = command.args
    forms: list[Form] = []
    if own is not None:
        forms += own.get("", ())
        if command.texts:
            forms += own.get(command.texts[0], ())
    if (
        args
        and name not in PLAIN
        and (
            TELLING.search(" ".join([name, *args]).lower())
            or ((command.assignments or command.scope.listening) and opens_by_variable(command))
        )
    ):
        forms += FORMS_FOR_OPENED if opened else FORMS_FOR_ANY
    if not (forms or deletes) or not _HELPS.isdisjoint(args):
        return
    if args[-1:] in _HELP_LAST and _is_help(command):
        return
    met = {key for key in delete_rules(command) if key} if deletes else set()
    met.update(form.key for form in forms if form.key not in met and form.fits(command))
    for key in met:
        if not only_asks(command, key):
            if only_tries(command):
                return
            judge.blame(key, command)


def _is_help(command: Command) -> bool:
    args = command.args
    return len(args) == 1 or (args[-1] == "help" and command.name in ("aws", "gcloud", "gsutil"))


def _call(command: Command, judge: Judge) -> Stream:
    scope = command.scope
    if len(scope.calls) >= _MOST_CALLS:
        judge.reads_only = False
        return ANYTHING
    saved = scope.positional, scope.calls
    scope.positional = command.args
    scope.calls = (*scope.calls, command.name)
    try:
        return scope.functions[command.name].call(scope, command.stdin)
    finally:
        scope.positional, scope.calls = saved


def _alias(command: Command, judge: Judge) -> Stream:
    scope = command.scope.copy()
    text = scope.aliases.pop(command.name)
    rest = " ".join(word.raw for word in command.words[1:])
    return judge.run_text(f"{text} {rest}", command.origin.vague(), scope, command.stdin)


def _unknown_program(command: Command, judge: Judge) -> Stream:
    """A program whose name is not certain: read what can be read, and ask about the rest."""
    judge.reads_only = False
    first, rest = command.words[0], command.words[1:]
    if command.scope.container and first.glob and first.known:
        # Files for the program that the image starts by itself.
        return ANYTHING
    if first.raw.startswith("$env:") and "=" in first.raw and first.text.startswith(UNSET):
        # PowerShell sets a variable of the environment so; no other shell has a program there.
        return NOTHING
    tail = first.text.rpartition("/")[2]
    if "/" in first.text and tail and HOLE not in tail and UNSET not in tail and not first.glob:
        return _again(command, [first.part(tail), *rest], judge)
    usual = _PROGRAM_VARIABLES.get(first.variables[0]) if len(first.variables) == 1 else None
    if usual and first.text in (HOLE, UNSET):
        return _again(command, [first.part(usual), *rest], judge)
    if command.scope.calls and command.scope.positional is None and _is_parameter(first):
        # The body of a function, before anyone has called it with something to run.
        return ANYTHING
    tags = first.stream.tags if first.stream else frozenset()
    downloaded = tags & {NETWORK, DECODED}
    if command.scope.script and not downloaded and first.stream is None:
        # A script's own settings: which Java, which compiler.
        return ANYTHING
    judge.blame("remote-code.substitution" if downloaded else "text.unknown-program", command)
    if rest and not first.quoted:
        # An empty variable vanishes, and the next word is what runs.
        _again(command, rest, judge)
    return ANYTHING


def _is_parameter(word: Word) -> bool:
    return bool(word.variables) and all(
        name in ("@", "*") or name.isdigit() for name in word.variables
    )


def _again(command: Command, words: list[Word], judge: Judge) -> Stream:
    return run_words(words, command, judge)

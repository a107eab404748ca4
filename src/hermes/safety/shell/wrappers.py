"""Wrappers: programs that start another program (`sudo`, `env`, `timeout`, `npx`, …), and how to
find it among their words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.builtins import judge_assignment
from hermes.safety.shell.command import literal, run_line, run_word, run_words
from hermes.safety.shell.remote_commands import REMOTE
from hermes.safety.shell.scope import (
    ANYTHING,
    ENVIRONMENT,
    NETWORK,
    NOTHING,
    SETTINGS,
    Stream,
    Value,
    names,
    tagged,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word


# Wrappers of the plain form: options with values, `+1` for an operand before the inner command,
# `=` for assignments, `!` for more rights.
_PREFIXES = """
nohup setsid unbuffer builtin coproc dbus-launch torsocks firejail chronic linux32 linux64 capsh
  valgrind catchsegv ts bunx bundle-exec winpty arch noglob nocorrect eatmydata dumb-init nq
  ccache fakechroot pasta slirp4netns rr busybox toybox:
nice: -n --adjustment
ionice: -c --class -n --classdata -p -P -u
chrt: +1 -T -P -D -p
taskset setarch gosu su-exec setuidgid s6-setuidgid envdir: +1
timeout gtimeout: +1 -s --signal -k --kill-after
time gtime: -f --format -o --output
stdbuf: -i --input -o --output -e --error
exec: -a
chroot: +1 --userspec --groups
unshare: -R --root -w --wd -S --setuid -G --setgid --map-user --map-group
nsenter: ! -t --target -S -G -r -w --setuid --setgid
strace: -e -o -p -s -u -E -a -I -O -S -P -X
ltrace: -e -o -p -s -u -a -n -l
fakeroot: -l -s -i -b
proot: -r -b -w -q -k
caffeinate: -t -w
dbus-run-session: --config-file --dbus-daemon
xvfb-run: -e -f -n -p -s -w --server-args --server-num
rlwrap: -f -H -s -p -b -C
proxychains proxychains4 dotenvx: -f
numactl: -N -m -C -i -p
bwrap: --bind --ro-bind --dev-bind --tmpfs --proc --dev --setenv --unsetenv --chdir --symlink
  --uid --gid
prlimit: -p --pid
setpriv: --reuid --regid --groups --inh-caps --bounding-set
doppler: -p -c --project --config
dotenv: -f --file -e
sudo: = ! -u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T -U -D
  --chdir -R --chroot --other-user --command-timeout
doas: = ! -u -C -a
pkexec: ! --user
run0: ! --user -u
please: ! -u
uvx: --from --with -p --python --index-url
npx: -p --package -w --workspace
cgexec: -g
systemd-cat: -t --identifier -p --priority
sshpass: -p -f -d -P
cpulimit: -l --limit -p -e
trickle: -d -u -w
faketime: +1 -f
tini: -p
chpst: -u -U -e -/ -n -l -L -m -d -o -p -f -c -b
daemonize: -c -e -o -p -l -u -E
tsp: -L -D -N -W
schroot: -c --chroot -u --user -d --directory
systemd-nspawn: -D --directory -M --machine -u --user --bind -i --image
aa-exec: -p --profile -n
runcon: -t -u -r -l
heaptrack: -o
hyperfine: -w --warmup -r --runs -m -M -n --export-json --export-markdown
ld.so ld-linux: --argv0 --audit --glibc-hwcaps-prepend --inhibit-rpath --library-path --preload
"""
# Tools with a subcommand that starts the rest of their words; `-` for none.
_RUNNERS = """
uv: run --with -p --python --extra --group --project --directory --env-file --package -m
poetry pdm pipenv: run
hatch: run -e --env
conda mamba micromamba: run -n --name -p --prefix --cwd
npm: exec -p --package -w --workspace
npm: x -p --package -w --workspace
yarn pnpm bundle rbenv pyenv asdf mise: exec
yarn: dlx -p --package
pnpm: dlx --package
bun mise: x
op: run --env-file --account
doppler: run -p -c --project --config
aws-vault direnv lxc incus multipass: exec +1
perf: stat -e -r -o -p
perf: record -e -o -F -p -g
systemd-inhibit: - --what --who --why --mode
rustup: run +1
nix: shell
nix: develop
cargo: watch
watchexec: - -w --watch -e --exts -f --filter -i --ignore
entr: -
machinectl: shell +1 -M --machine --uid -E --setenv
"""


class Prefix:
    """How a wrapper is written: options with values, operands before the command, assignments."""

    __slots__ = ("assigns", "elevates", "skip", "valued")

    def __init__(self, text: str) -> None:
        self.valued = names(text)
        self.skip = 1 if "+1" in self.valued else 0
        self.assigns = "=" in self.valued
        self.elevates = "!" in self.valued


def _rows(text: str) -> list[tuple[list[str], str]]:
    lines = (line.partition(":") for line in text.strip().replace("\n ", "").split("\n"))
    return [(heads.split(), values) for heads, _, values in lines]


PREFIXES = {name: Prefix(text) for heads, text in _rows(_PREFIXES) for name in heads}
RUNNERS: dict[str, list[tuple[str, Prefix]]] = {}
for _heads, _text in _rows(_RUNNERS):
    for _name in _heads:
        _sub, _, _valued = _text.strip().partition(" ")
        RUNNERS.setdefault(_name, []).append(("" if _sub == "-" else _sub, Prefix(_valued)))

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PACKAGE_RUNNERS = frozenset(("npm", "yarn", "pnpm", "bun"))
_COMMAND_OPTIONS = ("-c", "--command", "--call", "--run")


def rest_after(
    words: list[Word], valued: frozenset[str], *, skip: int = 0, assigns: bool = False
) -> tuple[list[Word], list[Word], list[Word]]:
    """Split a wrapper's words into its options, its assignments and the inner command."""
    options: list[Word] = []
    assignments: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        text = word.text
        if text == "--":
            index += 1
            while skip and index < len(words):
                skip, index = skip - 1, index + 1
            break
        if len(text) > 1 and text[0] == "-":
            options.append(word)
            index += 1
            if text in valued or (
                text[1] != "-" and text[:2] not in valued and "-" + text[-1] in valued
            ):
                options.extend(words[index : index + 1])
                index += 1
            continue
        if assigns and (_ASSIGNMENT.match(text) or _is_loaded(word)):
            assignments.append(word)
        elif skip:
            skip -= 1
        else:
            break
        index += 1
    return options, assignments, words[index:]


def _is_loaded(word: Word) -> bool:
    """Whether a word stands for the lines of a settings file, which are all assignments."""
    return (
        word.stream is not None
        and not word.quoted
        and SETTINGS in word.stream.tags
        and NETWORK not in word.stream.tags
    )


def _prefix(command: Command, judge: Judge) -> Stream | None:
    how = PREFIXES[command.name]
    options, assignments, rest = rest_after(
        command.words[1:], how.valued, skip=how.skip, assigns=how.assigns
    )
    scope = command.scope
    if how.elevates:
        scope = scope.copy()
        scope.elevated = True
        given = {option.text for option in options}
        if command.name in ("sudo", "doas"):
            judge_sudo(command, given, rest, judge)
            if given & {"-e", "--edit"}:
                rest = [literal("tee", command), *rest]
    for word in assignments:
        name, _, value = word.text.partition("=")
        judge_assignment(name, word.part(value), scope, judge)
    if command.name == "coproc":
        texts = [word.text for word in rest]
        rest = rest[texts.index("{") + 1 :] if "{" in texts[:2] else rest
        # Whatever the text sends it later is what it reads.
        return run_words(rest, command, judge, scope=scope, stdin=ANYTHING)
    return run_words(rest, command, judge, scope=scope)


def judge_sudo(command: Command, given: set[str], rest: list[Word], judge: Judge) -> None:
    """A shell with all rights is a question in itself."""
    if given & {"-i", "-s", "--login", "--shell"} and not rest:
        judge.blame("accounts.root-shell", command)


def _env(command: Command, judge: Judge) -> Stream:
    valued = frozenset(("-u", "--unset", "-C", "--chdir", "-S", "--split-string", "-P"))
    options, assignments, rest = rest_after(command.words[1:], valued, assigns=True)
    scope = command.scope.copy()
    for word in assignments:
        name, _, value = word.text.partition("=")
        judge_assignment(name, word.part(value), scope, judge)
        scope.assign(name, Value([value]))
    for index, option in enumerate(options):
        text = option.text
        split: Word | None = None
        if text in ("-S", "--split-string", "-vS", "-iS") and index + 1 < len(options):
            split = options[index + 1]
        elif text.startswith("--split-string="):
            split = option.part(text[15:])
        elif text.startswith("-S") and len(text) > 2:
            split = option.part(text[2:])
        elif text in ("-C", "--chdir") and index + 1 < len(options):
            scope.go(options[index + 1].text)
        if split is not None:
            return run_line([split, *rest], command, judge, scope=scope)
    if not rest:
        return tagged(ENVIRONMENT)
    return run_words(rest, command, judge, scope=scope)


_GIT_PROGRAMS = (
    *("git-push", "git-send-pack", "git-http-push", "git-reset", "git-clean", "git-update-ref"),
    *("git-filter-repo", "git-filter-branch", "git-stash", "git-restore", "git-checkout"),
)


def _git_program(command: Command, judge: Judge) -> Stream:
    """`git-push` and the like, which git keeps as programs of their own."""
    first = command.words[0]
    words = [first.part("git"), first.part(command.name.removeprefix("git-"))]
    return run_words([*words, *command.words[1:]], command, judge)


def _command(command: Command, judge: Judge) -> Stream:
    options, _, rest = rest_after(command.words[1:], frozenset())
    if any(option.text in ("-v", "-V", "-pv") for option in options):
        return Stream(rest[0].text if rest else "")
    scope = command.scope
    if rest and rest[0].text in scope.functions:
        scope = scope.copy()
        del scope.functions[rest[0].text]
    return run_words(rest, command, judge, scope=scope)


def _watch(command: Command, judge: Judge) -> Stream:
    _, _, rest = rest_after(command.words[1:], frozenset(("-n", "--interval", "-q")))
    return run_line(rest, command, judge) if rest else NOTHING


def _script(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, word in enumerate(words[1:], 1):
        text = word.text
        if text in ("--command",) or (text[:1] == "-" and text[1:2] != "-" and text.endswith("c")):
            return run_line(words[index + 1 : index + 2], command, judge)
        if text.startswith("--command="):
            return run_word(word.part(text[10:]), command, judge)
    return None


def _flock(command: Command, judge: Judge) -> Stream:
    valued = frozenset(("-w", "--wait", "--timeout", "-E", "--conflict-exit-code"))
    _, _, rest = rest_after(command.words[1:], valued, skip=1)
    words = command.words
    for index, word in enumerate(words):
        if word.text in ("-c", "--command") and word not in rest[1:]:
            return run_line(words[index + 1 : index + 2], command, judge)
    return run_words(rest, command, judge)


def _su(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    scope = command.scope.copy()
    scope.elevated = True
    for index, word in enumerate(words[1:], 1):
        text = word.text
        if text in ("-c", "--command") or (
            text[:1] == "-" and text[1:2] != "-" and text.endswith("c")
        ):
            return run_line(words[index + 1 : index + 2], command, judge, scope=scope)
        if text.startswith("--command="):
            return run_word(word.part(text[10:]), command, judge, scope=scope)
    if command.name == "runuser" and "-u" in command.args:
        _, _, rest = rest_after(words[1:], frozenset(("-u", "-g", "-G", "-s", "-w")))
        return run_words(rest, command, judge, scope=scope)
    if command.name == "sg" and len(words) > 2:
        return run_line(words[2:3], command, judge)
    judge.blame("accounts.root-shell", command)
    return NOTHING


def _systemd_run(command: Command, judge: Judge) -> Stream:
    valued = names(
        "-p --property -u --unit -M --machine -H --host -E --setenv --slice --description --uid "
        "--gid --nice "
        "--on-calendar --on-active --on-boot --on-startup --on-unit-active --timer-property "
        "--working-directory "
        "--service-type --path-property --socket-property"
    )
    options, _, rest = rest_after(command.words[1:], valued)
    if any(
        option.text.startswith("--on-") or option.text == "--timer-property" for option in options
    ):
        judge.blame("persist.schedule", command)
    return run_words(rest, command, judge)


def _runner(command: Command, judge: Judge) -> Stream | None:
    operands = command.operands
    for sub, how in RUNNERS[command.name]:
        if sub and not (operands and operands[0].text == sub):
            continue
        start = 1
        if sub:
            start = next(i for i, word in enumerate(command.words) if word is operands[0]) + 1
        options, _, rest = rest_after(
            command.words[start:],
            how.valued,
            skip=how.skip,
        )
        while rest and rest[0].text == "--":
            rest = rest[1:]
        for index, option in enumerate(options):
            if option.text in _COMMAND_OPTIONS and command.name in ("npm", "nix", "pnpm"):
                return run_line(options[index + 1 : index + 2] or rest[:1], command, judge)
        return run_words(rest, command, judge)
    return None


def _npx(command: Command, judge: Judge) -> Stream | None:
    calls = frozenset(("-p", "--package", "-w", "--workspace", "-c", "--call"))
    options, _, rest = rest_after(command.words[1:], calls)
    for index, option in enumerate(options):
        if option.text in ("-c", "--call"):
            return run_line(options[index + 1 : index + 2], command, judge)
    if rest:
        package = rest[0].text
        name = package[: package.rindex("@")] if package.rfind("@") > 0 else package
        return run_words([rest[0].part(name), *rest[1:]], command, judge)
    return None


def _coreutils(command: Command, judge: Judge) -> Stream:
    """All the small programs in one: the first word says which, or an option does."""
    words = command.words[1:]
    if words and words[0].text.startswith("--coreutils-prog="):
        words = [words[0].part(words[0].text.partition("=")[2]), *words[1:]]
    return run_words(words, command, judge)


def _hyperfine(command: Command, judge: Judge) -> Stream:
    _, _, rest = rest_after(command.words[1:], PREFIXES["hyperfine"].valued)
    for word in rest:
        run_word(word, command, judge)
    return NOTHING


def _nix_shell(command: Command, judge: Judge) -> Stream | None:
    for index, word in enumerate(command.words):
        if word.text in ("--run", "--command"):
            return run_line(command.words[index + 1 : index + 2], command, judge)
    return None


WRAPPERS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(PREFIXES, _prefix),
    **dict.fromkeys(RUNNERS, _runner),
    "env": _env,
    **dict.fromkeys(_GIT_PROGRAMS, _git_program),
    "command": _command,
    "watch": _watch,
    "script": _script,
    "flock": _flock,
    "su": _su,
    "runuser": _su,
    "sg": _su,
    "systemd-run": _systemd_run,
    "npx": _npx,
    "coreutils": _coreutils,
    "uutils": _coreutils,
    "hyperfine": _hyperfine,
    "nix-shell": _nix_shell,
    **REMOTE,
}

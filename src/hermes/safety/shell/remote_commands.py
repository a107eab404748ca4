"""Remote execution: commands over ssh, in a container or a cluster; host folders mounted into
containers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.command import run_line, run_word, run_words
from hermes.safety.shell.scope import ANYTHING, Stream, names
from hermes.safety.shell.shells import run_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope, Word


# What a container does to itself is its own affair; only the fate of files counts here.
_COUNTS = ("delete.", "hermes.", "persist.", "system.write", "disk.", "secrets.")


def judge_mounted(inner: list[Word], command: Command, judge: Judge) -> None:
    """Judge a container's command once more, with mounted paths as what they are outside."""
    mounts = _mounts(command)
    if not mounts:
        return
    changed = False
    words: list[Word] = []
    for word in inner:
        text = word.text
        for inside, outside in mounts.items():
            pattern = rf"(?<![\w/.-]){re.escape(inside)}(?=/|[\s'\";&|)*]|\Z)"
            text = re.sub(pattern, lambda _, outside=outside: outside, text)  # type: ignore[misc]
        changed = changed or text != word.text
        part = word.part(text)
        part.glob = word.glob
        words.append(part)
    scope = command.scope.copy()
    for folder in command.values("-w", "--workdir") or _after(command, "-w", "--workdir"):
        for inside, outside in mounts.items():
            if (folder.text + "/").startswith(inside + "/"):
                scope.go(outside + folder.text[len(inside) :])
                changed = True
    if not changed:
        return
    own = judge.apart(200)
    run_words(words, command, own, scope=scope)
    for finding in own.findings:
        if finding.rule.startswith(_COUNTS):
            judge.report(finding.rule, command.origin, finding.command, kind=finding.kind)


def _after(command: Command, *options: str) -> list[Word]:
    words = command.words
    return [words[at + 1] for at, word in enumerate(words[:-1]) if word.text in options]


def _mounts(command: Command) -> dict[str, str]:
    """Paths inside the container, and what they are on this machine."""
    found: dict[str, str] = {}
    for word in _after(command, "-v", "--volume", "--mount"):
        _add(word.text, command, found)
    for word in command.words:
        name, equals, value = word.text.partition("=")
        if equals and name in ("-v", "--volume", "--mount"):
            _add(value, command, found)
    return found


def _add(text: str, command: Command, found: dict[str, str]) -> None:
    if "=" in text.partition(",")[0]:
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        source = fields.get("source") or fields.get("src", "")
        target = fields.get("target") or fields.get("dst") or fields.get("destination", "")
    else:
        source, _, target = text.partition(":")
        target = target.partition(":")[0]
    if source.startswith(("/", ".", "~")) and target.startswith("/") and len(target) > 1:
        home = command.scope.home
        source = home + source[1:] if source[:1] == "~" else command.scope.absolute(source)
        found[target.rstrip("/")] = source


_SSH_VALUED = names("-i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B")
_CONTAINER_VALUED = names(
    "-v --volume -e --env -p --publish -w --workdir -u --user --name --network --net -h "
    "--hostname --entrypoint "
    "--mount --env-file -m --memory --cpus --platform --label -l --add-host --dns --device "
    "--cap-add --cap-drop "
    "--security-opt --restart --tmpfs --ulimit --gpus --ipc --pid --shm-size --pull --log-driver "
    "--log-opt "
    "--volumes-from --link --expose --cgroupns --userns --group-add --stop-signal --health-cmd "
    "--index "
    "--detach-keys --runtime --sysctl -a --attach --cidfile --ip --mac-address -c --container -n "
    "--namespace "
    "--context --kubeconfig -f --file --project-name --profile"
)


def elsewhere(command: Command) -> Scope:
    """The state of another machine's shell: its home is at the same place, its directory is not."""
    scope = command.scope.copy()
    scope.variables = {}
    scope.cwd = scope.home
    scope.elsewhere = True
    return scope


def _ssh(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    judge_connection(command, judge)
    index = 1
    while index < len(words) and words[index].text.startswith("-") and words[index].text != "--":
        text = words[index].text
        index += (
            2
            if text in _SSH_VALUED
            or (len(text) > 2 and text[:2] not in _SSH_VALUED and "-" + text[-1] in _SSH_VALUED)
            else 1
        )
    rest = words[index + 1 :]
    scope = elsewhere(command)
    if rest and rest[0].text in ("-t", "-tt", "-n", "-q", "--"):
        rest = rest[1:]
    if rest:
        run_line(rest, command, judge, scope=scope)
    elif command.stdin is not None:
        run_stream(command.stdin, command, judge)
    return None


def judge_connection(command: Command, judge: Judge) -> None:
    """Judge the programs that options of a connection start on this machine."""
    for value in command.values("-o"):
        name, text = (*re.split(r"[= ]", value.text, maxsplit=1), "")[:2]
        if (
            name.lower() in ("proxycommand", "localcommand", "knownhostscommand")
            and text.strip() != "none"
        ):
            run_word(value.part(text), command, judge)


def _container(command: Command, judge: Judge) -> Stream | None:
    operands = command.operands
    names = [word.text for word in operands[:3]]
    if names[:1] == ["compose"] or command.name.endswith("-compose"):
        names = names[1:] if names[:1] == ["compose"] else names
        offset = 1 if operands and operands[0].text == "compose" else 0
    elif names[:1] == ["container"]:
        names, offset = names[1:], 1
    else:
        offset = 0
    if not names or names[0] not in ("exec", "run"):
        return None
    at = next(i for i, word in enumerate(command.words) if word is operands[offset])
    entry: Word | None = None
    index = at + 1
    words = command.words
    while index < len(words) and words[index].text.startswith("-"):
        text = words[index].text
        if text.startswith("--entrypoint="):
            entry = words[index].part(text[13:])
        elif text == "--entrypoint":
            entry = words[index + 1] if index + 1 < len(words) else None
        valued = text in _CONTAINER_VALUED or (
            text[1:2] != "-" and len(text) > 2 and "-" + text[-1] in _CONTAINER_VALUED
        )
        index += 2 if valued else 1
    inner = words[index + 1 :]
    scope = elsewhere(command)
    scope.container = True
    # The rules for the container program itself still apply: privileges, mounted sockets.
    if entry is not None:
        inner = [entry, *inner]
    if inner:
        run_words(inner, command, judge, scope=scope)
        judge_mounted(inner, command, judge)
    return None


def _kubectl(command: Command, judge: Judge) -> Stream | None:
    operands = command.operands
    if not operands or operands[0].text not in ("exec", "run", "debug"):
        return None
    words = command.words
    texts = [word.text for word in words]
    inner = (
        words[texts.index("--") + 1 :]
        if "--" in texts
        else command.after(operands[1])
        if len(operands) > 1
        else []
    )
    scope = elsewhere(command)
    scope.container = True
    if inner:
        run_words(inner, command, judge, scope=scope)
    return None


def _option_command(command: Command, judge: Judge) -> Stream | None:
    """`vagrant ssh -c`, `gcloud compute ssh --command`, `fly ssh console -C`."""
    words = command.words
    texts = [word.text for word in words]
    if "ssh" not in texts:
        return None
    for index, text in enumerate(texts):
        if text in ("-c", "--command", "-C"):
            return run_line(words[index + 1 : index + 2], command, judge, scope=elsewhere(command))
        if text.startswith("--command="):
            return run_word(words[index].part(text[10:]), command, judge, scope=elsewhere(command))
    return None


def _heroku(command: Command, judge: Judge) -> Stream | None:
    operands = command.operands
    if operands and operands[0].text == "run" and len(operands) > 1:
        run_line(command.after(operands[0]), command, judge, scope=elsewhere(command))
        return ANYTHING
    return None


def _many_hosts(command: Command, judge: Judge) -> Stream | None:
    """`pdsh -w HOSTS LINE`, `pssh -H HOST LINE`: what follows the options runs on each host."""
    words = command.words
    index = 1
    while index < len(words) and words[index].text.startswith("-"):
        index += 1 if words[index].text in ("-i", "-v", "-P", "--inline", "-N", "-R") else 2
    rest = words[index:]
    return run_line(rest, command, judge, scope=elsewhere(command)) if rest else None


def _wsl(command: Command, judge: Judge) -> Stream | None:
    texts = [word.text for word in command.words]
    for marker in ("-e", "--exec", "--"):
        if marker in texts:
            return run_words(command.words[texts.index(marker) + 1 :], command, judge)
    if not command.operands:
        return None
    first = command.operands[0]
    return run_words([first, *command.after(first)], command, judge)


_FREE = names("shell command raw script win_shell win_command expect")
_LOOKS = names(
    "ping win_ping setup debug stat fetch slurp find gather_facts assert wait_for uri_get "
    "package_facts service_facts getent ec2_instance_info k8s_info"
)
_SALT_LOOKS = re.compile(
    r"(?:list|get|show|status|info|available|version|latest|is_|ping|items|item|find|stat|read|"
    r"uptime|refresh|enabled|missing|exists|check|disk|cpu|mem)"
)


def _ansible(command: Command, judge: Judge) -> Stream:
    """`ansible HOSTS -m MODULE -a ARGS`: a module that is no query changes those hosts."""
    modules = [word.text.rpartition(".")[2] for word in command.values("-m", "--module-name")]
    module = modules[0] if modules else "command"
    text = "".join(word.text for word in command.values("-a", "--args")[:1])
    here = command.texts[:1] in (["localhost"], ["127.0.0.1"])
    scope = command.scope.copy() if here else elsewhere(command)
    scope.elevated = scope.elevated or command.has("-b", "--become", "-K")
    if module in _FREE:
        line = re.sub(r"\b(?:chdir|creates|removes|executable|warn)=\S+\s*", "", text)
        judge.run_text(line, command.origin.vague(), scope)
    elif module not in _LOOKS:
        judge.blame("infrastructure.changed", command)
        gone = re.search(r"(?:path|dest|name)=(\S+)", text)
        if module == "file" and "state=absent" in text and gone:
            judge.run_text(f"rm -rf {gone[1]}", command.origin.vague(), scope)
    return ANYTHING


def _salt(command: Command, judge: Judge) -> Stream | None:
    """`salt TARGET module.function ARGS`."""
    words = command.words
    for index, word in enumerate(words[1:], 1):
        module, dot, function = word.text.partition(".")
        if not dot or not word.text.replace(".", "").replace("_", "").isalpha():
            continue
        if module == "cmd":
            return run_line(words[index + 1 : index + 2], command, judge, scope=elsewhere(command))
        tested = any(arg.lower() == "test=true" for arg in command.args)
        if not tested and not _SALT_LOOKS.match(function) and module not in ("test", "grains"):
            judge.blame("infrastructure.changed", command)
        return None
    return None


REMOTE: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "ssh": _ssh,
    "autossh": _ssh,
    "mosh": _ssh,
    "docker": _container,
    "podman": _container,
    "nerdctl": _container,
    "docker-compose": _container,
    "podman-compose": _container,
    "kubectl": _kubectl,
    "oc": _kubectl,
    "vagrant": _option_command,
    "gcloud": _option_command,
    "fly": _option_command,
    "flyctl": _option_command,
    "heroku": _heroku,
    "ansible": _ansible,
    **dict.fromkeys(("salt", "salt-call", "salt-ssh"), _salt),
    "wsl": _wsl,
    **dict.fromkeys(("pdsh", "pssh", "parallel-ssh", "dsh", "clush"), _many_hosts),
}

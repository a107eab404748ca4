"""The keys of a `command` tool, read from the file."""

from __future__ import annotations

import re

from hermes.runtime.yaml_tools.definition import CommandSpec
from hermes.runtime.yaml_tools.placeholders import Template

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Sequence

    from yaml import Node

    from hermes.runtime.yaml_tools.definition import Parameter
    from hermes.runtime.yaml_tools.document import Document

COMMAND_KEYS = ("command", "workdir", "env")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Programs that take code as an argument, and the options that the code comes after.
_SHELLS = r"(?:[bdkz]|tc|mk|pdk|ya|r)?a?sh|fish|csh|elvish|nu|xonsh|oil|osh"
_CODE_OPTIONS = {
    rf"(?:{_SHELLS}|su|script|busybox|toybox)": r"-\w*c.*|--command(?:=.*)?",
    r"(?:cmd|command)(?:\.exe|\.com)?": r"(?i:/[ckr].*)",
    r"(?:powershell|pwsh)(?:\.exe)?": r"(?i:[-/](?:c|e|ec)\w*)",
    r"(?:python|pypy)[\d.]*w?(?:\.exe)?": r"-[A-Za-z]*c.*",
    r"(?:perl|ruby|jruby|lua|luajit|julia|Rscript|osascript|groovy|guile|racket|elixir)[\d.]*": (
        r"-\w*[eEc].*|--eval(?:=.*)?"
    ),
    r"(?:node|nodejs|bun|deno)": r"-\w*[ep].*|--(?:eval|print)(?:=.*)?|eval",
    r"php[\d.]*": r"-\w*[rRBE].*|--(?:run|process-\w+)(?:=.*)?",
    r"emacs|vim?|nvim": r"-c|--eval(?:=.*)?|--cmd|\+.*",
}
# Programs whose first operand is code (awk, sed), or all but the first (ssh runs them in a shell).
_FIRST_OPERAND = re.compile(r"[gmn]?awk|busybox-awk|g?sed")
_LATER_OPERANDS = frozenset(("ssh", "autossh", "mosh", "rsh"))
# Programs that start the program named in their arguments.
_WRAPPERS = frozenset((
    "env", "sudo", "doas", "nohup", "timeout", "nice", "ionice", "chrt", "taskset", "setsid",
    "stdbuf", "xargs", "parallel", "time", "command", "exec", "chroot", "unshare", "nsenter",
    "flock", "watch", "strace", "ltrace", "docker", "podman", "nerdctl", "kubectl", "find", "fd",
    "npx", "bunx", "uv", "uvx", "pipx", "poetry", "pdm", "hatch", "conda", "nix", "nix-shell",
    "bwrap", "firejail", "systemd-run", "su", "runuser",
))  # fmt: skip


def read_command(
    document: Document,
    node: Node,
    fields: dict[str, Node],
    label: str,
    parameters: Sequence[Parameter],
) -> CommandSpec | None:
    """The process that a tool stands for."""
    env = document.texts(fields["env"], f"env of {label}") if "env" in fields else ()
    for name in env:
        if not _VARIABLE.fullmatch(name):
            document.problem(
                fields["env"], f"env of {label} lists names of environment variables, not values"
            )
    workdir = ""
    if "workdir" in fields:
        workdir = document.text(fields["workdir"], f"the workdir of {label}") or ""
        if Template(workdir).names or "\0" in workdir:
            document.problem(fields["workdir"], f"the workdir of {label} can't hold a parameter")
    for one in parameters:
        one.place = "argument"
    if "command" not in fields:
        document.problem(node, f"{label} has no command")
        return None
    groups = _groups(document, fields["command"], label)
    if not groups:
        return None
    program = groups[0][0].text
    if groups[0][0].names or not program or "\0" in program:
        document.problem(
            fields["command"], f"the program of {label} must be written out, not a parameter"
        )
    _check_arguments(document, fields["command"], groups, parameters, label)
    rest = [group for group in (groups[0][1:], *groups[1:]) if group]
    return CommandSpec(program, rest, workdir=workdir, env=env)


def _groups(document: Document, node: Node, label: str) -> list[tuple[Template, ...]]:
    import yaml

    if isinstance(node, yaml.ScalarNode):
        document.problem(
            node,
            f"the command of {label} must be a list of arguments: a text would need a shell, and"
            ' a shell would read what the model sends as code; write ["program", "argument"]',
        )
        return []
    groups: list[tuple[Template, ...]] = []
    items = document.items(node, f"the command of {label}")
    for item in items:
        if isinstance(item, yaml.SequenceNode) and groups:
            words = document.texts(item, f"a group in the command of {label}")
        else:
            word = document.text(item, f"each argument in the command of {label}")
            words = () if word is None else (word,)
        if any("\0" in word for word in words):
            document.problem(item, f"the command of {label} holds a NUL character")
        if words:
            groups.append(tuple(Template(word) for word in words))
    if not items and isinstance(node, yaml.SequenceNode):
        document.problem(node, f"the command of {label} is empty")
    return groups


def _check_arguments(
    document: Document,
    node: Node,
    groups: list[tuple[Template, ...]],
    parameters: Sequence[Parameter],
    label: str,
) -> None:
    known = {parameter.name: parameter for parameter in parameters}
    arguments = [argument for group in groups for argument in group]
    used: set[str] = set()
    for argument in arguments:
        used.update(argument.names)
        for name in argument.names:
            if name not in known:
                document.problem(
                    node,
                    f"the command of {label} has `{{{name}}}`, which is no parameter"
                    f" (`{{{{{name}}}}}` stands for the braces themselves)",
                )
            elif known[name].type == "array" and argument.whole is None:
                document.problem(
                    node,
                    f"`{{{name}}}` in the command of {label} is an array: it must be an"
                    " argument by itself",
                )
    for one in parameters:
        if one.name not in used:
            document.problem(one.line, f"parameter `{one.name}` is not used in the command")
    if not used:
        return
    for at in sorted(code_places([argument.text for argument in arguments])):
        if arguments[at].names:
            document.problem(
                node,
                f"`{arguments[at].text:.60}` in the command of {label} is read as code, not"
                " as data: a parameter there could run anything",
            )


def code_places(words: Sequence[str]) -> set[int]:
    """Which arguments an interpreter among them would read as code."""
    found: set[int] = set()
    wrapped = _base(words[0]) in _WRAPPERS
    for at, word in enumerate(words if wrapped else words[:1]):
        program = _base(word)
        options = next((o for name, o in _CODE_OPTIONS.items() if re.fullmatch(name, program)), "")
        operands = [k for k in range(at + 1, len(words)) if not words[k].startswith("-")]
        if options:
            for k in range(at + 1, len(words)):
                if re.fullmatch(options, words[k], re.DOTALL):
                    # The code is glued to the option, or is the next argument that is no option.
                    found.update((k, *[place for place in operands if place > k][:1]))
        elif _FIRST_OPERAND.fullmatch(program):
            scripts = [k + 1 for k, word in enumerate(words) if re.match(r"-\w*e|--ex", word)]
            found.update(scripts or operands[:1])
        elif program in _LATER_OPERANDS:
            found.update(operands[1:])
    return {place for place in found if place < len(words)}


def _base(word: str) -> str:
    return re.split(r"[/\\]", word)[-1]

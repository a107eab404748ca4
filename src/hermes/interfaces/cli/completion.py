"""`hermes completion`: completion scripts for bash, zsh and fish."""

from __future__ import annotations

import os
from argparse import REMAINDER, _SubParsersAction
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import COMMANDS, DONE, add_arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from hermes.interfaces.cli.main import CliApp

# Bash cuts words at `=` and `:` too, and wants back only what comes after the last of them.
SCRIPTS = {
    "bash": r"""
_hermes() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t\n' typed word found
    read -ra typed <<< "$line"
    [[ $line == *[$' \t'] ]] && typed+=("")
    word=${typed[${#typed[@]}-1]}
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("${found#"${word%"${word##*[:=]}"}"}")
    done < <("$1" completion words -- "${typed[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _hermes hermes ./hermes
""",
    "zsh": r"""
#compdef hermes
_hermes() {
    local -a found open
    found=("${(@f)$("$words[1]" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    open=("${(@M)found:#*=}")
    found=("${(@)found:#*=}")
    found=("${(@)found:#}")
    if (( ${#found} + ${#open} == 0 )); then _files; return; fi
    (( ${#open} )) && compadd -S '' -a open
    (( ${#found} )) && compadd -a found
    return 0
}
compdef _hermes hermes
""",
    "fish": r"""
function __hermes_words
    hermes completion words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c hermes -a '(__hermes_words)'
""",
}


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "shell",
        metavar="bash|zsh|fish",
        help="which shell; guessed when left out",
        nargs="?",
        choices=[*SCRIPTS, "words"],
    )
    parser.add_argument("typed", nargs=REMAINDER, help="what is typed so far (for the scripts)")
    parser.set_defaults(run=_completion)


def _completion(app: CliApp, options: Namespace) -> int:
    if options.shell == "words":
        typed = options.typed[1:] if options.typed[:1] == ["--"] else options.typed
        for word in words(app, typed or [""]):
            app.out(word)
        return DONE
    shell = options.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SCRIPTS:
        raise HermesError(
            f"no completion for {shell or 'an unknown shell'}",
            hint=f"Name one of {', '.join(SCRIPTS)}.",
        )
    app.out(SCRIPTS[shell].strip())
    app.note(f"# add to your start-up file: {_how(shell)}")
    return DONE


def _how(shell: str) -> str:
    if shell == "fish":
        return "hermes completion fish | source"
    return f'eval "$(hermes completion {shell} 2>/dev/null)"'


def words(app: CliApp, typed: list[str]) -> list[str]:
    """Completions of the last word."""
    from hermes.interfaces.cli.main import Parser

    *before, begun = typed
    if not before:
        app.registry  # noqa: B018 - loads the plugins
        return _starting([*COMMANDS, *app.plugins.commands], begun)
    if before[0] not in COMMANDS:
        return []
    parser: ArgumentParser = Parser()
    add_arguments(before[0], parser)
    actions: list[str] = []
    for word in [*before[1:], None]:
        inner = _subparsers(parser)
        actions = list(inner)
        if word is None or word not in inner:
            break
        parser = inner[word]
        actions = list(_subparsers(parser))
    options = list(parser._option_string_actions)  # noqa: SLF001 - argparse tells in no other way
    names = [*actions, *_names(app, before)]
    return _starting(options, begun) if begun.startswith("-") else _starting(names, begun)


def _names(app: CliApp, before: list[str]) -> list[str]:
    """Names that fit a place: tools, toolsets, settings."""
    match before:
        case ["call"] | ["tools", "show"] | ["tool", "show" | "unregister"]:
            return app.registry.names()
        case ["call", tool, *_]:
            entry = app.registry.get(tool)
            return [f"{name}=" for name in entry.parameters["properties"]] if entry else []
        case ["toolsets", "show"] | ["tools", "list", *_, "--toolset"]:
            app.registry  # noqa: B018 - tools name toolsets, too
            return app.toolsets.names()
        case ["completion"]:
            return list(SCRIPTS)
        case ["config", "get" | "set"]:
            from hermes.core.config import DEFAULTS

            return list(DEFAULTS)
    return []


def _subparsers(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, _SubParsersAction):
            return dict(action.choices)
    return {}


def _starting(names: Iterable[str], begun: str) -> list[str]:
    return [word for word in names if word.startswith(begun)]

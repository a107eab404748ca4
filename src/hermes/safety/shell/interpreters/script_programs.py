"""The interpreters and compilers of other languages, and where each of them finds its code."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.command import program_name
from hermes.safety.shell.interpreters.application_shells import FRONTS
from hermes.safety.shell.interpreters.scripts import judge_script
from hermes.safety.shell.interpreters.source import find_source
from hermes.safety.shell.interpreters.strings import STRINGS
from hermes.safety.shell.interpreters.tcl import judge_tcl
from hermes.safety.shell.opening import run_words
from hermes.safety.shell.shells import note_stream
from hermes.safety.shell.stream import ANYTHING, Stream
from hermes.safety.shell.tables import names
from hermes.safety.shell.written import code_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

_SOURCE = re.compile(
    r"\.(?:go|rs|c|cc|cpp|cxx|java|kt|kts|swift|zig|nim|cr|d|cs|fs|m|ts|mts|js|mjs|cjs|tsx|jsx|"
    r"scala|sc|dart|v|hs|ml|groovy|jl|exs?|rb|pl|php|lua|R|r|tcl)\Z"
)


def _script(
    inline: str, valued: str, long: tuple[str, ...] = ()
) -> Callable[[Command, Judge], Stream | None]:
    def run(command: Command, judge: Judge) -> Stream | None:
        source = find_source(command, judge, inline=inline, valued=valued, long=long)
        if source is not None and not _only_checks(command, source.text):
            judge_script(source.text, command, judge)
            if command.name in ("perl", "ruby") and _keeps_nothing(command, source.text):
                judge.blame("delete.emptied", command)
        return None

    return run


_PRINTS = re.compile(r"\b(?:print|printf|say|puts|p|write|putc|display)\b|\$stdout|STDOUT|<<")


def _keeps_nothing(command: Command, text: str) -> bool:
    """Whether files are changed line by line, in place, with nothing printed back to them."""
    options = [flag[1:] for flag in command.flags if flag[1:2] != "-"]
    in_place = any(option[:1] == "i" for option in options) and "n" in options
    return in_place and not _PRINTS.search(text)


_CHECKS = {"ruby": "-c", "perl": "-c", "php": "-l", "node": "-c --check", "lua": ""}
_AT_ONCE = re.compile(r"\b(?:BEGIN|CHECK|INIT|UNITCHECK|use)\b")


def _only_checks(command: Command, text: str) -> bool:
    """`ruby -c`: a look at the syntax, after which only what runs at once has run."""
    options = _CHECKS.get(command.name, "").split()
    return any(option in command.args for option in options) and not _AT_ONCE.search(text)


def _ruby(command: Command, judge: Judge) -> Stream | None:
    if "-run" in command.args and "httpd" in command.args:
        near = any(arg.endswith(("127.0.0.1", "localhost")) for arg in command.args)
        if not near:
            judge.blame("network.listener", command)
    return _script("e", "IrEKC")(command, judge)


def _tcl(command: Command, judge: Judge) -> Stream | None:
    source = find_source(command, judge, inline="c" if command.name == "expect" else "")
    if source is not None:
        judge_tcl(source.text, command, judge)
    return None


def _files(command: Command, judge: Judge) -> Stream | None:
    """A compiler, or a runner of sources: what this text itself wrote is known."""
    words = command.operands
    if words and words[0].text == "eval":
        for word in words[1:]:
            judge_script(word.text, command, judge, "node")
        return ANYTHING
    for word, following in pairwise(command.words):
        if word.text in ("-e", "--eval", "-e=") and not command.name.startswith(("g", "c")):
            judge_script(following.text, command, judge, _language(command.name))
    for word in words:
        known = code_in(word, command.scope) if _SOURCE.search(word.text) else None
        if known is not None and known.text:
            judge_script(known.text, command, judge, _language(word.text))
    stdin = command.stdin
    if stdin is not None and ("-" in command.args or "/dev/stdin" in command.args):
        note_stream(stdin, command, judge)
        if stdin.text is not None:
            judge_script(stdin.text, command, judge, _language(command.name))
    other = STRINGS.get(command.name)
    return other(command, judge) if other is not None else None


def _language(name: str) -> str:
    suffix = name.rpartition(".")[2]
    return {"rb": "ruby", "pl": "perl", "php": "php", "jl": "julia", "go": "go"}.get(suffix, "c")


def _runner(option: tuple[str, ...], language: str) -> Callable[..., Stream | None]:
    """A build tool that runs code in the project: `mix run -e CODE`."""

    def run(command: Command, judge: Judge) -> Stream | None:
        words = command.words
        for index, word in enumerate(words):
            name, equals, value = word.text.partition("=")
            if name in option:
                text = value if equals else "".join(w.text for w in words[index + 1 : index + 2])
                judge_script(text, command, judge, language)
        return None

    return run


def _php(command: Command, judge: Judge) -> Stream | None:
    operands = command.operands
    if operands and program_name(operands[0].text) in FRONTS:
        return run_words(command.words[command.words.index(operands[0]) :], command, judge)
    return _script("rBR", "cdfz", ("--run",))(command, judge)


SCRIPTS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "perl": _script("eE", "IMmxCDVF0"),
    "ruby": _ruby,
    "node": _script("ep", "rC", ("--eval", "--print")),
    "nodejs": _script("ep", "rC", ("--eval", "--print")),
    "tsx": _script("ep", "", ("--eval",)),
    "ts-node": _script("ep", "TPO", ("--eval",)),
    "php": _php,
    "lua": _script("e", "l"),
    "luajit": _script("e", "lj"),
    "rscript": _script("e", ""),
    "r": _script("e", ""),
    "littler": _script("e", ""),
    "tclsh": _tcl,
    "elixir": _script("e", "r", ("--eval", "--rpc-eval")),
    "julia": _script("eE", "pLt", ("--eval",)),
    "groovy": _script("e", ""),
    "crystal": _script("e", ""),
    "mix": _runner(("-e", "--eval"), "elixir"),
    **dict.fromkeys(
        names(
            "go gcc cc clang tcc g++ c++ clang++ rustc rust-script javac java "
            "kotlinc kotlin swift swiftc zig nim scala scala-cli ghc runghc runhaskell ocaml "
            "dart deno mono csc dotnet-script dotnet v"
        ),
        _files,
    ),
}


def _bun(command: Command, judge: Judge) -> Stream | None:
    _files(command, judge)
    return _script("ep", "", ("--eval", "--print"))(command, judge)


SCRIPTS["bun"] = _bun

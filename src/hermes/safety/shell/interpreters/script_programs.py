"""The interpreters and compilers of other languages, and where each of them finds its code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.scripts import judge_script
from hermes.safety.shell.interpreters.source import find_source
from hermes.safety.shell.interpreters.strings import STRINGS
from hermes.safety.shell.interpreters.tcl import judge_tcl
from hermes.safety.shell.shells import fetched, note_stream
from hermes.safety.shell.stream import ANYTHING, Stream
from hermes.safety.shell.tables import names

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
        if source is not None:
            judge_script(source.text, command, judge)
        return None

    return run


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
    for word in words:
        text = fetched(word.text, command.scope) if _SOURCE.search(word.text) else None
        if text:
            judge_script(text, command, judge, _language(word.text))
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


def _runner(option: tuple[str, ...], language: str, *subs: str) -> Callable[..., Stream | None]:
    """A framework's tool that runs code in the application: `rails runner CODE`."""

    def run(command: Command, judge: Judge) -> Stream | None:
        operands = command.operands
        if subs and operands and operands[0].text in subs:
            for word in operands[1:2]:
                judge_script(word.text, command, judge, language)
        words = command.words
        for index, word in enumerate(words):
            name, equals, value = word.text.partition("=")
            if name in option:
                text = value if equals else "".join(w.text for w in words[index + 1 : index + 2])
                judge_script(text, command, judge, language)
        return None

    return run


def _php(command: Command, judge: Judge) -> Stream | None:
    for word in command.words:
        if word.text.startswith("--execute="):
            judge_script(word.text[10:], command, judge)
    return _script("rBR", "cdfz", ("--run",))(command, judge)


SCRIPTS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "perl": _script("eE", "IMmxCDVF0"),
    "ruby": _script("e", "IrEKC"),
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
    "rails": _runner((), "ruby", "runner", "r"),
    "mix": _runner(("-e", "--eval"), "elixir"),
    "artisan": _runner(("--execute",), "php"),
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

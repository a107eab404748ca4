"""Interpreters and compilers of other languages, and the place of the code among their words."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.code.framework_shells import FRONTS
from hermes.safety.shell.code.python_values import expand_home
from hermes.safety.shell.code.scripts import judge_script
from hermes.safety.shell.code.source import find_source
from hermes.safety.shell.command import program_name
from hermes.safety.shell.delete_targets import kind_of_delete
from hermes.safety.shell.file_flow import code_in
from hermes.safety.shell.inner_command import literal, run_words
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import HOLE, names
from hermes.safety.shell.shells import note_stream
from hermes.safety.shell.stream import ANYTHING, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.word_builder import Word


_TOKEN = re.compile(
    r"(?P<end>[;\n\[\]])|\"(?P<string>(?:[^\"\\]|\\.)*)\"|\{(?P<braced>[^{}]*)\}|(?P<word>[^\s;\[\]\"{}]+)"
    r"|(?P<other>[{}])"
)
_RUNS = re.compile(r"\b(?:eval|source|uplevel)\b[^\n;]*[\[$]")
_FETCHES = re.compile(r"http::geturl|\b(?:curl|wget)\b|binary decode|base64::decode")
_SEVERAL = re.compile(r"\s")
_LOOPS = re.compile(r"\b(?:foreach|lmap|while)\b|\{\*\}\s*\[\s*glob\b|\beval\s+file\s+delete")
_HOME = re.compile(r"\$(?:::)?env\(HOME\)|\[file home\]")
_VARIABLE = re.compile(r"\$\{?\w+(?:\([^)]*\))?\}?")


def judge_tcl(text: str, command: Command, judge: Judge, *, loop: bool = False) -> None:
    """Report what a piece of Tcl would do, once or for each of several things."""
    loop = loop or _LOOPS.search(text) is not None
    if _RUNS.search(text) and _FETCHES.search(text):
        judge.blame("remote-code.pipe", command)
    scope = command.scope
    line: list[str] = []
    names: dict[str, str] = {}
    for found in _TOKEN.finditer(_HOME.sub(lambda _: scope.home, text) + "\n"):
        if found.lastgroup in ("end", "other"):
            _run(line, names, command, judge, loop=loop)
            line = []
            continue
        word = found.group(found.lastgroup or "word") or ""
        if found.lastgroup == "braced" and not line and _SEVERAL.search(word.strip()):
            # The body of a loop over what brackets gave.
            judge_tcl(word, command, judge, loop=True)
            continue
        if found.lastgroup != "braced":
            word = _VARIABLE.sub(lambda f: names.get(f.group().strip("${}"), HOLE), word)
        line.append(word)


def _run(
    words: list[str], names: dict[str, str], command: Command, judge: Judge, *, loop: bool
) -> None:
    if not words or not judge.step():
        return
    if words[0] == "eval" and len(words) > 2:
        words = words[1:]
    name, args = words[0], words[1:]
    if name == "set" and len(args) == 2:
        names[args[0]] = args[1]
    elif name == "exec" and args:
        start = next((i for i, arg in enumerate(args) if not arg.startswith("-")), 0)
        inner = [literal(arg, command) for arg in args[start:]]
        run_words(inner, command, judge, scope=command.scope.copy())
    elif name == "spawn" and args:
        inner = [literal(arg, command) for arg in args]
        run_words(inner, command, judge, scope=command.scope.copy())
    elif name == "open" and args:
        if args[0].startswith("|"):
            judge.run_text(args[0][1:], command.origin.vague(), command.scope.copy())
        elif any(mode[:1] in "wa" for mode in args[1:2]):
            word = literal(expand_home(args[0], command.scope), command)
            judge_write(word, command.text, command.scope, judge)
    elif name == "file" and args[:1] == ["delete"]:
        paths = [arg for arg in args[1:] if not arg.startswith("-")]
        targets = [literal(expand_home(path, command.scope), command) for path in paths]
        many = loop and (not paths or any(HOLE in path or "*" in path for path in paths))
        recursive = "-force" in args
        rule = kind_of_delete(targets, command.scope, recursive=recursive, found=many)
        if rule:
            judge.blame(rule, command)
    elif name == "file" and args[:1] in (["rename"], ["copy"]) and len(args) > 2:
        word = literal(expand_home(args[-1], command.scope), command)
        judge_write(word, command.text, command.scope, judge)
    elif name == "socket" and "-server" in args:
        judge.blame("network.listener", command)
    elif name in ("eval", "after", "catch", "if", "while", "foreach", "proc", "namespace"):
        for arg in args:
            if " " in arg:
                judge_tcl(arg, command, judge, loop=loop)


_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`([^`]*)`")
_CODE = names("-e -x -r -E -c -eval -run --eval --execute --run --expression -batch -code eval")
_MOST = 50
# Code that starts something says so outside its strings.
_STARTS = re.compile(
    r"exec|system(?!\.(?:out|err|in|get|nano|current)\b)|cmd|command|shell|process|spawn|popen|"
    r"proc|run|\bsh\b|!",
    re.I,
)


def _strings(command: Command, judge: Judge) -> Stream | None:
    words = command.words
    for index, word in enumerate(words[1:], 1):
        option, equals, value = word.text.partition("=")
        if option in _CODE:
            judge_strings(value if equals else _text(words[index + 1 : index + 2]), command, judge)
    if command.stdin is not None and command.stdin.text is not None:
        judge_strings(command.stdin.text, command, judge)
    return None


def _text(words: list[Word]) -> str:
    return words[0].text if words else ""


def judge_strings(code: str, command: Command, judge: Judge) -> None:
    """Report strings in some code that would be dangerous as commands."""
    if not _STARTS.search(_STRING.sub("", code)):
        return
    for count, found in enumerate(_STRING.finditer(code)):
        text = next((group for group in found.groups() if group), "")
        if count >= _MOST or not judge.step():
            judge.blame("text.too-complex", command)
            return
        if " " not in text.strip():
            continue
        own = judge.apart(len(text))
        own.run_text(text.replace('\\"', '"'), command.origin.vague(), command.scope.copy())
        for finding in own.findings:
            if not finding.rule.startswith("text."):
                judge.report(
                    finding.rule,
                    command.origin,
                    finding.command,
                    scope=command.scope,
                    kind=finding.kind,
                )


STRINGS: dict[str, Callable[[Command, Judge], Stream | None]] = dict.fromkeys(
    names(
        "ghc runghc runhaskell stack sbcl clisp ecl ccl guile racket csi gosh chez scheme janet bb "
        "clj clojure lein octave matlab gnuplot erl iex swift crystal nim kotlin kotlinc scala "
        "scala-cli amm ocaml raku perl6 jshell maxima gp sage wolframscript pike io factor gforth "
        "swipl prolog newlisp picolisp hy coffee livescript wish groovysh beanshell"
    ),
    _strings,
)


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

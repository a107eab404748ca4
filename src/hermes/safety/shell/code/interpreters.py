"""Interpreters and compilers, and where each of them finds the code that it runs."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.code.command_options import TOOLS, TRANSFERS
from hermes.safety.shell.code.powershell import POWERSHELLS
from hermes.safety.shell.code.scripts import judge_script
from hermes.safety.shell.code.sql import DATABASES, judge_statements
from hermes.safety.shell.code.text_tools import TEXT_TOOLS
from hermes.safety.shell.command import note_unread, program_name, run_words
from hermes.safety.shell.file_flow import code_at, code_in, is_unread
from hermes.safety.shell.path_rules import judge_shown
from hermes.safety.shell.scope import ANYTHING, Stream, names
from hermes.safety.shell.script_files import run_file
from hermes.safety.shell.shells import note_stream, run_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word

# Letters of options that carry code, letters of options with another value, long options with code.
_INLINE = {
    "perl": ("eE", "IMmxCDVF0", ""),
    "ruby": ("e", "IrEKC", ""),
    **dict.fromkeys(("node", "nodejs", "bun"), ("ep", "rC", "--eval --print")),
    "tsx": ("ep", "", "--eval"),
    "ts-node": ("ep", "TPO", "--eval"),
    "php": ("rBR", "cdfz", "--run"),
    **dict.fromkeys(("lua", "luajit"), ("e", "lj", "")),
    **dict.fromkeys(("rscript", "r", "littler", "groovy"), ("e", "", "")),
    "elixir": ("e", "r", "--eval --rpc-eval"),
    "julia": ("eE", "pLt", "--eval"),
}
_CHECKS = {"ruby": "-c", "perl": "-c", "php": "-l", "node": "-c"}
_AT_ONCE = re.compile(r"\b(?:BEGIN|CHECK|INIT|UNITCHECK|use)\b")
# Compilers and runners of source files.
_COMPILERS = names(
    "go gcc cc clang tcc g++ c++ clang++ rustc rust-script javac java swiftc zig v dart deno mono "
    "csc dotnet-script dotnet mix bun"
)
_SOURCE = re.compile(
    r"\.(?:go|rs|c|cc|cpp|cxx|java|kt|kts|swift|zig|nim|cr|d|cs|fs|m|ts|mts|js|mjs|cjs|tsx|jsx|"
    r"scala|sc|dart|v|hs|ml|groovy|jl|exs?|rb|pl|php|lua|R|r|tcl)\Z"
)
_SUFFIXES = {
    "rb": "ruby",
    "pl": "perl",
    "php": "php",
    "jl": "julia",
    "mix": "elixir",
    "deno": "node",
}
# Languages that are not read: inline code asks unless it names nothing that acts.
_OPAQUE = names(
    "ghc runghc runhaskell stack sbcl clisp ecl ccl guile racket csi gosh chez scheme janet bb clj "
    "clojure lein octave matlab gnuplot erl swift crystal nim kotlin kotlinc scala scala-cli "
    "amm ocaml raku perl6 jshell maxima gp sage wolframscript pike io factor gforth swipl prolog "
    "newlisp picolisp hy coffee livescript wish groovysh beanshell tclsh "
    "emacs emacsclient xemacs gdb lldb expect osascript"
)
_CODE = names(
    "-e -x -r -E -c -eval -run --eval --execute --run --expression -batch -code eval -ex -o "
    "-eval-command --eval-command -f -l --load"
)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_ACTS = re.compile(
    r"exec|system(?!\.(?:out|err|in|get|nano|current)\b)|\bcmd|command|shell|process(?!or)|spawn|"
    r"popen|run-program|\bproc\b|\bsh\b|delete|remove|unlink|rmdir|rename|truncate|\bwrite-?file|"
    r"\bsocket\b|\beval\b|\bshut ?down|\brestart|log out|trash|make[^\n]{0,20}login item|"
    r"loginitems\.push|\bhalt\b|write-region|with-temp-file|copy-file|\(load|`|!",
    re.I,
)
_SQL = "sql"
# Tools of frameworks: programs, their subcommands, the language of the code that they take.
_TABLE = (
    ("manage.py manage django-admin", "shell shell_plus", "python"),
    ("manage.py manage django-admin rails drush drupal", "dbshell dbconsole db sql:cli sqlc", _SQL),
    ("flask quart", "shell", "python"),
    ("rails hanami spree", "console c runner r", "ruby"),
    ("artisan", "tinker", "php"),
    ("wp drush craft", "eval shell php:eval php-eval ev php exec php:cli", "php"),
    ("wp drush", "query sql:query sqlq sql-query", _SQL),
    ("console artisan", "dbal:run-sql doctrine:query:sql doctrine:query:dql run-sql", _SQL),
    ("prisma", "execute", _SQL),
)
_INTERACTIVE = {
    **dict.fromkeys(("irb", "pry", "console"), "ruby"),
    **dict.fromkeys(("bpython", "ptpython"), "python"),
    "psysh": "php",
    "iex": "elixir",
}
_SUBCOMMANDS: dict[str, dict[str, str]] = {}
for _programs, _subs, _language in _TABLE:
    for _program in _programs.split():
        _SUBCOMMANDS.setdefault(_program, {}).update(dict.fromkeys(_subs.split(), _language))
# Files that PHP is given and that are programs of their own.
_FRONTS = names("artisan console craft please drush wp occ spark yii magento")


def judge_code(text: str, language: str, command: Command, judge: Judge) -> None:
    """Report the effects of some code in a language."""
    if language == _SQL:
        judge_statements(text, command, judge)
    elif language == "python":
        from hermes.safety.shell.code.python import judge_source

        judge_source(text, command, judge)
    else:
        judge_script(text, command, judge, language)


def _inline(command: Command, judge: Judge) -> Stream | None:
    """`perl -e CODE`, a script file that this command text wrote, or code from a pipe."""
    name, operands, args = command.name, command.operands, command.args
    if name == "php" and operands and program_name(operands[0].text) in _FRONTS:
        return run_words(command.words[command.words.index(operands[0]) :], command, judge)
    near = any(arg.endswith(("127.0.0.1", "localhost")) for arg in args)
    if name == "ruby" and "-run" in args and "httpd" in args and not near:
        judge.blame("network.listener", command)
    inline, valued, long = _INLINE[name]
    source = find_source(command, judge, inline=inline, valued=valued, long=tuple(long.split()))
    # `ruby -c` looks at the syntax; only blocks that run at once have run then.
    checks = _CHECKS.get(name) in args
    if source is not None and (not checks or _AT_ONCE.search(source.text)):
        judge_script(source.text, command, judge)
    return None


def _compiler(command: Command, judge: Judge) -> Stream | None:
    """Source files that this command text wrote itself, or code by an option or a pipe."""
    name, operands, stdin = command.name, command.operands, command.stdin
    texts = [word.text for word in operands[1:]] if command.texts[:1] == ["eval"] else []
    texts += [b.text for a, b in pairwise(command.words) if a.text in ("-e", "--eval")]
    for text in texts if not name.startswith(("g", "c")) else ():
        judge_script(text, command, judge, _SUFFIXES.get(name, "c"))
    for word in operands:
        known = code_in(word, command.scope) if _SOURCE.search(word.text) else None
        if known is not None and known.text:
            suffix = word.text.rpartition(".")[2]
            judge_script(known.text, command, judge, _SUFFIXES.get(suffix, "c"))
    if stdin is not None and ("-" in command.args or "/dev/stdin" in command.args):
        note_stream(stdin, command, judge)
        if stdin.text is not None:
            judge_script(stdin.text, command, judge, _SUFFIXES.get(name, "c"))
    return ANYTHING if texts else None


def _opaque(command: Command, judge: Judge) -> Stream | None:
    """Code in a language that is not read: it asks unless it names nothing that acts."""
    words = command.words
    texts = []
    for index, word in enumerate(words[1:], 1):
        option, equals, value = word.text.partition("=")
        if option in _CODE:
            texts.append(value if equals else "".join(w.text for w in words[index + 1 : index + 2]))
    if command.stdin is not None and command.stdin.text is not None:
        texts.append(command.stdin.text)
    if any(_ACTS.search(_STRING.sub('""', text)) for text in texts):
        judge.blame("remote-code.unknown-input", command)
    return _compiler(command, judge) if command.scope.written else None


def _application(command: Command, judge: Judge) -> Stream | None:
    """`rails runner CODE`, `manage.py shell -c CODE`, `wp db query SQL`, code from a pipe."""
    language = _INTERACTIVE.get(command.name, "")
    subs, operands, words = _SUBCOMMANDS.get(command.name, {}), command.operands, command.words
    given: list[Word] = []
    for index, word in enumerate(operands[:3]):
        if word.text in subs:
            language = subs[word.text]
            given = operands[index + 1 : index + 2]
            break
    if not language:
        return None
    for index, word in enumerate(words):
        option, equals, value = word.text.partition("=")
        if option in ("-c", "--command", "-e", "--eval", "--execute", "--code", "-r"):
            given += [word.part(value)] if equals else words[index + 1 : index + 2]
    given = [word for word in given if word.text not in ("-", "/dev/stdin")]
    for word in given:
        judge_code(word.text, language, command, judge)
    if command.stdin is not None and not given:
        note_stream(command.stdin, command, judge)
        if command.stdin.text is not None:
            judge_code(command.stdin.text, language, command, judge)
    return None


_SHELL_CALL = re.compile(r"\$\(shell ([^)]*)\)")
_RECIPE = re.compile(r"^(?:\t|[^\s:#=]+:[^=\n]*;)[\s@+-]*(.*)", re.M)
_STEPS_OF_A_LINE = 4


def _make(command: Command, judge: Judge) -> Stream | None:
    """Recipes of a makefile that this command text wrote or gives by an option."""
    texts = [re.sub(r"^(?=\S+:)|;", "\n\t", word.text) for word in command.values("--eval", "-E")]
    texts += [word.text for word in command.operands if "$(shell" in word.text]
    texts += ["\t" + text[6:] for text in command.texts if text.startswith("SHELL=")]
    scope, named = command.scope, command.values("-f", "--file", "--makefile")
    fed = [command.stdin for word in named if word.text in ("-", "/dev/stdin")]
    fed += [word.process for word in named]
    if any(stream is not None and stream.text is None for stream in fed):
        judge.blame("remote-code.unknown-input", command)
    known = [*fed, *(code_in(word, scope) for word in named)]
    if not named:
        known = [code_at(name, scope) for name in ("Makefile", "makefile", "GNUmakefile")]
    texts += [stream.text for stream in known if stream is not None and stream.text]
    for text in texts:
        text = text.replace("\\\n", " ").replace("$$", "$")
        for line in [*_RECIPE.findall(text), *_SHELL_CALL.findall(text)]:
            if line.strip() and judge.step(_STEPS_OF_A_LINE):
                judge.run_text(line, command.origin.vague(), scope.copy())
    if scope.elevated:
        judge.blame("system.elevated-script", command)
    return ANYTHING


# Python


def run_python(command: Command, judge: Judge) -> Stream | None:
    """Judge what a Python interpreter was given to run."""
    module = _module(command)
    if module is not None:
        words = command.words[module:]
        name = words[0].text.partition(".")[0]
        if name in ("pip", "uv", "pipx", "poetry", "ansible", "conda", "aws", "black", "alembic"):
            return run_words([words[0].part(name), *words[1:]], command, judge)
        if words[0].text in ("http.server", "SimpleHTTPServer", "pyftpdlib", "smtpd"):
            given = [word.text for word in words]
            near = any(text.endswith(("127.0.0.1", "localhost", "::1")) for text in given)
            if not near and not {"-h", "--help"} & set(given):
                judge.blame("network.listener", command)
        judge_shown(words[1:], command, judge)
        if command.scope.elevated:
            judge.blame("system.elevated-script", command)
        if words[0].known:
            place, args = words[0].text.replace(".", "/"), [word.text for word in words[1:]]
            for path in (f"{place}.py", f"{place}/__main__.py"):
                run_file(path, command, judge, kind="python", args=args)
        return ANYTHING
    front = next((word for word in command.operands[:1] if word.text.endswith("manage.py")), None)
    if front is not None:
        inner = [front.part("manage.py"), *command.after(front)]
        return run_words(inner, command, judge)
    source = find_source(command, judge, inline="c", valued="WXQ")
    if source is not None:
        from hermes.safety.shell.code.python import judge_source

        judge_source(source.text, command, judge)
    return None


def _module(command: Command) -> int | None:
    """Index of the module after `-m`, if that is how Python was started."""
    words = command.words
    index = 1
    while index < len(words):
        text = words[index].text
        if len(text) < 2 or text[0] != "-" or text[1] == "-":
            return None
        if "c" in text and "m" not in text:
            return None
        if text.endswith("m"):
            return index + 1 if index + 1 < len(words) else None
        index += 2 if text in ("-W", "-X", "-Q") else 1
    return None


# The code of an interpreter

_PYTHONS = frozenset(("python", "pypy", "ipython", "pythonw", "py"))
_STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0"))


class Source:
    """Code to read, and the word it stands in (None when it came through a pipe)."""

    __slots__ = ("text", "word")

    def __init__(self, text: str, word: Word | None) -> None:
        self.text = text
        self.word = word


def find_source(
    command: Command, judge: Judge, *, inline: str, valued: str = "", long: tuple[str, ...] = ()
) -> Source | None:
    """The code that an interpreter would run, when it can be read here.

    Args:
        inline: Letters of the options that carry code, such as `eE` for Perl.
        valued: Letters of other options that take a value.
        long: Long options that carry code.
    """
    words = command.words
    index = 1
    pieces: list[tuple[str, Word]] = []
    while index < len(words):
        text = words[index].text
        if len(text) < 2 or text[0] != "-" or text in _STDIN:
            break
        index += 1
        if text == "--":
            break
        if text[1] == "-":
            name, equals, value = text.partition("=")
            if name in long:
                if equals:
                    pieces.append((value, words[index - 1]))
                elif index < len(words):
                    pieces.append((words[index].text, words[index]))
                    index += 1
            continue
        for position, letter in enumerate(text[1:], 2):
            if letter in inline:
                attached = text[position:]
                if attached:
                    pieces.append((attached, words[index - 1]))
                elif index < len(words):
                    pieces.append((words[index].text, words[index]))
                    index += 1
                break
            if letter in valued:
                index += 0 if text[position:] else 1
                break
    if pieces:
        for _, word in pieces:
            note_unread(word, command, judge)
        return Source("\n".join(text for text, _ in pieces), pieces[0][1])
    return _file_or_pipe(words[index:], command, judge)


def _file_or_pipe(rest: list[Word], command: Command, judge: Judge) -> Source | None:
    stream = command.stdin
    if rest and rest[0].process is not None:
        stream = rest[0].process
    elif rest and rest[0].text not in _STDIN:
        known = code_in(rest[0], command.scope)
        if known is not None and known.text is not None:
            if is_unread(known):
                judge.blame("remote-code.downloaded", command)
            return Source(known.text, None)
        if known is not None:
            run_known(known, rest[0].text, command, judge)
        else:
            if command.scope.elevated:
                judge.blame("system.elevated-script", command)
            if command.name in _PYTHONS and rest[0].known:
                args = [word.text for word in rest[1:]]
                run_file(rest[0].text, command, judge, kind="python", args=args)
        return None
    if stream is None:
        if command.scope.elevated and not command.has("-V", "-v", "--version", "-h", "--help"):
            judge.blame("accounts.root-shell", command)
        return None
    if stream.text is None and command.scope.elevated:
        judge.blame("system.elevated-script", command)
    note_stream(stream, command, judge)
    if stream.path and command.name in _PYTHONS:
        run_file(stream.path, command, judge, kind="python", args=[])
    return Source(stream.text, None) if stream.text is not None else None


INTERPRETERS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **dict.fromkeys(
        ("python", "pypy", "ipython", "micropython", "pythonw", "py", "sage"), run_python
    ),
    **DATABASES,
    **TEXT_TOOLS,
    **POWERSHELLS,
    **TOOLS,
    **TRANSFERS,
    **dict.fromkeys(_OPAQUE, _opaque),
    **dict.fromkeys(_COMPILERS, _compiler),
    **dict.fromkeys(_INLINE, _inline),
    **dict.fromkeys([*_SUBCOMMANDS, *_INTERACTIVE], _application),
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
}

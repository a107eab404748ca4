"""Inline Perl, Ruby, JavaScript, PHP, Lua and other languages, read as tokens.

There is no grammar here: a call is a name from the tables in `code_names`, its arguments are
constants as far as `code_values` can tell. That finds the effects people and models really write,
and asks rather than guesses where an argument is computed. Words in strings, patterns and
comments are no calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.code.script_values as known
import hermes.safety.shell.code.sql as sql
from hermes.safety.shell.code.python_values import expand_home
from hermes.safety.shell.code.script_effects import (
    EVALUATES,
    INCLUDES,
    CodeOrigins,
    judge_whole,
    stays_empty,
)
from hermes.safety.shell.code.script_values import PART, CodeValues, marked, tokens_of
from hermes.safety.shell.code.service_calls import LISTS_PROCESSES, STARTS, service_rule
from hermes.safety.shell.delete_targets import kind_of_delete
from hermes.safety.shell.file_flow import remember_text
from hermes.safety.shell.inner_command import literal, run_words
from hermes.safety.shell.path_classes import is_credential, targets
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import HOLE

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.code.script_values import Token
    from hermes.safety.shell.command import Command


_STEPS_OF_A_SOURCE = 4
# What stands before a template that a shell is to run.
_TAGS = frozenset(("$", "$.sync", "execa", "Bun.$", "$sync"))
# Ways in which a function that is a module of its own may be called.
_VARIANTS = frozenset(("sync", "native", "default", "manual", "posix"))
_SHELL_TICKS = frozenset(("perl", "ruby", "php", "julia", "crystal"))
_WATCHED = known.ALL | EVALUATES | INCLUDES
_EACH = ([("name", "for")], [("name", "foreach")])
_ADDRESS = re.compile(r"https?://|//")
_PATH = re.compile(r"[/.]")
_MODE = re.compile(r"[rwabxt+]+\Z")
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREATE|O_TRUNC|O_APPEND")


def judge_script(text: str, command: Command, judge: Judge, language: str = "") -> None:
    """Report what a piece of script code would do."""
    if judge.step(_STEPS_OF_A_SOURCE):
        _Reader(marked(text), command, judge, language or command.name).read()


class _Reader:
    def __init__(self, text: str, command: Command, judge: Judge, language: str) -> None:
        self.tokens: list[Token] = tokens_of(text, language)
        self.text = text
        self.command = command
        self.judge = judge
        self.language = language
        self.values = CodeValues(self.tokens, command.scope, language)
        # Files whose reading was looked at.
        self.seen: set[str] = set()

    def read(self) -> None:
        parts: dict[str, list[str]] = {}
        named: list[tuple[int, str]] = []
        ticks: list[tuple[str, bool]] = []
        for index, (kind, token) in enumerate(self.tokens):
            if kind == "name":
                named.append((index, token))
                if token not in parts:
                    parts[token] = PART.split(token)
            elif kind == "tick":
                tagged = index > 0 and self.tokens[index - 1][1] in _TAGS
                ticks.append((token, tagged))
        self.origins = CodeOrigins(self.text, self.values.statements)
        called = {part for pieces in parts.values() for part in pieces}
        judge_whole(self.text, self.tokens, called, self.origins, self.command, self.judge)
        # Most names are the source's own, and nobody asks what stands behind them.
        telling = {
            token
            for token, pieces in parts.items()
            if pieces[-1] in _WATCHED
            or pieces[-1].startswith(STARTS)
            or (pieces[-1] in _VARIANTS and not known.DELETE_TREE.isdisjoint(pieces))
        }
        if not ticks and not telling:
            return
        self.values.read_constants()
        for token, tagged in ticks:
            if tagged or self.language in _SHELL_TICKS:
                self._tick(token)
        for index, token in named:
            if token in telling:
                self._name(index, token, parts[token])
        if self.values.budget < 0:
            self._blame("text.too-complex")

    def _blame(self, rule: str) -> None:
        self.judge.blame(rule, self.command)

    def _tick(self, token: str) -> None:
        inner = token[1:-1] if token[0] == "`" else re.sub(r"^(qx|%x)", "", token)[1:-1]
        self._shell(self.values.fill(inner))

    def _name(self, index: int, token: str, parts: list[str]) -> None:
        owner, last = (parts[-2] if len(parts) > 1 else ""), parts[-1]
        if last in _VARIANTS and owner in known.DELETE_TREE:
            last = owner
        if last.startswith(STARTS):
            self._service(index, last)
        if last in EVALUATES or last in INCLUDES:
            self._includes(index, owner, last)
        if last in known.DELETE_TREE:
            args = self.values.arguments(index + 1)
            paths = [arg.text for arg in args if arg.text] or [self.values.receiver(index)]
            self._delete(paths, recursive=True)
        elif last in known.DELETE_ONE:
            self._deletes_one(index, owner, last)
        elif last in known.RUN:
            self._starts(index, token, owner, last)
        elif last == "new":
            if owner == "Command":
                self._chain(index)
            elif owner == "File":
                self._open(index)
        elif last in known.WRITE and _fits(owner, known.WRITE_OWNERS.get(last)):
            self._writes(
                index, append="append" in last.lower(), opens=last.endswith(("Stream", "Writer"))
            )
        elif last in known.OPEN:
            self._open(index)
        elif last in known.CREATE and owner in known.CREATE_OWNERS:
            self._write([arg.text for arg in self.values.arguments(index + 1)[:1]])
            self._opened(index)
        elif last in known.TRUNCATE:
            self._truncates(index, owner, last)
        elif last in known.CHMOD:
            self._chmod(index)
        elif last in known.WRITE_SECOND:
            self._write([arg.text for arg in self.values.arguments(index + 1)[1:2]])
        elif last in known.READ:
            self._read([arg.text for arg in self.values.arguments(index + 1)[:1]])
        else:
            self._rarer(index, last)

    def _rarer(self, index: int, last: str) -> None:
        if last in known.STATEMENTS:
            for arg in self.values.arguments(index + 1)[:3]:
                if known.SQL.match(arg.text):
                    sql.judge_statements(arg.text, self.command, self.judge)
        elif last in known.CALLERS:
            args = [arg.text for arg in self.values.arguments(index + 1)]
            if args and args[0] in known.DELETE_ONE:
                self._blame("delete.each")
            elif args and args[0] in known.RUN:
                self._run(args[1:] or [HOLE])
        elif last in known.KILL:
            args = [arg.text for arg in self.values.arguments(index + 1)]
            if any(arg.startswith("-1") for arg in args[:2]):
                self._blame("process.kill-all")
            elif "0" not in args and LISTS_PROCESSES.search(self.text):
                self._blame("process.kill-by-name")

    def _includes(self, index: int, owner: str, last: str) -> None:
        """Code that is run from an address, or out of what was fetched or decoded."""
        if last in INCLUDES and owner:
            return
        args = self.values.arguments(index + 1)[:2]
        if (last in INCLUDES and any(_ADDRESS.match(arg.text) for arg in args[:1])) or any(
            self.origins.unread(arg.tokens) for arg in args
        ):
            self._blame("remote-code.pipe")
        elif last in INCLUDES:
            self._read([arg.text for arg in args[:1]])

    def _service(self, index: int, last: str) -> None:
        args = self.values.arguments(index + 1)
        called = self.tokens[index + 1 : index + 2] == [("other", "(")] or not args
        plain = ", ".join("".join(token for _, token in arg.tokens) for arg in args)
        rule = service_rule(last, plain if called else plain or " ", self.text)
        if rule:
            self._blame(rule)

    def _deletes_one(self, index: int, owner: str, last: str) -> None:
        if self.language in ("rscript", "r") and last in ("rm", "remove") and not owner:
            return
        args = self.values.arguments(index + 1)
        if last == "unlink" and not args and self.tokens[index + 1 : index + 2] in _EACH:
            self._blame("delete.each")
            return
        if not _fits(owner, known.ONE_OWNERS.get(last)):
            on = self.values.receiver(index) if last in ("delete", "deleteIfExists") else HOLE
            if HOLE not in on and ("/" in on or "." in on) and not args and "File" in self.text:
                self._delete([on], recursive=False)
            return
        recursive = any("recursive" in token for arg in args for _, token in arg.tokens)
        shown = [arg.text for arg in args if arg.tokens[0][1] != "{" and arg.text]
        receiver = self.values.receiver(index) if not shown else ""
        self._delete(shown or [receiver], recursive=recursive)

    def _starts(self, index: int, token: str, owner: str, last: str) -> None:
        if last == "execute" and owner != "os":
            if self.language in ("groovy", "groovysh") and index > 1:
                self._shell(self.values.receiver(index))
            else:
                self._rarer(index, last)
            return
        if not _fits(owner, known.RUN_OWNERS.get(last)):
            return
        if token.startswith("$"):
            self._rarer(index, last)
            return
        args = self.values.arguments(index + 1)
        if owner in known.NEVER_RUN or (args and known.SQL.match(args[0].text)):
            self._rarer(index, last)
        elif last == "run" and self.language in _SHELL_TICKS:
            return
        elif args:
            if any(self.origins.unread(arg.tokens) for arg in args):
                self._blame("remote-code.pipe")
            self._run([item for arg in args for item in arg.items])

    def _chain(self, index: int) -> None:
        """Rust's `Command::new("rm").arg("-rf").args(["x"])`."""
        words = [item for arg in self.values.arguments(index + 1) for item in arg.items]
        for at in range(index + 1, min(index + 80, len(self.tokens))):
            kind, token = self.tokens[at]
            if token == ";":
                break
            if kind == "name" and token in ("arg", "args"):
                words += [item for arg in self.values.arguments(at + 1) for item in arg.items]
        if words:
            self._words(words)

    def _truncates(self, index: int, owner: str, last: str) -> None:
        if last == "truncate" and owner not in known.TRUNCATE_OWNERS:
            return
        args = [arg.text for arg in self.values.arguments(index + 1)]
        if (args and args[-1] in ("0", "")) or (len(args) == 1 and HOLE not in args[0]):
            if len(args) > 1 or owner:
                self._write(args[:1])
            if owner or last != "truncate" or len(args) > 1:
                self._blame("delete.truncated")

    def _chmod(self, index: int) -> None:
        args = self.values.arguments(index + 1)
        plain = ["".join(token for _, token in arg.tokens).strip("'\"") for arg in args]
        if any(known.SET_ID.search(text) for text in plain):
            self._blame("permissions.set-uid")
        self._write([arg.text for arg in args if arg.text and not arg.text[0].isdigit()][:1])

    def _shell(self, text: str) -> None:
        if text and text != HOLE:
            self.judge.run_text(text, self.command.origin.vague(), self.command.scope.copy())

    def _words(self, texts: list[str]) -> None:
        words = [literal(text, self.command) for text in texts if text]
        run_words(words, self.command, self.judge, scope=self.command.scope.copy())

    def _run(self, args: list[str]) -> None:
        plain = [arg for arg in args if arg and not arg.startswith(HOLE + ":")]
        if len(plain) > 1 and " " not in plain[0]:
            # One word per argument starts a program; a shell reads a single text.
            self._words(plain)
        elif plain:
            self.judge.run_text(plain[0], self.command.origin.vague(), self.command.scope.copy())

    def _delete(self, args: list[str], *, recursive: bool) -> None:
        words = [literal(expand_home(arg, self.command.scope), self.command) for arg in args[:8]]
        words = [
            word for word in words if word.text and (word is words[0] or _PATH.search(word.text))
        ]
        for word in words:
            word.glob = "*" in word.text
        rule = kind_of_delete(words, self.command.scope, recursive=recursive)
        if rule:
            self._blame(rule)
        for word in words:
            judge_write(word, self.command.text, self.command.scope, self.judge)

    def _writes(self, index: int, *, append: bool, opens: bool) -> None:
        args = self.values.arguments(index + 1)
        self._write([arg.text for arg in args[:1]])
        if len(args) == 2 and "".join(token for _, token in args[1].tokens) in ("''", '""'):
            self._blame("delete.emptied")
        elif len(args) == 1 and opens:
            self._opened(index)
        elif len(args) > 1:
            remember_text(args[0].text, args[1].text, self.command.scope, append=append)

    def _write(self, args: list[str]) -> None:
        for arg in args:
            word = literal(expand_home(arg, self.command.scope), self.command)
            judge_write(word, self.command.text, self.command.scope, self.judge)

    def _read(self, args: list[str]) -> None:
        scope = self.command.scope
        for arg in args:
            if arg in self.seen:
                continue
            self.seen.add(arg)
            word = literal(expand_home(arg, scope), self.command)
            if any(is_credential(path, scope) for path in targets(word, scope)):
                self._blame("secrets.read")

    def _opened(self, index: int, handle: str = "") -> None:
        """Report what was opened to be written and has lost what it had before, for nothing."""
        # A name is looked for in all of the source.
        self.values.budget -= len(self.tokens)
        if self.values.budget >= 0 and stays_empty(self.tokens, index, handle):
            self._blame("delete.emptied")

    def _open(self, index: int) -> None:
        """Perl's `open(F, ">file")` and `open(F, "cmd|")`, and the usual `open(path, mode)`."""
        given = self.values.arguments(index + 1)
        args = [arg.text for arg in given]
        for position, arg in enumerate(args):
            if arg.startswith((">", "+>", "+<")):
                path = arg.lstrip("+<> ") or (
                    args[position + 1] if position + 1 < len(args) else ""
                )
                self._write([path])
                if arg[0] == ">" and arg[:2] != ">>" and position:
                    self._opened(index, given[0].tokens[-1][1])
            elif arg.strip().startswith("|") or (
                arg.strip().endswith("|") and len(arg.strip()) > 1
            ):
                self._shell(arg.strip().strip("|-"))
            elif arg in ("-|", "|-"):
                self._run(args[position + 1 :])
        flags = "".join(token for arg in given[1:2] for _, token in arg.tokens)
        if len(args) > 1 and (_MODE.match(args[1]) or _WRITES.search(flags)):
            writes = bool(re.search(r"[wax+]", args[1])) or bool(_WRITES.search(flags))
            (self._write if writes else self._read)(args[:1])
            if args[1].startswith("w"):
                self._opened(index)
        elif len(args) == 1:
            self._read(args)
        elif self.language == "perl" and not args[-1].startswith((">", "+")):
            self._read(args[-1:])


def _fits(owner: str, owners: tuple[str, ...] | None) -> bool:
    return owners is None or not owners or owner in owners


# What their sources end with, and the language that these are read as.
FOLDER_RUNNERS = {
    "go": (".go", "go"),
    "cargo": (".rs", "rust"),
    "dotnet": (".cs", "c"),
    "swift": (".swift", "c"),
    "zig": (".zig", "c"),
    "dart": (".dart", "c"),
    "mix": (".exs", "elixir"),
    "gradle": (".java", "java"),
    "gradlew": (".java", "java"),
    "mvn": (".java", "java"),
}
_RUNS = frozenset(("run", "build-run", "exec:java", "bootRun", "spring-boot:run"))


def run_folder(command: Command, judge: Judge) -> None:
    """Judge the sources that this text wrote to the folder that a program runs."""
    ending, language = FOLDER_RUNNERS[command.name]
    operands, scope = command.operands, command.scope
    if not any(word.text in _RUNS for word in operands[:2]):
        return
    named = [scope.absolute(word.text) for word in operands[1:] if word.text[:1] in (".", "/")]
    folders = tuple(place.rstrip("/") + "/" for place in named) or (scope.cwd.rstrip("/") + "/",)
    for place, text_file in list(scope.written.items()):
        if place.endswith(ending) and place.startswith(folders) and text_file.text:
            judge_script(text_file.text, command, judge, language)

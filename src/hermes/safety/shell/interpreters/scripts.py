"""Inline Perl, Ruby, JavaScript, PHP and Lua, read as tokens.

There is no grammar here: a call is a name from the tables below, its first argument is the text
up to the next comma. That finds the effects people and models really write, and asks rather than
guesses where an argument is computed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.deleting import kind_of_delete
from hermes.safety.shell.interpreters.python_values import expand_home
from hermes.safety.shell.interpreters.source import find_source
from hermes.safety.shell.interpreters.strings import judge_strings
from hermes.safety.shell.opening import literal, run_words
from hermes.safety.shell.paths import is_credential, targets
from hermes.safety.shell.places import judge_write
from hermes.safety.shell.scope import HOLE
from hermes.safety.shell.stream import ANYTHING, Stream
from hermes.safety.shell.tables import names
from hermes.safety.shell.words import unescape

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/|(?<![\w$@%&])\#(?![{!])[^\n]*)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<tick>`(?:[^`\\]|\\.)*`|(?:\bqx|%x)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]|![^!]*!))"
    r"|(?P<quote>\bq[qw]?(?:\{[^}]*\}|\([^)]*\)|/[^/]*/)|%[wqQ](?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]))"
    r"|(?P<name>[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*)*)"
    r"|(?P<number>\d[\w.]*)|(?P<other>\S)",
    re.S,
)
_HOME = re.compile(
    r"\$ENV\{\s*['\"]?HOME['\"]?\s*\}|ENV\[['\"]HOME['\"]\]|ENV\.fetch\(['\"]HOME['\"]\)|Dir\.home|"
    r"(?:require\(['\"](?:node:)?os['\"]\)|\bos)\.homedir\(\)|process\.env\.HOME|"
    r"process\.env\[['\"]HOME['\"]\]|"
    r"getenv\(['\"]HOME['\"]\)|os\.getenv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]|"
    r"\bhomedir\(\)|"
    r"File\.expand_path\(['\"]~['\"]\)|Pathname\.home|Deno\.env\.get\(['\"]HOME['\"]\)"
)
_INTERPOLATED = re.compile(r"[#$]\{[^}]*\}|[$@]\w+(?:->)?(?:\{[^}]*\}|\[[^\]]*\])?")
_STEPS_OF_A_SOURCE = 4
# Languages with ways of their own to start programs.
_HALF_KNOWN = frozenset(("groovy", "julia", "elixir", "rscript", "r", "tclsh"))
_HOME_MARK = "\ue0ff"
_PART = re.compile(r"::|\?\.|\.|->")

_DELETE_ONE = names(
    "unlink unlinkSync delete remove safe_unlink rm rmSync rm_f removeSync removeFile del "
    "deleteSync"
)
_ONE_OWNERS = {
    "delete": ("File",),
    "remove": ("os", "File", "FileUtils", "fs", "fse", "Deno"),
    "rm": ("FileUtils", "fs", "fsp", "promises", ""),
}
_DELETE_TREE = names(
    "rmtree remove_tree rm_rf rm_r rmdirSync remove_dir remove_entry remove_entry_secure rimraf "
    "rimrafSync emptyDirSync "
    "remove_entry_secure secure_remove_entry"
)
_RUN = names(
    "system exec execSync execFile execFileSync spawn spawnSync shell_exec passthru popen "
    "proc_open execute "
    "capture2 capture2e capture3 pipeline popen3 fork_exec $ Command pcntl_exec posix_spawn execve"
)
_RUN_OWNERS = {
    "execute": ("os",),
    "exec": (),
    "spawn": (),
    "Command": ("Deno",),
    "pipeline": ("Open3",),
}
_NEVER_RUN = (
    "re",
    "regex",
    "RegExp",
    "pattern",
    "query",
    "db",
    "client",
    "conn",
    "connection",
    "cursor",
    "knex",
)
_WRITE = names(
    "writeFileSync writeFile appendFileSync appendFile file_put_contents write createWriteStream "
    "copyFileSync "
    "writeTextFile binwrite"
)
_EACH = ([("name", "for")], [("name", "foreach")])
# They call the function whose name they are given.
_CALLERS = names("array_map array_walk call_user_func call_user_func_array public_send send method")
_READ = names("readFileSync readFile file_get_contents read slurp readlines readTextFile binread")


def _script(
    inline: str, valued: str, long: tuple[str, ...] = ()
) -> Callable[[Command, Judge], Stream | None]:
    def run(command: Command, judge: Judge) -> Stream | None:
        source = find_source(command, judge, inline=inline, valued=valued, long=long)
        if source is not None:
            judge_script(source.text, command, judge)
        return None

    return run


def judge_script(text: str, command: Command, judge: Judge) -> None:
    """Report what a piece of script code would do."""
    if not judge.step(_STEPS_OF_A_SOURCE):
        return
    marked = _HOME.sub(f"'{_HOME_MARK}'", text)
    tokens = [
        (found.lastgroup or "", found.group())
        for found in _TOKEN.finditer(marked)
        if found.lastgroup != "comment"
    ]
    _Reader(tokens, marked, command, judge).read()
    if command.name in _HALF_KNOWN:
        judge_strings(text, command, judge)


class _Reader:
    def __init__(
        self, tokens: list[tuple[str, str]], text: str, command: Command, judge: Judge
    ) -> None:
        self.tokens = tokens
        self.text = text
        self.command = command
        self.judge = judge
        self.names: dict[str, str] = {}

    def read(self) -> None:
        self._constants()
        names = {
            part for kind, token in self.tokens if kind == "name" for part in _PART.split(token)
        }
        self._whole(names)
        for index, (kind, token) in enumerate(self.tokens):
            if kind == "tick":
                self._tick(token)
            elif kind == "name":
                self._name(index, token)

    def _whole(self, names: set[str]) -> None:
        text = self.text
        connects = bool(
            names & {"fsockopen", "TCPSocket", "Socket", "connect", "socket", "createConnection"}
        )
        if connects and (
            names & _RUN or ("sh" in text and names & {"pipe", "dup2", "open", "fdopen", "exec"})
        ):
            self.judge.blame("network.reverse-shell", self.command)
        if re.search(
            (
                r"\bfork\s+while\s+fork|while\s*\(?\s*(?:1|true)\s*\)?\s*(?:\{|do)?[^}]*\bfork\b|"
                r"fork\s+while\s+1"
            ),
            text,
        ) or (re.search(r"\bloop\s*(?:\{|do)\s*fork", text)):
            self.judge.blame("process.fork-bomb", self.command)
        if connects and re.search(r"\b(?:instance_)?eval\b", text):
            self.judge.blame("remote-code.pipe", self.command)
        if re.search(r"\beval\b", text) and re.search(
            (
                r"file_get_contents|curl_exec|base64|unpack|decode|atob|gzinflate|pack\(|get\(|open-uri|fetch\(|URI\.open|LWP|"
                r"fromCharCode|hex"
            ),
            text,
        ):
            self.judge.blame("remote-code.pipe", self.command)
        if "createServer" in names or "TCPServer" in names:
            self.judge.blame("network.listener", self.command)

    def _constants(self) -> None:
        for index in range(1, len(self.tokens) - 1):
            if self.tokens[index] == ("other", "=") and self.tokens[index - 1][0] == "name":
                following = self.tokens[index + 1]
                name = self.tokens[index - 1][1]
                if following[0] in ("string", "quote") and self.tokens[index + 2 : index + 3] in (
                    [], [("other", ";")], [("other", ",")]
                ):  # fmt: skip
                    self.names[name] = self._string(following[1])

    def _tick(self, token: str) -> None:
        if self.command.name in ("node", "nodejs", "deno", "bun", "lua", "luajit"):
            return
        inner = token[1:-1] if token[0] == "`" else re.sub(r"^(qx|%x)", "", token)[1:-1]
        self._shell(self._fill(inner))

    def _name(self, index: int, token: str) -> None:
        owner, last = _split(token)
        args = self._arguments(index + 1)
        if last in _DELETE_TREE:
            self._delete(args, recursive=True)
        elif last == "unlink" and not args and self.tokens[index + 1 : index + 2] in _EACH:
            self.judge.blame("delete.each", self.command)
        elif last in _DELETE_ONE and _fits(owner, _ONE_OWNERS.get(last)):
            self._delete(args, recursive="recursive" in self.text)
        elif last in _RUN and _fits(owner, _RUN_OWNERS.get(last)) and owner not in _NEVER_RUN:
            if args and not token.startswith("$"):
                self._run(args)
        elif last in _WRITE and (owner or last != "write"):
            self._write(args[:1])
        elif last in ("open", "fopen"):
            self._open(args)
        elif last in (
            "rename",
            "renameSync",
            "copyFile",
            "copyFileSync",
            "mv",
            "cp",
            "symlink",
            "ln_s",
        ):
            self._write(args[1:2])
        elif last in _READ:
            self._read(args[:1])
        elif last in _CALLERS and args and args[0] in _DELETE_ONE:
            self.judge.blame("delete.each", self.command)
        elif last in _CALLERS and args and args[0] in _RUN:
            self._run(args[1:] or [HOLE])
        elif last == "file" and self.command.name in ("tclsh", "wish", "expect"):
            self._tcl(index)
        elif last in ("kill",) and args and args[0].startswith("-1"):
            self.judge.blame("process.kill-all", self.command)

    def _tcl(self, index: int) -> None:
        """`file delete -force x`, whose words need no commas."""
        words = [token for kind, token in self.tokens[index + 1 : index + 6] if kind == "name"]
        if words[:1] == ["delete"]:
            recursive = any(token == "-" for _, token in self.tokens[index + 1 : index + 5])
            self._delete(words[-1:], recursive=recursive)

    def _arguments(self, index: int) -> list[str]:
        """The arguments of a call, as far as they are constant."""
        tokens = self.tokens
        if index < len(tokens) and tokens[index] == ("other", "("):
            index += 1
            depth = 1
        else:
            depth = 0
        parts: list[list[tuple[str, str]]] = [[]]
        nested = 0
        while index < len(tokens):
            kind, token = tokens[index]
            if kind == "other":
                if token in "([{":
                    nested += 1
                elif token in ")]}":
                    if not nested:
                        break
                    nested -= 1
                elif token == ";" and not nested:
                    break
                elif token == ",":
                    parts.append([])
                    index += 1
                    continue
            if (
                not depth
                and kind == "name"
                and token in ("if", "unless", "for", "foreach", "while", "or", "and")
            ):
                break
            parts[-1].append((kind, token))
            index += 1
        return [self._value(part) for part in parts if part]

    def _value(self, tokens: list[tuple[str, str]]) -> str:
        out = []
        for kind, token in tokens:
            if kind in ("string", "quote"):
                out.append(self._string(token))
            elif kind == "name":
                if token in self.names:
                    out.append(self.names[token])
                elif token in ("glob", "Dir.glob", "readdirSync", "Dir"):
                    out.append("*")
                elif token not in (
                    "path.join",
                    "File.join",
                    "os.path",
                    "my",
                    "const",
                    "path.resolve",
                    "new",
                ):
                    out.append(HOLE)
            elif kind == "number" or token == "-" or token == "*":
                out.append(token)
        return "".join(out)

    def _string(self, token: str) -> str:
        if token[0] == "'":
            return (
                token[1:-1]
                .replace("\\'", "'")
                .replace("\\\\", "\\")
                .replace(_HOME_MARK, self.command.scope.home)
            )
        if token[0] == '"':
            return self._fill(unescape(token[1:-1]))
        body = re.sub(r"^(?:q[qw]?|%[wqQ])", "", token)[1:-1]
        return self._fill(body)

    def _fill(self, text: str) -> str:
        text = text.replace(f"#{{'{_HOME_MARK}'}}", _HOME_MARK).replace(
            f"${{'{_HOME_MARK}'}}", _HOME_MARK
        )
        text = text.replace(f"'{_HOME_MARK}'", _HOME_MARK)
        return _INTERPOLATED.sub(HOLE, text).replace(_HOME_MARK, self.command.scope.home)

    def _shell(self, text: str) -> None:
        self.judge.run_text(text, self.command.origin.vague(), self.command.scope.copy())

    def _run(self, args: list[str]) -> None:
        plain = [arg for arg in args if not arg.startswith(("{", HOLE + ":"))]
        if len(plain) > 1 and " " not in plain[0]:
            # One word per argument starts a program; a shell reads a single text.
            words = [literal(arg, self.command) for arg in plain]
            run_words(words, self.command, self.judge, scope=self.command.scope.copy())
        elif plain:
            self._shell(plain[0])

    def _delete(self, args: list[str], *, recursive: bool) -> None:
        words = [literal(expand_home(arg, self.command.scope), self.command) for arg in args[:8]]
        words = [word for word in words if word.text and (word is words[0] or "/" in word.text)]
        for word in words:
            word.glob = "*" in word.text
        rule = kind_of_delete(words, self.command.scope, recursive=recursive)
        if rule:
            self.judge.blame(rule, self.command)
        for word in words:
            judge_write(word, self.command.text, self.command.scope, self.judge)

    def _write(self, args: list[str]) -> None:
        for arg in args:
            word = literal(expand_home(arg, self.command.scope), self.command)
            judge_write(word, self.command.text, self.command.scope, self.judge)

    def _read(self, args: list[str]) -> None:
        for arg in args:
            word = literal(expand_home(arg, self.command.scope), self.command)
            if any(
                is_credential(path, word_scope)
                for word_scope in (self.command.scope,)
                for path in targets(word, word_scope)
            ):
                self.judge.blame("secrets.read", self.command)

    def _open(self, args: list[str]) -> None:
        """Perl's `open(F, ">file")` and `open(F, "cmd|")`, and the usual `open(path, mode)`."""
        for position, arg in enumerate(args):
            if arg.startswith((">", "+>", "+<")):
                path = arg.lstrip("+<> ") or (
                    args[position + 1] if position + 1 < len(args) else ""
                )
                self._write([path])
            elif arg.strip().startswith("|") or (
                arg.strip().endswith("|") and len(arg.strip()) > 1
            ):
                self._shell(arg.strip().strip("|-"))
            elif arg in ("-|", "|-"):
                self._run(args[position + 1 :])
        if len(args) > 1 and re.fullmatch(r"[rwab+x]+", args[1]):
            (self._write if re.search(r"[wax+]", args[1]) else self._read)(args[:1])
        elif len(args) == 1:
            self._read(args)


def _split(token: str) -> tuple[str, str]:
    parts = _PART.split(token)
    return (parts[-2] if len(parts) > 1 else ""), parts[-1]


def _fits(owner: str, owners: tuple[str, ...] | None) -> bool:
    return owners is None or not owners or owner in owners


SCRIPTS: dict[str, Callable[[Command, Judge], Stream | None]] = {
    "perl": _script("eE", "IMmxCDVF0"),
    "ruby": _script("e", "IrEKC"),
    "node": _script("ep", "rC", ("--eval", "--print")),
    "nodejs": _script("ep", "rC", ("--eval", "--print")),
    "bun": _script("ep", "", ("--eval", "--print")),
    "tsx": _script("ep", "", ("--eval",)),
    "php": _script("rBR", "cdfz", ("--run",)),
    "lua": _script("e", "l"),
    "luajit": _script("e", "lj"),
    "rscript": _script("e", ""),
    "r": _script("e", ""),
    "tclsh": _script("", ""),
    "elixir": _script("e", "r", ("--eval",)),
    "julia": _script("eE", "pLt", ("--eval",)),
    "groovy": _script("e", ""),
}


def run_deno(command: Command, judge: Judge) -> Stream | None:
    """`deno eval CODE`."""
    if command.operands and command.operands[0].text == "eval":
        for word in command.operands[1:]:
            judge_script(word.text, command, judge)
    return ANYTHING


SCRIPTS["deno"] = run_deno

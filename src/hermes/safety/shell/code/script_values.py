"""Tokens of scripts in many languages, constant arguments of calls, files left empty."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from hermes.safety.shell.code.python_values import expand_home
from hermes.safety.shell.scope import HOLE, names
from hermes.safety.shell.word_builder import unescape

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Scope


# Ruby, Perl, JavaScript, PHP, Lua, R, Julia, Elixir, Groovy, Go, Rust, Java, Kotlin, C, Swift.
DELETE_TREE = names(
    "rmtree remove_tree rm_rf rm_r rm_rf! rmdirSync remove_dir remove_entry remove_entry_secure "
    "secure_remove_entry rimraf rimrafSync emptyDirSync emptyDir removeSync RemoveAll "
    "remove_dir_all remove_all deleteRecursively deleteDirectory deleteDir deleteTree removeDir "
    "forceDelete cleanDirectory FileUtils.deleteQuietly delete_directory"
)
DELETE_ONE = names(
    "unlink unlinkSync delete remove safe_unlink rm rmSync rm_f rm! removeFile del deleteSync "
    "deleteIfExists remove_file Remove deleteFile removeItem delete_file"
)
_FILES = ("os", "File", "FileUtils", "fs", "fse", "fsp", "Deno", "file", "Files", "promises")
ONE_OWNERS = {
    "delete": ("File", "Files", "Storage", "Pathname"),
    "remove": _FILES,
    "rm": ("FileUtils", "fs", "fsp", "promises", "File", ""),
    "Remove": ("os",),
    "del": ("",),
    "delete_file": ("", "File"),
}
RUN = names(
    "system exec execSync execFile execFileSync spawn spawnSync shell_exec passthru popen "
    "proc_open execute capture2 capture2e capture3 pipeline popen3 fork_exec $ Command pcntl_exec "
    "posix_spawn execve execl execlp execv execvp system2 shell cmd ProcessBuilder run "
    "CommandContext"
)
RUN_OWNERS: dict[str, tuple[str, ...]] = {
    "execute": ("os",),
    "exec": (),
    "spawn": (),
    "Command": ("Deno", "exec"),
    "CommandContext": ("exec",),
    "pipeline": ("Open3",),
    "cmd": ("System", "os"),
    "shell": ("System", ""),
    "run": ("Process", ""),
}
NEVER_RUN = names(
    "re regex RegExp pattern query db client conn connection cursor knex pool stmt database sql"
)
WRITE = names(
    "writeFileSync writeFile appendFileSync appendFile file_put_contents write createWriteStream "
    "writeTextFile binwrite WriteFile writeString FileWriter PrintWriter FileOutputStream write! "
    "outputFileSync outputFile writeText appendText"
)
WRITE_OWNERS = {"write": ("File", "fs", "IO", "Files", "Deno", "Bun", "file")}
WRITE_SECOND = names(
    "rename renameSync copyFile copyFileSync mv cp symlink symlinkSync ln_s copy move cp_r Rename "
    "Symlink moveSync copySync"
)
OPEN = names("open fopen OpenFile openSync gzopen file")
CREATE = names("create Create")
CREATE_OWNERS = ("File", "os", "fs", "file")
TRUNCATE = names("truncate truncateSync ftruncate Truncate set_len")
TRUNCATE_OWNERS = ("", "File", "fs", "fsp", "promises", "os", "Deno")
CHMOD = names("chmod chmodSync Chmod fchmod lchmod chmod_R set_permissions from_mode fchmodSync")
# They call the function whose name they are given.
CALLERS = names("array_map array_walk call_user_func call_user_func_array public_send send method")
READ = names(
    "readFileSync readFile file_get_contents readfile fpassthru show_source createReadStream "
    "lines read slurp readlines readTextFile binread ReadFile "
    "read_to_string readAllBytes readAllLines readString readLines"
)
CONNECT = names(
    "fsockopen TCPSocket Socket connect socket createConnection create_connection Dial "
    "TcpStream gen_tcp stream_socket_client pfsockopen socketConnection"
)
LISTEN = names("createServer TCPServer ServerSocket TcpListener stream_socket_server")
STATEMENTS = names(
    "query execute exec do raw prepare executeUpdate Exec execute_sql $executeRawUnsafe "
    "$executeRaw execute_batch QueryRow dbExecute dbSendQuery dbSendStatement statement unprepared"
)
KILL = names("kill posix_kill Kill pskill")
SQL = re.compile(r"\s*(?:drop|delete|truncate|update|alter)\s+(?![-./])", re.I)
# Functions that give one path for several pieces, or the path that they are given.
JOIN = names("join joinpath resolve file_path path")
THROUGH = names(
    "expand_path realpath abspath absolute_path new Path Pathname File URI get of PathBuf from "
    "normalize toString to_s path expand fileURLToPath String Paths as_str into tilde"
)
FORMATS = names("format sprintf Sprintf vsprintf strformat format!")
LISTING = names("glob Dir Dir.glob readdirSync list.files Dir.children readdir globSync children")
SILENT = names(
    "my our local const let var new await val final auto mut return path.join File.join os.path "
    "path.resolve static"
)
SET_ID = re.compile(r"\A0?o?[2467][0-7]{3}\Z|S_IS[UG]ID|^[ugoa]*[+=][rwxt]*s")
# A source that names none of these does nothing that is looked for here.
ALL = (
    DELETE_TREE
    | DELETE_ONE
    | RUN
    | WRITE
    | WRITE_SECOND
    | OPEN
    | CREATE
    | TRUNCATE
    | CHMOD
    | CALLERS
    | READ
    | STATEMENTS
    | KILL
    | {"new"}
)


Token = tuple[str, str]

HOME_MARK = "\ue0ff"
PART = re.compile(r"::|\?\.|\.|->")

_TOKEN = re.compile(
    # What begins with none of these is a name, a number or a sign, and most of it is.
    r"[ \t]*(?:(?=[/\#'\"`%qmsty])(?:(?P<comment>//[^\n]*|/\*.*?\*/|(?<![\w$@%&])\#(?![{!])[^\n]*)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<tick>`(?:[^`\\]|\\.)*`|(?:\bqx|%x)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]|![^!]*!))"
    r"|(?P<quote>\bq[qw]?(?:\{[^}]*\}|\([^)]*\)|/[^/]*/)|%[wqQ](?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]))"
    # A pattern, not a division: nothing that has a value stands before it.
    r"|(?P<pattern>(?<![\w)\]$@%&.>])(?:m|qr)?/(?![/*\s])(?:[^/\\\n]|\\.)+/[gimsxou]*(?![\w/])"
    r"|(?<![\w$@%&.>-])(?:s|tr|y)/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gimsxor]*(?![\w/])"
    r"|%r\{[^}]*\}|(?<![\w$@%&.>])(?:m|qr)\{[^}]*\}[gimsxo]*))"
    r"|(?P<name>[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*[!?]?(?![=\w])"
    r"(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*!?)*"
    r"|[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*)*)"
    r"|(?P<number>\d[\w.]*)|(?P<line>\n)|(?P<other>\S))",
    re.S,
)
_HOME = re.compile(
    r"\$ENV\{\s*['\"]?HOME['\"]?\s*\}|ENV\[['\"]HOME['\"]\]|ENV\.fetch\(['\"]HOME['\"]\)|Dir\.home\b|"
    r"(?:require\(['\"](?:node:)?os['\"]\)|\bos)\.homedir\(\)|process\.env\.HOME|"
    r"process\.env\[['\"]HOME['\"]\]|os\.UserHomeDir\(\)|System\.user_home!?(?:\(\))?|"
    r"(?:os\.|Sys\.|System\.)?[gG]et_?[eE]nv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]|"
    r"System\.getProperty\(['\"]user\.home['\"]\)|env::var\(['\"]HOME['\"]\)(?:\.unwrap\(\))?|"
    r"\bhomedir\(\)|path\.expand\(['\"]~['\"]\)|System\.getenv\(['\"]HOME['\"]\)|"
    r"File\.expand_path\(['\"]~['\"]\)|Pathname\.home|Deno\.env\.get\(['\"]HOME['\"]\)"
)
# What a source calls a module by the moment it asks for it.
_REQUIRED = re.compile(r"\brequire\(\s*['\"](?:node:)?([A-Za-z][\w/-]*)['\"]\s*\)(?=\s*[.(])")
_TEXTS = frozenset(("string", "quote", "tick"))
# Strings come first: what looks like a comment in one of them is none.
_LUA_COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|--\[\[.*?\]\]|--[^\n]*", re.S)


def marked(text: str) -> str:
    """The text with every spelling of the home directory as one string."""
    if "require" in text:
        text = _REQUIRED.sub(lambda found: _module(found.group(1)), text)
    if (
        "'~" not in text
        and '"~' not in text
        and "home" not in text
        and "HOME" not in text
        and "Home" not in text
    ):
        return text
    if not _HOME.search(text):
        return text
    strings = [found.span() for found in _TOKEN.finditer(text) if found.lastgroup in _TEXTS]
    starts = [start for start, _ in strings]

    def mark(found: re.Match[str]) -> str:
        at = found.start()
        before = bisect_left(starts, at)
        inside = before > 0 and at < strings[before - 1][1]
        # In a string it is text, perhaps code of another language, unless it is filled in there.
        filled = found.group()[0] == "$" or text[at - 2 : at] in ("#{", "${")
        return found.group() if inside and not filled else f"'{HOME_MARK}'"

    return _HOME.sub(mark, text)


def _module(name: str) -> str:
    return name.rpartition("/")[2].replace("-", "_")


def tokens_of(text: str, language: str) -> list[Token]:
    """The tokens of a source without its comments."""
    if language in ("lua", "luajit"):
        text = _LUA_COMMENT.sub(lambda found: found.group(1) or "", text)
    return [
        (kind, found[kind])
        for found in _TOKEN.finditer(text)
        if (kind := found.lastgroup or "other") != "comment"
    ]


_INTERPOLATED = re.compile(r"[#$]\{([^}]*)\}|[$@](\w+)(?:->)?(?:\{[^}]*\}|\[[^\]]*\])?")
# Where a bare `$name` in a string is text, and only brackets after a sign are filled in.
_BRACKETS_ALONE = re.compile(r"[#$]\{([^}]*)\}()")
_TICKS_ALONE = frozenset(("node", "nodejs", "bun", "deno", "tsx", "ts-node"))
_BARE_NAMES_ARE_TEXT = _TICKS_ALONE | {"ruby", "elixir", "mix", "crystal"}
_PLACE = re.compile(r"%%|%[-+ 0#]*\d*(?:\.\d+)?[sdvqi]|\{\}")
_ENDS = frozenset(("if", "unless", "for", "foreach", "while", "or", "and", "do"))
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_DEEPEST = 12
_EQUALS = ("other", "=")
_LONGEST_ARGUMENT = 200
_MOST_TOKENS = 60_000
_NO_INTERPOLATION = frozenset(("lua", "luajit", "go", "java", "c", "rust", "rscript", "r"))


class Argument:
    """One argument: its text, the items of a list, and the tokens that it is made of."""

    __slots__ = ("items", "text", "tokens")

    def __init__(self, text: str, items: list[str], tokens: list[Token]) -> None:
        self.text = text
        self.items = items
        self.tokens = tokens


class CodeValues:
    """Constant values in one source."""

    def __init__(self, tokens: list[Token], scope: Scope, language: str) -> None:
        self.tokens = tokens
        self.scope = scope
        self.language = language
        # Where each name is set, and what it was found to stand for.
        self._set_at: dict[str, list[int]] = {}
        self._known: dict[str, str | None] = {}
        # Tokens that may still be looked at; hostile sources would have each read over and over.
        self.budget = _MOST_TOKENS

    def read_constants(self) -> None:
        """Find where the names of the source are set; their values are worked out when asked."""
        tokens = self.tokens
        for index in range(1, len(tokens) - 1):
            if tokens[index] != _EQUALS or tokens[index - 1][0] != "name":
                continue
            if tokens[index + 1] == _EQUALS or tokens[index + 1] == ("other", ">"):
                continue
            name = tokens[index - 1][1]
            self._set_at.setdefault(name, []).append(index + 1)
            if self.language == "perl" and name[0] in "$@%&":
                self._set_at.setdefault(name.lstrip("$@%&"), []).append(index + 1)

    def statements(self, name: str) -> list[Token]:
        """The tokens that set a name, for whoever asks where its text comes from."""
        return [token for at in self._set_at.get(name, ()) for token in self._statement(at)]

    def named(self, name: str) -> str | None:
        """What a name stands for; None when the source never sets it."""
        if name in self._known:
            return self._known[name]
        places = self._set_at.get(name)
        if places is None:
            return None
        # A name that is made from itself is not known while it is being worked out.
        self._known[name] = HOLE
        values = {self.value(self._statement(at)) for at in places}
        self._known[name] = values.pop() if len(values) == 1 else HOLE
        return self._known[name]

    def _statement(self, index: int) -> list[Token]:
        """The tokens from here to the end of an assignment."""
        start, nested = index, 0
        if self.budget < 0:
            return []
        while index < len(self.tokens) and index - start < _LONGEST_ARGUMENT:
            kind, token = self.tokens[index]
            if kind == "line" and not nested:
                break
            if kind == "other":
                if token in _OPENING:
                    nested += 1
                elif token in _CLOSING:
                    nested -= 1
                    if nested < 0:
                        break
                elif token in ";," and not nested:
                    break
            index += 1
        self.budget -= index - start
        return self.tokens[start:index]

    def arguments(self, index: int) -> list[Argument]:
        """The arguments of a call whose name stands before this position."""
        tokens = self.tokens
        if self.budget < 0:
            return []
        called = index < len(tokens) and tokens[index] == ("other", "(")
        parts = _split(tokens, index + 1 if called else index, lines=not called)
        self.budget -= 4 + 3 * sum(len(part) for part in parts)
        return [self._argument(part) for part in parts if part]

    def _argument(self, tokens: list[Token]) -> Argument:
        opening = tokens[0][1] in ("[", "{", "&[") or tokens[0] == ("name", "c")
        if tokens[0][0] == "quote" and tokens[0][1][:2] in ("%w", "qw"):
            items = self.string(tokens[0][1]).split()
            return Argument(" ".join(items), items, tokens)
        if tokens[0][1] == "&" or tokens[0] == ("name", "vec"):
            opening = any(token == "[" for _, token in tokens[:3])
        if opening and len(tokens) > 1:
            at = next((i for i, (_, token) in enumerate(tokens) if token in _OPENING), 0)
            inner = _split(tokens, at + 1, lines=False)
            if tokens[at][1] == "{":
                # Of settings, the words that a program is started with count.
                inner = [part for part in inner if part[:1] == [("name", "args")]]
                inner = _split(inner[0], 3, lines=False) if inner else []
            items = [self.value(part) for part in inner if part]
            return Argument(items[0] if items else "", items, tokens)
        text = self.value(tokens)
        return Argument(text, [text], tokens)

    def value(self, tokens: list[Token], depth: int = 0) -> str:
        """The string that an expression gives, with stand-ins for what is not constant."""
        out: list[str] = []
        index = 0
        while index < len(tokens):
            kind, token = tokens[index]
            index += 1
            if kind in ("string", "quote") or (kind == "tick" and token[0] == "`"):
                out.append(self.string(token))
            elif kind == "name":
                called = tokens[index : index + 1] == [("other", "(")]
                if called and depth < _DEEPEST:
                    inner, index = _inside(tokens, index)
                    if out and token == "format":
                        # A method of the text before it, as in Lua and Java.
                        out = [self._formatted("".join(out), inner, depth + 1)]
                        continue
                    out.append(self._called(token, inner, depth + 1, "".join(out)))
                elif (known := self.named(token)) is not None:
                    out.append(known)
                elif token in LISTING:
                    out.append("*")
                elif PART.split(token)[-1] in THROUGH or PART.split(token)[-1] in JOIN:
                    # Without brackets: `File.expand_path "~/x"`.
                    continue
                elif token not in SILENT:
                    out.append(HOLE)
            elif kind == "number" or (token in "-*" and not out):
                out.append(token)
            elif token in "([{" and not out:
                continue
        return expand_home("".join(out), self.scope)

    def _called(self, name: str, inner: list[Token], depth: int, before: str) -> str:
        last = PART.split(name)[-1]
        if last in LISTING:
            return "*"
        parts = [self.value(part, depth) for part in _split(inner, 0, lines=False) if part]
        if last in FORMATS and parts and not before:
            return formatted(parts[0], parts[1:])
        if last in JOIN and parts:
            return posixpath.join(*([before] if before else []), *parts)
        if last in THROUGH and parts:
            return expand_home(parts[0], self.scope)
        if last in ("unwrap", "toString", "to_s", "expanduser", "clone", "toPath", "toFile"):
            return ""
        return HOLE if not before else ""

    def _formatted(self, form: str, inner: list[Token], depth: int) -> str:
        given = [self.value(part, depth) for part in _split(inner, 0, lines=False) if part]
        return formatted(form, given)

    def receiver(self, index: int) -> str:
        """What a method is called on: `new File("x").delete()`, `f.delete()` after `f = …`."""
        tokens = self.tokens
        owner = PART.split(tokens[index][1])
        if len(owner) > 1:
            return self.named(".".join(owner[:-1])) or HOLE
        if index < 2 or self.budget < 0 or tokens[index - 1][1] not in (".", "->", "?"):
            return HOLE
        at = index - 2
        if tokens[at][1] == ")":
            nested = 0
            while at >= max(0, index - _LONGEST_ARGUMENT):
                self.budget -= 1
                nested += (tokens[at][1] == ")") - (tokens[at][1] == "(")
                if not nested:
                    break
                at -= 1
            at -= 1
        return self.value(tokens[max(at, 0) : index - 1])

    def string(self, token: str) -> str:
        """The text of a string token."""
        if token[0] == "'":
            plain = token[1:-1].replace("\\'", "'").replace("\\\\", "\\")
            return plain.replace(HOME_MARK, self.scope.home)
        if token[0] == '"' and self.language in _TICKS_ALONE:
            return unescape(token[1:-1]).replace(HOME_MARK, self.scope.home)
        if token[0] in '"`':
            return self.fill(unescape(token[1:-1]))
        return self.fill(re.sub(r"^(?:q[qw]?|%[wqQ])", "", token)[1:-1])

    def fill(self, text: str) -> str:
        """A text with what it interpolates."""
        for opening in ("#{", "${"):
            text = text.replace(f"{opening}'{HOME_MARK}'}}", HOME_MARK)
        text = text.replace(f"'{HOME_MARK}'", HOME_MARK)
        if self.language in _BARE_NAMES_ARE_TEXT:
            text = _BRACKETS_ALONE.sub(self._interpolated, text)
        elif self.language not in _NO_INTERPOLATION:
            text = _INTERPOLATED.sub(self._interpolated, text)
        return text.replace(HOME_MARK, self.scope.home)

    def _interpolated(self, found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2) or ""
        known = self.named(name)
        known = self.named("$" + name) if known is None else known
        return HOLE if known is None else known


def formatted(form: str, values: list[str]) -> str:
    """A text whose places are filled with values in turn, and stand-ins where there are none."""
    given = iter(values)
    return _PLACE.sub(lambda found: "%" if found.group() == "%%" else next(given, HOLE), form)


def _inside(tokens: list[Token], index: int) -> tuple[list[Token], int]:
    """The tokens between the bracket at this position and its partner, and where that is."""
    nested, start = 0, index + 1
    while index < len(tokens):
        kind, token = tokens[index]
        if kind == "other":
            if token in _OPENING:
                nested += 1
            elif token in _CLOSING:
                nested -= 1
                if not nested:
                    return tokens[start:index], index + 1
        index += 1
    return tokens[start:], index


def _split(tokens: list[Token], index: int, *, lines: bool) -> list[list[Token]]:
    """The tokens of each argument, up to the bracket or statement end that closes them all."""
    parts: list[list[Token]] = [[]]
    nested, start = 0, index
    while index < len(tokens) and index - start < _LONGEST_ARGUMENT:
        kind, token = tokens[index]
        index += 1
        if kind == "line":
            if lines and not nested and parts[-1]:
                break
            continue
        if kind == "other":
            if token in _OPENING:
                nested += 1
            elif token in _CLOSING:
                if not nested:
                    break
                nested -= 1
            elif token == ";" and not nested and lines:
                break
            elif token in ";," and not nested:
                parts.append([])
                continue
        elif lines and not nested and kind == "name" and token in _ENDS:
            break
        parts[-1].append((kind, token))
    return parts

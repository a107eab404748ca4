"""Inline Perl, Ruby, JavaScript, PHP, Lua and other languages: a telling name that is called asks.

There is no grammar here. The source is read as tokens; a call is a name from the table below, with
its arguments as far as they are constant. Names in strings, patterns and comments are no calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.code.sql as sql
from hermes.safety.shell.code.service_calls import (
    LISTS_PROCESSES,
    SERVICE_VERBS,
    deletes_all,
    is_near,
    request_rule,
    service_rule,
)
from hermes.safety.shell.command import literal, run_words
from hermes.safety.shell.delete_targets import kind_of_delete
from hermes.safety.shell.path_classes import is_credential, is_startup, targets
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import HOLE, expand_home, names
from hermes.safety.shell.words import unescape

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope
    from hermes.safety.shell.words import Word

Token = tuple[str, str]

# Functions by the last part of their name; the same effect has much the same names everywhere.
_FUNCTIONS = {
    "tree": "rmtree remove_tree rm_rf rm_r rmdirSync remove_dir remove_entry remove_entry_secure "
    "rimraf rimrafSync emptyDirSync emptyDir removeSync RemoveAll remove_dir_all remove_all "
    "deleteRecursively deleteDirectory deleteDir deleteTree removeDir forceDelete cleanDirectory "
    "delete_directory",
    "one": "unlink unlinkSync delete remove safe_unlink rm rmSync rm_f removeFile del deleteSync "
    "deleteIfExists remove_file Remove deleteFile removeItem delete_file",
    "run": "system exec execSync execFile execFileSync spawn spawnSync shell_exec passthru popen "
    "proc_open execute capture2 capture2e capture3 pipeline popen3 Command pcntl_exec execve execl "
    "execlp execv execvp system2 shell cmd ProcessBuilder run CommandContext",
    "write": "writeFileSync writeFile appendFileSync appendFile file_put_contents write "
    "createWriteStream writeTextFile binwrite WriteFile writeString FileWriter PrintWriter "
    "FileOutputStream outputFileSync outputFile writeText appendText Create create",
    "target": "rename renameSync copyFile copyFileSync mv cp symlink symlinkSync ln_s copy move "
    "cp_r Rename Symlink moveSync copySync",
    "open": "open fopen OpenFile openSync gzopen",
    "read": "readFileSync readFile file_get_contents readfile fpassthru show_source "
    "createReadStream lines read slurp readlines readTextFile binread ReadFile read_to_string "
    "readAllBytes readAllLines readString readLines require include include_once require_once "
    "source dofile loadfile",
    "truncate": "truncate truncateSync ftruncate Truncate set_len",
    "chmod": "chmod chmodSync Chmod fchmod lchmod chmod_R set_permissions from_mode",
    "named": "array_map array_walk call_user_func call_user_func_array public_send send method",
    "sql": "query do raw prepare executeUpdate Exec execute_sql $executeRawUnsafe $executeRaw "
    "execute_batch QueryRow dbExecute dbSendQuery dbSendStatement statement unprepared",
    "kill": "kill posix_kill Kill pskill",
}
_ACTIONS = {name: action for action, text in _FUNCTIONS.items() for name in text.split()}
_FS = ("os", "File", "FileUtils", "fs", "fse", "fsp", "Deno", "file", "Files", "promises")
# Common names count with one of these in front of the dot alone; the empty one is a plain call.
_OWNERS = {
    "delete": ("File", "Files", "Storage", "Pathname"),
    "remove": _FS,
    "rm": ("FileUtils", "fs", "fsp", "promises", "File", ""),
    "Remove": ("os",),
    "del": ("",),
    "execute": ("os",),
    "Command": ("Deno", "exec"),
    "CommandContext": ("exec",),
    "pipeline": ("Open3",),
    "cmd": ("System", "os"),
    "shell": ("System", ""),
    "run": ("Process", ""),
    "write": ("File", "fs", "IO", "Files", "Deno", "Bun", "file"),
    "Create": _FS,
    "create": _FS,
    "truncate": ("", *_FS),
    "source": ("",),
    "require": ("",),
}
_NEVER_RUN = names(
    "re regex RegExp pattern query db client conn connection cursor knex pool stmt database sql"
)
_EVALUATES = names(
    "eval instance_eval class_eval module_eval instance_exec Function runInThisContext "
    "runInNewContext runInContext compileFunction loadstring load eval_string evaluate eval_file "
    "create_function include_string compile_string ScriptEngine execScript dostring include "
    "require import"
)
_CONNECTS = names(
    "fsockopen TCPSocket Socket connect socket createConnection create_connection Dial TcpStream "
    "gen_tcp stream_socket_client pfsockopen socketConnection"
)
_LISTENS = names("createServer TCPServer ServerSocket TcpListener stream_socket_server")
_JOINS = names("join joinpath resolve file_path")
_PASSES = names(
    "expand_path realpath abspath absolute_path new Path Pathname File URI get of PathBuf from "
    "normalize toString to_s path expand String Paths tilde my our local const let var await val "
    "final return c vec require"
)
_LISTING = names("glob Dir readdirSync files children readdir globSync entries")
_SHELL_TICKS = names("perl ruby php julia crystal")
_TAGS = frozenset(("$", "$.sync", "execa", "Bun.$", "$sync"))
_BARE_NAMES = names("perl php julia groovy kotlin")
_STATEMENT = re.compile(r"\s*(?:drop|delete|truncate|update|alter)\s+(?![-./])", re.I)
_SET_ID = re.compile(r"\A0?o?[2467][0-7]{3}\Z|S_IS[UG]ID|^[ugoa]*[+=][rwxt]*s")
_WRITE_MODE = re.compile(r"[rbt]*[wax+][rwabxt+]*\Z|.*O_(?:WRONLY|RDWR|CREATE|TRUNC|APPEND)")

_HOME = re.compile(
    r"\$ENV\{\s*['\"]?HOME['\"]?\s*\}|ENV\[['\"]HOME['\"]\]|ENV\.fetch\(['\"]HOME['\"]\)|"
    r"(?:require\(['\"](?:node:)?os['\"]\)|\bos)\.homedir\(\)|process\.env(?:\.HOME\b|\[['\"]HOME['\"]\])|"
    r"Dir\.home\b|os\.UserHomeDir\(\)|System\.user_home!?(?:\(\))?|Pathname\.home|\bhomedir\(\)|"
    r"(?:os\.|Sys\.|System\.)?[gG]et_?[eE]nv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]|"
    r"System\.getProperty\(['\"]user\.home['\"]\)|env::var\(['\"]HOME['\"]\)(?:\.unwrap\(\))?|"
    r"(?:path\.expand|File\.expand_path)\(['\"]~['\"]\)|Deno\.env\.get\(['\"]HOME['\"]\)"
)
_TOKEN = re.compile(
    rf"[ \t]*(?:(?P<home>{_HOME.pattern})"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/|(?<![\w$@%&])\#(?![{!])[^\n]*)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|"
    r"\bq[qw]?(?:\{[^}]*\}|\([^)]*\)|/[^/]*/)|%[wqQ](?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]))"
    r"|(?P<tick>`(?:[^`\\]|\\.)*`|(?:\bqx|%x)(?:\{[^}]*\}|\([^)]*\)|/[^/]*/|\[[^\]]*\]|![^!]*!))"
    # A pattern, not a division: nothing that has a value stands before it.
    r"|(?P<pattern>(?<![\w)\]$@%&.>])(?:m|qr)?/(?![/*\s])(?:[^/\\\n]|\\.)+/[gimsxou]*(?![\w/])"
    r"|(?<![\w$@%&.>-])(?:s|tr|y)/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gimsxor]*(?![\w/])"
    r"|%r\{[^}]*\}|(?<![\w$@%&.>])(?:m|qr)\{[^}]*\}[gimsxo]*)"
    r"|(?P<name>[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*[!?]?(?![=\w])"
    r"(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*!?)*"
    r"|[$@%&]?[A-Za-z_\ue000\ue001][\w\ue000\ue001]*(?:(?:::|\.|->|\?\.)[A-Za-z_]\w*)*)"
    r"|(?P<number>\d[\w.]*)|(?P<line>\n)|(?P<other>\S))",
    re.S,
)
_LUA_COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|--\[\[.*?\]\]|--[^\n]*", re.S)
# A module is called by the name it is required by: `require("fs").rmSync`.
_REQUIRED = re.compile(
    r"\brequire\(\s*['\"](?:node:)?(?:[\w-]+/)*([A-Za-z][\w-]*)['\"]\s*\)(?=\s*[.(])"
)
_PART = re.compile(r"::|\?\.|\.|->")
_FILLED = re.compile(r"[#$]\{([^}]*)\}")
_FILLED_NAME = re.compile(r"[$@](\w+)(?:->)?(?:\{[^}]*\}|\[[^\]]*\])?")
_ENDS = names("if unless for foreach while or and do")
_LONGEST_CALL = 200
_STEPS_OF_A_SOURCE = 4
_MOST_CALLS = 400
_MOST_TOKENS = 40_000


def judge_script(text: str, command: Command, judge: Judge, language: str = "") -> None:
    """Report the effects of a piece of script code."""
    if judge.step(_STEPS_OF_A_SOURCE):
        _Script(text, command, judge, language or command.name).read()


class _Script:
    def __init__(self, text: str, command: Command, judge: Judge, language: str) -> None:
        if "require" in text:
            text = _REQUIRED.sub(lambda match: match[1].replace("-", "_"), text)
        self.text = text
        if language in ("lua", "luajit"):
            text = _LUA_COMMENT.sub(lambda match: match[1] or "", text)
        self.command = command
        self.judge = judge
        self.scope: Scope = command.scope
        self.language = language
        self.tokens: list[Token] = [
            (kind, match[kind])
            for match in _TOKEN.finditer(text)
            if (kind := match.lastgroup or "other") != "comment"
        ]
        self.constants: dict[str, list[Token] | None] = {}
        # Tokens that may still be evaluated; hostile constants would multiply without end.
        self.budget = _MOST_TOKENS

    def read(self) -> None:
        calls: list[tuple[int, str, str]] = []
        called: set[str] = set()
        for index, (kind, token) in enumerate(self.tokens):
            if kind == "tick":
                tag = self.tokens[index - 1][1] if index else ""
                if self.language in _SHELL_TICKS or tag in _TAGS:
                    self._shell(self._filled(token.lstrip("qx%")[1:-1]))
            elif kind == "name":
                parts = _PART.split(token)
                called.update(parts)
                last = parts[-1].rstrip("!")
                owner = parts[-2] if len(parts) > 1 else ""
                if last in ("sync", "native", "default") and _ACTIONS.get(owner) == "tree":
                    last, owner = owner, ""
                if last in _ACTIONS or last.startswith(SERVICE_VERBS):
                    calls.append((index, owner, last))
            elif token == "=" and index and self.tokens[index - 1][0] == "name":
                name = self.tokens[index - 1][1]
                if self.tokens[index + 1 : index + 2] in ([("other", "=")], [("other", ">")]):
                    continue
                # A name that is set twice is no constant.
                again = name in self.constants
                self.constants[name] = None if again else self._until_end(index + 1)
        self._whole(called)
        if len(calls) > _MOST_CALLS:
            self._blame("text.too-complex")
        for index, owner, last in calls[:_MOST_CALLS]:
            self._call(index, owner, last)
        if self.budget < 0:
            self._blame("text.too-complex")

    def _call(self, index: int, owner: str, last: str) -> None:
        parts = self._arguments(index + 1)
        if last.startswith(SERVICE_VERBS):
            plain = ", ".join("".join(token for _, token in part) for part in parts)
            rule = service_rule(last, plain, self.text)
            if rule:
                self._blame(rule)
        action = _ACTIONS.get(last, "")
        if last in _OWNERS and owner not in _OWNERS[last]:
            action = "sql" if last in ("execute", "run") else ""
        if action:
            _EFFECTS[action](self, parts, owner, last)

    def _whole(self, called: set[str]) -> None:
        """Report effects that show in all the names and texts of the source."""
        text, blame = self.text, self._blame
        connects = bool(called & _CONNECTS)
        runs = {name for name in called if _ACTIONS.get(name) == "run"} - {"run", "shell", "cmd"}
        if connects and (runs or "Command::new" in text or "/sh" in text or "bash" in text):
            blame("network.reverse-shell")
        if ("fork" in text or "spawn" in text) and _FORKS.search(text):
            blame("process.fork-bomb")
        unread = bool(_FETCHES.search(text) or _DECODES.search(text))
        evaluates = called & (_EVALUATES if self.language == "lua" else _EVALUATES - _INCLUDES)
        if (evaluates and (connects or unread)) or (unread and runs and _PIPED.search(text)):
            blame("remote-code.pipe")
        if called & _INCLUDES and _INCLUDED.search(text):
            blame("remote-code.pipe")
        serves = called & _LISTENS and not ("createServer" in called and "listen" not in called)
        if serves and (not _LOOPBACK.search(text) or _ALL_ADDRESSES.search(text)):
            blame("network.listener")
        if _WHOLE_ENVIRONMENT.search(text) and _SENDS.search(text) and not is_near("", text):
            blame("secrets.sent")
        rule = "database.empty" if deletes_all(text) else request_rule(text)
        if rule:
            blame(rule)
        if _KILLS.search(text) and LISTS_PROCESSES.search(text):
            blame("process.kill-by-name")
        if _PUTS.search(text) and any(map(self._is_startup, self.tokens)):
            blame("persist.startup-file")

    def _is_startup(self, token: Token) -> bool:
        if token[0] != "string" or "." not in token[1]:
            return False
        paths = [self.scope.absolute(self._value([token]))]
        if _HOME.search(self.text):
            paths.append(f"{self.scope.home}/{token[1][1:-1].strip('/')}")
        return any(is_startup(path, self.scope) for path in paths)

    # Values

    def _until_end(self, index: int) -> list[Token]:
        end = index
        while end < len(self.tokens) and end - index < _LONGEST_CALL:
            kind, token = self.tokens[end]
            if kind == "line" or token in (";", "}"):
                break
            end += 1
        return self.tokens[index:end]

    def _arguments(self, index: int) -> list[list[Token]]:
        """The tokens of each argument; the items of a list count as arguments."""
        tokens = self.tokens
        bare = tokens[index : index + 1] != [("other", "(")]
        start = index if bare else index + 1
        parts: list[list[Token]] = [[]]
        nested = braces = 0
        for kind, token in tokens[start : start + _LONGEST_CALL]:
            if kind == "other":
                braces += (token == "{") - (token == "}")
                nested += (token == "(") - (token == ")")
                if nested < 0 or braces < 0 or (token == ";" and bare):
                    break
                if token in "[]{}":
                    continue
                if token == "," and not nested:
                    parts.append([])
                    continue
            elif bare and not nested and (kind == "line" or token in _ENDS):
                break
            parts[-1].append((kind, token))
        return [part for part in parts if part]

    def _value(self, tokens: list[Token], depth: int = 0) -> str:
        """The text of an expression, with stand-ins for its unknown parts."""
        out: list[str] = []
        self.budget -= len(tokens)
        if self.budget < 0:
            return HOLE
        joins = any(kind == "name" and _PART.split(token)[-1] in _JOINS for kind, token in tokens)
        for kind, token in tokens:
            last = _PART.split(token)[-1] if kind == "name" else ""
            if kind == "home":
                out.append(self.scope.home)
            elif kind == "string" or kind == "tick":
                out.append(self._string(token))
            elif kind == "number" or (token == "-" and not out):
                out.append(token)
            elif token == ",":
                out.append("/" if joins else HOLE)
            elif last in _LISTING:
                out.append("*")
            elif last and last not in _JOINS and last not in _PASSES:
                constant = self.constants.get(token)
                known = constant is not None and depth < 4
                out.append(self._value(constant or [], depth + 1) if known else HOLE)
        return expand_home("".join(out), self.scope)

    def _string(self, token: str) -> str:
        if token[0] == "'":
            return token[1:-1].replace("\\'", "'").replace("\\\\", "\\")
        if token[0] in "q%":
            return self._filled(token.lstrip("qwQ%")[1:-1])
        return self._filled(unescape(token[1:-1]))

    def _filled(self, text: str) -> str:
        """A text with its interpolated constants."""
        text = _HOME.sub(lambda _: self.scope.home, text)
        text = text.replace("#{" + self.scope.home + "}", self.scope.home)
        text = text.replace("${" + self.scope.home + "}", self.scope.home)
        text = _FILLED.sub(self._named, text)
        return _FILLED_NAME.sub(self._named, text) if self.language in _BARE_NAMES else text

    def _named(self, match: re.Match[str]) -> str:
        constant = self.constants.get(match[1]) or self.constants.get("$" + match[1])
        return HOLE if constant is None else self._value(constant, 2)

    # Effects

    def _blame(self, rule: str) -> None:
        self.judge.blame(rule, self.command)

    def _words(self, parts: list[list[Token]]) -> list[Word]:
        return [literal(text, self.command) for part in parts if (text := self._value(part))]

    def _shell(self, text: str) -> None:
        self.judge.run_text(text, self.command.origin.vague(), self.scope.copy())

    def tree(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        self._delete(parts or [[("other", "?")]], recursive=True)

    def one(self, parts: list[list[Token]], owner: str, last: str) -> None:
        if last in ("rm", "remove") and not owner and self.language in ("rscript", "r"):
            return
        recursive = any("recursive" in token for part in parts for _, token in part)
        self._delete(parts, recursive=recursive)

    def _delete(self, parts: list[list[Token]], *, recursive: bool) -> None:
        words = [
            literal(self._value(part) or HOLE, self.command)
            for part in parts[:8]
            if not any(token in (":", "=>", ">") or token == "recursive" for _, token in part)
        ]
        for word in words:
            word.glob = "*" in word.text
        rule = kind_of_delete(
            words or [literal(HOLE, self.command)], self.scope, recursive=recursive
        )
        if rule:
            self._blame(rule)
        for word in words:
            judge_write(word, self.command.text, self.scope, self.judge)

    def run(self, parts: list[list[Token]], owner: str, last: str) -> None:
        parts = [part[2:] if part[:1] == [("name", "args")] else part for part in parts]
        words = self._words([part for part in parts if part[1:2] != [("other", ":")]])
        if not words or owner in _NEVER_RUN:
            return
        plain = "".join(token for part in parts for _, token in part)
        if _FETCHES.search(plain) or _DECODES.search(plain):
            self._blame("remote-code.pipe")
        first = words[0].text
        if _STATEMENT.match(first):
            sql.judge_statements(first, self.command, self.judge)
        elif len(words) > 1 and " " not in first:
            run_words(words, self.command, self.judge, scope=self.scope.copy())
        elif first != HOLE or last not in ("exec", "run", "shell", "cmd"):
            self._shell(first)

    def write(self, parts: list[list[Token]], _owner: str, last: str) -> None:
        for word in self._words(parts[:1]):
            judge_write(word, self.command.text, self.scope, self.judge)
        blank = len(parts) == 2 and parts[1] in ([("string", "''")], [("string", '""')])
        opened = len(parts) == 1 and last in _OPENS and not _FILLS.search(self.text)
        if blank or opened:
            self._blame("delete.emptied")

    def target(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        self.write(parts[1:2], "", "")

    def open(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        """Perl's `open(F, ">file")` and `open(F, "cmd|")`, and the usual `open(path, mode)`."""
        texts = [self._value(part).strip() for part in parts]
        for index, text in enumerate(texts):
            if text[:1] == ">" and text[:2] not in (">>", ">&") and not _FILLS.search(self.text):
                self._blame("delete.emptied")
            if text[:1] == ">" or text[:2] in ("+>", "+<"):
                path = text.lstrip("+<> ") or "".join(texts[index + 1 : index + 2])
                judge_write(literal(path, self.command), self.command.text, self.scope, self.judge)
            elif text in ("-|", "|-"):
                self._shell(" ".join(texts[index + 1 :]))
            elif text[:1] == "|" or (text[-1:] == "|" and len(text) > 1):
                self._shell(text.strip("|-"))
        mode = "".join(token for part in parts[1:2] for _, token in part).strip("'\"")
        if _WRITE_MODE.match(mode):
            self.write(parts[:1], "", "create" if "w" in mode else "")
        else:
            self.read_file(parts[-1:] if self.language == "perl" else parts[:1], "", "")

    def read_file(self, parts: list[list[Token]], _owner: str, last: str) -> None:
        for word in self._words(parts[:1]):
            if last in _INCLUDES and word.text.startswith(("http:", "https:")):
                self._blame("remote-code.pipe")
            if any(is_credential(path, self.scope) for path in targets(word, self.scope)):
                self._blame("secrets.read")

    def truncate(self, parts: list[list[Token]], owner: str, last: str) -> None:
        if len(parts) > 1 or (owner and parts) or (last != "truncate" and parts):
            self.write(parts[:1], "", "")
            self._blame("delete.truncated")

    def chmod(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        plain = ["".join(token for _, token in part).strip("'\"") for part in parts]
        if any(_SET_ID.search(text) for text in plain):
            self._blame("permissions.set-uid")
        for part, text in zip(parts, plain, strict=True):
            if not text[:1].isdigit():
                self.write([part], "", "")

    def named(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        action = _ACTIONS.get(self._value(parts[0]) if parts else "")
        if action == "one":
            self._blame("delete.each")
        elif action == "run":
            self.run(parts[1:] or [[("name", "?")]], "", "system")

    def sql(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        for word in self._words(parts[:3]):
            if _STATEMENT.match(word.text):
                sql.judge_statements(word.text, self.command, self.judge)

    def kill(self, parts: list[list[Token]], _owner: str, _last: str) -> None:
        texts = [self._value(part) for part in parts]
        if any(text.startswith("-1") for text in texts[:2]):
            self._blame("process.kill-all")
        elif "0" not in texts and LISTS_PROCESSES.search(self.text):
            self._blame("process.kill-by-name")


_EFFECTS = {name: getattr(_Script, "read_file" if name == "read" else name) for name in _FUNCTIONS}
_INCLUDES = names("include require import load source")
_FETCHES = re.compile(
    r"file_get_contents\(\s*[\"']https?:|curl_exec|URI\.(?:open|parse)|URI\([^)]*\)\.(?:open|read)|"
    r"open-uri|Net::HTTP|Faraday|HTTParty|RestClient|\bLWP\b|HTTP::Tiny|\bfetch\(|axios|\bgot\(|"
    r"https?[\"']?\)?\.(?:get|request)\(|socket\.http|\bhttpc\b|HTTPoison|\bReq\.get|\bdownload\(|"
    r"new URL\(|openStream|HttpClient|readLines\(\s*[\"']https?:|url\(\s*[\"']https?:|"
    r"\b(?:curl|wget)\b[^\n]{0,200}https?://|\bopen\(\s*[\"']https?:|\bget\(?\s*[\"']https?:"
)
_DECODES = re.compile(
    r"base64_?decode|decode_?base64|decode64|b64decode|urlsafe_decode64|\batob\(|"
    r"[\"'](?:base64|hex)[\"']|gzinflate|gzuncompress|str_rot13|\bunpack1?\b|\bpack\s*\(|"
    r"hex2bin|inflateSync|gunzipSync|fromCharCode|pack\([\"'](?:m|H)|Base64\.(?:url_)?decode|"
    r"getDecoder|base64enc|convert_uudecode|from_?hex"
)
_PIPED = re.compile(r"[\"'](?:/bin/)?(?:ba|z)?sh[\"' ]|\|\s*(?:ba)?sh\b")
_INCLUDED = re.compile(
    r"\b(?:include|require|import|load)(?:_once)?[\s(]*(?:await\s+)?[\"'](?:https?:)?//|"
    r"\b(?:include|require|import|load)(?:_once)?[\s(]+(?:io\.popen|download|URI|url)\b"
)
_WHOLE_ENVIRONMENT = re.compile(
    r"(?<!keys\()(?<!env:)(?<!env: )(?<!env:\{\.\.\.)(?<!env: \{ \.\.\.)(?<!env: \{\.\.\.)"
    r"(?:process|Bun|import\.meta)\.env(?![\w.\[])|\bENV\.(?:to_h|to_a|to_hash|inspect|map|each|"
    r"collect|sort|entries|as_json|to_json)|(?<!keys )%ENV\b(?!\{)|\bgetenv\(\s*\)|"
    r"\$_(?:ENV|SERVER)\b(?!\[)|Deno\.env\.toObject|os\.Environ\(\)|Sys\.getenv\(\s*\)|"
    r"System\.get_?env\(\s*\)|env::vars"
)
_SENDS = re.compile(
    r"\b(?:fetch|axios|got|request|https?|undici|superagent|ky|Net::HTTP|HTTParty|Faraday|"
    r"RestClient|LWP|HTTP::\w+|curl_\w+|Guzzle\w*|file_get_contents|fsockopen|connect|"
    r"createConnection|TCPSocket|XMLHttpRequest|sendBeacon|HttpClient|httpc|HTTPoison|Req|"
    r"post_form|reqwest|httr|POST|WebSocket|dgram|curl|wget)\b"
)
_FORKS = re.compile(
    r"\bfork\s+while\s+fork|while\s*\(?\s*(?:1|true)\s*\)?\s*(?:\{|do)?[^}]{0,120}\bfork\b|"
    r"fork\s+while\s+1|\bloop\s*(?:\{|do)\s*fork|"
    r"(?:while\s*\(\s*(?:1|true)\s*\)|for\s*\(\s*;\s*;\s*\))[^}]{0,120}\b(?:fork|spawn)\w*\("
)
_LOOPBACK = re.compile(r"[\"'](?:127\.\d+\.\d+\.\d+|localhost|\[?::1\]?)(?::\d+)?[\"']")
_ALL_ADDRESSES = re.compile(r"[\"'](?:0\.0\.0\.0|\[?::\]?|\*)(?::\d+)?[\"']")
_KILLS = re.compile(r"['\"`](?:/bin/)?kill(?: -(?!0)\w+)* ?(?:['\"$#]|\$\{|#\{)")
# A source without any of these leaves each file empty that it opens for writing.
_FILLS = re.compile(
    r"\b(?:[fF]?[pP]rint\w*|write\w*|puts|say|syswrite|putc|fputs|fwrite|cat|sink|dump\w*|pipe|"
    r"copy\w*)\b|<<|\.end\([\"']"
)
_OPENS = names("create Create createWriteStream FileWriter PrintWriter FileOutputStream")
_PUTS = re.compile(
    r"[wW]rite|[aA]ppend|\bsink\(|\bcat\([^)]*\bfile\s*=|\bdump|\bdput|put_contents|>>|<<\s*['\"]|"
    r"[fF]printf|spurt|['\"](?:w|a|wb|ab|wt|at|w\+|a\+)['\"]"
)

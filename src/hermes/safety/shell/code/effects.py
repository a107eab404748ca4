"""Effects of calls in inline code of any language: a call by a telling name asks.

The front ends (`scripts.py` for tokens, `python.py` for syntax trees) say which names are called
with which arguments, as far as those are constant; here is what such a call does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import hermes.safety.shell.code.sql as sql
from hermes.safety.shell.command import literal, run_words
from hermes.safety.shell.file_flow import fetch
from hermes.safety.shell.path_classes import is_credential, is_startup, kind_of_delete, targets
from hermes.safety.shell.path_rules import judge_write
from hermes.safety.shell.scope import HOLE, names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope, Stream

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
    "kill": "kill posix_kill Kill pskill killpg terminate send_signal",
}
ACTIONS = {name: action for action, text in _FUNCTIONS.items() for name in text.split()}
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
_COMMON_WORDS = names("exec run shell cmd call")
_SERVES = names("accept serve_forever recvfrom handle_request")
_FREE_PORT = re.compile(r"\(\s*[\"'][\w.]*[\"']\s*,\s*0\s*\)")
_LISTENS = names(
    "HTTPServer ThreadingHTTPServer ThreadingTCPServer UDPServer createServer TCPServer "
    "ServerSocket TcpListener stream_socket_server"
)
_STATEMENT = re.compile(r"\s*(?:drop|delete|truncate|update|alter)\s+(?![-./])", re.I)
_SET_ID = re.compile(r"\A0?o?[2467][0-7]{3}\Z|S_IS[UG]ID|^[ugoa]*[+=][rwxt]*s")
_WRITE_MODE = re.compile(r"[rbt]*[wax+][rwabxt+]*\Z|.*O_(?:WRONLY|RDWR|CREATE|TRUNC|APPEND)")


class Call:
    """A call in some source: the name, its arguments as values and as written."""

    __slots__ = ("args", "name", "owner", "stdin", "written")

    def __init__(
        self,
        owner: str,
        name: str,
        args: list[str],
        written: list[str],
        stdin: Stream | None = None,
    ) -> None:
        self.owner = owner
        self.name = name
        # Values, with a stand-in for each part that is not constant.
        self.args = args
        # The source of every argument, of named ones too.
        self.written = written
        # The input of a program that it starts.
        self.stdin = stdin


class Effects:
    """Reports the effects of one source."""

    def __init__(self, text: str, command: Command, judge: Judge, language: str) -> None:
        self.text = text
        self.command = command
        self.judge = judge
        self.language = language
        self.scope: Scope = command.scope

    def blame(self, rule: str) -> None:
        """Report a rule that the source meets."""
        self.judge.blame(rule, self.command)

    def shell(self, text: str, stdin: Stream | None = None) -> None:
        """Judge a text that the source gives to a shell."""
        self.judge.run_text(text, self.command.origin.vague(), self.scope.copy(), stdin)

    def call(self, call: Call) -> None:
        """Report what a call does."""
        if call.name.startswith(SERVICE_VERBS):
            rule = service_rule(call.name, ", ".join(call.written), self.text)
            if rule and not self.scope.script:
                self.blame(rule)
        action = ACTIONS.get(call.name, "")
        if call.name in _OWNERS and call.owner not in _OWNERS[call.name]:
            action = "sql" if call.name in ("execute", "run") else ""
        if action:
            self.act(action, call)

    def act(self, action: str, call: Call) -> None:
        """Report the effect of a call whose action is known."""
        getattr(self, f"_{action}")(call)

    def whole(self, called: set[str], strings: Iterable[str]) -> None:
        """Report effects that show in all the names and strings of the source."""
        text, blame = self.text, self.blame
        connects = bool(called & _CONNECTS)
        runs = {name for name in called if ACTIONS.get(name) == "run"} - (_COMMON_WORDS - {"exec"})
        if connects and (runs or "Command::new" in text or "/sh" in text or "bash" in text):
            blame("network.reverse-shell")
        if _FORKS_NAMED.search(text) and _FORKS.search(text):
            blame("process.fork-bomb")
        evaluates = called & (_EVALUATES if self.language == "lua" else _EVALUATES - _INCLUDES)
        unread = (evaluates or runs) and (_FETCHES.search(text) or _DECODES.search(text))
        if (evaluates and (connects or unread)) or (unread and runs and _PIPED.search(text)):
            blame("remote-code.pipe")
        if called & _INCLUDES and _INCLUDED.search(text):
            blame("remote-code.pipe")
        if _PUTS.search(text) and any(is_startup(path, self.scope) for path in strings):
            blame("persist.startup-file")
        if "kill" in text and _KILLS.search(text) and LISTS_PROCESSES.search(text):
            blame("process.kill-by-name")
        if self.scope.script:
            # Programs that people keep serve, send and delete by design.
            return
        serves = called & _LISTENS and not ("createServer" in called and "listen" not in called)
        if "bind" in called and "socket" in text:
            serves = serves or called & _SERVES or not _FREE_PORT.search(text)
        if serves and (not _LOOPBACK.search(text) or _ALL_ADDRESSES.search(text)):
            blame("network.listener")
        sends = _ENVIRONMENT.search(text) and _WHOLE_ENVIRONMENT.search(text)
        if sends and _SENDS.search(text) and not is_near("", text):
            blame("secrets.sent")
        if deletes_all(text):
            blame("database.empty")
        elif rule := request_rule(text):
            blame(rule)

    def _tree(self, call: Call) -> None:
        self._delete(call.args, recursive=True)

    def _one(self, call: Call) -> None:
        if call.name in ("rm", "remove") and not call.owner and self.language in ("rscript", "r"):
            return
        recursive = any("recursive" in text for text in call.written)
        self._delete(call.args, recursive=recursive)

    def _delete(self, paths: list[str], *, recursive: bool) -> None:
        words = [literal(path or HOLE, self.command) for path in paths[:8]]
        for word in words:
            word.glob = "*" in word.text
        rule = kind_of_delete(
            words or [literal(HOLE, self.command)], self.scope, recursive=recursive
        )
        if rule:
            self.blame(rule)
        for word in words:
            judge_write(word, self.command.text, self.scope, self.judge)

    def _run(self, call: Call) -> None:
        words = [literal(text, self.command) for text in call.args if text]
        if not words or call.owner in _NEVER_RUN:
            return
        written = " ".join(call.written)
        if _FETCHES.search(written) or _DECODES.search(written):
            self.blame("remote-code.pipe")
        first = words[0].text
        if _STATEMENT.match(first):
            sql.judge_statements(first, self.command, self.judge)
        elif len(words) > 1 and " " not in first:
            run_words(words, self.command, self.judge, scope=self.scope.copy(), stdin=call.stdin)
        elif first != HOLE or call.name not in _COMMON_WORDS or self.language == "python":
            self.shell(first, call.stdin)

    def _write(self, call: Call) -> None:
        self._writes(call.args[0] if call.args else "")
        blank = len(call.args) == 2 and call.written[1] in ("''", '""', "b''", 'b""')
        opened = len(call.args) == 1 and call.name in _OPENS and not _FILLS.search(self.text)
        if blank or opened:
            self.blame("delete.emptied")

    def _writes(self, path: str) -> None:
        if path:
            # Code may put anything into it: what runs it later runs text that nobody has read.
            fetch(path, self.scope)
            judge_write(literal(path, self.command), self.command.text, self.scope, self.judge)

    def _target(self, call: Call) -> None:
        moved = call.name.lower().startswith(("rename", "move", "mv", "replace"))
        for path in call.args[:2] if moved else call.args[1:2]:
            self._writes(path)

    def _open(self, call: Call) -> None:
        """Perl's `open(F, ">file")` and `open(F, "cmd|")`, and the usual `open(path, mode)`."""
        texts = [text.strip() for text in call.args]
        for index, text in enumerate(texts if self.language == "perl" else ()):
            if text[:1] == ">" and text[:2] not in (">>", ">&") and not _FILLS.search(self.text):
                self.blame("delete.emptied")
            if text[:1] == ">" or text[:2] in ("+>", "+<"):
                self._writes(text.lstrip("+<> ") or "".join(texts[index + 1 : index + 2]))
            elif text in ("-|", "|-"):
                self.shell(" ".join(texts[index + 1 :]))
            elif text[:1] == "|" or (text[-1:] == "|" and len(text) > 1):
                self.shell(text.strip("|-"))
        mode = "".join(call.written[1:2]).strip("'\"")
        if _WRITE_MODE.match(mode):
            self._writes("".join(texts[:1]))
            if "w" in mode and not _FILLS.search(self.text):
                self.blame("delete.emptied")
        else:
            self._reads(texts[-1:] if self.language == "perl" else texts[:1])

    def _read(self, call: Call) -> None:
        if (
            call.name in _INCLUDES
            and call.args[:1]
            and call.args[0].startswith(("http:", "https:"))
        ):
            self.blame("remote-code.pipe")
        self._reads(call.args[:1])

    def _reads(self, paths: list[str]) -> None:
        for path in paths:
            word = literal(path, self.command)
            if any(is_credential(place, self.scope) for place in targets(word, self.scope)):
                self.blame("secrets.read")

    def _truncate(self, call: Call) -> None:
        if len(call.args) > 1 or (call.owner and call.args) or (call.name != "truncate"):
            self._writes(call.args[0] if call.args else "")
            self.blame("delete.truncated")

    def _chmod(self, call: Call) -> None:
        if any(_SET_ID.search(text.strip("'\"")) for text in call.written):
            self.blame("permissions.set-uid")
        for path in call.args:
            if not path[:1].isdigit():
                self._writes(path)

    def _named(self, call: Call) -> None:
        action = ACTIONS.get(call.args[0] if call.args else "")
        if action == "one":
            self.blame("delete.each")
        elif action == "run":
            self._run(Call("", "system", call.args[1:] or [HOLE], call.written))

    def _sql(self, call: Call) -> None:
        for text in call.args[:3]:
            if _STATEMENT.match(text):
                sql.judge_statements(text, self.command, self.judge)

    def _kill(self, call: Call) -> None:
        if any(text.startswith("-1") for text in call.args[:2]):
            self.blame("process.kill-all")
        elif "0" not in call.args and LISTS_PROCESSES.search(self.text):
            self.blame("process.kill-by-name")


_INCLUDES = names("include require import load source")
_FETCHES = re.compile(
    r"urlopen\(|urlretrieve\(|\b(?:requests|httpx|aiohttp|urllib3)\.\w+\(|http\.client|\.recv\(|"
    r"file_get_contents\(\s*[\"']https?:|curl_exec|URI\.(?:open|parse)|URI\([^)]*\)\.(?:open|read)|"
    r"open-uri|Net::HTTP|Faraday|HTTParty|RestClient|\bLWP\b|HTTP::Tiny|\bfetch\(|axios|\bgot\(|"
    r"https?[\"']?\)?\.(?:get|request)\(|socket\.http|\bhttpc\b|HTTPoison|\bReq\.get|\bdownload\(|"
    r"new URL\(|openStream|HttpClient|readLines\(\s*[\"']https?:|url\(\s*[\"']https?:|"
    r"\b(?:curl|wget)\b[^\n]{0,200}https?://|\bopen\(\s*[\"']https?:|\bget\(?\s*[\"']https?:"
)
_DECODES = re.compile(
    r"unhexlify|decompress\(|marshal\.loads|pickle\.loads|codecs\.decode|rot_?13|"
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
_ENVIRONMENT = re.compile(r"env|ENV|_SERVER|Environ")
_WHOLE_ENVIRONMENT = re.compile(
    r"(?<!keys\()(?<!env:)(?<!env: )(?<!env:\{\.\.\.)(?<!env: \{ \.\.\.)(?<!env: \{\.\.\.)"
    r"(?:process|Bun|import\.meta)\.env(?![\w.\[])|\bENV\.(?:to_h|to_a|to_hash|inspect|map|each|"
    r"collect|sort|entries|as_json|to_json)|(?<!keys )%ENV\b(?!\{)|\bgetenv\(\s*\)|"
    r"\$_(?:ENV|SERVER)\b(?!\[)|Deno\.env\.toObject|os\.Environ\(\)|Sys\.getenv\(\s*\)|"
    r"System\.get_?env\(\s*\)|env::vars|"
    r"(?<!env=)(?<!env=\{\*\*)\bos\.environb?\b(?!\s*(?:\[|\.(?:get|setdefault|pop|update|copy)\b))"
)
_SENDS = re.compile(
    r"\b(?:fetch|axios|got|request|https?|undici|superagent|ky|Net::HTTP|HTTParty|Faraday|"
    r"RestClient|LWP|HTTP::\w+|curl_\w+|Guzzle\w*|file_get_contents|fsockopen|connect|"
    r"createConnection|TCPSocket|XMLHttpRequest|sendBeacon|HttpClient|httpc|HTTPoison|Req|"
    r"urlopen|create_connection|requests|httpx|aiohttp|urllib3|sendall|sendto|smtplib|post_form|reqwest|httr|POST|WebSocket|dgram|curl|wget)\b"
)
_FORKS_NAMED = re.compile(r"fork|spawn|__file__|sys\.argv\[0\]")
_FORKS = re.compile(
    r"\b(?:while|for)\b[^\n]{0,80}(?::|\n)\s*[^\n]{0,80}(?:os\.fork\(|(?:Popen|system|spawnl|popen)\([^\n]*"
    r"(?:__file__|sys\.argv\[0\]))|\[[^\n]{0,40}fork\(\) for\b|"
    r"\bfork\s+while\s+fork|while\s*\(?\s*(?:1|true)\s*\)?\s*(?:\{|do)?[^}]{0,120}\bfork\b|"
    r"fork\s+while\s+1|\bloop\s*(?:\{|do)\s*fork|"
    r"(?:while\s*\(\s*(?:1|true)\s*\)|for\s*\(\s*;\s*;\s*\))[^}]{0,120}\b(?:fork|spawn)\w*\("
)
_LOOPBACK = re.compile(r"[\"'](?:127\.\d+\.\d+\.\d+|localhost|\[?::1\]?)(?::\d+)?[\"']")
_ALL_ADDRESSES = re.compile(r"[\"'](?:0\.0\.0\.0|\[?::\]?|\*)(?::\d+)?[\"']")
_KILLS = re.compile(r"['\"`](?:/bin/)?kill(?: -(?!0)\w+)* ?(?:['\"$#]|\$\{|#\{)")
# A source without any of these leaves each file empty that it opens for writing.
_FILLS = re.compile(
    r"\b(?:[fF]?[pP]rint\w*|write\w*+(?!\(\s*(?:''|\"\")\))|puts|say|syswrite|putc|fputs|"
    r"fwrite|cat|sink|dump\w*|pipe|copy\w*)(?!\w)|<<|\.end\([\"']"
)
_OPENS = names("create Create createWriteStream FileWriter PrintWriter FileOutputStream")
_PUTS = re.compile(
    r"[wW]rite|[aA]ppend|\bsink\(|\bcat\([^)]*\bfile\s*=|\bdump|\bdput|put_contents|>>|<<\s*['\"]|"
    r"[fF]printf|spurt|['\"](?:w|a|wb|ab|wt|at|w\+|a\+)['\"]"
)

# Names that mean only this, whatever they are called on.
_EMPTIES = names(
    "delete_all destroy_all flushall flushAll flushdb flushDb flushDB FlushAll FlushDB "
    "truncate_all_tables deleteAllInBatch"
)
_DROPS = names(
    "drop_all dropDatabase drop_database dropCollection drop_collection drop_table dropTable "
    "dropAllTables drop_all_tables dropSchema drop_schema dropAll dropIndexes drop_index"
)
# With a filter they take what fits it, without one everything.
_FILTERED = names("deleteMany delete_many DeleteMany remove_many destroy")
_NO_FILTER = re.compile(
    r"\A\s*(?:\{\s*\}|\{\s*where\s*:\s*\{\s*\}.*|bson\.M\s*\{\s*\}|\{.*truncate\s*:\s*true.*)?\s*\Z",
    re.S,
)
_SDK = re.compile(
    r"\b(?:boto3|botocore|aioboto3|aws-sdk|@aws-sdk|Aws::|google\.cloud|@google-cloud|googleapiclient|"
    r"azure\.|@azure|Azure::|kubernetes|@kubernetes|openstack|digitalocean|hcloud|linode_api|"
    r"cloudflare|stripe|Stripe|github|octokit|Octokit|gitlab|Gitlab|jenkins|heroku|docker|dockerode|"
    r"pulumi|oci|minio|Minio|elasticsearch|Elasticsearch|opensearch|qdrant|pinecone|weaviate|"
    r"chromadb|supabase|firebase|firebase-admin|twilio|sendgrid|jira|confluent_kafka|kafka|pika|"
    r"consul|hvac|etcd3|huggingface_hub|mlflow|wandb|ftplib|paramiko|shopify|slack_sdk|notion)\b"
)
_SDK_CALL = re.compile(
    r"(?:batch_)?(?:delete|terminate|destroy|purge|deregister|drop|empty|deprovision|revoke|prune)"
    r"(?:_[a-z_]+|[A-Z]\w*)?\Z"
)
_SDK_CLASS = re.compile(r"(?:Delete|Terminate|Destroy|Purge|Deregister)\w+(?:Command|Request)\Z")
_DELETE_WORD = re.compile(r"(?i:delete)")
_HTTP_DELETE = re.compile(
    r"(?:\bmethod|METHOD|CUSTOMREQUEST|type|verb)[\"']?\s*(?:=>|[:=,])\s*[\"']delete[\"']"
    r"|(?:request|Request|NewRequest|open|\$http|ajax)\(\s*[\"']DELETE[\"']|HTTP::Delete\b|"
    r"HttpDelete\b|HttpRequest.*\.DELETE\(\)|HTTP::Request->new\(\s*DELETE",
    re.I,
)
_CLIENT = re.compile(
    r"\b(?:fetch|axios|got|request|requests|httpx|aiohttp|urllib|urllib3|Net::HTTP|HTTParty|Faraday|"
    r"RestClient|LWP|HTTP::|curl_|Guzzle\w*|XMLHttpRequest|https?(?!:)|undici|superagent|ky|reqwest|"
    r"HttpClient|OkHttp\w*|HTTPoison|Req|httr)\b"
)
_URL = re.compile(r"https?://([^/\s'\"`?]+)")
_ALL_OBJECTS = re.compile(
    r"\.objects(?:\(\)|\.(?:all|filter)\(\))?\s*\.(?:_raw_)?delete\(|"
    r"\.query(?:\(\s*\w*\s*\))?\s*\.delete\(|(?:::|->)query\(\)\s*->delete\(\)|"
    r"\btable\([^)]*\)\s*(?:->|\.)delete\(\)|::all\(\)\s*->(?:each->|map->)?delete\(|"
    r"::whereNotNull\([^)]*\)->delete\(\)|\.all\.each\s*(?:\(&:|\{[^}]*\.)(?:destroy|delete)|"
    r"\.objects(?:\.all\(\))?\s*\.update\(|\.delete\(\)\s*\.from\(|\.all\(\)\.delete\("
)
_PATH_ARGUMENT = re.compile(r"\s*[\"'`]/\w[\w/.$#{}-]*[\"'`]")
_LOCALHOST = re.compile(r"localhost|127\.0\.0\.1")
_NEAR = re.compile(
    r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|[\w-]+\.(?:local|localhost|test))(?::\d+)?\Z"
)
# Processes as another program or the kernel lists them, from which names are picked.
LISTS_PROCESSES = re.compile(
    r"process_iter|\bpids\(\)|\bpgrep\b|\bpidof\b|\btasklist\b|ps-list|find-process|ps-node|"
    r"(?<![\w$.-])ps(?:['\",\s]+-?[aAeuxfocwdl]+\b|['\",\s]+-C)|/proc/(?:\*|\[0-9\])|"
    r"['\"]/proc/?['\"]|Sys::ProcTable|Proc::ProcessTable|getProcessesByName|allProcesses"
)
# A call that destroys begins with one of these; all others need no closer look.
SERVICE_VERBS = (
    "delete", "drop", "flush", "terminate", "destroy", "purge", "deregister", "batch_delete",
    "truncate", "Delete", "Terminate", "Destroy", "Purge", "Deregister", "Flush", "remove", "prune",
)  # fmt: skip
_MAP_LIKE = re.compile(r"\A[\s&|]*[:'\"]?[\w.-]*['\"]?\s*\Z")


def service_rule(name: str, arguments: str, source: str) -> str | None:
    """The rule that a call by this name meets.

    Args:
        name: The last part of the function's name.
        arguments: Its arguments as written.
        source: The whole source, which says what it works with.
    """
    if name in _EMPTIES:
        return None if _is_filtered(name, arguments, source) else "database.empty"
    if name in _DROPS:
        return "database.drop"
    if name == "truncate":
        # A model or table without a size to cut it to.
        return "database.empty" if not arguments.strip() else None
    if name in _FILTERED:
        return "database.empty" if _NO_FILTER.match(arguments) and _stores(name, source) else None
    if _SDK_CLASS.match(name):
        return "service.destroyed"
    if name == "delete":
        if _URL.search(arguments) or (_asks_others(source)):
            return None if is_near(arguments, source) else "service.deleted-by-request"
        if _PATH_ARGUMENT.match(arguments) and _CLIENT.search(source):
            return None if _LOCALHOST.search(source) else "service.deleted-by-request"
        if deletes_all(source):
            return "database.empty"
    if name == "remove":
        whole = not arguments.strip() or arguments.startswith(("force", "v="))
        return "service.destroyed" if whole and _uses_service(source) else None
    if _SDK_CALL.match(name) and _uses_service(source):
        # Of a mapping one entry is taken by its key; a resource is a call without any.
        single = name == "delete" and bool(arguments.strip()) and _MAP_LIKE.match(arguments)
        return None if single and "(" not in arguments else "service.destroyed"
    return None


def _is_filtered(name: str, arguments: str, source: str) -> bool:
    """Whether every call by this name takes what a condition has chosen."""
    if "where" in arguments:
        return True
    called = len(re.findall(rf"\b{name}\b", source))
    return called == len(re.findall(rf"\bwhere\([^)]+\)(?:\.\w+(?:\([^)]*\))?)*\.{name}\b", source))


def request_rule(source: str) -> str | None:
    """The rule that a request spelled out in a source meets: `fetch(url, {method: "DELETE"})`."""
    if (
        not _DELETE_WORD.search(source)
        or not _HTTP_DELETE.search(source)
        or not _CLIENT.search(source)
    ):
        return None
    return None if is_near("", source) else "service.deleted-by-request"


def _stores(name: str, source: str) -> bool:
    return name != "destroy" or "truncate" in source or "where" in source


def is_near(arguments: str, source: str) -> bool:
    """Whether every address that a call or its source names is of this machine."""
    hosts = tuple(_URL.findall(arguments)) or _hosts(source)
    return bool(hosts) and all(_NEAR.match(host) for host in hosts)


# What a source is about, asked for each of its calls.


@lru_cache(maxsize=4)
def _uses_service(source: str) -> bool:
    return _SDK.search(source) is not None


@lru_cache(maxsize=4)
def _asks_others(source: str) -> bool:
    return _CLIENT.search(source) is not None and _URL.search(source) is not None


@lru_cache(maxsize=4)
def deletes_all(source: str) -> bool:
    """Whether a source deletes or changes each of the things that an application keeps."""
    words = ("delete", "update", "destroy")
    return any(word in source for word in words) and _ALL_OBJECTS.search(source) is not None


@lru_cache(maxsize=4)
def _hosts(source: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_URL.findall(source)))

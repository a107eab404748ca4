"""Effects of a script as a whole: origin of text, services, files left empty."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import hermes.safety.shell.code.script_values as known
from hermes.safety.shell.code.python_values import expand_home
from hermes.safety.shell.code.script_values import HOME_MARK, PART
from hermes.safety.shell.code.service_calls import (
    LISTS_PROCESSES,
    deletes_all,
    is_near,
    request_rule,
)
from hermes.safety.shell.path_classes import is_startup
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.code.script_values import Token
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Scope


_CLOSES = names("close closeSync fclose end Close finish closeQuietly")
_STARTS = frozenset((";", "\n", "{", "}"))
_ENDS = frozenset((";", "\n", "}", ""))
_REACHES = frozenset((".", ":", "->", "?.", "?"))
_DECLARES = names("my our local const let var val auto final mut new await")
_CALLED_BACK = names("function sub proc lambda func fn >")
_STANDARD = names("STDOUT STDERR stdout stderr")
_LONGEST_CALL = 40


def stays_empty(tokens: list[Token], index: int, handle: str = "") -> bool:
    """Whether nothing is written to what the call at this position opens.

    Args:
        handle: The name that an argument of the call gives to it, as in Perl.
    """
    end = _end(tokens, index)
    if handle:
        return _only_closed(tokens, handle, index, end)
    if any(token in _CALLED_BACK for _, token in tokens[index:end]):
        return False
    after = [token for _, token in tokens[end : end + 2]] + ["", ""]
    if after[:2] == ["{", "}"]:
        return True
    if after[0] in _REACHES and _closes(tokens, end + 1):
        return True
    start = _start(tokens, index)
    before = [token for _, token in tokens[max(start - 2, 0) : start]]
    if before[-1:] == ["("] and len(before) == 2 and _last(before[0]) in _CLOSES:
        return True
    if before[-1:] == ["="]:
        at = start - 2
        if tokens[at][1] == ":":
            # Go: `f, err := os.Create(…)`.
            at -= 3 if tokens[at - 2][1] == "," else 1
        return at >= 0 and _only_closed(tokens, tokens[at][1], at, end)
    return (not before or before[-1] in _STARTS) and after[0] in _ENDS


def _last(token: str) -> str:
    return PART.split(token)[-1]


def _closes(tokens: list[Token], at: int) -> bool:
    """Whether the method named here closes a file, with nothing to write at the last moment."""
    after = [token for _, token in tokens[at : at + 3]] + [""]
    return _last(after[0]) in _CLOSES and (after[1] != "(" or after[2:3] == [")"])


def _end(tokens: list[Token], index: int) -> int:
    """The position after the arguments of a call."""
    nested = 0
    bare = tokens[index + 1 : index + 2] != [("other", "(")]
    for at in range(index + 1, min(index + _LONGEST_CALL, len(tokens))):
        token = tokens[at][1]
        if bare and not nested and (token in _ENDS or token in ("or", "||")):
            return at
        nested += (token in "([{") - (token in ")]}")
        if not bare and not nested:
            return at + 1
    return len(tokens)


def _start(tokens: list[Token], index: int) -> int:
    """Where an expression begins: before `require("fs")` in front of the dot, before `new`."""
    while index > 1 and tokens[index - 1][1] in (".", "->") and tokens[index - 2][1] == ")":
        index -= 2
        while index > 0 and tokens[index][1] != "(":
            index -= 1
        index -= 1
    while index > 0 and tokens[index - 1][1] in _DECLARES:
        index -= 1
    return index


def _only_closed(tokens: list[Token], name: str, start: int, end: int) -> bool:
    """Whether a name is used nowhere but in the call that sets it and where it is closed."""
    bare = name.lstrip("$")
    if not bare.isidentifier() or bare in _STANDARD:
        # A part of something else, or what everything is printed to.
        return False
    for at, (kind, token) in enumerate(tokens):
        if start <= at < end:
            continue
        if kind in ("string", "quote", "tick"):
            if bare in token and ("$" in token or "#{" in token):
                return False
            continue
        parts = PART.split(token.lstrip("$"))
        if kind != "name" or parts[0] != bare:
            continue
        if len(parts) > 1 and _closes(tokens, at):
            continue
        if tokens[at + 1 : at + 2] == [("other", "=")]:
            # Set anew, and so no use of what it was.
            continue
        before = [text for _, text in tokens[max(at - 2, 0) : at]]
        if any(_last(text) in _CLOSES for text in before) and before[-1] not in _ENDS:
            continue
        if tokens[at + 1 : at + 2] and tokens[at + 1][1] in _REACHES and _closes(tokens, at + 2):
            continue
        return False
    return True


# They run the text that they are given, whatever the language.
EVALUATES = names(
    "eval instance_eval class_eval module_eval instance_exec Function runInThisContext "
    "runInNewContext runInContext compileFunction loadstring eval_string eval_file evaluate "
    "create_function assert include_string eval_quoted compile_string ScriptEngine "
    "execScript dostring setTimeout"
)
# They run the file or address that they are given.
INCLUDES = names("include include_once require require_once source import dofile loadfile load")
_FETCHES = re.compile(
    r"file_get_contents\(\s*[\"']https?:|curl_exec|URI\.(?:open|parse)|URI\([^)]*\)\.(?:open|read)|"
    r"open-uri|Net::HTTP|Faraday|HTTParty|RestClient|\bLWP\b|HTTP::Tiny|\bfetch\(|axios|\bgot\(|"
    r"https?[\"']\)?\.(?:get|request)\(|socket\.http|\bhttpc\b|HTTPoison|\bReq\.get|\bdownload\(|"
    r"new URL\(|openStream|HttpClient|readLines\(\s*[\"']https?:|url\(\s*[\"']https?:|"
    r"\b(?:curl|wget)\b[^\n]*https?://|\bopen\(\s*[\"']https?:|\bget\(?\s*[\"']https?:"
)
_DECODES = re.compile(
    r"base64_?decode|decode_?base64|decode64|b64decode|urlsafe_decode64|\batob\(|"
    r"[\"'](?:base64|hex)[\"']|gzinflate|gzuncompress|str_rot13|\bunpack1?\b|\bpack\s*\(|"
    r"hex2bin|inflateSync|gunzipSync|fromCharCode|pack\([\"'](?:m|H)|Base64\.(?:url_)?decode|"
    r"getDecoder|base64enc|convert_uudecode|from_?hex"
)
_WHOLE_ENVIRONMENT = re.compile(
    r"(?<!keys\()(?<!env:)(?<!env: )(?<!env:\{\.\.\.)(?<!env: \{ \.\.\.)(?<!env: \{\.\.\.)"
    r"(?:process|Bun|import\.meta)\.env(?![\w.\[])|\bENV\.(?:to_h|to_a|to_hash|inspect|map|each|"
    r"collect|sort|entries|as_json|to_json)|(?<!keys )%ENV\b(?!\{)|\bgetenv\(\s*\)|"
    r"\$_(?:ENV|SERVER)\b(?!\[)|Deno\.env\.toObject|os\.Environ\(\)|Sys\.getenv\(\s*\)|"
    r"System\.get_?env\(\s*\)|env::vars"
)
_SENDS = re.compile(
    r"\b(?:fetch|axios|got|request|https?|undici|superagent|ky|Net::HTTP|HTTParty|Faraday|RestClient|"
    r"LWP|HTTP::\w+|curl_\w+|Guzzle\w*|file_get_contents|fsockopen|connect|createConnection|"
    r"TCPSocket|XMLHttpRequest|sendBeacon|HttpClient|httpc|HTTPoison|Req|post_form|reqwest|httr|"
    r"POST|WebSocket|dgram|curl|wget)\b"
)
_DEEPEST = 5
_PLAIN = frozenset(("string", "number", "other", "line"))


class CodeOrigins:
    """What the expressions of one source are made from."""

    def __init__(self, text: str, statements: Callable[[str], list[Token]]) -> None:
        self._text = text
        self._statements = statements
        self._any: bool | None = None

    @property
    def any(self) -> bool:
        """Whether anything in the source is fetched or decoded; most have nothing to follow."""
        if self._any is None:
            self._any = bool(_FETCHES.search(self._text) or _DECODES.search(self._text))
        return self._any

    def unread(self, tokens: list[Token], depth: int = 0) -> bool:
        """Whether some of these tokens stand for text that was fetched or decoded."""
        if depth > _DEEPEST or all(kind in _PLAIN for kind, _ in tokens) or not self.any:
            return False
        plain = "".join(
            token if kind == "other" or token[:1] == "." else " " + token for kind, token in tokens
        ).strip()
        plain = plain.replace("( ", "(").replace(". ", ".")
        if _FETCHES.search(plain) or _DECODES.search(plain):
            return True
        return any(
            self.unread(statement, depth + 1)
            for kind, token in tokens
            if kind == "name"
            for root in {token, PART.split(token)[0]}
            if (statement := self._statements(root))
        )


def sends_environment(text: str) -> bool:
    """Whether a source hands all variables of the environment to another machine."""
    found = _WHOLE_ENVIRONMENT.search(text)
    return found is not None and _SENDS.search(text) is not None and not is_near("", text)


# Of those that run text, the ones whose name hardly anything else has.
_EVALUATES = EVALUATES - {"setTimeout", "assert", "evaluate"}
_FORKS = re.compile(
    r"\bfork\s+while\s+fork|while\s*\(?\s*(?:1|true)\s*\)?\s*(?:\{|do)?[^}]*\bfork\b|"
    r"fork\s+while\s+1|\bloop\s*(?:\{|do)\s*fork|"
    r"(?:while\s*\(\s*(?:1|true)\s*\)|for\s*\(\s*;\s*;\s*\))[^}]*\b(?:fork|spawn)\w*\("
)
_LOOPBACK = re.compile(r"[\"'](?:127\.\d+\.\d+\.\d+|localhost|\[?::1\]?)(?::\d+)?[\"']")
_ALL_ADDRESSES = re.compile(r"[\"'](?:0\.0\.0\.0|\[?::\]?|\*)(?::\d+)?[\"']")
# A shell is told to kill what the code puts behind it.
_KILLS = re.compile(r"['\"`](?:/bin/)?kill(?: -(?!0)\w+)* ?(?:['\"$#]|\$\{|#\{)")
_TAKES = re.compile(r"[rR]ead|[eE]xist|\bstat|slurp|[lL]ines|copy|[gG]et_?[cC]ontents")
# A hidden file below home, and a word for writing.
_DOTTED = re.compile(r"['\"](?:~|/home/\w+|/Users/\w+|/root)/\.")
_PUTS = re.compile(
    r"[wW]rite|[aA]ppend|\bsink\(|\bcat\([^)]*\bfile\s*=|\bdump|\bdput|put_contents|>>|<<\s*['\"]|"
    r"[fF]printf|spurt|['\"](?:w|a|wb|ab|wt|at|w\+|a\+)['\"]"
)


def judge_whole(
    text: str,
    tokens: list[Token],
    names: set[str],
    origins: CodeOrigins,
    command: Command,
    judge: Judge,
) -> None:
    """Report what a source does by everything that it names: `names` are the parts of all names."""

    def blame(rule: str) -> None:
        judge.blame(rule, command)

    connects = bool(names & known.CONNECT)
    runs = names & known.RUN - {"$", "run", "shell", "cmd"} or (
        "sh" in text and names & {"pipe", "dup2", "open", "fdopen", "exec", "reopen"}
    )
    if connects and (runs or "Command::new" in text):
        blame("network.reverse-shell")
    if ("fork" in text or "spawn" in text) and _FORKS.search(text):
        blame("process.fork-bomb")
    if names & _EVALUATES and (connects or origins.any):
        blame("remote-code.pipe")
    if names & known.LISTEN and _listens(text, names):
        blame("network.listener")
    lowered = text.lower()
    if "env" in lowered and sends_environment(text):
        blame("secrets.sent")
    if ("delete" in lowered or "destroy" in lowered) and deletes_all(text):
        blame("database.empty")
    rule = request_rule(text) if "delete" in lowered else None
    if rule:
        blame(rule)
    if "kill" in text and _KILLS.search(text) and LISTS_PROCESSES.search(text):
        blame("process.kill-by-name")
    writes = ("/." in text or HOME_MARK in text) and _PUTS.search(text)
    if writes and _starts_later(text, tokens, command.scope):
        blame("persist.startup-file")


def _starts_later(text: str, tokens: list[Token], scope: Scope) -> bool:
    """Whether a start-up file is named in a source that writes, however it does that."""
    below = f"{scope.home}/" if HOME_MARK in text and not _TAKES.search(text) else ""
    if not below and not _DOTTED.search(text):
        return False
    for kind, token in tokens:
        if kind == "string" and "." in token:
            path = expand_home(token[1:-1], scope)
            if below and path.startswith((".", "/.")):
                path = below + path.lstrip("/")
            if is_startup(scope.absolute(path), scope):
                return True
    return False


def _listens(text: str, names: set[str]) -> bool:
    """Whether others can reach what is listened on; a server alone listens to nobody."""
    if "createServer" in names and "listen" not in names:
        return False
    return not _LOOPBACK.search(text) or _ALL_ADDRESSES.search(text) is not None

"""Where text comes from in the code of many languages: the network, a decoder, the environment.

The counterpart of `python_origins` for sources that are read as tokens: a name is followed to the
statement that sets it, and what is called there says the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.code_tokens import PART
from hermes.safety.shell.interpreters.service_calls import is_near
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.interpreters.code_tokens import Token

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

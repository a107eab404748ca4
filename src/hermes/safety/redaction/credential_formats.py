"""Known credential formats (API keys, tokens, PEM blocks) as data, and the detector that reads the
table.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.redaction.prefilter import RUN, RUN_CLASS, is_name, run_end
from hermes.safety.redaction.values import is_placeholder, looks_random

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.prefilter import Span


_LONGEST = 65_536


@cache
def _border() -> re.Pattern[str]:
    return re.compile(
        r"-{4,5} ?(?P<which>BEGIN|END) (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{0,5}"
    )


@cache
def _body() -> re.Pattern[str]:
    # Key text, headers such as `Proc-Type: 4,ENCRYPTED`, line ends plain or escaped, quote marks
    # and prefixes of each line: a block is often shown as a string literal or a diff.
    return re.compile(
        r"(?:[A-Za-z0-9+/=]{16,}|(?:\\{1,4}[nrt]|[\s\"'+>|,#*])+(?:[A-Za-z0-9+/=]{1,76}(?=\\|[\s\"']|\Z|-))?"
        r"|[A-Z][A-Za-z\-]+: [^\n\\\"]{0,80}|(?<=-)[A-Za-z0-9+/=]+|\.{3}|…)+"
    )


@cache
def _no_key() -> re.Pattern[str]:
    return re.compile(r"[A-Z][A-Za-z\-]+: [^\n\\\"]{0,80}|\W|\\[nrt]")


def find_keys(text: str) -> Iterator[Span]:
    """The body of each private key block, also of a block that is cut off."""
    at = 0
    while True:
        border = _border().search(text, at)
        if border is None:
            return
        at = border.end()
        if border["which"] == "END":
            # The beginning is gone: whatever key text stands before goes too.
            tail = _tail_start(text, border.start())
            if tail < border.start():
                yield tail, border.start(), "private-key"
            continue
        following = text.find("-----BEGIN", at, at + _LONGEST)
        end = text.find("-----END", at, following if following >= 0 else at + _LONGEST)
        if end >= 0:
            if re.search(r"[A-Za-z0-9+/=]{16}", text[at:end]):
                yield at, end, "private-key"
            closing = _border().match(text, end)
            at = closing.end() if closing else end
            continue
        body = _body().match(text, at, at + _LONGEST)
        # Headers alone are no key.
        if body and len(_no_key().sub("", body.group())) >= 16:
            stripped = body.group().rstrip("\"' \r\n\t,+")
            while stripped.endswith(("\\n", "\\r")):
                stripped = stripped[:-2]
            yield at, at + len(stripped.rstrip("\\")), "private-key"
            at += len(stripped)


def _tail_start(text: str, end: int) -> int:
    """Where the key text begins that leads up to `end`, line by line."""
    best = end
    line = _last_line()
    while True:
        match = line.search(text[max(0, best - 200) : best])
        if match is None or not match.group():
            return best
        best -= len(match.group())


@cache
def _last_line() -> re.Pattern[str]:
    # The last line of a block may be short; the others are not.
    return re.compile(
        r"(?:(?<![A-Za-z0-9+/=])|(?<=\\n))(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{2,16}={1,2}|=[A-Za-z0-9+/]{4})"
        r"(?:\s|\\[nr]|[>|+])*\Z"
    )


_ALNUM = "[A-Za-z0-9]"
_BODY = r"[A-Za-z0-9_\-]"

# Names of makers that put their own mark in front of `_` or `-` and a random rest.
_MARKS = (
    "hf|npm|pypi|whsec|r8|gsk|xai|pplx|tvly|fc|ntn|nfp|sbp|shpat|shpca|shppa|shpss|glsa|glc|sntrys|sntryu"
    "|rubygems|PMAK|NRAK|NRAA|HRKU|nvapi|jina|fm1|fm2|csk|phx|phc|pul|duffel|figd|figo|rpa|pa|voyage"
    "|vcp|vck|vca|vci|dckr|oy2|lin|sq0atp|sq0csp|sq0idp|secret|token|key|apikey|api|tok|pat|sk|rk"
    "|ops|hvs|hvb|CLOJARS|EZAK|EZTK|CFPAT|LTAI|ATTA|ATOA|rzp|sb|xkeysib|xsmtpsib|p8e|bkua|okta|sgp"
)

_REST = rf"(?P<rest>{_BODY}{{16,}}(?:\.{_BODY}{{8,}})?)"

# kind -> shape. Shapes start with plain letters where they can: the engine rules those out fast.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("aws-key", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,28}"),
    ("google-key", rf"AIza{_BODY}{{30,}}"),
    ("google-token", rf"ya29\.{_BODY}[A-Za-z0-9_\-.]{{15,}}"),
    ("google-token", rf"1//0{_BODY}{{20,}}"),
    ("google-secret", rf"GOCSPX-{_BODY}{{16,}}"),
    ("github-token", rf"gh[pousr]_{_ALNUM}{{16,}}"),
    ("github-token", r"github_pat_[A-Za-z0-9_]{16,}"),
    (
        "gitlab-token",
        rf"gl(?:pat|[dr]t|cbt|ptt|ft|imt|agent|soat|oas|ffct)-{_BODY}{{16,}}(?:\.[a-z0-9.]+)?",
    ),
    ("gitlab-token", rf"GR1348941{_BODY}{{16,}}"),
    ("slack-token", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{14,}"),
    ("slack-token", r"xapp-\d-[A-Za-z0-9\-]{14,}"),
    ("pypi-token", rf"pypi-Ag{_BODY}{{16,}}"),
    ("sendgrid-key", rf"SG\.{_BODY}{{16,}}(?:\.{_BODY}*)?"),
    ("digitalocean-token", r"do[opr]_v1_[a-f0-9]{16,}"),
    ("databricks-token", r"d(?:api|ose|ksa)[a-f0-9]{28,}(?:-\d)?"),
    ("twilio-key", r"(?:SK|AC)[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("vault-token", rf"hv[sbr]\.{_BODY}{{20,}}"),
    ("doppler-token", r"dp\.[a-z]{2,6}\.[A-Za-z0-9]{20,}"),
    ("dynatrace-token", r"dt0[a-z]\d\d\.[A-Z0-9]{20,}(?:\.[A-Z0-9]*)?"),
    ("facebook-token", r"EAA[A-Za-z0-9]{40,}"),
    ("atlassian-token", rf"AT(?:ATT|CTT|BB)[A-Za-z0-9]{_BODY}{{20,}}(?:=[A-F0-9]{{8}})?"),
    ("airtable-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{20,}"),
    ("openai-key", r"sk-(?:proj-)?[A-Za-z0-9]{40,}"),
    ("alibaba-key", r"LTAI[A-Za-z0-9]{16,}"),
    ("tencent-key", r"AKID[A-Za-z0-9]{20,}"),
    ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    ("terraform-token", rf"atlasv1\.{_BODY}{{20,}}"),
    ("telegram-token", rf"(?:bot)?\d{{6,12}}:A{_BODY}{{30,}}"),
    ("discord-token", rf"mfa\.{_BODY}{{40,}}"),
    ("discord-token", rf"[MNO]{_BODY}{{22,28}}\.{_BODY}{{5,7}}\.{_BODY}{{26,}}"),
    ("jwt", rf"ey[JI]{_BODY}{{8,}}\.{_BODY}{{4,}}(?:\.{_BODY}*)*"),
    # A token cut off after its header still begins with one of the usual first fields.
    ("jwt", rf"eyJ(?:hbGci|0eXAi|raWQi|jdHki|lbmMi|qa3Ui|4NXQi){_BODY}{{8,}}\.?"),
    (
        "api-key",
        rf"(?:[a-z][a-z0-9]{{1,15}}[_\-]){{0,3}}?(?:(?:{_MARKS})|[a-z]{{0,12}}(?:api|pat))[_\-]{_REST}",
    ),
)


@cache
def _shapes() -> tuple[re.Pattern[str], dict[int, str]]:
    pattern = re.compile("|".join(f"({shape})" for _, shape in _SHAPES))
    # `lastindex` names the outer group, since a group that closes last counts.
    return pattern, {index + 1: kind for index, (kind, _) in enumerate(_SHAPES)}


_AZURE = r"(?:(?<![A-Za-z0-9_~.\-])|(?<=\\[nrt]))[A-Za-z0-9_~.\-]{3}\dQ~[A-Za-z0-9_~.\-]{28,}"
# A password as systems keep it: short ones are soon guessed from this.
_CRYPT = r"\$(?:1|2[abxy]|5|6|7|y|gy|argon2(?:id?|d)|scrypt)\$[./A-Za-z0-9$=,+\-]{20,}"
_DIGEST = re.compile(r"(?i:sha\d{1,3}|md5)[=:\-]\Z")
_LEFT = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."


def find_shapes(text: str, classed: str) -> Iterator[Span]:
    """Each secret in `text` that shows by its shape; `classed` is `gate.classes(text)`."""
    pattern, kinds = _shapes()
    at = classed.find(RUN_CLASS)
    while at >= 0:
        end = at + RUN
        for start in _starts(text, at) if not is_name(text, at) else ():
            match = pattern.match(text, start)
            if match and _is_secret(text, match):
                kind = kinds[match.lastindex or 1]
                end = max(end, match.end())
                yield (start - 15 if kind == "terraform-token" else start), match.end(), kind
                break
        else:
            end = run_end(classed, end)
        at = classed.find(RUN_CLASS, end)
    if "$" in text:
        for match in re.finditer(_CRYPT, text):
            yield match.start(), match.end(), "password-hash"
    if "Q~" in text:
        for match in re.finditer(_AZURE, text):
            yield match.start(), match.end(), "azure-secret"


def _starts(text: str, at: int) -> Iterator[int]:
    """The possible starts of a token with a run of word characters at `at`."""
    before = text[at - 1 : at]
    if before in (".", ":"):
        left = text[max(0, at - 48) : at - 1]
        start = at - 1 - len(left) + len(left.rstrip(_LEFT))
        yield start
        yield from _unescaped(text, start)
    elif before == "/":
        yield max(0, at - 3)
    yield at
    yield from _unescaped(text, at)
    bare = at
    while text[bare] in "-_" and bare < at + RUN - 1:
        bare += 1
    if bare > at:
        yield bare


def _unescaped(text: str, at: int) -> Iterator[int]:
    """The place behind an escape that sticks to the word at `at`: an escaped line end, `%3D`."""
    before = text[at - 1 : at]
    if before == "\\":
        yield at + (5 if text[at] == "u" else 3 if text[at] == "x" else 1)
    elif before == "%":
        yield at + 2


def _is_secret(text: str, match: re.Match[str]) -> bool:
    # `sha256=…` in front makes a digest of whatever letters come next.
    if _DIGEST.search(text[max(0, match.start() - 10) : match.start()]):
        return False
    return match["rest"] is None or _chance(match["rest"])


def _chance(rest: str) -> bool:
    """Whether the text after a vendor's prefix is random and not made of words."""
    if is_placeholder(rest) or re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", rest):
        return False
    longest = max(re.split(r"[_\-.]", rest), key=len)
    if len(longest) >= 16 and not longest.isdigit() and not longest.isalpha():
        digits = sum(map(str.isdigit, longest))
        # `route53configuration` is a word: one number in lower-case letters.
        return digits >= 6 or not longest.islower() or len(re.findall(r"\d+", longest)) > 1
    return looks_random(re.sub(r"[_\-.]", "", rest), least=20) and not rest.islower()

"""Prose of a skill: instructions to the agent, fake prerequisites, paths that lead outside."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from hermes.safety.injection import find_orders, is_quoted, one_of, taught
from hermes.safety.skills.code_blocks import CATCHERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.skills.scan import Piece

_WARNS = re.compile(
    r"(?i)\b(?:never|do(?:n't| not)|must not|should not|shouldn't|avoid|stop|refuse to"
    r"|instead of|rather than|unlike) (?:\w+ ){0,2}?(?:run|running|execut\w+|us(?:e|ing)"
    r"|do(?:ing)?"
    r"|pip(?:e|ing)|past(?:e|ing)|copy\w*|trust\w*|install\w*|allow\w*|follow\w*|put|store"
    r"|commit\w*|write|read|curl|send\w*|share|expose|hardcod\w+|this|it)\b"
    r"|❌|🚫|\bbad\b|\bwrong\b|\bdon'ts?\b|\bforbidden\b|\bprohibited\b|\bdisallowed\b"
    r"|\bblock(?:s|ed|list)?\b|\bdeny\b|\brefuse[sd]?\b|\brisky?\b"
)
_INSTRUCTS = re.compile(
    r"(?i)\b(?:install(?:ation|ing)?|prerequisites?|set ?up|getting started|quick ?start"
    r"|requirements?|before (?:you|using|we|first)|first,? (?:run|install|execute)"
    r"|run (?:the|this)|execute (?:the|this)|paste (?:this|the|it)|required|must be (?:run"
    r"|installed)|to (?:start|enable|activate|begin|initiali[sz]e))\b"
)
_RUN = re.compile(
    r"(?i)\b(?:run|runs|running|execute|install|type|paste|enter|use|invoke|start|launch|call"
    r"|via|with)\b"
)
_INLINE = re.compile(r"`([^`\n]{6,400})`")
_PIPED = re.compile(
    r"(?i)\b(?:curl|wget|fetch|iwr|irm|invoke-webrequest|invoke-restmethod|base64 -[dD]"
    r"|echo)\b[^\n`\"]{0,300}?\|\s*(?:sudo\s+)?(?:(?:ba|z|k|da)?sh|iex|python3?|node|perl"
    r"|ruby)\b(?: -\w*)*"
    r"|\b(?:ba|z)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)[^\n`]{0,200}"
)
_ARCHIVE_PASSWORD = re.compile(
    r"(?i)\b(?:zip|rar|7z|archive|extract|unpack|unzip|decompress"
    r"|download(?:ed)?)\b.{0,160}\b(?:pass(?:word|code|phrase)?|pwd|pw)\b\s*(?:is|:|=|->|→"
    r"|for|to|`|\(|\")"
    r"|\b(?:pass(?:word|code)?|pwd)\b\s*(?:is|:|=|`|\().{0,120}\b(?:zip|rar|7z|archive"
    r"|extract|unpack|unzip|the (?:file|download))\b"
    r"|\bunzip\s+-P\s*\S+|\b7z\w?\s+x\s[^\n]*-p\S+|\bunrar\s+x\s[^\n]*-p\S+"
    r"|\bpassword.protected (?:zip|archive|rar|file)\b"
)
_UNPROTECT = re.compile(
    r"(?i)\bxattr\s+-\w*[cd]\b|\bspctl\s+--(?:master|global)-disable\b|\b(?:disable|turn off"
    r"|deactivate|pause|add an exclusion (?:to|in)|whitelist (?:it )?in)\b[^.\n]{0,30}"
    r"\b(?:antivirus|anti-virus|defender|gatekeeper|firewall|smartscreen|sip"
    r"|real.?time protection|endpoint protection)\b|\bcsrutil disable\b|\bsetenforce 0\b"
)
_PROGRAM_LINK = re.compile(
    r"(?i)https?://[^\s/)>]+/[^\s)>\]\"'`]*?(?:\.(?:exe|msi|scr|bat|cmd|ps1|vbs|dmg|pkg|apk"
    r"|appimage|jar|sh|command|zip|rar|7z|tar\.gz|tgz|bin)\b)"
)
_INSISTS = re.compile(
    r"(?i)\b(?:must|required|requires|mandatory|necessary|prerequisites?|essential"
    r"|will not (?:work|function|run)|won't work|cannot (?:work|run|be used)"
    r"|does not work without|before (?:using|proceeding|you|continuing|running|first)|first\b)"
)
_EXECUTES = re.compile(
    r"(?i)\b(?:run|runs|execute|launch|open|double.click|start"
    r"|install)\b(?! (?:the )?(?:tests?|linter))"
)
_PASTES = re.compile(
    r"(?i)\b(?:copy|paste|run|execute|follow|use|install|get|download|visit|open)\b"
)
_SHORT = re.compile(
    r"(?i)https?://(?:bit\.ly|tinyurl\.com|t\.co|goo\.gl|is\.gd|cutt\.ly|rb\.gy|shorturl\.at"
    r"|rebrand\.ly)/"
)
_LINK = re.compile(r"\]\((?P<inline>[^)\s]+)|^\[[^\]]+\]:\s*(?P<named>\S+)", re.MULTILINE)
_PICTURE = re.compile(
    r"!\[[^\]]*\]\(https?://[^)\s]*(?:\{\{?|\$\{|<|%7B|\[)[^)\s]*(?:data|secret|key|token|env"
    r"|conversation|history|prompt|message|summary|user|context|content)",
    re.IGNORECASE,
)


def find_orders_in(piece: Piece) -> Iterator[tuple[int, str, str]]:
    """Each order to the reader that a paragraph gives rather than quotes: where, rule, why."""
    text = piece.text
    for order in find_orders(text):
        before = text[: order.start]
        if _OTHERS.search(before):
            continue
        around = f"{piece.context}\n{text}"
        if piece.kind == "prose" and (
            taught(f"{piece.context}\n{before[-400:]}")
            or (is_quoted(text, order.start, order.end) and _mentions(around))
        ):
            continue
        yield order.start, order.rule, order.description


# Who ignores instructions here is somebody else, or only might.
_OTHERS = re.compile(
    r"(?i)\b(?:models?|agents?|llms?|they|it|that|which|who|may|might|could|sometimes|often)\s+$"
)


@cache
def _mention() -> re.Pattern[str]:
    words = """example examples e.g. such_as for_instance like phrase phrases say says saying never
        reject rejects block blocks flag flags refuse look_for watch_for pattern patterns request
        requests test tests if_asked if_the_user prompt prompts text texts contains"""
    return re.compile(rf"\b{one_of(words)}", re.IGNORECASE)


def _mentions(text: str) -> bool:
    return _mention().search(text) is not None or taught(text)


def find_fakes(piece: Piece) -> Iterator[tuple[int, str, str]]:
    """Each thing that a paragraph wants fetched and run before anything else works."""
    text, around = piece.text, f"{piece.context}\n{piece.text}"
    if warned(piece, text):
        return
    match = _ARCHIVE_PASSWORD.search(text)
    if match and not re.search(
        r"(?i)\b(?:pdf|docx|xlsx|user'?s? password|database|encrypt)\b", around
    ):
        yield (
            match.start(),
            "prerequisite.locked-archive",
            "It wants an archive opened that scanners can't read.",
        )
    match = _UNPROTECT.search(text)
    if match:
        yield match.start(), "prerequisite.unprotect", "It wants protection switched off."
    for link in re.finditer(r"https?://[^\s)>\]\"'`]+", text):
        odd = CATCHERS.search(link[0]) or _SHORT.search(link[0])
        if (
            odd
            and not re.match(r"https?://(?:127\.|10\.|192\.168\.|0\.0\.0\.0)", link[0])
            and _PASTES.search(text)
            and (
                _INSISTS.search(around)
                or re.search(r"(?i)\b(?:terminal|command|script|shell|setup|installer)\b", text)
            )
        ):
            yield (
                link.start(),
                "prerequisite.paste",
                "It wants something run that stands on a page anyone can change.",
            )
            break
    match = _PROGRAM_LINK.search(text)
    if match and _INSISTS.search(around) and _EXECUTES.search(text) and not _well_known(match[0]):
        yield match.start(), "prerequisite.program", "It wants a program downloaded and run first."


def find_commands_in(piece: Piece) -> Iterator[tuple[int, str]]:
    """The commands that a paragraph instructs its reader to run: position and text."""
    text = piece.text
    if warned(piece, text):
        return
    for match in _INLINE.finditer(text):
        sentence = re.split(r"[.!?:](?:\s|$)|\n", text[: match.start()])[-1]
        if _RUN.search(sentence) and " " in match[1]:
            yield match.start(1), match[1]
    for match in _PIPED.finditer(text):
        if not is_quoted(text, match.start(), match.end()):
            yield match.start(), match[0]


def warned(piece: Piece, text: str) -> bool:
    """Whether the words around a danger warn of it or teach about it, and don't ask for it."""
    if _WARNS.search(text) or _WARNS.search(piece.context):
        return True
    around = f"{piece.context}\n{text}"
    return taught(around) and not _INSTRUCTS.search(around)


def find_leads_out(piece: Piece, depth: int) -> Iterator[tuple[int, str, str]]:
    """Each link that leaves the skill folder, or sends conversation content to a server.

    `depth` is the depth of the document in the skill; links to siblings of the skill or of its
    collection are allowed.
    """
    for match in _LINK.finditer(piece.text):
        target = match["inline"] or match["named"]
        if (
            target.startswith("file:")
            or climbs(target) > depth + 2
            or (climbs(target) and re.search(r"/\.(?:ssh|aws|env|git|gnupg|netrc)|/etc/", target))
            or re.match(r"(?:~|/(?:etc|root|home|Users|proc|var))/", target)
        ):
            yield match.start(), "escape.link", "It leads to files outside its own folder."
    picture = _PICTURE.search(piece.text)
    if picture and not warned(piece, piece.text):
        yield (
            picture.start(),
            "injection.exfiltrate",
            "It sends what is said along with a picture's address.",
        )


def climbs(path: str) -> int:
    """How many folders above its start a relative path leads at most."""
    depth = highest = 0
    for part in re.split(r"[\\/]|%2f", path.replace("%2e", ".").replace("%2E", ".")):
        depth += -1 if part == ".." else part not in ("", ".")
        highest = min(highest, depth)
    return -highest


def _well_known(link: str) -> bool:
    """Whether a link leads to where the makers of common programs publish them."""
    host = re.sub(r"https?://|[/:?].*", "", link).lower()
    known = """astral.sh rustup.rs bun.sh tailscale.com nodejs.org python.org golang.org go.dev
        rust-lang.org microsoft.com apple.com
        google.com googleapis.com docker.com jetbrains.com oracle.com adobe.com mozilla.org gnu.org
        apache.org kernel.org debian.org ubuntu.com brew.sh anaconda.com ffmpeg.org gyan.dev
        nvidia.com aws.amazon.com amazonaws.com hashicorp.com gradle.org eclipse.org sqlite.org
        postgresql.org mysql.com w3.org maven.org ggml.ai huggingface.co pytorch.org"""
    return any(host == one or host.endswith("." + one) for one in known.split())

"""Skill scan: every file of a skill folder, by its type; findings and the verdict."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes.core.paths import is_below
from hermes.safety.skills.code_blocks import CODE, SHELLS, find_dangers, find_disguises, find_stores
from hermes.safety.skills.concealed_text import find_hidden, find_payloads, find_unshown
from hermes.safety.skills.prose import (
    climbs,
    find_commands_in,
    find_fakes,
    find_leads_out,
    find_orders_in,
    warned,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Finding(NamedTuple):
    """One reason not to install: the file, the line (from 1), the rule, and why in a sentence."""

    file: str
    line: int
    rule: str
    description: str


class Report:
    """The findings of a scan, by file and line; any of them blocks."""

    __slots__ = ("findings",)

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted(set(findings))

    @property
    def verdict(self) -> Literal["clean", "block"]:
        """`block` where there is any reason to."""
        return "block" if self.findings else "clean"

    def __repr__(self) -> str:
        return f"<{self.verdict}: {len(self.findings)} findings>"


if TYPE_CHECKING:
    Kind = Literal["prose", "code", "comment", "front"]

_FENCE = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.\-]*)")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?P<title>.*)")
_COMMENT = re.compile(
    r"<!--(?P<html>.*?)(?:-->|\Z)|^\[[^\]\n]{1,40}\]:[ \t]*(?:#|<>)[ \t]*(?P<link>[(\"'].*)$",
    re.DOTALL | re.MULTILINE,
)
# A paragraph longer than this is read in parts, so that reading takes time in step with its length.
_LONGEST = 4_000
_OVERLAP = 500


class Piece(NamedTuple):
    """A part of a document: its kind, text, first line and the heading before it."""

    kind: Kind
    text: str
    line: int
    language: str = ""
    context: str = ""


def pieces_of(text: str) -> Iterator[Piece]:
    """The parts of a Markdown document, in order; paragraphs are pieces of their own."""
    lines = text.split("\n")
    at = 0
    if lines and lines[0].strip() == "---":
        end = next((n for n in range(1, len(lines)) if lines[n].strip() in ("---", "...")), 0)
        if end:
            yield Piece("front", "\n".join(lines[1:end]), 2)
            at = end + 1
    yield from _comments(text, at)
    yield from _body(lines, at)


def _comments(text: str, after: int) -> Iterator[Piece]:
    fenced = _fenced_lines(text)
    for match in _COMMENT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if line > after and line not in fenced:
            yield Piece("comment", match["html"] or match["link"] or "", line)


def _fenced_lines(text: str) -> set[int]:
    inside: set[int] = set()
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        match = _FENCE.match(line)
        if fence:
            inside.add(number)
            if match and match["fence"].startswith(fence) and not match["language"]:
                fence = ""
        elif match:
            fence = match["fence"]
    return inside


def _body(lines: list[str], at: int) -> Iterator[Piece]:
    headings: list[str] = []
    before: list[str] = []
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence:
            end = _fence_end(lines, at + 1, fence["fence"])
            context = "\n".join([*headings[-2:], *before[-2:]])
            body = "\n".join(lines[at + 1 : end])
            yield Piece("code", body, at + 2, fence["language"].lower(), context)
            at = end + 1
            continue
        heading = _HEADING.match(line)
        if heading:
            headings = [*headings[-3:], heading["title"]]
            before = []
            yield Piece("prose", line, at + 1)
            at += 1
            continue
        start = at
        while at < len(lines) and lines[at].strip() and not _FENCE.match(lines[at]):
            at += 1
        if at > start:
            paragraph = "\n".join(lines[start:at])
            context = "\n".join([*headings[-2:], *before[-1:]])
            yield from _parts(Piece("prose", paragraph, start + 1, context=context))
            before = [*before[-1:], paragraph[-_LONGEST:]]
        else:
            at += 1


def _parts(piece: Piece) -> Iterator[Piece]:
    """A piece, or overlapping parts of one that is longer than any paragraph."""
    step = _LONGEST - _OVERLAP
    for at in range(0, max(1, len(piece.text) - _OVERLAP), step):
        line = piece.line + piece.text.count("\n", 0, at)
        yield piece._replace(text=piece.text[at : at + _LONGEST], line=line)


def _fence_end(lines: list[str], at: int, fence: str) -> int:
    while at < len(lines):
        match = _FENCE.match(lines[at])
        if match and match["fence"].startswith(fence) and not match["language"]:
            return at
        at += 1
    return len(lines)


if TYPE_CHECKING:
    Found = Iterator[tuple[int, str, str]]

MOST_FILES = 5_000
LONGEST_TEXT = 2_000_000

_SCRIPTS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".ps1")
_DOCUMENTS = (".md", ".mdx", ".markdown", ".txt", ".rst")
_PROGRAMS = (
    b"\x7fELF",
    b"MZ",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xfe\xed\xfa",
)
_PROGRAM_NAMES = (".pyc", ".exe", ".dll", ".so", ".dylib", ".scr", ".msi", ".lnk", ".com")


def scan_skill(folder: str | os.PathLike[str]) -> Report:
    """Say whether a skill may be installed without a person looking at it first.

    `.verdict` is "clean" or "block"; `.findings` say where, by which rule, and why.
    """
    return Report(_scan(os.fspath(folder)))


def _scan(root: str) -> Iterator[Finding]:
    base = os.path.realpath(root)
    for count, path in enumerate(_paths(base)):
        name = os.path.relpath(path, base).replace(os.sep, "/")
        if count == MOST_FILES:
            yield Finding(name, 1, "folder.too-large", "There are more files than can be read.")
            return
        try:
            yield from _entry(base, path, name)
        except OSError as error:
            yield Finding(name, 1, "folder.unreadable", f"It can't be read: {error.strerror}.")


def _paths(folder: str) -> Iterator[str]:
    """Every file and every link below a folder, and each folder that can't be looked into."""
    unreadable: list[str] = []
    for place, folders, files in os.walk(folder, onerror=lambda e: unreadable.append(e.filename)):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (os.path.join(place, name) for name in sorted([*files, *links]))
    yield from unreadable


def _entry(base: str, path: str, name: str) -> Iterator[Finding]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        if not is_below(os.path.realpath(path), base):
            yield Finding(name, 1, "escape.symlink", "It is a link out of the skill's folder.")
        return
    if stat.S_ISDIR(status.st_mode):
        yield Finding(name, 1, "folder.unreadable", "It can't be looked into.")
        return
    if not stat.S_ISREG(status.st_mode):
        yield Finding(name, 1, "folder.special-file", "It is a device, a socket or a pipe.")
        return
    if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        yield Finding(name, 1, "folder.set-uid", "It would run with somebody else's rights.")
    with open(path, "rb") as file:
        data = file.read(LONGEST_TEXT + 1)
    yield from _content(name, data)


def _content(name: str, data: bytes) -> Iterator[Finding]:
    low = name.lower()
    if data.startswith(_PROGRAMS) or low.endswith(_PROGRAM_NAMES):
        yield Finding(name, 1, "payload.program", "It is a compiled program that nobody can read.")
        return
    if data.startswith(b"PK\x03\x04") and len(data) > 8 and data[6] & 1:
        yield Finding(name, 1, "payload.locked-archive", "It is an archive with a password.")
        return
    if b"\0" in data[:4096] and not low.endswith((*_DOCUMENTS, *_SCRIPTS)):
        return
    if len(data) > LONGEST_TEXT:
        yield Finding(name, 1, "folder.too-large", "It is a text too long to be read.")
        return
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    language = _language(low, text)
    document = low.endswith(_DOCUMENTS)
    found = [*_text(text)]
    if document:
        found += _document(text, name)
    elif language is not None:
        found += _script(text, language)
    else:
        found += _other(text)
    for offset, rule, why in found:
        yield Finding(name, text.count("\n", 0, offset) + 1, rule, why)


def _language(low: str, text: str) -> str | None:
    """The language of a script by its name or its first line; None for anything else."""
    first = text[:200].split("\n", 1)[0]
    if first.startswith("#!"):
        for word in ("python", "node", "ruby", "perl", "pwsh", "zsh", "bash", "sh"):
            if word in first:
                return word
    ending = low.rpartition(".")[2] if "." in os.path.basename(low) else ""
    return ending if ending in CODE or (ending and ending in SHELLS) else None


def _text(text: str) -> Found:
    yield from find_hidden(text)
    for at, why in find_payloads(text):
        yield at, "payload.encoded", why


def _script(text: str, language: str) -> Found:
    yield from find_dangers(text, language)
    if language in CODE:
        yield from find_stores(text)
    if language.startswith("py"):
        starts = _line_starts(text)
        for line, rule, why in find_disguises(text):
            yield starts[line - 1], rule, why
    whole = re.search(
        r"JSON\.stringify\(\s*process\.env\s*[,)]"
        r"|\.\.\.process\.env\b(?=[^}]*\}\s*\)?\s*,?\s*(?:method|body))",
        text,
    )
    if whole and re.search(
        r"\b(?:fetch|axios|https?\.request|got|XMLHttpRequest|sendBeacon)\b", text
    ):
        yield whole.start(), "secrets.sent", "It sends the whole environment away."


def _document(text: str, name: str) -> Found:
    seen = re.sub(r"[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]", "", text)
    title = " ".join([name, *re.findall(r"(?m)^#{1,2} (.*)", seen)[:1]]).replace("-", " ")
    starts = _line_starts(text)
    for piece in pieces_of(seen):
        if piece.kind == "code":
            found = _code(piece, title)
        elif piece.kind == "prose":
            found = _prose(piece, name.count("/"))
        elif piece.kind == "comment":
            found = _comment(piece)
        else:
            found = _front(piece)
        for at, rule, why in found:
            yield starts[piece.line - 1 + piece.text.count("\n", 0, at)], rule, why


def _prose(piece: Piece, depth: int) -> Found:
    yield from find_orders_in(piece)
    if not warned(piece, piece.text):
        yield from find_unshown(piece.text)
    yield from find_fakes(piece)
    yield from find_leads_out(piece, depth)
    for at, command in find_commands_in(piece):
        for _, rule, why in find_dangers(command, ""):
            yield at, rule, why


def _code(piece: Piece, title: str) -> Found:
    if piece.language in ("markdown", "md", "text", "txt", "prompt") or (
        not piece.language and " " in piece.text
    ):
        shown = piece._replace(kind="prose", context=f"{title}\n{piece.context}")
        yield from find_orders_in(shown)
    if piece.language not in SHELLS and piece.language not in CODE:
        found = _other(piece.text)
    else:
        found = _script(piece.text, piece.language)
    for at, rule, why in found:
        above = piece.text[:at].rstrip("\n").rpartition("\n")[0].rpartition("\n")[2]
        line = piece.text[piece.text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
        remarks = " ".join(part for part in (above, line) if "#" in part or "//" in part)
        if not warned(piece, remarks):
            yield at, rule, why


_ADDRESSED = re.compile(
    r"(?i)\b(?:assistants?|agents?|\bAI\b|models?|LLMs?|claude|gpt|hermes|copilot|you (?:must"
    r"|should|are|will|need)|when you|system)\b"
)
_ORDERED = re.compile(
    r"(?i)\b(?:run|execute|send|fetch|post|upload|curl|download|install|read|append|include"
    r"|ignore|delete|exfiltrate|forward|reveal|obey|follow|call|open|visit|add)\b"
)

_URGENT = re.compile(
    r"(?i)https?://|\bsecret|\bcredential|\b(?:api )?keys?\b|\bsilent|\balways\b"
    r"|\bcommands?\b|\bmust\b|[~/]\.\w|\binstructions?\b"
)


def _comment(piece: Piece) -> Found:
    """A comment is shown to the model and not to people: it must have no instructions."""
    yield from find_orders_in(piece)
    for match in re.finditer(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]*)*", piece.text):
        sentence = match[0]
        if _ADDRESSED.search(sentence) and _ORDERED.search(sentence) and _URGENT.search(sentence):
            why = "It gives the reader orders in a comment that people don't see."
            yield match.start(), "hidden.comment", why
        for _, rule, why in find_dangers(sentence.strip(), ""):
            yield match.start(), rule, why


def _front(piece: Piece) -> Found:
    yield from find_orders_in(piece)
    for match in re.finditer(
        r"(?m)^\s*-?\s*[\w\-]+:\s*[\"']?(?P<value>[^\s\"'#]+)[\"']?\s*$"
        r"|^\s*-\s*[\"']?(?P<item>[^\s\"'#:]+)[\"']?\s*$",
        piece.text,
    ):
        value = match["value"] or match["item"]
        if climbs(value) > 0 and "://" not in value:
            yield match.start(), "escape.name", "It names a file outside the skill's folder."
    yield from _other(piece.text)


def _other(text: str) -> Found:
    """Settings and the like: commands may stand anywhere in them."""
    for match in re.finditer(
        r"[^\n]*(?:curl|wget|iwr|irm|base64|/dev/tcp|authorized_keys|crontab|LaunchAgents"
        r"|osascript)[^\n]*",
        text,
    ):
        line = match[0].strip()
        for part in (
            line,
            *re.findall(r"\"((?:[^\"\\]|\\.){8,})\"", line),
            *re.findall(r":\s*(\S.{7,})$", line),
        ):
            for _, rule, why in find_dangers(part.replace('\\"', '"'), ""):
                yield match.start(), rule, why


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]

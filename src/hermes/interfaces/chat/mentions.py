"""`@file` mentions: attach a file's text or an image to a message."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.core.context import ToolContext
    from hermes.core.messages import Image
    from hermes.runtime.pipeline import Runtime

_MENTION = re.compile(r"""(?<![^\s(\[{"'])@(?:"([^"\n]+)"|'([^'\n]+)'|((?:\\.|[^\s"'\\])+))""")
# A path, or a name with the ending of one.
_PATH = re.compile(r"^[\w./~-]*(?:/[\w.-]|\w\.[A-Za-z]\w{0,4}$)")
_AFTER_NAME = ".,;:!?)]}'\""
# How much of all mentioned files goes along; the model can read the rest itself.
_CHARACTERS = 100_000
_PICTURE_BYTES = 5 * 1024 * 1024
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_PICTURE_NAMES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Prepared(NamedTuple):
    """A message as it goes to the model, and what the person is told about it."""

    text: str
    images: tuple[Image, ...] = ()
    remarks: tuple[str, ...] = ()


def mentioned(text: str, folder: str) -> list[str]:
    """The files that a text mentions and that are there, in order, each once."""
    return [named for named, there in _mentions(text, folder) if there]


def missing(text: str, folder: str) -> list[str]:
    """What looks like a file that a text mentions, and is none: what to tell the person of it.

    Other words may begin with an @, too: of what could be somebody's name nothing is said.
    """
    told = []
    for named, there in _mentions(text, folder):
        if there:
            continue
        if os.path.isdir(os.path.join(folder, os.path.expanduser(named))):
            told.append(f"@{named} is a folder: its name goes along, and nothing of what is in it")
        elif " " in named or _PATH.search(named):
            told.append(f"@{named} is not there: it goes along as a word")
    return told


def _mentions(text: str, folder: str) -> list[tuple[str, bool]]:
    """What stands behind each @, and whether it is a file."""
    found = {}
    for match in _MENTION.finditer(text):
        quoted = match[1] or match[2]
        whole = named = quoted or re.sub(r"\\(.)", r"\1", match[3])
        # A name may be followed by the sentence's own punctuation.
        while not quoted and named and named[-1] in _AFTER_NAME and not is_file(named, folder):
            named = named[:-1]
        there = bool(named) and is_file(named, folder)
        found[named if there else whole.rstrip(_AFTER_NAME)] = there
    return list(found.items())


def mention_of(pasted: str) -> str:
    """A mention for text that is nothing but the path of a picture; empty for everything else.

    That is what a terminal pastes when a file is dropped into it.
    """
    path = pasted.strip()
    if "\n" in path or len(path) > 4_096:
        return ""
    if path.startswith("file://"):
        from urllib.parse import unquote

        path = unquote(path.removeprefix("file://"))
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'":
        path = path[1:-1]
    elif "\\ " in path:
        path = re.sub(r"\\(.)", r"\1", path)
    if not path.lower().endswith(_PICTURE_NAMES) or not is_file(path, os.curdir):
        return ""
    return f'@"{path}"' if re.search(r"[\s\"'\\]", path) else f"@{path}"


async def prepared(
    text: str,
    pictures: Sequence[str],
    *,
    runtime: Runtime,
    context: Callable[[], ToolContext],
    sees: bool,
) -> Prepared:
    """A message with what it mentions; `pictures` are further files that go along as such."""
    folder = context().workspace
    files = mentioned(text, folder)
    images: list[Image] = []
    parts: list[str] = []
    remarks = missing(text, folder)
    room = _CHARACTERS
    for path in dict.fromkeys([*files, *pictures]):
        try:
            if path in pictures or _is_picture(path, folder):
                images.append(_picture(path, context()))
                continue
            part, room = await _text_of(path, runtime, context(), room)
            parts.append(part)
        except (HermesError, OSError) as error:
            remarks.append(f"@{path} does not go along: {error}")
    if images and not sees:
        remarks.append("this model sees no pictures; it is told that there was one")
    if parts:
        text = "\n\n".join([text, "Files mentioned above, as data:", *parts])
    return Prepared(text, tuple(images), tuple(remarks))


async def _text_of(path: str, runtime: Runtime, context: ToolContext, room: int) -> tuple[str, int]:
    import json

    from hermes.core.entry import ToolCall
    from hermes.core.errors import ToolError

    if room <= 0:
        raise ToolError(f"the files mentioned have more than {_CHARACTERS:,} characters")
    call = ToolCall("read_file", {"path": path, "force": True}, id=f"mention-{os.urandom(4).hex()}")
    outcome = await runtime.call(call, context)
    if outcome.status != "ok":
        raise ToolError(outcome.error or outcome.status)
    answer = json.loads(outcome.content)
    content = answer.get("content", "")
    more = "" if "next_offset" not in answer else f", goes on at line {answer['next_offset']}"
    if len(content) > room:
        content = content[:room].rpartition("\n")[0]
        more = ", cut: read_file has the rest"
    # A mark that the file can't have known: nothing in it can end the quotation.
    mark = os.urandom(4).hex()
    head = f"--- {path} ({answer.get('total_lines', '?')} lines{more}) {mark} ---"
    return f"{head}\n{content}\n--- end {mark} ---", room - len(content)


def _picture(path: str, context: ToolContext) -> Image:
    from base64 import b64encode

    from hermes.core.errors import ToolError
    from hermes.core.messages import Image

    # Judged as a call of `read_file` would be.
    reading = context.for_call("mention", "read_file", context.cancellation, None)
    place = reading.resolve_path(path, "read")
    size = os.path.getsize(place)
    if size > _PICTURE_BYTES:
        raise ToolError(f"the picture has {size:,} bytes; at most {_PICTURE_BYTES:,} can be sent")
    with open(place, "rb") as file:
        data = file.read(_PICTURE_BYTES)
    kind = _kind(data)
    if not kind:
        raise ToolError("it is no PNG, JPEG, GIF or WebP picture")
    return Image(kind, b64encode(data).decode())


def _kind(head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _PICTURES if head.startswith(magic)), "")


def _is_picture(path: str, folder: str) -> bool:
    try:
        with open(os.path.join(folder, os.path.expanduser(path)), "rb") as file:
            return bool(_kind(file.read(16)))
    except OSError:
        return False


def is_file(path: str, folder: str) -> bool:
    """Whether a file is there, as seen from a folder."""
    try:
        return os.path.isfile(os.path.join(folder, os.path.expanduser(path)))
    except ValueError:
        # A name with a NUL in it.
        return False

"""`@file` mentions: attach a file's text or an image to a message."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Image
    from hermes.runtime.pipeline import Runtime

_MENTION = re.compile(r"""(?<![^\s(\[{"'])@(?:"([^"\n]+)"|'([^'\n]+)'|((?:\\.|[^\s"'\\])+))""")
# A path, or a file name with a suffix.
_PATH = re.compile(r"^[\w./~-]*(?:/[\w.-]|\w\.[A-Za-z]\w{0,4}$)")
_PUNCTUATION = ".,;:!?)]}'\""
# Limit for the text of all mentioned files; the model can read the rest itself.
_CHARACTERS = 100_000
_IMAGE_BYTES = 5 * 1024 * 1024
_IMAGE_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Prepared(NamedTuple):
    """A message for the model, and remarks for the person."""

    text: str
    images: tuple[Image, ...] = ()
    remarks: tuple[str, ...] = ()


def mentioned(text: str, folder: str) -> list[str]:
    """The existing files that a text mentions, in order, without duplicates."""
    return [name for name, exists in _mentions(text, folder) if exists]


def missing(text: str, folder: str) -> list[str]:
    """Remarks on mentions that look like files and are none.

    A word that could be a user name (`@someone`) gets no remark.
    """
    remarks = []
    for name, exists in _mentions(text, folder):
        if exists:
            continue
        if os.path.isdir(os.path.join(folder, os.path.expanduser(name))):
            remarks.append(f"@{name} is a folder: only its name is sent, not its files")
        elif " " in name or _PATH.search(name):
            remarks.append(f"@{name} is not there: it is sent as a word")
    return remarks


def _mentions(text: str, folder: str) -> list[tuple[str, bool]]:
    """The name after each @, and whether it is a file."""
    mentions = {}
    for match in _MENTION.finditer(text):
        quoted = match[1] or match[2]
        typed = name = quoted or re.sub(r"\\(.)", r"\1", match[3])
        # A name may be followed by the sentence's own punctuation.
        while not quoted and name and name[-1] in _PUNCTUATION and not is_file(name, folder):
            name = name[:-1]
        exists = bool(name) and is_file(name, folder)
        mentions[name if exists else typed.rstrip(_PUNCTUATION)] = exists
    return list(mentions.items())


def mention_of(pasted: str) -> str:
    """A mention for pasted text that is nothing but the path of an image; otherwise empty.

    A terminal pastes the path when a file is dropped into it.
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
    if not path.lower().endswith(_IMAGE_SUFFIXES) or not is_file(path, os.curdir):
        return ""
    return f'@"{path}"' if re.search(r"[\s\"'\\]", path) else f"@{path}"


async def prepared(
    text: str,
    images: Sequence[str],
    *,
    runtime: Runtime,
    context: Callable[[], ToolContext],
    sees: bool,
) -> Prepared:
    """A message with the files it mentions; `images` are further files to attach."""
    folder = context().workspace
    files = mentioned(text, folder)
    attached: list[Image] = []
    parts: list[str] = []
    remarks = missing(text, folder)
    room = _CHARACTERS
    for path in dict.fromkeys([*files, *images]):
        try:
            if path in images or _is_image(path, folder):
                attached.append(_image(path, context()))
                continue
            part, room = await _text_of(path, runtime, context(), room)
            parts.append(part)
        except (HermesError, OSError) as error:
            remarks.append(f"@{path} is not sent: {error}")
    if attached and not sees:
        remarks.append("this model can't see images; it gets a note instead")
    if parts:
        text = "\n\n".join([text, "Files mentioned above, as data:", *parts])
    return Prepared(text, tuple(attached), tuple(remarks))


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
    # A random delimiter: nothing in the file can end the quotation.
    mark = os.urandom(4).hex()
    head = f"--- {path} ({answer.get('total_lines', '?')} lines{more}) {mark} ---"
    return f"{head}\n{content}\n--- end {mark} ---", room - len(content)


def _image(path: str, context: ToolContext) -> Image:
    from base64 import b64encode

    from hermes.core.errors import ToolError
    from hermes.core.model_protocol import Image

    # The same permission check as for `read_file`.
    reading = context.for_call("mention", "read_file", context.cancellation, None)
    resolved = reading.resolve_path(path, "read")
    size = os.path.getsize(resolved)
    if size > _IMAGE_BYTES:
        raise ToolError(f"the image has {size:,} bytes; at most {_IMAGE_BYTES:,} can be sent")
    with open(resolved, "rb") as file:
        data = file.read(_IMAGE_BYTES)
    kind = _kind(data)
    if not kind:
        raise ToolError("it is no PNG, JPEG, GIF or WebP image")
    return Image(kind, b64encode(data).decode())


def _kind(head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGE_TYPES if head.startswith(magic)), "")


def _is_image(path: str, folder: str) -> bool:
    try:
        with open(os.path.join(folder, os.path.expanduser(path)), "rb") as file:
            return bool(_kind(file.read(16)))
    except OSError:
        return False


def is_file(path: str, folder: str) -> bool:
    """Whether a path, relative to a folder, is a file."""
    try:
        return os.path.isfile(os.path.join(folder, os.path.expanduser(path)))
    except ValueError:
        # A name that contains a NUL.
        return False

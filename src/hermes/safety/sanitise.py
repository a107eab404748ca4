"""Sanitising of untrusted text before a model or a terminal reads it."""

from __future__ import annotations

import re
import sys
from functools import cache

from hermes.safety.redaction.redactor import redact
from hermes.text.ansi import CONTROL, INVISIBLE, SEQUENCE

# Names that frame a conversation or a call in one model's format or another's, and nothing else.
_FRAMES = (
    r"tool[_\-]?(?:calls?|use|code|results?|responses?|outputs?|input|list|sep|begin|end)"
    r"|function[_\-]?(?:calls?|results?|responses?|outputs?)|invoke|im_start|im_end|start_of_turn"
    r"|end_of_turn|antml(?::\w+)?|system[_\-](?:prompt|reminder|message|instructions?)|think(?:ing)?"
)
# Words that frame too, but are types or tags elsewhere: `Vec<User>`, `List<message>`.
_WORDS = (
    "tools?|functions?|parameters?|arguments?|system|user|assistant|human|ai|model|developer"
    "|instructions?|prompt|context|messages?|thoughts?|reasoning|scratchpad|answer|responses?|results?"
    "|output|s|bos|eos|pad|unk|turn|observation|artifact|documents?|untrusted|error|stdout|stderr"
)


@cache
def _framing() -> re.Pattern[str]:
    return re.compile(
        # <|im_start|> and the like, also with full-width bars
        r"<[|｜][^<>|｜\n]{0,64}[|｜]>"
        # <tool_call>, </function_calls>, <invoke name="x">, <x:tool_call>
        rf"|(?i:<\s*/?\s*(?:[a-z]{{2,12}}:)?(?:{_FRAMES})(?:[ =:][^<>\n]{{0,200}})?\s*/?>)"
        rf"|(?<!\w)<\s*/?\s*(?:{_WORDS}|{_WORDS.upper()})(?:[ =][^<>\n]{{0,200}})?\s*/?>"
        # [INST], [/INST], [TOOL_CALLS], <<SYS>>
        r"|\[/?(?:INST|SYS|SYSTEM(?:_PROMPT)?|TOOL_(?:CALLS?|RESULTS?|CONTENT)|AVAILABLE_TOOLS|ARGS"
        r"|CALL_ID|IMG|THINK)\]|<</?SYS>>"
        r"|(?i:<!\[CDATA\[)|\]\]>|<!--|--!?>|<\?xml[^<>\n]{0,100}\?>|```+[\w+\-.]*|~~~+"
        # A line that plays another speaker
        r"|(?im:^[ \t]*#{1,6}[ \t]*(?:system|user|assistant|instruction|response)s?:?[ \t]*$)"
    )


@cache
def _doubtful() -> re.Pattern[str]:
    # Right behind a word: a type's parameter, or framing that was stuck to the word.
    return re.compile(
        rf"(?<=\w)<(?P<inside>\s*/?\s*(?:{_WORDS}|{_WORDS.upper()})(?:[ =][^<>\n]{{0,200}})?\s*/?)>"
    )


@cache
def _unseen() -> re.Pattern[str]:
    return re.compile(f"{SEQUENCE}|[{CONTROL}{INVISIBLE}]")


@cache
def _places() -> re.Pattern[str]:
    """Paths into the installation; the module path after them is enough."""
    import sysconfig

    import hermes

    paths = {value for name, value in sysconfig.get_paths().items() if "lib" in name}
    paths.update(
        path.rpartition("/")[0].rpartition("\\")[0] for path in hermes.__path__ if "\\" in path
    )
    paths.update(path.rpartition("/")[0] for path in hermes.__path__ if "/" in path)
    paths.update((sys.prefix, sys.base_prefix, sys.exec_prefix))
    known = sorted((path for path in paths if len(path) > 1), key=len, reverse=True)
    # Other environments' libraries too, wherever they are.
    anywhere = r"(?:[A-Za-z]:)?[\\/](?:[^\\/\s\"'<>|:]+[\\/])*(?:site-packages|dist-packages)"
    return re.compile(f"(?:{'|'.join(map(re.escape, known))}|{anywhere})[\\\\/]+")


def clean_text(text: str) -> str:
    """`text` without invisible characters: zero-width, bidirectional, tags, terminal controls.

    Tabs and line ends stay; a carriage return becomes a line end, since it would overwrite the line
    in a terminal.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _unseen().sub("", text).replace("\u2028", "\n").replace("\u2029", "\n")
    # Halves of a character pair can't be written anywhere.
    return text.encode("utf-8", "replace").decode() if _has_halves(text) else text


def _has_halves(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def sanitise_error(text: str, *, limit: int = 2000) -> str:
    """An error message that a model can read safely: no framing, no secrets, bounded.

    Framing tokens and code fences go, controls of the terminal too; places inside the installation
    become module-like paths; a text longer than `limit` keeps its beginning and its end, and says
    how much is missing between them.
    """
    text = clean_text(text)
    if len(text) > 64 * limit:
        # Whatever is far from both ends won't be shown; it isn't worth reading either.
        text = f"{text[: 32 * limit]}\n[…]\n{text[-32 * limit :]}"
    # Framing first: a secret may be cut in two by it.
    text = redact(_without_framing(text))
    return shorten(_places().sub("", text).strip(), limit)


def _without_framing(text: str) -> str:
    for _ in range(8):
        # Removing one token may join the halves of another.
        shorter = _doubtful().sub(r"‹\g<inside>›", _framing().sub("", text))
        if shorter == text:
            return text
        text = shorter
    return text.replace("<", "‹").replace("`", "'").replace("[", "(")


def shorten(text: str, limit: int) -> str:
    """`text`, or its two ends around a note on how much was cut, `limit` characters in all."""
    if len(text) <= limit:
        return text
    note = f" [… {len(text) - limit} characters cut …] "
    keep = max(0, limit - len(note) - 12)
    head = keep * 2 // 3
    note = f" [… {len(text) - keep} characters cut …] "
    tail = text[len(text) - (keep - head) :] if keep > head else ""
    return (text[:head] + note + tail)[: max(limit, 0)]

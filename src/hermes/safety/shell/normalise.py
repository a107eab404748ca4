"""Reading a command the way a normaliser would: look-alikes, hidden characters, terminal codes.

`normalise` gives a second text to judge next to the first one, and where each of its characters
stood in the original, so that findings still point into what the caller gave.
"""

from __future__ import annotations

import re

_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|"
    r"\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)

# Letters that Unicode keeps apart from the Latin ones they are drawn like.
_LOOK_ALIKES = str.maketrans(
    dict(
        zip(
            "аԁеһіјӏкмոорԛгѕтυνԝхуαβεικορτυχцбЬВСЕНІЈКМОРТХΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡɩոօքꜱᴏᴠᴡᴢᴄᴅᴍᴜʟʀɪᴋᴘ",
            "adehijlkmnoopqrstuvwxyabeikoptuxubbBCEHIJKMOPTXABEZHIKMNOPTYXagınoqsovwzcdmulriKp",
            strict=False,
        )
    )
)
_LOOK_ALIKES.update({ord(char): "-" for char in "‐‑‒–—―−﹣－➖⁃˗"})
_LOOK_ALIKES.update({ord(char): "/" for char in "∕⁄╱⧸／"})
_LOOK_ALIKES.update({ord(char): "~" for char in "˜∼～〜"})
_LOOK_ALIKES.update({ord(char): "*" for char in "∗＊⁎✱"})
_LOOK_ALIKES.update({ord(char): "|" for char in "∣｜❘ǀ￨"})
_LOOK_ALIKES.update({ord(char): ";" for char in ";；︔﹔"})
_LOOK_ALIKES.update({0x2024: ".", 0x3002: ".", 0xA4F8: ".", 0xFE52: ".", 0x2215: "/", 0x131: "i"})
# A shell never reads these as quotes, so neither may we: a typographic apostrophe in a commit
# message would otherwise open a string.
_KEPT = frozenset("＇＂｀＼‘’“”′″´")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5")


def normalise(text: str) -> tuple[str, list[int]]:
    """The text as a normaliser reads it, and the original index of each of its characters."""
    import unicodedata

    out: list[str] = []
    where: list[int] = []
    hidden = {index for match in _TERMINAL.finditer(text) for index in range(*match.span())}
    for index, char in enumerate(text):
        if index in hidden:
            continue
        for shown in _plain(char, unicodedata):
            out.append(shown)
            where.append(index)
    return "".join(out), where


def _plain(char: str, unicodedata: object) -> str:
    code = ord(char)
    if 0x20 <= code < 0x7F or char in "\n\t" or char in _KEPT:
        return char
    if char in "\r\x0b\x0c\x85\u2028\u2029":
        return "\n"
    if char in _FILLERS or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF:
        return ""
    category = unicodedata.category(char)  # type: ignore[attr-defined]
    if category in ("Cf", "Cc"):
        return ""
    if category == "Co":
        return "?"
    if category == "Zs":
        return " "
    folded: str = unicodedata.normalize("NFKC", char.translate(_LOOK_ALIKES))  # type: ignore[attr-defined]
    return "".join(c for c in folded.translate(_LOOK_ALIKES) if c not in "'\"`\\")

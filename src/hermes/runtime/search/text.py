"""Text to tokens: folded, split at identifiers and scripts, lightly stemmed."""

from __future__ import annotations

import re
import unicodedata

_MARKS = re.compile("[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0640\u093c]+")
_LETTERS = str.maketrans(
    {"ı": "i", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
    | {"ى": "ي", "ة": "ه", "ک": "ك", "ی": "ي", "’": "'", "ʼ": "'", "`": "'"}
)
# Scripts written without spaces between words; Hangul is here because particles hang on its words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
# Vowel signs of Indic scripts are no letters to `\w`, but they are part of the word.
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_]|[\u0900-\u0dff])+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_INNER_APOSTROPHE = re.compile(r"(?<=[\u0400-\u04ff])'(?=[\u0400-\u04ff])")
_DIGIT_EDGE = re.compile(r"(?<=[a-z]{3})(?=\d)")


def fold(text: str) -> str:
    """The text in lower case, full-width forms narrowed and accents taken off."""
    if text.isascii():
        return text.lower()
    loose = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _MARKS.sub("", loose)).translate(_LETTERS)


def tokens(text: str) -> list[str]:
    """Folded tokens in order; identifiers are split, unspaced scripts stay as whole runs."""
    folded = fold(_CAMEL.sub(" ", text))
    if not folded.isascii():
        folded = _INNER_APOSTROPHE.sub("", folded)
    return _TOKEN.findall(_DIGIT_EDGE.sub(" ", folded))


def unspaced(token: str) -> bool:
    """Whether the token is a run of a script without spaces, so a sentence and not a word."""
    first = token[0]
    return (
        "\u3005" <= first <= "\u9fff"
        or "\uac00" <= first <= "\ud7a3"
        or "\u0e00" <= first <= "\u0eff"
        or "\u1000" <= first <= "\u109f"
        or "\u1780" <= first <= "\u17ff"
    )


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters of an unspaced run."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def stem(word: str) -> str:
    """The English stem of a folded word, near enough that forms of one word meet."""
    if len(word) < 4 or not word.isascii():
        return word
    word = _singular(word)
    for suffix in ("ingly", "edly", "ing", "ed", "er", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return _tidy(word[: -len(suffix)])
    if word.endswith("ation") and len(word) > 7:
        return word[:-5]
    if word.endswith("ion") and len(word) > 6:
        return word[:-3]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _tidy(base: str) -> str:
    """Undo what an ending did to its stem: `stopp` to `stop`, `compile` and `compil` alike."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > 4 else base

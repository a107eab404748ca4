"""Files that a source opens for writing and closes again with nothing in them.

Read from tokens, as the rest of the code in many languages: what is opened is let go at once, or
kept under a name that is used for nothing but to close it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.interpreters.code_tokens import PART
from hermes.safety.shell.tables import names

if TYPE_CHECKING:
    from hermes.safety.shell.interpreters.code_tokens import Token

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

"""Tool calls that a model writes into its text instead of asking for them properly.

Open-weight models behind servers that do not know their format do that. Each family has its own
spelling; they come down to a few shapes, read here from the marks that open them:

    <tool_call>{"name": …, "arguments": {…}}</tool_call>            JSON between marks, or a list
    <function=NAME><parameter=KEY>VALUE</parameter></function>      Qwen
    <invoke name="NAME"><parameter name="KEY">VALUE</parameter>     MiniMax, DeepSeek's DSML
    <tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value>     GLM
    <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>       DeepSeek
    <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>      Kimi
    [TOOL_CALLS]NAME[ARGS]{…}                                       Mistral
    {"name": …, "arguments": {…}} and nothing else                  no marks at all

A mark inside code (a fence, backticks, a quoted line) is an answer about calls, not a call.
Values between tags stay text: the schema decides later what they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.agent.providers.call_marks import OPENING, calls_from
from hermes.agent.providers.call_objects import bare_calls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from hermes.agent.providers.call_objects import Pair

_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*|(`+)|^[ \t]*>[^\n]*", re.MULTILINE)
# What a text may begin with while it is still unclear whether a call follows.
OPENERS = (
    "<tool_call>", "<tool_calls>", "<|tool_call|>", "<|tool_calls|>", "<minimax:tool_call>",
    "<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke ", "<function_call>",
    "<function_calls>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>", "[TOOL_CALLS]", "<|python_tag|>", "<function=",
    "<function name=", "<invoke name=", "<|channel|>commentary to=", "functools[",
)  # fmt: skip


class Spelled:
    """The calls of a text, as name and arguments, and what else the text says."""

    __slots__ = ("calls", "rest")

    def __init__(self, calls: list[Pair], rest: str) -> None:
        self.calls = calls
        self.rest = rest


def find_calls(text: str, names: Collection[str]) -> Spelled:
    """The calls that a text spells, and the text without them.

    A call with marks counts whatever it is called, so that a wrong name is answered; one without
    marks only when it is the whole text and a tool in `names` is meant.
    """
    bare = bare_calls(text, names)
    if bare:
        return Spelled(bare, "")
    calls: list[Pair] = []
    rest: list[str] = []
    at = tried = 0
    for start in _marks(text):
        if start < tried:
            continue
        found, end, tried = calls_from(text, start, names)
        if found:
            calls += found
            rest.append(text[at:start])
            at = end
    rest.append(text[at:])
    return Spelled(calls, "".join(rest).strip() if calls else text)


def first_mark(text: str) -> int:
    """Where a call may begin in a text that is still coming; its length when nowhere."""
    found = OPENING.search(text)
    if found:
        return found.start()
    for at in range(max(len(text) - 32, 0), len(text)):
        if text[at] in "<[f" and any(opener.startswith(text[at:]) for opener in OPENERS):
            return at
    return len(text)


def seems_call(text: str, names: Collection[str]) -> bool:
    """Whether an answer is nothing but a tool call, or ends with one, in some spelling.

    Also where `find_calls` is not sure enough to take it for one: after other text, or in the only
    code fence. The model may be asked to send it properly.
    """
    if find_calls(text, names).calls:
        return True
    last = text.strip()
    fenced = re.search(r"(?:```|~~~)\w*\s*([\[{].*?)\s*(?:```|~~~)\Z", last, re.DOTALL)
    if fenced and not text[: fenced.start()].strip():
        last = fenced.group(1)
    at = max(last.find("\n{"), last.find("\n["))
    return bool(
        bare_calls(last, names) or (at >= 0 and "```" not in last and bare_calls(last[at:], names))
    )


def _marks(text: str) -> Iterator[int]:
    """Where calls are opened, code left aside."""
    at = 0
    code = _CODE.search(text)
    while mark := OPENING.search(text, at):
        while code and code.start() < at:
            code = _CODE.search(text, at)
        if code is None or mark.start() < code.start():
            yield mark.start()
            at = mark.end()
        else:
            at = _code_end(text, code)


def _code_end(text: str, code: re.Match[str]) -> int:
    fence, ticks = code.group(1), code.group(2)
    if fence:
        close = re.compile(rf"^[ \t]*{re.escape(fence)}[`~]*[ \t]*$", re.MULTILINE)
        found = close.search(text, code.end())
        return found.end() if found else len(text)
    if ticks:
        # A backtick that nothing closes in its paragraph is just a character.
        found = re.compile(rf"(?<!`){ticks}(?!`)|\n\n").search(text, code.end())
        return found.end() if found and found.group() == ticks else code.end()
    return code.end()


# -- one section of calls -----------------------------------------------------------------------

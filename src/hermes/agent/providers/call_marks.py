"""What follows the mark of a call: the shapes that families of models have for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.agent.providers.call_objects import as_call, clean_name, value_size
from hermes.core.arguments.lenient import parse_each
from hermes.core.jsontext import to_json

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from hermes.agent.providers.call_objects import Pair

# The bars and low lines of special tokens come in two widths.
_BAR, _LOW = r"[|｜]", r"[_▁ ]"
# What opens one call or several.
OPENING = re.compile(
    rf"<{_BAR}?tool{_LOW}?calls?{_BAR}?>|<minimax:tool_call>|<{_BAR}DSML{_BAR}\s?(?:function|tool)_calls>"
    rf"|<(?:antml:)?function_calls?>|<{_BAR}tool{_LOW}calls?{_LOW}(?:section{_LOW})?begin{_BAR}>"
    rf"|\[TOOL_CALLS\]|<{_BAR}python_tag{_BAR}>|<function[= ]|<(?:{_BAR}DSML{_BAR})?invoke "
    rf"|<{_BAR}channel{_BAR}>commentary to=|functools(?=\[)"
)
# Anything that may stand between two calls or after the last one.
# Anything that may stand between two calls or after the last one.
_FILLER = re.compile(
    rf"(?:\s|,|</?{_BAR}?tool{_LOW}?calls?{_BAR}?>|<{_BAR}/tool_calls?{_BAR}>|</?minimax:tool_call>"
    rf"|</?{_BAR}DSML{_BAR}\s?(?:function|tool)_calls>|</?(?:antml:)?function_calls?>"
    rf"|<{_BAR}tool{_LOW}calls{_LOW}(?:section{_LOW})?(?:begin|end){_BAR}>|\[/?TOOL_CALLS\]"
    rf"|<{_BAR}(?:call|end|eom_id|eot_id|im_end|start){_BAR}>(?:assistant)?|</function>"
    rf"|functools(?=\[)|<{_BAR}python_tag{_BAR}>)+"
)
_NAME = r"[\w.:/-]{1,128}"
_TOKEN_CALL = re.compile(
    rf"<{_BAR}tool{_LOW}call{_LOW}begin{_BAR}>\s*(?:function\s*<{_BAR}tool{_LOW}sep{_BAR}>)?\s*"
    rf"({_NAME})\s*(?:<{_BAR}tool{_LOW}(?:sep|call{_LOW}argument{_LOW}begin){_BAR}>)?\s*"
)
_TOKEN_END = re.compile(rf"<{_BAR}tool{_LOW}call{_LOW}end{_BAR}>")
_CHANNEL = re.compile(
    rf"<{_BAR}channel{_BAR}>commentary to=({_NAME})[^{{]*?<{_BAR}message{_BAR}>\s*"
)
_FUNCTION = re.compile(rf"<function(?:=|\s+name=)[\"']?({_NAME})[\"']?\s*>")
_INVOKE = re.compile(rf"<(?:{_BAR}DSML{_BAR}|antml:)?invoke\s+name=[\"']?({_NAME})[\"']?\s*>")
_INVOKE_END = re.compile(rf"</(?:{_BAR}DSML{_BAR}|antml:)?invoke>")
_PARAMETER = re.compile(
    rf"<(?:{_BAR}DSML{_BAR}|antml:)?parameter(?:=|\s+name=)[\"']?([\w.-]+)[\"']?([^>]*)>"
)
_PARAMETER_END = re.compile(rf"</(?:{_BAR}DSML{_BAR}|antml:)?parameter>")
_PLAIN_NAME = re.compile(rf"({_NAME})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=[{{<])")
_ARG = re.compile(r"\s*<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_SPACE = re.compile(r"\s*")
_FENCE = re.compile(r"```\w*\s*")


def calls_from(text: str, start: int, names: Collection[str]) -> tuple[list[Pair], int, int]:
    """The calls in a row from a mark on, where they end, and how far was looked."""
    calls: list[Pair] = []
    at = end = start
    while at < len(text):
        filler = _FILLER.match(text, at)
        if filler:
            at = filler.end()
            end = at if calls else end
            continue
        found = _one(text, at, names)
        if found is None:
            break
        more, at = found
        calls += more
        end = at
    return calls, end, max(at, start + 1)


def _one(text: str, at: int, names: Collection[str]) -> tuple[list[Pair], int] | None:
    if text[at] in "{[":
        return _json_calls(text, at, names)
    for opening, ending in ((_TOKEN_CALL, _TOKEN_END), (_CHANNEL, None)):
        if found := opening.match(text, at):
            raw, end = _raw(text, found.end(), ending)
            return [(clean_name(found.group(1), names), raw)], end
    for opening, closing in ((_FUNCTION, re.compile("</function>")), (_INVOKE, _INVOKE_END)):
        if found := opening.match(text, at):
            name = clean_name(found.group(1), names)
            if text.startswith("{", _after_space(text, found.end())):
                raw, end = _raw(text, found.end(), closing)
                return [(name, raw)], end
            values, end = _parameters(text, found.end())
            close = closing.match(text, _after_space(text, end))
            if close is None and values == "{}":
                # A tag of something else.
                return None
            return [(name, values)], close.end() if close else end
    return _named(text, at, names)


def _named(text: str, at: int, names: Collection[str]) -> tuple[list[Pair], int] | None:
    """A name, then arguments: GLM's pairs of tags, or an object."""
    found = _PLAIN_NAME.match(text, at)
    if found is None:
        return None
    name = clean_name(found.group(1), names)
    end = found.end()
    if text.startswith("{", end):
        raw, end = _raw(text, end, None)
        return [(name, raw)], end
    values: dict[str, str] = {}
    while pair := _ARG.match(text, end):
        values[pair.group(1)] = pair.group(2).strip("\n")
        end = pair.end()
    if not values and not (name in names and text.startswith("</tool_call>", end)):
        return None
    return [(name, to_json(values))], end


def _parameters(text: str, at: int) -> tuple[str, int]:
    """Pairs of tags as the text of an object."""
    values: dict[str, Any] = {}
    while True:
        opening = _PARAMETER.match(text, _after_space(text, at))
        if opening is None:
            return to_json(values), at
        close = _PARAMETER_END.search(text, opening.end())
        if close is None:
            # Cut off: said as text that no reader takes for complete.
            cut = to_json({**values, opening.group(1): text[opening.end() :]})
            return cut.removesuffix('"}'), len(text)
        value = text[opening.end() : close.start()]
        value = value.removeprefix("\n").removesuffix("\n")
        values[opening.group(1)] = value
        at = close.end()


def _raw(text: str, at: int, ending: re.Pattern[str] | None) -> tuple[str, int]:
    """Arguments as they were written, and where what follows them begins."""
    fence = _FENCE.match(text, at)
    begin = _after_space(text, fence.end() if fence else at)
    size = value_size(text[begin:])
    if size:
        end = begin + size
        tail = re.compile(r"\s*```").match(text, end) if fence else None
        end = tail.end() if tail else end
        close = ending.search(text, end) if ending else None
        if close and not text[end : close.start()].strip():
            return text[begin : begin + size], close.end()
        if ending is None or close is None:
            return text[begin : begin + size], end
    close = ending.search(text, begin) if ending else None
    stop = close.start() if close else len(text)
    raw = text[begin:stop].strip().removesuffix("```").rstrip()
    return raw, close.end() if close else len(text)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _json_calls(text: str, at: int, names: Collection[str]) -> tuple[list[Pair], int] | None:
    size = value_size(text[at:])
    if size:
        value = next(parse_each(text[at : at + size]))[0]
        calls = [as_call(item, names) for item in (value if isinstance(value, list) else [value])]
        found = [call for call in calls if call is not None]
        return (found, at + size) if found and len(found) == len(calls) else None
    # Broken: the name can still be told, and the pipeline says what is wrong with the rest.
    head = re.compile(
        r'[\[\s]*\{\s*"(?:name|tool_name|function)"\s*:\s*"([^"]+)"\s*,\s*'
        r'"(?:arguments|parameters|args)"\s*:\s*'
    ).match(text, at)
    if head is None:
        return None
    close = re.compile(rf"</?{_BAR}?tool{_LOW}?calls?{_BAR}?>|</function_call>").search(
        text, head.end()
    )
    stop = close.start() if close else len(text)
    return [(clean_name(head.group(1), names), text[head.end() : stop].strip())], stop

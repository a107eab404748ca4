"""Tool calls that a model writes as plain text: formats with tags, bare JSON objects, detection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.arguments.json_repair import TextError, parse_each
from hermes.core.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    # A name and arguments, as text.
    Pair = tuple[str, str]

_NAMES = ("name", "tool", "tool_name", "function_name", "function", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_BESIDE = frozenset({"id", "type", "index", "call_id", "tool_call_id"})


def bare_calls(text: str, names: Collection[str]) -> list[Pair]:
    """The calls of a text that consists of unmarked calls to known tools only."""
    stripped = text.strip()
    if not names or stripped[:1] not in ("{", "["):
        return []
    try:
        values = [value for value, _ in parse_each(stripped)]
    except (TextError, RecursionError):
        return _pythonic(stripped, names)
    items: list[Any] = []
    for value in values:
        if isinstance(value, dict) and set(value) == {"tool_calls"}:
            value = value["tool_calls"]
        items += value if isinstance(value, list) else [value]
    calls: list[Pair] = []
    for item in items:
        call = as_call(item, names)
        if call is None or call[0] not in names or not _only_a_call(item):
            return []
        calls.append(call)
    return calls


def as_call(value: Any, names: Collection[str]) -> Pair | None:
    """Name and arguments of a JSON object, if it is a call."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name_key = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    if name_key is None:
        return None
    name = clean_name(value[name_key], names)
    key = next((key for key in _ARGUMENTS if key in value), None)
    arguments = value[key] if key is not None else {}
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict | str):
        return None
    return name, arguments if isinstance(arguments, str) else to_json(arguments)


def _only_a_call(value: dict[str, Any]) -> bool:
    if isinstance(value.get("function"), dict):
        return set(value) <= {"function", *_BESIDE}
    keys = [key for key in _ARGUMENTS if key in value]
    return len(keys) == 1 and len(set(value) - _BESIDE - set(keys)) == 1


def _pythonic(text: str, names: Collection[str]) -> list[Pair]:
    """Calls in Python syntax, in a list: `[read_file(path="a")]`."""
    if not re.match(r"\[\s*[\w.]+\(", text):
        return []
    import ast

    try:
        tree = ast.parse(text, mode="eval").body
        calls: list[Pair] = []
        for item in tree.elts if isinstance(tree, ast.List) else []:
            if not isinstance(item, ast.Call) or item.args:
                return []
            name = clean_name(ast.unparse(item.func), names)
            if name not in names or any(keyword.arg is None for keyword in item.keywords):
                return []
            values = {k.arg: ast.literal_eval(k.value) for k in item.keywords}
            calls.append((name, to_json(values)))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return []
    return calls


def clean_name(name: str, names: Collection[str]) -> str:
    """A tool name without the decoration of some formats."""
    name = name.strip()
    if name in names:
        return name
    short = re.sub(r"^(?:functions?|tools?|multi_tool_use)[./:]|:\d+$", "", name)
    short = re.sub(r":\d+$", "", short)
    return short or name


def value_size(text: str) -> int:
    """The length of the first JSON value of a text; 0 if there is none."""
    try:
        for _, piece in parse_each(text):
            return len(piece)
    except (TextError, RecursionError):
        pass
    return 0


# Bars and underscores of special tokens come in two widths.
_BAR, _LOW = r"[|｜]", r"[_▁ ]"
# Opening marks of calls.
OPENING = re.compile(
    rf"<{_BAR}?tool{_LOW}?calls?{_BAR}?>|<minimax:tool_call>|<{_BAR}DSML{_BAR}\s?(?:function|tool)_calls>"
    rf"|<(?:antml:)?function_calls?>|<{_BAR}tool{_LOW}calls?{_LOW}(?:section{_LOW})?begin{_BAR}>"
    rf"|\[TOOL_CALLS\]|<{_BAR}python_tag{_BAR}>|<function[= ]|<(?:{_BAR}DSML{_BAR})?invoke "
    rf"|<{_BAR}channel{_BAR}>commentary to=|functools(?=\[)"
)
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
    """Consecutive calls from a mark on, their end, and the end of the searched text."""
    calls: list[Pair] = []
    at = end = start
    while at < len(text):
        filler = _FILLER.match(text, at)
        if filler:
            at = filler.end()
            end = at if calls else end
            continue
        parsed = _call_at(text, at, names)
        if parsed is None:
            break
        more, at = parsed
        calls += more
        end = at
    return calls, end, max(at, start + 1)


def _call_at(text: str, at: int, names: Collection[str]) -> tuple[list[Pair], int] | None:
    if text[at] in "{[":
        return _json_calls(text, at, names)
    for opening, ending in ((_TOKEN_CALL, _TOKEN_END), (_CHANNEL, None)):
        if match := opening.match(text, at):
            raw, end = _raw(text, match.end(), ending)
            return [(clean_name(match.group(1), names), raw)], end
    for opening, closing in ((_FUNCTION, re.compile("</function>")), (_INVOKE, _INVOKE_END)):
        if match := opening.match(text, at):
            name = clean_name(match.group(1), names)
            if text.startswith("{", _after_space(text, match.end())):
                raw, end = _raw(text, match.end(), closing)
                return [(name, raw)], end
            values, end = _parameters(text, match.end())
            close = closing.match(text, _after_space(text, end))
            if close is None and values == "{}":
                # A tag of something else.
                return None
            return [(name, values)], close.end() if close else end
    return _named(text, at, names)


def _named(text: str, at: int, names: Collection[str]) -> tuple[list[Pair], int] | None:
    """A name followed by arguments: GLM's pairs of tags, or an object."""
    match = _PLAIN_NAME.match(text, at)
    if match is None:
        return None
    name = clean_name(match.group(1), names)
    end = match.end()
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
            # Cut off: kept as text that is not valid JSON.
            cut = to_json({**values, opening.group(1): text[opening.end() :]})
            return cut.removesuffix('"}'), len(text)
        value = text[opening.end() : close.start()]
        value = value.removeprefix("\n").removesuffix("\n")
        values[opening.group(1)] = value
        at = close.end()


def _raw(text: str, at: int, ending: re.Pattern[str] | None) -> tuple[str, int]:
    """The raw arguments, and the index after them."""
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
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _json_calls(text: str, at: int, names: Collection[str]) -> tuple[list[Pair], int] | None:
    size = value_size(text[at:])
    if size:
        value = next(parse_each(text[at : at + size]))[0]
        calls = [as_call(item, names) for item in (value if isinstance(value, list) else [value])]
        valid = [call for call in calls if call is not None]
        return (valid, at + size) if valid and len(valid) == len(calls) else None
    # Broken JSON: the name is readable; the pipeline reports the fault in the arguments.
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


_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*|(`+)|^[ \t]*>[^\n]*", re.MULTILINE)
# Openings of calls, to recognise an incomplete one at the end of a stream.
OPENERS = (
    "<tool_call>", "<tool_calls>", "<|tool_call|>", "<|tool_calls|>", "<minimax:tool_call>",
    "<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke ", "<function_call>",
    "<function_calls>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>", "[TOOL_CALLS]", "<|python_tag|>", "<function=",
    "<function name=", "<invoke name=", "<|channel|>commentary to=", "functools[",
)  # fmt: skip


class TextCalls(NamedTuple):
    """The calls in a text, as name and arguments, and the text without them."""

    calls: list[Pair]
    rest: str


def find_calls(text: str, names: Collection[str]) -> TextCalls:
    """The calls in a text, and the text without them.

    A marked call counts with any name, so that a wrong name gets an error; an unmarked one only if
    it is the whole text and calls a tool in `names`.
    """
    bare = bare_calls(text, names)
    if bare:
        return TextCalls(bare, "")
    calls: list[Pair] = []
    rest: list[str] = []
    at = tried = 0
    for start in _marks(text):
        if start < tried:
            continue
        parsed, end, tried = calls_from(text, start, names)
        if parsed:
            calls += parsed
            rest.append(text[at:start])
            at = end
    rest.append(text[at:])
    return TextCalls(calls, "".join(rest).strip() if calls else text)


def first_mark(text: str) -> int:
    """The index where a call may begin in a streamed text; its length if nowhere."""
    match = OPENING.search(text)
    if match:
        return match.start()
    for at in range(max(len(text) - 32, 0), len(text)):
        if text[at] in "<[f" and any(opener.startswith(text[at:]) for opener in OPENERS):
            return at
    return len(text)


def looks_like_call(text: str, names: Collection[str]) -> bool:
    """Whether an answer is a tool call written as text, or ends with one.

    Also where `find_calls` does not accept it: after other text, or in the only code fence. The
    model can be asked to call the tool itself.
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
    """The indices of opening marks outside of code."""
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
        match = close.search(text, code.end())
        return match.end() if match else len(text)
    if ticks:
        # A backtick without a closing one in its paragraph is a plain character.
        match = re.compile(rf"(?<!`){ticks}(?!`)|\n\n").search(text, code.end())
        return match.end() if match and match.group() == ticks else code.end()
    return code.end()

"""Messages made smaller: results become handles, what is older a record and the facts in it.

Plain functions over messages; `compaction` decides which of them is used when. A step is what
belongs together: one message of a person, or one answer of the model with the results of its calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hermes.agent.prompt import PROGRAM
from hermes.core.errors import HermesError
from hermes.core.jsontext import to_json
from hermes.core.messages import Message, ToolUse
from hermes.runtime.fit import fit
from hermes.safety.acts import acts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from hermes.runtime.artifacts import ArtifactStore
    from hermes.runtime.pipeline import Runtime

    Step = list[Message]

HEAD = "Summary of this conversation so far. Its beginning was left out to make room."
_MARK = "\n\n--- kept word for word ---\n"
_REQUESTS, _TASKS = "Requests of the person, in order:", "Task list:"
_CHANGED, _READ = "Files changed:", "Files read:"

# Characters: of a result that became a handle, of a long argument, of a line in the record.
SMALL = 500
_ARGUMENT = 1_000
_LINE = 2_000
_REQUEST = 1_500
_TASK_LIST = 6_000
_MOST_REQUESTS = 40
_SMALLEST_LINE = 60
_IMAGE_TOKENS = 1_200
_MESSAGE_TOKENS = 6


def tokens(message: Message) -> int:
    """About how many tokens a message takes: two for seven bytes, which fits most languages."""
    texts = (message.text, *(use.name + use.arguments for use in message.calls))
    size = sum(map(_bytes, texts)) + (_bytes(to_json(message.extra)) if message.extra else 0)
    return size * 2 // 7 + _IMAGE_TOKENS * len(message.images) + _MESSAGE_TOKENS


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def steps_of(messages: Iterable[Message]) -> list[Step]:
    """The messages by step, so that no call is parted from its result."""
    steps: list[Step] = []
    for message in messages:
        if message.role == "tool" and steps:
            steps[-1].append(message)
        else:
            steps.append([message])
    return steps


def flat(steps: Iterable[Step]) -> list[Message]:
    """The messages of steps."""
    return [message for step in steps for message in step]


# -- handles ----------------------------------------------------------------------------------


def with_handles(step: Step, artifacts: ArtifactStore | None, limit: int = SMALL) -> Step:
    """A step whose long results and arguments are cut; the results can be read by handle."""
    return [_smaller(message, artifacts, limit) for message in step]


def _smaller(message: Message, artifacts: ArtifactStore | None, limit: int) -> Message:
    replace = msgspec.structs.replace
    if message.images:
        note = f"({len(message.images)} image(s) left out)"
        message = replace(message, images=(), text=f"{message.text}\n{note}".strip())
    if message.role == "tool" and len(message.text) > limit:
        return replace(message, text=_cut(message.text, artifacts, limit))
    if message.role == "assistant" and not message.extra:
        # With extras of a provider's the calls stay: those are signed, or refer to them.
        return replace(message, calls=tuple(map(_short_use, message.calls)))
    return message


def _cut(text: str, artifacts: ArtifactStore | None, limit: int, source: str = "") -> str:
    value = _decoded(text)
    if not source and isinstance(value, dict) and [*value] == ["untrusted", "result"]:
        # The words of strangers stay marked, here and where the whole is kept.
        source = str(value["untrusted"]) or "somebody"
        inner = _cut(to_json(value["result"]), artifacts, limit, source)
        return f'{{"untrusted":{to_json(source)},"result":{inner}}}'
    handle = value.get("artifact") if isinstance(value, dict) else None
    if isinstance(handle, str) and value.get("truncated"):
        # It was cut before: the handle of the whole is worth more than one of the part.
        shown = {"result": text[: limit // 3], "truncated": True, "artifact": handle}
        note = f'read_artifact("{handle}", offset=…, limit=…, pattern=…) shows the rest'
        return to_json({**shown, "total_chars": value.get("total_chars"), "note": note})
    return fit(text, limit, artifacts, source)[0]


def _short_use(use: ToolUse) -> ToolUse:
    value = _decoded(use.arguments) if len(use.arguments) > _ARGUMENT else None
    if not isinstance(value, dict):
        return use
    short = {
        key: f"{one[:200]}… ({len(one):,} characters, not repeated here)"
        if isinstance(one, str) and len(one) > _ARGUMENT
        else one
        for key, one in value.items()
    }
    return ToolUse(use.id, use.name, to_json(short))


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


# -- the record -------------------------------------------------------------------------------


def record(messages: Iterable[Message]) -> list[str]:
    """What was said and done, a paragraph for each message, long ones cut in their middle."""
    lines = []
    for message in messages:
        if is_summary(message):
            lines.append(message.text)
            continue
        if message.text:
            who = f"result of {message.name}" if message.role == "tool" else message.role
            lines.append(f"[{who}] {_middle_cut(message.text, _LINE)}")
        lines += [f"[call] {u.name} {_middle_cut(u.arguments, _LINE)}" for u in message.calls]
    return lines


def _middle_cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    gone = len(text) - most
    return f"{text[: most * 2 // 3]} …({gone:,} characters)… {text[len(text) - most // 3 :]}"


# -- the facts --------------------------------------------------------------------------------


class Facts:
    """What no summary may lose: requests, the task list, files changed and read."""

    def __init__(self, messages: Sequence[Message], runtime: Runtime) -> None:
        self.requests: list[str] = []
        self.task_list = ""
        self.changed: dict[str, None] = {}
        self.read: dict[str, None] = {}
        for message in messages:
            if is_summary(message):
                self._take_over(message.text)
            elif message.role == "user" and not message.text.startswith(PROGRAM):
                self.requests.append(_one_line(message.text, _REQUEST))
            elif message.role == "tool" and message.name == "todo":
                self.task_list = _one_line(message.text, _TASK_LIST)
            for use in message.calls:
                self._note_files(use, runtime)

    def _note_files(self, use: ToolUse, runtime: Runtime) -> None:
        entry = runtime.registry.resolve(use.name)
        arguments = _decoded(use.arguments)
        if entry is None or not entry.acts or not isinstance(arguments, dict):
            return
        try:
            acts = acts_of(entry, arguments, runtime.context())
        except (HermesError, KeyError, TypeError, ValueError, AttributeError):
            # Arguments that the tool itself would refuse name no files.
            return
        for act in acts:
            if act.kind in ("read", "write", "delete"):
                files = self.read if act.kind == "read" else self.changed
                path = _one_line(act.value, 300)
                # The newest at the end: the oldest go first when there are too many.
                files.pop(path, None)
                files[path] = None

    def _take_over(self, text: str) -> None:
        """What an earlier summary had kept."""
        kept: dict[str, list[str]] = {}
        current: list[str] = []
        for line in text.rpartition(_MARK)[2].splitlines():
            if line in (_REQUESTS, _TASKS, _CHANGED, _READ):
                current = kept.setdefault(line, [])
            elif line:
                current.append(line.removeprefix("- "))
        self.requests += kept.get(_REQUESTS, [])
        self.task_list = "".join(kept.get(_TASKS, [])) or self.task_list
        self.changed |= dict.fromkeys(kept.get(_CHANGED, []))
        self.read |= dict.fromkeys(kept.get(_READ, []))

    def text(self, most: int) -> str:
        """The facts as they stand below a summary, in about `most` characters."""
        requests = self.requests
        if len(requests) > _MOST_REQUESTS:
            # The first says what it is all about, the last what is wanted now.
            requests = [*requests[:5], *requests[5 - _MOST_REQUESTS :]]
        each = max(most // 2 // max(len(requests), 1), _SMALLEST_LINE)
        read = [path for path in self.read if path not in self.changed]
        sections = [
            (_REQUESTS, [_middle_cut(request, each) for request in requests]),
            (_TASKS, [_middle_cut(self.task_list, most // 4)] if self.task_list else []),
            (_CHANGED, _newest(self.changed, most // 6)),
            (_READ, _newest(read, most // 12)),
        ]
        return "\n\n".join(
            "\n".join([heading, *(f"- {line}" for line in lines)])
            for heading, lines in sections
            if lines
        )


def _newest(paths: Iterable[str], most: int) -> list[str]:
    """As many of the last paths as `most` characters hold, in their order."""
    kept: list[str] = []
    for path in reversed(list(paths)):
        most -= len(path) + 3
        if most < 0:
            break
        kept.append(path)
    return kept[::-1]


def summary_message(summary: str, facts: Facts, most: int) -> Message:
    """What stands for everything that was left out; the facts in about `most` characters."""
    hint = "It is a record and no new request; session_search finds the words themselves."
    return Message("user", f"{HEAD} {hint}\n\n{summary.strip()}{_MARK}{facts.text(most)}")


def is_summary(message: Message) -> bool:
    """Whether a message stands for others."""
    return message.role == "user" and message.text.startswith(HEAD) and _MARK in message.text


def _one_line(text: str, most: int) -> str:
    return _middle_cut(" ".join(text.split()), most)

"""Turn of a conversation with the embedded model, from the request to the report.

- Routing first: chat is answered without tools.
- For a task the prompt has few tools, one worked example, the request and the files of the
  workspace. After every result the request is repeated.
- A grammar (grammar.py) allows only actions that can be carried out.
- The same call is not run twice, and only files that the request names are written.
- The report at the end is made from the tool results.

Within a turn the prompt only grows at its end, so the engine reads each part of it once.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from hermes.core.entry import ToolCall
from hermes.core.model_protocol import Done, Message, TextDelta, ToolUse
from hermes.embedded import prompts
from hermes.embedded.arithmetic import invalid_expression
from hermes.embedded.checks import (
    actions,
    already_calculated,
    correction,
    mentions_result,
    overwrite_warning,
    signatures,
    ungrounded_expression,
    ungrounded_numbers,
    ungrounded_text,
    unknown_numbers,
    without_numbers,
    wrong_target,
)
from hermes.embedded.engine_client import Completion
from hermes.embedded.file_guard import NamedFiles, changes, command_changes, refusal
from hermes.embedded.provider import usage_of
from hermes.embedded.result_text import NOT_EXECUTABLE, NOT_FOUND, cut, output
from hermes.embedded.task import Task, report
from hermes.embedded.tools import (
    adjusted,
    available_tools,
    file_list,
    files_of,
    path_exists,
    search_words,
    with_disk_facts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Event, Finish, Usage
    from hermes.embedded.prompts import Prompt, Turns
    from hermes.embedded.tools import SmallTool
    from hermes.runtime.pipeline import Runtime
    from hermes.runtime.tool_offer import Offer

    class TurnState(Protocol):
        """The state of a turn that the agent's loop keeps."""

        turn: str
        steps: int
        usage: Usage
        refused: list[str]

    class Conversation(Protocol):
        """The methods of the agent's conversation that a turn uses."""

        provider: Any
        runtime: Runtime
        offer: Offer
        budget: Any
        messages: list[Message]
        last_input: int

        @property
        def steered(self) -> bool: ...
        def context(self, turn: str, /) -> ToolContext: ...
        def append(
            self, message: Message, *, usage: Usage | None = None, turn: str = ""
        ) -> None: ...
        def emit(self, event: Event) -> None: ...
        def pay(self, done: Done) -> str: ...
        def take_steering(self, turn: str) -> None: ...
        def with_own_ids(self, message: Message) -> Message: ...
        async def run_calls(self, done: Done, state: Any) -> str: ...
        def result(self, state: Any, text: str, ended: Any = ..., reason: str = ...) -> Any: ...


STEPS = 8
_ACTION_TOKENS, _REPLY_TOKENS = 450, 500
# Characters of a result that is shown in place of an answer.
_SHOWN_LENGTH = 800


class EmbeddedTurn:
    """One turn; the conversation is the agent's."""

    def __init__(self, conversation: Conversation, state: TurnState) -> None:
        self.conversation = conversation
        self.state = state

    async def run(self, text: str) -> Any:
        """Answer a request; the result of the turn."""
        turns = prompts.earlier(self.conversation.messages[:-1])
        files = await asyncio.to_thread(files_of, self._context())
        named = NamedFiles(text, files)
        if await self._is_chat(text, named, turns):
            return await self._chat(text, turns)
        if turns and not named.paths and not named.files:
            # `Add a line to it`: the files of the turn before.
            named = NamedFiles("\n".join((text, *turns[-1])), files)
        before = "\n".join(said for _, said in prompts.history(turns))
        tools = available_tools(self.conversation.offer.reachable)
        return await self._task(Task(text, named, files, tools, before=before), turns)

    def _context(self) -> ToolContext:
        return self.conversation.context(self.state.turn)

    # -- chat -----------------------------------------------------------------------------------

    async def _is_chat(self, text: str, named: NamedFiles, turns: Turns) -> bool:
        if named.files and named.paths:
            return False
        before = turns[-1][0] if turns and self._last_was_task() else ""
        question = prompts.question(text, before=before)
        answer = await self._ask(
            question, slot=prompts.ROUTING_SLOT, grammar=prompts.GRAMMAR, most=4
        )
        return answer.text.strip() == prompts.CHAT

    def _last_was_task(self) -> bool:
        for message in reversed(self.conversation.messages[:-1]):
            if message.role == "user":
                return False
            if message.role == "tool":
                return True
        return False

    async def _chat(self, text: str, turns: Turns) -> Any:
        self.state.steps += 1
        prompt = prompts.chat_prompt(turns, text)
        answer = await self._ask(prompt, slot=prompts.CHAT_SLOT, most=_REPLY_TOKENS, stream=True)
        reply = answer.text.strip()
        self._append_answer(reply, answer)
        return self.conversation.result(self.state, reply)

    # -- task -----------------------------------------------------------------------------------

    async def _task(self, task: Task, turns: Turns) -> Any:
        prompt = [*prompts.task_prompt(task.tools.values()), *prompts.history(turns)]
        prompt.append(("user", f"{task.text}\n{file_list(task.files)}"))
        while True:
            self.state.steps += 1
            may_call = self.state.steps < STEPS and not task.only_reply
            # A reply needs a result first, and after a call in vain another one is tried.
            may_reply = not may_call or (bool(task.results) and not task.again)
            grammar = actions(signatures(task), call=may_call, reply=may_reply)
            answer = await self._ask(
                prompt, slot=prompts.TASK_SLOT, grammar=grammar, most=_ACTION_TOKENS
            )
            action = _action(answer)
            if "reply" not in action:
                shown = await self._step(task, action, answer)
            elif not (shown := await self._objection(task, str(action["reply"]), may_call)):
                return await self._finish(task, str(action["reply"]), answer)
            task.text = "\n".join([task.text, *self._steering()])
            result = prompts.result(shown, task.text, more=not task.only_reply)
            prompt += [("assistant", answer.text.strip()), ("user", result)]

    async def _objection(self, task: Task, reply: str, may_call: bool) -> str:
        """The reason why a reply does not end the task yet; else ""."""
        if self.conversation.steered and may_call:
            return "Something was added to the request."
        if not task.copied and prompts.copied(reply, task.prompt):
            task.copied = True
            return "That is the answer to the example, not to this request."
        if may_call and (lacking := await self._lacking(task, reply)):
            task.rejected.append(reply)
            return lacking
        if not task.corrected and (wrong := _wrong(task, reply)):
            task.corrected = True
            if may_call and not task.measured and "calculate" in signatures(task):
                # Asked once more in words, the model repeats its mistake.
                task.only, task.again = "calculate", True
            return wrong
        return ""

    async def _lacking(self, task: Task, reply: str) -> str:
        """A part of the request that is not done and that the reply does not mention."""
        context = self._context()
        changed = await asyncio.to_thread(changes, context)
        return await asyncio.to_thread(
            task.lacking,
            reply,
            changed=bool(changed),
            exists=lambda path: path_exists(context, path),
        )

    async def _finish(self, task: Task, reply: str, answer: Completion) -> Any:
        context = self._context()
        changed = await asyncio.to_thread(changes, context)
        if prompts.copied(reply, task.prompt):
            reply = cut(next(reversed(task.results.values()), ""), _SHOWN_LENGTH)
        elif task.repeats_notice(reply) and task.rejected:
            # The reply repeats our reminder; the one before it is better.
            reply = task.rejected[-1]
        failed = [*task.failures.values(), *task.refusals]
        missing = await asyncio.to_thread(task.missing, lambda path: path_exists(context, path))
        facts = _facts(task, reply)
        reply = without_numbers(reply, ungrounded_numbers(reply, task.known))
        text = report(
            reply, changed, failed=failed, ran=task.outputs, missing=missing,
            facts=facts, seen=task.seen,
        )  # fmt: skip
        self.conversation.emit(TextDelta(text))
        self.state.refused += task.refusals
        self._append_answer(text, answer)
        if not task.failures:
            return self.conversation.result(self.state, text)
        return self.conversation.result(self.state, text, "stopped", "; ".join(failed))

    def _steering(self) -> list[str]:
        """Messages that arrived since the last step."""
        messages = self.conversation.messages
        before = len(messages)
        self.conversation.take_steering(self.state.turn)
        return [message.text for message in messages[before:]]

    # -- the model ------------------------------------------------------------------------------

    async def _ask(
        self, prompt: Prompt, *, slot: int, most: int, grammar: str = "", stream: bool = False
    ) -> Completion:
        conversation = self.conversation
        conversation.budget.step()
        async for piece in conversation.provider.ask(prompt, slot=slot, grammar=grammar, most=most):
            if isinstance(piece, Completion):
                usage = usage_of(piece)
                conversation.pay(self._done(Message("assistant"), piece))
                conversation.last_input = usage.input
                self.state.usage += usage
                return piece
            if stream:
                conversation.emit(TextDelta(piece))
        raise AssertionError("the engine ends with the whole answer")

    def _append_answer(self, text: str, answer: Completion) -> None:
        message = Message("assistant", text)
        self.conversation.append(message, usage=usage_of(answer), turn=self.state.turn)
        self.conversation.emit(self._done(message, answer))

    def _done(self, message: Message, answer: Completion) -> Done:
        finish: Finish = "calls" if message.calls else "stop"
        provider = self.conversation.provider
        return Done(message, finish, usage_of(answer), provider.model, provider.name)

    # -- one step of a task -----------------------------------------------------------------------

    async def _step(self, task: Task, action: dict[str, Any], answer: Completion) -> str:
        """Carry out one action; its result as text for the model."""
        conversation, turn = self.conversation, self.state.turn
        task.barred = task.only = ""
        if not action:
            task.cut_off += 1
            task.only_reply = task.cut_off > 1
            begun = _begun(answer)
            # A file's text can be written shorter; an endless expression can't.
            task.barred = "" if begun in task.tools and task.tools[begun].writes else begun
            return "That was cut off, it was too long. Nothing was done. Use a shorter text."
        tool, arguments = task.tools[action["tool"]], action["args"]
        key = json.dumps(action, sort_keys=True)
        if key in task.results or _undoes(action, task.results):
            # One other attempt; after a second repetition it has to reply.
            task.repeated += 1
            task.barred, task.only_reply = tool.name, task.repeated > 1
            return task.results.get(key) or "That would undo what was just done."
        arguments = await asyncio.to_thread(adjusted, self._context(), tool, arguments)
        use = ToolUse("", tool.real, json.dumps(tool.call(arguments), ensure_ascii=False))
        message = conversation.with_own_ids(Message("assistant", calls=(use,)))
        done = self._done(message, answer)
        conversation.append(message, usage=done.usage, turn=turn)
        conversation.emit(done)
        if refused := await self._refusal(task, tool, arguments, key):
            task.notices.append(refused)
            use = message.calls[0]
            error = json.dumps({"error": refused})
            conversation.append(Message("tool", error, call_id=use.id, name=use.name), turn=turn)
            return refused
        if unproved := unknown_numbers(tool, arguments, task.prompt):
            task.unproved[str(arguments["path"])] = unproved
        before = len(self.state.refused)
        stop = await conversation.run_calls(done, self.state)
        task.only_reply = bool(stop) or len(self.state.refused) > before
        task.results[key] = await self._result(task, tool, arguments, message.calls[0].id)
        return task.results[key]

    async def _refusal(
        self, task: Task, tool: SmallTool, arguments: dict[str, Any], key: str
    ) -> str:
        """The reason why a call is not made; else ""."""
        context = self._context()
        refused = await asyncio.to_thread(refusal, tool, arguments, task.named, context)
        if not refused and task.repeats_notice(str(arguments.get("content", ""))):
            refused = "Not written: that is no text for a file. Do what the request says."
        if refused:
            task.refused(refused)
        elif tool.name == "calculate" and (refused := _invalid_expression(arguments, task)):
            task.note_failed_try()
            task.barred = tool.name
        elif key not in task.doubted:
            refused = await self._doubt(task, tool, arguments, context)
            if refused:
                task.doubted.add(key)
        return refused

    async def _doubt(
        self, task: Task, tool: SmallTool, arguments: dict[str, Any], context: ToolContext
    ) -> str:
        """The reason why the model should reconsider a write, raised once; else ""."""
        path = str(arguments.get("path", ""))
        if tool.name == "write_file" and path in task.files and not task.has_read(path):
            text = await self._text_of(path, task, context)
            if text:
                return overwrite_warning(path, text)
        missing = await asyncio.to_thread(task.missing, lambda path: path_exists(context, path))
        return (
            already_calculated(tool, arguments, task.results.values())
            or wrong_target(tool, arguments, task.text, missing)
            or ungrounded_text(tool, arguments, task.prompt)
        )

    async def _text_of(self, path: str, task: Task, context: ToolContext) -> str:
        """A file's content as the model sees it; "" if it can't be read."""
        tool = task.tools.get("read_file")
        if tool is None:
            return ""
        data = await self._call(tool, tool.call({"path": path}), context, "look")
        return tool.show(data, {"path": path}, task.text) if data.get("content") else ""

    async def _call(
        self,
        tool: SmallTool,
        arguments: dict[str, Any],
        context: ToolContext,
        id: str,  # noqa: A002
    ) -> dict[str, Any]:
        """The result of a call that is not part of the conversation."""
        call = ToolCall(tool.real, arguments, id=id)
        return _data((await self.conversation.runtime.call(call, context)).content)

    async def _result(
        self, task: Task, tool: SmallTool, arguments: dict[str, Any], call_id: str
    ) -> str:
        """The result of the last call as text; updates the state of the task."""
        messages = self.conversation.messages
        data = _data(next(m.text for m in reversed(messages) if m.call_id == call_id))
        context = self._context()
        if "error" in data:
            task.failed(tool, arguments, data["error"])
            return await self._error_text(data, tool, arguments, task, context)
        if tool.after is not None:
            data |= await self._call(tool, tool.after(arguments), context, "after")
        if tool.name == "search_files" and not data.get("matches"):
            data = await self._search_words(data, tool, arguments, context)
        data = await asyncio.to_thread(with_disk_facts, context, tool, arguments, data)
        shown = tool.show(data, arguments, task.text)
        task.files = await asyncio.to_thread(files_of, context)
        code = int(data.get("exit_code") or 0)
        if tool.name == "terminal":
            command = str(arguments["command"])
            shown += await asyncio.to_thread(command_changes, command, call_id, task.named, context)
            task.outputs.append((command, output(data), code))
        if code and (tool.name != "terminal" or code in (NOT_EXECUTABLE, NOT_FOUND)):
            task.failed(tool, arguments, output(data).rsplit("\n", 1)[-1])
            return shown
        if tool.name == "system_info":
            task.measured = shown
        task.note_success(tool, arguments, shown)
        if tool.name == "search_files" and not data.get("matches"):
            task.note_failed_try()
            shown += f" {task.advice(str(arguments['text']))}"
        return shown

    async def _search_words(
        self,
        data: dict[str, Any],
        tool: SmallTool,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> dict[str, Any]:
        """Search for the single words of a text without a match."""
        words = search_words(arguments)
        if not words:
            return data
        result = await self._call(tool, words, context, "words")
        return {**result, "words": True} if result.get("matches") else data

    async def _error_text(
        self,
        data: dict[str, Any],
        tool: SmallTool,
        arguments: dict[str, Any],
        task: Task,
        context: ToolContext,
    ) -> str:
        """An error as text, with the file's content or the file list where that helps."""
        text = f"It did not work: {data['error']} {data.get('hint') or ''}".strip()
        path = arguments.get("path", "")
        if tool.name == "patch" and path in task.files:
            text += f"\n\nThe text is:\n{await self._text_of(path, task, context)}"
        elif path and path not in task.files:
            text += f"\n{file_list(task.files)}"
        return text


def _invalid_expression(arguments: dict[str, Any], task: Task) -> str:
    """The reason why an expression is not calculated; else ""."""
    expression = str(arguments["expression"])
    return invalid_expression(expression) or ungrounded_expression(expression, task.prompt)


def _undoes(action: dict[str, Any], done: Iterable[str]) -> bool:
    """Whether an edit reverts an earlier one."""
    arguments = action["args"]
    if action["tool"] != "patch":
        return False
    back = {**action, "args": {**arguments, "old": arguments["new"], "new": arguments["old"]}}
    return json.dumps(back, sort_keys=True) in done


def _begun(answer: Completion) -> str:
    """The tool of a call that was cut off."""
    return answer.text.strip().removeprefix('{"tool": "').partition('"')[0]


def _data(content: str) -> dict[str, Any]:
    """The result of a call as an object."""
    try:
        # A note of the loop may follow.
        data, _ = json.JSONDecoder().raw_decode(content)
    except ValueError:
        return {"stdout": content}
    return data if isinstance(data, dict) else {"stdout": str(data)}


def _wrong(task: Task, reply: str) -> str:
    """A correction of the numbers in a reply; else ""."""
    return correction(reply, task.known, next(reversed(task.results.values()), ""))


def _facts(task: Task, reply: str) -> list[str]:
    """Facts from the tool results that the reply lacks."""
    facts = [
        f"Not checked: {', '.join(some[:3])} in {path}, which is in no result."
        for path, some in task.unproved.items()
    ]
    if instead := task.instead():
        facts.append(f"This is from {' and '.join(instead[:3])}.")
    last = next(reversed(task.results.values()), "")
    # Only if the measurement is the last result: otherwise it was a step on the way.
    if task.measured and task.measured == last and not mentions_result(reply, last):
        facts.append(task.measured)
    if wrong := ungrounded_numbers(reply, task.known):
        facts.append(
            f"Left out: {', '.join(wrong[:3])}, which is in no result. The last one:\n"
            f"{cut(last, _SHOWN_LENGTH)}"
        )
    return facts


def _action(answer: Completion) -> dict[str, Any]:
    """The action that the model wrote; empty if it was cut off."""
    try:
        action: dict[str, Any] = json.loads(answer.text)
    except ValueError:
        lead = '{"reply": "'
        text = answer.text.strip()
        # A part of a reply is usable, a part of a call is not.
        return {"reply": f"{text.removeprefix(lead)} …"} if text.startswith(lead) else {}
    return action

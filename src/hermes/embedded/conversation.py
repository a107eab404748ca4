"""Conversation with the embedded model: one turn, from the request to the report.

- Routing first: chat is answered without tools.
- For a task the prompt has few tools, one worked example, the request and the files of the
workspace.
  After every result the request is repeated.
- A grammar (grammar.py) allows only actions that can be carried out.
- The same call is not run twice, and only files that the request names are written.
- The report at the end is made from the tool results.

Within a turn the prompt only grows at its end, so the engine reads each part of it once.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from hermes.agent.budget import SpentError
from hermes.agent.loop import Conversation, Result, Work
from hermes.agent.repeat_detector import LoopGuard
from hermes.core.entry import ToolCall
from hermes.core.messages import Message, ToolUse
from hermes.core.model_protocol import Done, TextDelta
from hermes.embedded import prompts
from hermes.embedded.arithmetic import senseless
from hermes.embedded.checks import (
    correction,
    elsewhere,
    from_nowhere,
    made_up,
    says_some,
    strange,
    unknown,
    without,
    worked_out_already,
    would_lose,
)
from hermes.embedded.engine_client import Answer
from hermes.embedded.file_guard import Named, after_command, changes, refusal
from hermes.embedded.grammar import actions, signatures
from hermes.embedded.provider import usage_of
from hermes.embedded.result_text import NOT_EXECUTABLE, NOT_FOUND, cut, output
from hermes.embedded.task import Task, report
from hermes.embedded.tools import offered, search_words
from hermes.embedded.workspace import file_list, files_of, fitted, is_there, looked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.core.context import ToolContext
    from hermes.core.model_protocol import Finish
    from hermes.embedded.prompts import Said, Turns
    from hermes.embedded.tools import SmallTool


class Acting(Conversation):
    """A conversation whose model acts by one small tool at a time."""

    async def _step(self, task: Task, action: dict[str, Any], answer: Answer, work: Work) -> str:
        """Carry out one action; what the model is told of it."""
        task.barred = task.only = ""
        if not action:
            task.cut_off += 1
            task.only_reply = task.cut_off > 1
            begun = _begun(answer)
            # A shorter text may do; an expression without end may not.
            task.barred = "" if begun in task.tools and task.tools[begun].writes else begun
            return "That was cut off, it was too long. Nothing was done. Use a shorter text."
        tool, given = task.tools[action["tool"]], action["args"]
        key = json.dumps(action, sort_keys=True)
        if key in task.results or _undoes(action, task.results):
            # Something else, once; a model that goes round in circles is to say what it has.
            task.repeated += 1
            task.barred, task.only_reply = tool.name, task.repeated > 1
            return task.results.get(key) or "That would undo what was just done."
        given = await asyncio.to_thread(fitted, self._context(work.turn), tool, given)
        use = ToolUse("", tool.real, json.dumps(tool.call(given), ensure_ascii=False))
        message = self._with_own_ids(Message("assistant", calls=(use,)))
        done = self._done(message, answer)
        self.append(message, usage=done.usage, turn=work.turn)
        self._tell(done)
        context = self._context(work.turn)
        refused = await asyncio.to_thread(refusal, tool, given, task.named, context)
        if not refused and task.parrots(str(given.get("content", ""))):
            refused = "Not written: that is no text for a file. Do what the request says."
        if refused:
            task.refused(refused)
        elif tool.name == "calculate" and (refused := _not_worked_out(given, task)):
            task.in_vain()
            task.barred = tool.name
        elif key not in task.doubted and (doubt := await self._doubt(task, tool, given, context)):
            task.doubted.add(key)
            refused = doubt
        if refused:
            task.notices.append(refused)
            use = message.calls[0]
            said = Message("tool", json.dumps({"error": refused}), call_id=use.id, name=use.name)
            self.append(said, turn=work.turn)
            return refused
        if unproved := unknown(tool, given, task.told):
            task.unproved[str(given["path"])] = unproved
        before = len(work.refused)
        stop = await self._carry_out(done, work)
        task.only_reply = bool(stop) or len(work.refused) > before
        task.results[key] = await self._shown(task, tool, given, message.calls[0].id, work)
        return task.results[key]

    async def _doubt(
        self, task: Task, tool: SmallTool, given: dict[str, Any], context: ToolContext
    ) -> str:
        """Why the model should think again before it writes this; else nothing."""
        path = str(given.get("path", ""))
        if tool.name == "write_file" and path in task.files and not task.has_read(path):
            text = await self._text_of(path, task, context)
            if text:
                return would_lose(path, text)
        missing = await asyncio.to_thread(task.missing, lambda path: is_there(context, path))
        return (
            worked_out_already(tool, given, task.results.values())
            or elsewhere(tool, given, task.text, missing)
            or from_nowhere(tool, given, task.told)
        )

    async def _text_of(self, path: str, task: Task, context: ToolContext) -> str:
        """What a file says, as the model is shown it; nothing if it can't be read."""
        look = task.tools.get("read_file")
        if look is None:
            return ""
        outcome = await self.runtime.call(
            ToolCall(look.real, look.call({"path": path}), id="look"), context
        )
        data = _data(outcome.content)
        return look.show(data, {"path": path}, task.text) if data.get("content") else ""

    async def _shown(
        self, task: Task, tool: SmallTool, given: dict[str, Any], call: str, work: Work
    ) -> str:
        """The result of the last call in words, and the files as they are now."""
        data = _data(next(m.text for m in reversed(self.messages) if m.call_id == call))
        context = self._context(work.turn)
        if "error" in data:
            task.failed(tool, given, data["error"])
            return await self._trouble(data, tool, given, task, context)
        if tool.after is not None:
            outcome = await self.runtime.call(
                ToolCall(tool.real, tool.after(given), id="after"), context
            )
            data |= _data(outcome.content)
        if tool.name == "search_files" and not data.get("matches"):
            data = await self._by_words(data, tool, given, context)
        data = await asyncio.to_thread(looked, context, tool, given, data)
        shown = tool.show(data, given, task.text)
        task.files = await asyncio.to_thread(files_of, context)
        code = int(data.get("exit_code") or 0)
        if tool.name == "terminal":
            command = str(given["command"])
            shown += await asyncio.to_thread(after_command, command, call, task.named, context)
            task.outputs.append((command, output(data), code))
        if code and (tool.name != "terminal" or code in (NOT_EXECUTABLE, NOT_FOUND)):
            task.failed(tool, given, output(data).rsplit("\n", 1)[-1])
            return shown
        if tool.name == "system_info":
            task.measured = shown
        task.did(tool, given, shown)
        if tool.name == "search_files" and not data.get("matches"):
            task.in_vain()
            shown += f" {task.advice(str(given['text']))}"
        return shown

    async def _by_words(
        self,
        data: dict[str, Any],
        tool: SmallTool,
        given: dict[str, Any],
        context: ToolContext,
    ) -> dict[str, Any]:
        """What a search gives for the words of a text that is nowhere as a whole."""
        call = search_words(given)
        if not call:
            return data
        outcome = await self.runtime.call(ToolCall(tool.real, call, id="words"), context)
        found = _data(outcome.content)
        return {**found, "words": True} if found.get("matches") else data

    async def _trouble(
        self,
        data: dict[str, Any],
        tool: SmallTool,
        given: dict[str, Any],
        task: Task,
        context: ToolContext,
    ) -> str:
        """What went wrong, with what helps to do better."""
        told = f"It did not work: {data['error']} {data.get('hint') or ''}".strip()
        path = given.get("path", "")
        if tool.name == "patch" and path in task.files:
            told += f"\n\nThe text is:\n{await self._text_of(path, task, context)}"
        elif path and path not in task.files:
            told += f"\n{file_list(task.files)}"
        return told

    def _done(self, message: Message, answer: Answer) -> Done:
        finish: Finish = "calls" if message.calls else "stop"
        return Done(message, finish, usage_of(answer), self.provider.model, self.provider.name)


def _not_worked_out(given: dict[str, Any], task: Task) -> str:
    """Why an expression is none, or none of this task; else nothing."""
    expression = str(given["expression"])
    return senseless(expression) or made_up(expression, task.told)


def _undoes(action: dict[str, Any], done: Iterable[str]) -> bool:
    """Whether an edit takes back one that was made."""
    given = action["args"]
    if action["tool"] != "patch":
        return False
    back = {**action, "args": {**given, "old": given["new"], "new": given["old"]}}
    return json.dumps(back, sort_keys=True) in done


def _begun(answer: Answer) -> str:
    """The tool that a call which was cut off is for."""
    return answer.text.strip().removeprefix('{"tool": "').partition('"')[0]


def _data(content: str) -> dict[str, Any]:
    """The result of a call; what is not an object is put into one."""
    try:
        # A remark of the loop may follow.
        data, _ = json.JSONDecoder().raw_decode(content)
    except ValueError:
        return {"stdout": content}
    return data if isinstance(data, dict) else {"stdout": str(data)}


STEPS = 8
_ACTION, _REPLY = 450, 500
# As much of a result as stands in for an answer.
_SHOWN = 800


class SmallConversation(Acting):
    """`Conversation`, for the embedded model."""

    async def _turn(self, name: str, request: Message) -> Result:
        self.budget.renew()
        work = Work(name, LoopGuard())
        turns = prompts.earlier(self.messages)
        self.append(request, turn=name)
        try:
            async with self.budget.in_time():
                return await self._heard(request.text, turns, work)
        except SpentError as error:
            return self._end(work, "spent", str(error))
        finally:
            self._running = None

    async def _heard(self, text: str, turns: Turns, work: Work) -> Result:
        files = await asyncio.to_thread(files_of, self._context(work.turn))
        named = Named(text, files)
        if await self._is_chat(text, named, turns, work):
            return await self._chat(text, turns, work)
        if turns and not named.paths and not named.files:
            # `Add a line to it`: what was spoken of before is meant.
            named = Named("\n".join((text, *turns[-1])), files)
        before = "\n".join(said for _, said in prompts.history(turns))
        task = Task(text, named, files, offered(self.offer.reachable), before=before)
        return await self._task(task, turns, work)

    # -- chat -----------------------------------------------------------------------------------

    async def _is_chat(self, text: str, named: Named, turns: Turns, work: Work) -> bool:
        if named.files and named.paths:
            return False
        before = turns[-1][0] if turns and self._last_was_task() else ""
        question = prompts.question(text, before=before)
        answer = await self._say(
            question, work, slot=prompts.ROUTING, grammar=prompts.GRAMMAR, most=4
        )
        return answer.text.strip() == prompts.CHAT

    def _last_was_task(self) -> bool:
        for message in reversed(self.messages[:-1]):
            if message.role == "user":
                return False
            if message.role == "tool":
                return True
        return False

    async def _chat(self, text: str, turns: Turns, work: Work) -> Result:
        work.steps += 1
        said = prompts.talking(turns, text)
        answer = await self._say(said, work, slot=prompts.TALKING, most=_REPLY, aloud=True)
        return self._answered(answer.text.strip(), answer, work)

    # -- a task ---------------------------------------------------------------------------------

    async def _task(self, task: Task, turns: Turns, work: Work) -> Result:
        said = [*prompts.working(task.tools.values()), *prompts.history(turns)]
        said.append(("user", f"{task.text}\n{file_list(task.files)}"))
        while True:
            work.steps += 1
            may_call = work.steps < STEPS and not task.only_reply
            # A task is not answered out of thin air: something is looked at or done first, and
            # one call in vain is not all there is to try.
            may_reply = not may_call or (bool(task.results) and not task.again)
            grammar = actions(signatures(task), call=may_call, reply=may_reply)
            answer = await self._say(
                said, work, slot=prompts.WORKING, grammar=grammar, most=_ACTION
            )
            action = _action(answer)
            if "reply" not in action:
                shown = await self._step(task, action, answer, work)
            elif self._steering and may_call:
                shown = "Something was added to the request."
            elif not task.copied and prompts.copied(action["reply"], task.told):
                task.copied = True
                shown = "That is the answer to the example, not to this request."
            elif may_call and (lacking := await self._lacking(task, str(action["reply"]), work)):
                shown = lacking
                task.unsaid.append(str(action["reply"]))
            elif not task.corrected and (wrong := _wrong(task, str(action["reply"]))):
                task.corrected = True
                shown = wrong
                if may_call and not task.measured and "calculate" in signatures(task):
                    # Asked again in words, the model says the same again.
                    task.only, task.again = "calculate", True
            else:
                return await self._finish(task, str(action["reply"]), answer, work)
            task.text = "\n".join([task.text, *self._steered(work.turn)])
            told = prompts.result(shown, task.text, more=not task.only_reply)
            said += [("assistant", answer.text.strip()), ("user", told)]

    async def _lacking(self, task: Task, reply: str, work: Work) -> str:
        """What the request still lacks, if the model has not noticed."""
        context = self._context(work.turn)
        changed = await asyncio.to_thread(changes, context)
        return await asyncio.to_thread(
            task.lacking, reply, changed=bool(changed), there=lambda path: is_there(context, path)
        )

    async def _finish(self, task: Task, reply: str, answer: Answer, work: Work) -> Result:
        context = self._context(work.turn)
        changed = await asyncio.to_thread(changes, context)
        if prompts.copied(reply, task.told):
            reply = cut(next(reversed(task.results.values()), ""), _SHOWN)
        elif task.parrots(reply) and task.unsaid:
            # What the model was reminded of is no answer; the one it had may be.
            reply = task.unsaid[-1]
        failed = [*task.failures.values(), *task.refusals]
        missing = await asyncio.to_thread(task.missing, lambda path: is_there(context, path))
        facts = _facts(task, reply)
        reply = without(reply, strange(reply, task.known))
        text = report(
            reply, changed, failed=failed, ran=task.outputs, missing=missing,
            facts=facts, seen=task.seen,
        )  # fmt: skip
        self._tell(TextDelta(text))
        work.refused += task.refusals
        result = self._answered(text, answer, work)
        if not task.failures:
            return result
        return Result(
            text, "stopped", result.usage, result.steps, result.refused, "; ".join(failed)
        )

    # -- asking and ending ----------------------------------------------------------------------

    async def _say(
        self,
        said: Said,
        work: Work,
        *,
        slot: int,
        most: int,
        grammar: str = "",
        aloud: bool = False,
    ) -> Answer:
        self.budget.step()
        provider: Any = self.provider
        async for heard in provider.ask(said, slot=slot, grammar=grammar, most=most):
            if isinstance(heard, Answer):
                usage = usage_of(heard)
                self._pay(self._done(Message("assistant"), heard))
                self.last_input = usage.input
                work.usage += usage
                return heard
            if aloud:
                self._tell(TextDelta(heard))
        raise AssertionError("an answer ends with all of it")

    def _answered(self, text: str, answer: Answer, work: Work) -> Result:
        message = Message("assistant", text)
        self.append(message, usage=usage_of(answer), turn=work.turn)
        self._tell(self._done(message, answer))
        return Result(text, "answered", work.usage, work.steps, tuple(work.refused))

    def _steered(self, turn: str) -> list[str]:
        """What was said meanwhile."""
        before = len(self.messages)
        self._take_steering(turn)
        return [message.text for message in self.messages[before:]]


def _wrong(task: Task, reply: str) -> str:
    """What is wrong with the numbers of a reply."""
    return correction(reply, task.known, next(reversed(task.results.values()), ""))


def _facts(task: Task, reply: str) -> list[str]:
    """What the tools said, as far as a reply should have said it."""
    facts = [
        f"Not checked: {', '.join(some[:3])} in {path}, which is in no result."
        for path, some in task.unproved.items()
    ]
    if instead := task.instead():
        facts.append(f"This is from {' and '.join(instead[:3])}.")
    last = next(reversed(task.results.values()), "")
    # What was measured on the way to something else is not what was asked for.
    if task.measured and task.measured == last and not says_some(reply, last):
        facts.append(task.measured)
    if wrong := strange(reply, task.known):
        facts.append(
            f"Left out: {', '.join(wrong[:3])}, which is in no result. The last one:\n"
            f"{cut(last, _SHOWN)}"
        )
    return facts


def _action(answer: Answer) -> dict[str, Any]:
    """What the model wants; nothing when it was cut off."""
    try:
        action: dict[str, Any] = json.loads(answer.text)
    except ValueError:
        lead = '{"reply": "'
        text = answer.text.strip()
        # Half an answer is an answer; half a call is none.
        return {"reply": f"{text.removeprefix(lead)} …"} if text.startswith(lead) else {}
    return action

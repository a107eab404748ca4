"""One step of a task: an action of the model becomes a call, and what came of it words.

Before a call: may it be made at all, and does the model mean it? After it: what it says, what it
changed, and whether something else has to be tried.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from hermes.agent.loop import Conversation
from hermes.agent.providers.embedded.calling import search_words
from hermes.agent.providers.embedded.doubting import (
    elsewhere,
    from_nowhere,
    made_up,
    unknown,
    worked_out_already,
    would_lose,
)
from hermes.agent.providers.embedded.expressions import senseless
from hermes.agent.providers.embedded.guarding import after_command, refusal
from hermes.agent.providers.embedded.provider import usage_of
from hermes.agent.providers.embedded.showing import NOT_EXECUTABLE, NOT_FOUND, output
from hermes.agent.providers.embedded.surroundings import file_list
from hermes.agent.providers.embedded.workspace import files_of, fitted, is_there, looked
from hermes.agent.providers.protocol import Done
from hermes.core.entry import ToolCall
from hermes.core.messages import Message, ToolUse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hermes.agent.loop import Work
    from hermes.agent.providers.embedded.server import Answer
    from hermes.agent.providers.embedded.task import Task
    from hermes.agent.providers.embedded.toolbox import SmallTool
    from hermes.agent.providers.protocol import Finish
    from hermes.core.context import ToolContext


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

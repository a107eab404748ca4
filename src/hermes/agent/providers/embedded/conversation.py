"""A conversation with a small model: the recipe that makes it useful.

- A message is sorted first: chat is answered in words, with no tools in sight.
- For a task the model sees few tools, one worked example, the request and the files there are.
  After every result it sees the request again.
- It can only write actions that can be carried out: see `grammar.py`.
- The same call is not run twice, and no file is written that the request does not name.
- What is said at the end comes from what the tools did.

Within a turn the prompt only grows at its end, so that the engine reads each part of it once.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import TYPE_CHECKING

from hermes.agent.budget import SpentError
from hermes.agent.guard import LoopGuard
from hermes.agent.loop import Conversation, Result, Work
from hermes.agent.providers.embedded import recipe, routing
from hermes.agent.providers.embedded.changes import changes
from hermes.agent.providers.embedded.grammar import actions
from hermes.agent.providers.embedded.guarding import after_command, refusal
from hermes.agent.providers.embedded.naming import Named
from hermes.agent.providers.embedded.provider import usage_of
from hermes.agent.providers.embedded.reporting import report
from hermes.agent.providers.embedded.server import Answer
from hermes.agent.providers.embedded.surroundings import file_list, files_below
from hermes.agent.providers.embedded.toolbox import cut, offered
from hermes.agent.providers.protocol import Done, TextDelta
from hermes.core.entry import ToolCall
from hermes.core.messages import Message, ToolUse

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.providers.embedded.recipe import Said, Turns
    from hermes.agent.providers.embedded.toolbox import SmallTool
    from hermes.agent.providers.protocol import Finish
    from hermes.core.context import ToolContext


STEPS = 6
_ACTION, _REPLY = 450, 500
_PACKED = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")
_NUMBER = re.compile(r"\d+")
# As much of a result as stands in for an answer.
_SHOWN = 800


class SmallConversation(Conversation):
    """`Conversation`, for the embedded model."""

    async def _turn(self, name: str, request: Message) -> Result:
        self.budget.renew()
        work = Work(name, LoopGuard())
        turns = recipe.earlier(self.messages)
        text = request.text
        self.append(request, turn=name)
        try:
            context = self._context(name)
            files = await asyncio.to_thread(_files, context)
            named = Named(text, files)
            if await self._is_chat(text, named, turns, work):
                return await self._chat(text, turns, work)
            if turns and not named.paths and not named.files:
                # `Add a line to it`: what was spoken of before is meant.
                named = Named("\n".join((text, *turns[-1])), files)
            task = _Task(text, named, files, offered(self.offer.reachable))
            return await self._task(task, turns, work)
        except SpentError as error:
            return self._end(work, "spent", str(error))
        finally:
            self._running = None

    # -- chat -----------------------------------------------------------------------------------

    async def _is_chat(self, text: str, named: Named, turns: Turns, work: Work) -> bool:
        if named.files and named.paths:
            return False
        before = turns[-1][0] if turns and self._last_was_task() else ""
        question = routing.question(text, before=before)
        answer = await self._say(
            question, work, slot=recipe.ROUTING, grammar=routing.GRAMMAR, most=4
        )
        return answer.text.strip() == routing.CHAT

    def _last_was_task(self) -> bool:
        for message in reversed(self.messages[:-1]):
            if message.role == "user":
                return False
            if message.role == "tool":
                return True
        return False

    async def _chat(self, text: str, turns: Turns, work: Work) -> Result:
        work.steps += 1
        said = recipe.talking(turns, text)
        answer = await self._say(said, work, slot=recipe.TALKING, most=_REPLY, aloud=True)
        return self._answered(answer.text.strip(), answer, work)

    # -- a task ---------------------------------------------------------------------------------

    async def _task(self, task: _Task, turns: Turns, work: Work) -> Result:
        said = [*recipe.working(task.tools.values()), *recipe.history(turns)]
        said.append(("user", f"{task.text}\n{file_list(task.files)}"))
        while True:
            work.steps += 1
            may_call = work.steps < STEPS and not task.only_reply
            # A task is not answered out of thin air: something is looked at or done first, and
            # one search in vain is not all there is to try.
            may_reply = not may_call or (bool(task.results) and not task.in_vain)
            grammar = actions(task.signatures(), call=may_call, reply=may_reply)
            answer = await self._say(said, work, slot=recipe.WORKING, grammar=grammar, most=_ACTION)
            action = _action(answer)
            if "reply" not in action:
                shown = await self._step(task, action, answer, work)
            elif self._steering and may_call:
                shown = "Something was added to the request."
            elif not task.copied and recipe.copied(action["reply"], task.told):
                task.copied = True
                shown = "That is the answer to the example, not to this request."
            else:
                return await self._finish(task, str(action["reply"]), answer, work)
            task.text = "\n".join([task.text, *self._steered(work.turn)])
            told = recipe.result(shown, task.text, more=not task.only_reply)
            said += [("assistant", answer.text.strip()), ("user", told)]

    async def _step(self, task: _Task, action: dict[str, Any], answer: Answer, work: Work) -> str:
        """Carry out one action; what the model is told of it."""
        if not action:
            task.cut_off += 1
            task.only_reply = task.cut_off > 1
            return "That was cut off, it was too long. Nothing was done. Use a shorter text."
        tool, given = task.tools[action["tool"]], action["args"]
        key = json.dumps(action, sort_keys=True)
        if key in task.results:
            task.only_reply = True
            return task.results[key]
        use = ToolUse("", tool.real, json.dumps(tool.call(given), ensure_ascii=False))
        message = self._with_own_ids(Message("assistant", calls=(use,)))
        done = self._done(message, answer)
        self.append(message, usage=done.usage, turn=work.turn)
        self._tell(done)
        context = self._context(work.turn)
        refused = await asyncio.to_thread(refusal, tool, given, task.named, context)
        if refused:
            use = message.calls[0]
            said = Message("tool", json.dumps({"error": refused}), call_id=use.id, name=use.name)
            self.append(said, turn=work.turn)
            shown = refused
        else:
            before = len(work.refused)
            stop = await self._carry_out(done, work)
            task.only_reply = bool(stop) or len(work.refused) > before
            shown = await self._shown(task, tool, given, message.calls[0].id, work)
        task.results[key] = shown
        return shown

    async def _shown(
        self, task: _Task, tool: SmallTool, given: dict[str, Any], call: str, work: Work
    ) -> str:
        """The result of the last call in words, and the files as they are now."""
        data = _data(next(m.text for m in reversed(self.messages) if m.call_id == call))
        context = self._context(work.turn)
        if "error" in data:
            task.failed = f"{tool.name}: {data['error']}"
            return await self._trouble(data, tool, given, task, context)
        task.failed = ""
        shown = tool.show(data, given)
        task.in_vain = tool.name == "search_files" and not data.get("matches") and work.steps < 2
        if task.in_vain:
            shown += f" {task.advice()}"
        if tool.real == "terminal" and tool.name == "terminal":
            shown += await asyncio.to_thread(
                after_command, given["command"], call, task.named, context
            )
            if data.get("exit_code"):
                task.failed = f"`{given['command']}` ended with code {data['exit_code']}"
        task.files = await asyncio.to_thread(_files, context)
        return shown

    async def _trouble(
        self,
        data: dict[str, Any],
        tool: SmallTool,
        given: dict[str, Any],
        task: _Task,
        context: ToolContext,
    ) -> str:
        """What went wrong, with what helps to do better."""
        told = f"It did not work: {data['error']} {data.get('hint') or ''}".strip()
        path = given.get("path", "")
        if tool.name == "patch" and path in task.files:
            look = task.tools.get("read_file")
            if look is not None:
                call = ToolCall(look.real, look.call(given), id="look")
                outcome = await self.runtime.call(call, context)
                told += f"\n\nThe text is:\n{look.show(_data(outcome.content), given)}"
        elif path and path not in task.files:
            told += f"\n{file_list(task.files)}"
        return told

    async def _finish(self, task: _Task, reply: str, answer: Answer, work: Work) -> Result:
        changed = await asyncio.to_thread(changes, self._context(work.turn))
        if recipe.copied(reply, task.told):
            reply = cut(next(reversed(task.results.values()), ""), _SHOWN)
        text = report(reply, changed, failed=[task.failed] if task.failed else ())
        self._tell(TextDelta(text))
        return self._answered(text, answer, work)

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

    def _done(self, message: Message, answer: Answer) -> Done:
        finish: Finish = "calls" if message.calls else "stop"
        return Done(message, finish, usage_of(answer), self.provider.model, self.provider.name)

    def _steered(self, turn: str) -> list[str]:
        """What was said meanwhile."""
        before = len(self.messages)
        self._take_steering(turn)
        return [message.text for message in self.messages[before:]]


class _Task:
    """A request being carried out: what it names, what there is, what was done."""

    __slots__ = (
        "copied", "cut_off", "failed", "files", "in_vain", "named", "only_reply", "results", "text",
        "tools",
    )  # fmt: skip

    def __init__(
        self, text: str, named: Named, files: list[str], tools: dict[str, SmallTool]
    ) -> None:
        self.text = text
        self.named = named
        self.files = files
        self.tools = tools
        self.results: dict[str, str] = {}
        self.failed = ""
        self.cut_off = 0
        self.copied = False
        self.in_vain = False
        self.only_reply = False

    @property
    def told(self) -> str:
        """All that the model was told in this turn."""
        return "\n".join([self.text, *self.results.values()])

    def advice(self) -> str:
        """What to try when a search found nothing."""
        if self.named.files:
            return f"Read {' or '.join(self.named.files[:3])} to see what it says."
        return "Search for another word, a single one, or read a file."

    def signatures(self) -> dict[str, dict[str, Any]]:
        """The tools with what may stand for each argument: paths there are, or that were named."""
        known = list(dict.fromkeys([*self.files, *self.named.paths]))
        existing: Any = known if 0 < len(known) <= 200 else "string"
        meant = {*self.named.files, *self.named.paths}
        edited: Any = [path for path in self.files if path in meant] or existing
        packed = [path for path in self.named.paths if path.lower().endswith(_PACKED)]
        folders = {path.rpartition("/")[0] for path in self.files if "/" in path}
        sources: Any = "string" if existing == "string" else [*sorted(folders), *known]
        special = {
            ("read_file", "path"): existing,
            ("patch", "path"): edited,
            ("delete_file", "path"): edited,
            ("write_file", "path"): self.named.paths or "string",
            ("calculate", "expression"): "expression",
            ("file_compress", "source"): sources,
            ("file_compress", "archive"): packed or "string",
            ("copy_file", "path"): sources,
            ("move_file", "path"): sources,
        }
        return {
            tool.name: {
                argument: special.get((tool.name, argument), "string")
                for argument in tool.arguments
            }
            for tool in self.tools.values()
            if tool.name != "calculate" or self._has_numbers()
        }

    def _has_numbers(self) -> bool:
        """Whether there is anything to work with: else the model would make numbers up."""
        return len(_NUMBER.findall(self.told)) > 1


def _files(context: ToolContext) -> list[str]:
    from hermes.environments import disk_of

    return files_below(disk_of(context), os.path.realpath(context.workspace))


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


def _data(content: str) -> dict[str, Any]:
    """The result of a call; what is not an object is put into one."""
    try:
        # A remark of the loop may follow.
        data, _ = json.JSONDecoder().raw_decode(content)
    except ValueError:
        return {"stdout": content}
    return data if isinstance(data, dict) else {"stdout": str(data)}

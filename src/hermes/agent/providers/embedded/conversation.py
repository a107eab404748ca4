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
from typing import TYPE_CHECKING

from hermes.agent.budget import SpentError
from hermes.agent.guard import LoopGuard
from hermes.agent.loop import Result, Work
from hermes.agent.providers.embedded import recipe, routing
from hermes.agent.providers.embedded.acting import Acting
from hermes.agent.providers.embedded.allowing import signatures
from hermes.agent.providers.embedded.changes import changes
from hermes.agent.providers.embedded.grammar import actions
from hermes.agent.providers.embedded.grounding import correction, says_some, strange, without
from hermes.agent.providers.embedded.naming import Named
from hermes.agent.providers.embedded.provider import usage_of
from hermes.agent.providers.embedded.reporting import report
from hermes.agent.providers.embedded.server import Answer
from hermes.agent.providers.embedded.shortening import cut
from hermes.agent.providers.embedded.surroundings import file_list
from hermes.agent.providers.embedded.task import Task
from hermes.agent.providers.embedded.toolbox import offered
from hermes.agent.providers.embedded.workspace import files_of, is_there
from hermes.agent.providers.protocol import TextDelta
from hermes.core.messages import Message

if TYPE_CHECKING:
    from typing import Any

    from hermes.agent.providers.embedded.recipe import Said, Turns


STEPS = 8
_ACTION, _REPLY = 450, 500
# As much of a result as stands in for an answer.
_SHOWN = 800


class SmallConversation(Acting):
    """`Conversation`, for the embedded model."""

    async def _turn(self, name: str, request: Message) -> Result:
        self.budget.renew()
        work = Work(name, LoopGuard())
        turns = recipe.earlier(self.messages)
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
        before = "\n".join(said for _, said in recipe.history(turns))
        task = Task(text, named, files, offered(self.offer.reachable), before=before)
        return await self._task(task, turns, work)

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

    async def _task(self, task: Task, turns: Turns, work: Work) -> Result:
        said = [*recipe.working(task.tools.values()), *recipe.history(turns)]
        said.append(("user", f"{task.text}\n{file_list(task.files)}"))
        while True:
            work.steps += 1
            may_call = work.steps < STEPS and not task.only_reply
            # A task is not answered out of thin air: something is looked at or done first, and
            # one call in vain is not all there is to try.
            may_reply = not may_call or (bool(task.results) and not task.again)
            grammar = actions(signatures(task), call=may_call, reply=may_reply)
            answer = await self._say(said, work, slot=recipe.WORKING, grammar=grammar, most=_ACTION)
            action = _action(answer)
            if "reply" not in action:
                shown = await self._step(task, action, answer, work)
            elif self._steering and may_call:
                shown = "Something was added to the request."
            elif not task.copied and recipe.copied(action["reply"], task.told):
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
            told = recipe.result(shown, task.text, more=not task.only_reply)
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
        if recipe.copied(reply, task.told):
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

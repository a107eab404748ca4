"""A workspace, and the tools of Hermes called as a model calls them: through the whole pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes.core import ToolCall
from hermes.runtime.app import App


class Bench:
    """Calls tools in one workspace, as one task of one session."""

    def __init__(self, app: App, work: Path, *, session: str = "s1", agent: str = "") -> None:
        self.app = app
        self.work = work
        self.context = app.runtime.context(
            f"task-{session}{agent}", session_id=session, agent_path=agent
        )
        self.context.task.workspace = str(work)
        self.status = ""
        self._calls = 0

    def __call__(self, tool: str, **arguments: Any) -> Any:
        """The answer of one call; an error has `error` in it."""
        self._calls += 1
        call = ToolCall(tool, arguments, id=f"{self.context.session_id}-{self._calls}")
        outcome = self.app.runtime.call_sync(call, self.context)
        self.status = outcome.status
        return json.loads(outcome.content)

    def another(self, session: str, *, agent: str = "") -> Bench:
        """Somebody else in the same workspace."""
        return Bench(self.app, self.work, session=session, agent=agent)

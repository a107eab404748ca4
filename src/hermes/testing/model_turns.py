"""What a scripted model says: turns, and the calls in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Call:
    """A tool call that the model asks for."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that the APIs have for it
    ) -> None:
        """A call; a text as `arguments` is sent as it is, however broken; `id` is made up if None.

        An empty `id` is sent as an empty one, as some servers do.
        """
        import json

        self.name = name
        self.arguments = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        self.id = id


class Turn:
    """One answer of the model; a text alone may be given as a plain string."""

    def __init__(
        self,
        text: str = "",
        *,
        calls: Sequence[Call | tuple[str, Mapping[str, Any] | str]] = (),
        reasoning: str = "",
        finish: str = "",
        usage: Mapping[str, int] | None = None,
        status: int = 200,
        error: str = "",
        code: str = "",
        headers: Mapping[str, str] | None = None,
        retry_after: float | str | None = None,
        stall_after: int | None = None,
        break_after: int | None = None,
        error_after: int | None = None,
        delay: float = 0.0,
        piece: int = 24,
        raw: Sequence[Mapping[str, Any] | str] | None = None,
    ) -> None:
        """Describe an answer.

        Args:
            text: What the model says.
            calls: The tools it calls; a pair of name and arguments will do.
            reasoning: What it thinks aloud.
            finish: Why it ended, in OpenAI's words ("stop", "tool_calls", "length",
                "content_filter"); found from the rest when empty, left out when "none".
            usage: Tokens: input, output, cached, written, reasoning; estimated if None. An empty
                mapping reports none, as some servers do.
            status: Another HTTP status than 200 answers with an error instead.
            error: The text of that error.
            code: Its code, such as "context_length_exceeded".
            headers: More headers for the answer.
            retry_after: The header of that name: seconds, or a date.
            stall_after: Send so many events, then nothing more; 0 sends not even the status.
            break_after: Send so many events, then close the connection; 0 as above.
            error_after: Send so many events, then the error as an event of the stream.
            delay: Seconds to wait before each event.
            piece: How many characters of text or arguments one event has.
            raw: The data of each event, sent as it is; for what no other option can say.
        """
        self.text = text
        self.calls = [call if isinstance(call, Call) else Call(*call) for call in calls]
        self.reasoning = reasoning
        self.finish = finish or ("tool_calls" if self.calls else "stop")
        self.usage = usage
        self.status = status
        self.error = error
        self.code = code
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)
        self.stall_after = stall_after
        self.break_after = break_after
        self.error_after = error_after
        self.delay = delay
        self.piece = max(piece, 1)
        self.raw = raw

    def pieces(self, text: str) -> list[str]:
        """`text` in the sizes that events have."""
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]

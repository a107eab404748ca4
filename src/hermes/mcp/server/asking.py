"""Questions to the person at the client: may this run, and what `clarify` wants to know.

They go out as elicitations, where the client offers them. Nobody to ask means no: a client that
can't ask, an answer that does not come, one that is not among those offered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.context import Answer
from hermes.core.jsontext import to_json
from hermes.mcp.texts import whole
from hermes.safety.sanitise import clean_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mcp.server.context import ServerRequestContext
    from mcp_types import ElicitRequestFormParams

    from hermes.core.context import ApprovalRequest

_WHOLE = 4_000
_FIELD = "decision"
_ANSWER = "answer"


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client shows forms to a person."""
    offered = ctx.session.client_capabilities
    if offered is None or offered.elicitation is None:
        return False
    # Before there were two modes, there was this one, and nothing said so.
    return offered.elicitation.form is not None or offered.elicitation.url is None


def client_name(ctx: ServerRequestContext[Any, Any]) -> str:
    """Who the client says it is, in one plain line."""
    told = ctx.session.client_params
    if told is None:
        return "an unnamed client"
    said = f"{told.client_info.name} {told.client_info.version}"
    return " ".join(clean_text(said).split())[:80] or "an unnamed client"


def approval_form(request: ApprovalRequest) -> ElicitRequestFormParams:
    """The question whether a call may run: all of what would run, and why it asks."""
    lines = [f"May {request.tool} run? {request.reason} [{', '.join(request.rules)}]"]
    given = [(name, value) for name, value in request.arguments.items() if value is not None]
    lines += [f"{name} = {_shown(value)}" for name, value in given]
    choices = decisions(request)
    return _one_field(
        "\n".join(lines),
        _FIELD,
        {
            "type": "string",
            "title": "Run it?",
            "description": "once; for this session; always, this exact call; or deny",
            "enum": list(choices),
            "default": "deny",
        },
    )


def decisions(request: ApprovalRequest) -> tuple[str, ...]:
    """The answers that a request can be given."""
    # What only a person may judge is judged each time.
    lasting = ("session",) if request.human_only else ("session", "always")
    return ("once", *lasting, "deny")


def decided(request: ApprovalRequest, said: Any, *, by: str) -> Answer | None:
    """What the person decided; None where nobody was asked."""
    content = accepted(said)
    if content is None:
        return Answer("deny", by=by) if _declined(said) else None
    chosen = content.get(_FIELD)
    return Answer(chosen if chosen in decisions(request) else "deny", by=by)


def question_form(question: str, choices: Sequence[str]) -> ElicitRequestFormParams:
    """A question with a free answer; choices are listed, for any other answer may come."""
    lines = [question, *(f"{number}. {choice}" for number, choice in enumerate(choices, 1))]
    hint = "one of these, by number or in words, or something else" if choices else "in your words"
    return _one_field(
        "\n".join(lines), _ANSWER, {"type": "string", "title": "Answer", "description": hint}
    )


def answered(said: Any) -> str:
    """What the person wrote; nothing where they would not."""
    content = accepted(said)
    return str(content.get(_ANSWER) or "") if content is not None else ""


def accepted(said: Any) -> dict[str, Any] | None:
    """The form as it was sent off; None where it was not."""
    if getattr(said, "action", None) != "accept":
        return None
    return dict(getattr(said, "content", None) or {})


def _declined(said: Any) -> bool:
    return getattr(said, "action", None) in ("decline", "cancel")


def form(message: str, schema: dict[str, Any]) -> ElicitRequestFormParams:
    """A form: what is said above it, and its fields as JSON Schema."""
    from mcp_types import ElicitRequestFormParams

    return ElicitRequestFormParams(message=whole(message), requested_schema=schema)


def _one_field(message: str, field: str, schema: dict[str, Any]) -> ElicitRequestFormParams:
    return form(message, {"type": "object", "properties": {field: schema}, "required": [field]})


def _shown(value: object) -> str:
    """A value as the person has to see it: nothing hidden, long ones by both ends and a digest."""
    text = to_json(value)
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    if len(plain) <= _WHOLE:
        return plain
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    ends = _WHOLE // 2
    return f"{plain[:ends]} …[{len(text)} characters, sha256 {digest}]… {plain[-ends:]}"

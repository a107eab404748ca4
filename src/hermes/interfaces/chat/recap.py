"""Where a session stands that somebody goes on with: the last exchange, and what was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.messages import Message
    from hermes.interfaces.chat.view import View
    from hermes.stores.sessions import Session


def show_last(view: View, session: Session, messages: list[Message], *, here: str) -> None:
    """Show the last exchange of a session that goes on in the folder `here`."""
    asked = [message.text for message in messages if message.role == "user"]
    said = [m.text for m in messages if m.role == "assistant" and m.text.strip()]
    title = f" “{session.title}”" if session.title else ""
    view.note(f"session {session.id}{title}, {len(messages)} messages")
    if session.workspace and session.workspace != here:
        view.note(f"it worked in {session.workspace}; now it works here", "yellow")
    if asked:
        view.person(asked[-1])
    if said and messages[-1].role != "user":
        view.markdown(view.redact(said[-1]))


def cut_off(session: Session, messages: list[Message]) -> list[str]:
    """What a break left open: calls that nobody has an answer to."""
    answered = {message.call_id for message in messages if message.role == "tool"}
    lacking = [use for m in messages for use in m.calls if use.id not in answered]
    if not lacking:
        return []
    begun = {intent.call_id for intent in session.unfinished()}
    ended = {intent.call_id for intent in session.intents()} - begun
    lines = []
    for use in lacking:
        what = f"{use.name} {use.arguments}"[:200]
        if use.id in begun:
            lines.append(f"? it was cut off during {what}: whether that was done is not known")
        elif use.id not in ended:
            lines.append(f"· it was cut off before {what}: that was not done")
    return lines

"""Secret placeholders in calls: results are masked, and placeholders in arguments are filled for
the handler.

The value reaches only the handler's arguments, and only at the destination where it was read.
Events, approvals
and the audit log keep the placeholder.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.safety.call_effects import acts_of

if TYPE_CHECKING:
    from typing import Any

    from hermes.runtime.call_state import Flight
    from hermes.safety.placeholders import Vault
    from hermes.safety.policy import Policy
    from hermes.safety.redaction import Redactor

# What every placeholder begins with; see `hermes.safety.placeholders`.
_START = "[secret:"
# The right to have placeholders filled.
RIGHT = "secret:use"


class Secrets:
    """The vault of one runtime, made when the first secret is seen."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._vault: Vault | None = None

    def filled(self, flight: Flight, policy: Policy) -> dict[str, Any]:
        """The arguments as the handler gets them; raises `ToolError` where a secret may not go."""
        if _START not in flight.noted or flight.entry is None:
            return flight.arguments
        given, flight.used = self._open().fill(
            flight.arguments,
            [act[:2] for act in acts_of(flight.entry, flight.arguments, flight.context)],
            _session(flight),
            workspace=flight.context.workspace,
            resolve=lambda path: _place(flight, path),
            effect=flight.entry.effect,
            allowed=policy.allows(RIGHT, flight.context),
        )
        return given

    def masked(self, content: str, flight: Flight) -> str:
        """A result with a placeholder for each secret in it."""
        plain = self._redactor.redact(content)
        if self._vault is None and plain is content:
            return plain
        known = self._vault.known(_session(flight)) if self._vault is not None else None
        if (plain == content and not (known and known.values)) or flight.entry is None:
            return plain
        from hermes.safety.placeholders import origin_of

        acts = acts_of(flight.entry, flight.arguments, flight.context)
        origin = origin_of(
            flight.tool,
            [act[:2] for act in acts],
            workspace=flight.context.workspace,
            resolve=lambda path: _place(flight, path),
        )
        vault = self._open()
        # What was a secret once in this session stays one, whatever stands around it now.
        return vault.mask(content, session=_session(flight), origin=origin, used=known)

    def end_session(self, session: str) -> None:
        """Forget the secrets of a session."""
        if self._vault is not None:
            self._vault.end_session(session)

    def _open(self) -> Vault:
        if self._vault is None:
            from hermes.safety.placeholders import Vault

            self._vault = Vault(self._redactor)
        return self._vault


def _session(flight: Flight) -> str:
    return flight.context.session_id or flight.context.task.id


def _place(flight: Flight, path: str) -> str:
    """Where a path of the call leads, as the gate judged it."""
    for (_, spelled), place in (flight.paths or {}).items():
        if spelled == path:
            return place
    return os.path.realpath(os.path.join(flight.context.workspace, os.path.expanduser(path)))

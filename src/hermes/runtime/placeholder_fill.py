"""Secret placeholders: results are masked, and placeholders in arguments filled for the handler.

The value reaches only the handler's arguments, and only at the destination where it was read.
Events, approvals and the audit log keep the placeholder.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from hermes.runtime.call_state import CallState
    from hermes.safety.placeholders import Vault
    from hermes.safety.policy import Policy
    from hermes.safety.redaction import Redactor

# What every placeholder begins with; see `hermes.safety.placeholders`.
PLACEHOLDER = "[secret:"
# The right to have placeholders filled.
RIGHT = "secret:use"


class Secrets:
    """The vault of one runtime, made when the first secret is seen."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._vault: Vault | None = None

    def filled(self, state: CallState, policy: Policy) -> dict[str, Any]:
        """The arguments as the handler gets them; raises `ToolError` where a secret may not go."""
        if state.entry is None:
            return state.arguments
        given, state.used = self._open().fill(
            state.arguments,
            _acts(state),
            _session(state),
            workspace=state.context.workspace,
            resolve=lambda path: _place(state, path),
            effect=state.entry.effect,
            allowed=policy.allows(RIGHT, state.context),
        )
        return given

    @property
    def in_use(self) -> bool:
        """Whether a secret was seen."""
        return self._vault is not None

    def masked(self, content: str, state: CallState) -> str:
        """A result with a placeholder for each secret in it."""
        plain = self._redactor.redact(content)
        if self._vault is None and plain is content:
            return plain
        known = self._vault.known(_session(state)) if self._vault is not None else None
        if (plain == content and not (known and known.values)) or state.entry is None:
            return plain
        from hermes.safety.placeholders import origin_of

        origin = origin_of(
            state.tool,
            _acts(state),
            workspace=state.context.workspace,
            resolve=lambda path: _place(state, path),
        )
        vault = self._open()
        # What was a secret once in this session stays one, whatever stands around it now.
        return vault.mask(content, session=_session(state), origin=origin, used=known)

    def end_session(self, session: str) -> None:
        """Forget the secrets of a session."""
        if self._vault is not None:
            self._vault.end_session(session)

    def _open(self) -> Vault:
        if self._vault is None:
            from hermes.safety.placeholders import Vault

            self._vault = Vault(self._redactor)
        return self._vault


def _acts(state: CallState) -> list[tuple[str, str]]:
    effects = state.ruling.effects
    return [act[:2] for act in effects.acts] if effects is not None else []


def _session(state: CallState) -> str:
    return state.context.session_id or state.context.task.id


def _place(state: CallState, path: str) -> str:
    """Where a path of the call leads, as the gate judged it."""
    for (_, spelled), place in (state.ruling.paths or {}).items():
        if spelled == path:
            return place
    return os.path.realpath(os.path.join(state.context.workspace, os.path.expanduser(path)))

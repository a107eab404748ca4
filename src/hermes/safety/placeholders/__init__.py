"""Placeholders: secrets that a model can pass on without seeing them.

Redaction replaces a secret in a result by a placeholder, `[secret:github-token:k3v9qj2mxa]`, the
same one for the same value during a session. A later call with the placeholder gets the value when
it runs, if it brings the value back to its origin and nowhere else:

    from a file       a call that writes that one file, and does nothing else
    from a web host   a call that fetches from the same host, port and scheme, and nothing else
    from a command    never: the use of a value by a program can't be known

Any other call with an effect is refused: a placeholder written into a file would destroy the secret
there. Values stay in this process; logs, audit and output have the placeholder.

    vault.py      the values of a session, masked and filled in; origin and destination
    format.py     the syntax of a placeholder
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.placeholders.vault import Origin, Used, Vault, origin_of

__all__ = ["Origin", "Used", "Vault", "origin_of"]

__getattr__ = names_from(
    __name__,
    {
        "vault": "Origin Used Vault origin_of",
    },
)

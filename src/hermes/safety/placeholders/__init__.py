"""Secrets that a model can pass on without seeing them.

What redaction takes out of a result is kept here, and the model reads a placeholder in its place:
`[secret:github-token:k3v9qj2mxa]`, the same one for the same value as long as the session lasts.
A later call that holds the placeholder is given the value when it runs, if it takes the value back
to where it came from and nowhere else:

    from a file       a call that writes that one file, and does nothing else
    from a web host   a call that fetches from that same host, port and scheme, and nothing else
    from a command    nowhere: what a program would do with it can't be told

Any other call that does something is refused: a placeholder written into a file would destroy the
secret there. Values stay in this process; what is logged, audited or shown has the placeholder.

    vault.py      the values, masked and filled in
    places.py     where a value comes from, and where a call would take it
    spelling.py   what a placeholder looks like
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
        "Origin": "vault",
        "Used": "vault",
        "Vault": "vault",
        "origin_of": "vault",
    },
)

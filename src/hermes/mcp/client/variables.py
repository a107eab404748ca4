"""References to variables in a server's definition: `${NAME}`, `${NAME:-otherwise}`, `$NAME`."""

from __future__ import annotations

import os
import re

from hermes.core.errors import ConfigError

_BRACED = r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<otherwise>[^}]*))?\}"
_REFERENCE = re.compile(_BRACED)
_ANY = re.compile(rf"{_BRACED}|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)")


def filled(text: str, *, bare: bool = False) -> str:
    """`text` with what its references stand for; `bare` reads `$NAME` too.

    Raises `ConfigError` for a variable that is not set and has no other value.
    """
    return (_ANY if bare else _REFERENCE).sub(_value, text)


def _value(found: re.Match[str]) -> str:
    named = found.groupdict()
    name, otherwise = named["name"] or named["bare"], named["otherwise"]
    said = os.environ.get(name)
    if said or (said is not None and otherwise is None):
        return said
    if otherwise is None:
        raise ConfigError(f"the variable {name} is not set")
    return otherwise

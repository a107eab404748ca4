"""Programs that the rules alone can't judge: builtins, wrappers, interpreters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.administration import ADMINISTRATION
from hermes.safety.shell.builtins import BUILTINS
from hermes.safety.shell.finding_files import FINDERS
from hermes.safety.shell.interpreters import INTERPRETERS
from hermes.safety.shell.shells import SHELLS
from hermes.safety.shell.wrappers import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.stream import Stream

# Each gives the output of what it ran, or None to go on with the rules for the program itself.
SPECIAL: dict[str, Callable[[Command, Judge], Stream | None]] = {
    **BUILTINS,
    **WRAPPERS,
    **INTERPRETERS,
    **FINDERS,
    **SHELLS,
    **ADMINISTRATION,
}

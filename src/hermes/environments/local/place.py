"""What a `LocalEnvironment` has to know of where it runs; a sandbox on this machine has another."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from hermes.environments.local.owner import guardian
from hermes.environments.local.plain import plain_words
from hermes.environments.local.shell import shell
from hermes.environments.variables import passed_variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.local.owner import Guardian


class Place(Protocol):
    """Where commands are started, by whom, and with what."""

    @property
    def owner(self) -> Guardian:
        """Whoever starts commands there and ends them."""
        ...

    def shell(self) -> tuple[bytes, bool]:
        """The shell to run commands with, and whether it is bash."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether a command could start there."""
        ...

    def variables(self, named: Sequence[str]) -> dict[str, str]:
        """Those of our own variables that commands may see."""
        ...

    def plain(self, command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
        """Program and words of a command that needs no shell; None where that is not sure."""
        ...


class ThisMachine:
    """Commands run here as we do."""

    def __init__(self) -> None:
        self.owner = guardian

    def shell(self) -> tuple[bytes, bool]:
        """The shell of this machine."""
        return shell()

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return os.path.isdir(path)

    def variables(self, named: Sequence[str]) -> dict[str, str]:
        """The allow-list, and what is named."""
        return passed_variables(named)

    def plain(self, command: str, variables: Mapping[str, str]) -> tuple[bytes, list[bytes]] | None:
        """The program as a shell would find it."""
        return plain_words(command, variables)

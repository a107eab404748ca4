"""The command line of Apptainer or Singularity, and what its complaints mean."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from hermes.core.errors import UnavailableError
from hermes.environments.results import PlaceError

if TYPE_CHECKING:
    from hermes.environments.singularity.settings import SingularitySettings

# (what the program says, what that means, what to do)
_COMPLAINTS = (
    (r"could not open image|no such file or directory.*image|image format not recognized",
     "the image can't be opened", "Check its path and format."),
    (r"unable to (?:handle|fetch|download)|conveyor failed|manifest unknown|dial tcp",
     "the image can't be fetched", "Check its name and the network, or pull it beforehand."),
    (r"actions/start", "the image was not made by this program, so that no instance can be started",
     "Build one from it: apptainer build --sandbox NEW OLD."),
    (r"user namespace|not permitted.*namespace|setuid",
     "containers may not be made by this user", "Enable user namespaces, or install setuid mode."),
    (r"cgroup", "limits can't be set here", "Leave memory and pids unset, or enable cgroups v2."),
    (r"requesting capability set", "the container wants rights that we do not have",
     "Run as another user."),
    (r"mount.*overlay|overlay.*mount", "the overlay can't be used", "Check overlay."),
    (r"network|cni", "the network can't be set up so for this user", "Set network to host."),
    (r"unknown flag|unknown shorthand", "the program is too old", "Install a newer one."),
)  # fmt: skip


def found(settings: SingularitySettings) -> str:
    """The program's path."""
    names = [settings.program] if settings.program else ["apptainer", "singularity"]
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return os.path.abspath(path)
    raise UnavailableError(
        f"there is no {' or '.join(names)} here", hint="Install Apptainer, or name its program."
    )


def start_words(settings: SingularitySettings, name: str) -> list[str]:
    """The words that start an instance."""
    # Nothing of the home, of other processes or of our variables; no rights but the user's.
    words = ["instance", "start", "--containall", "--no-home", "--cleanenv", "--no-privs"]
    if settings.network == "none":
        words += ["--net", "--network", "none"]
    for bind in settings.binds:
        words += ["--bind", bind]
    words += ["--overlay", settings.overlay] if settings.overlay else ["--writable-tmpfs"]
    if settings.memory:
        words += ["--memory", settings.memory]
    if settings.pids is not None:
        words += ["--pids-limit", str(settings.pids)]
    return [*words, settings.image, name]


def explained(
    settings: SingularitySettings, program: str, said: str, code: int | None
) -> PlaceError:
    """Why there is no container, in a line, with what to check."""
    check = f"{os.path.basename(program)} exec --containall {settings.image} true"
    label = f"the container of {settings.image}"
    for words, meaning, advice in _COMPLAINTS:
        if re.search(words, said, re.IGNORECASE):
            return PlaceError(
                f"{label} does not start: {meaning}", hint=f"{advice} To check: {check}"
            )
    if code is None:
        meaning = f"no answer within {settings.start_seconds:g} s"
    else:
        fatal = [line for line in said.splitlines() if line.startswith(("FATAL", "ERROR"))]
        meaning = " ".join((fatal or said.splitlines() or [f"exit code {code}"])[-1].split())[-300:]
    return PlaceError(f"{label} does not start: {meaning}", hint=f"To check: {check}")

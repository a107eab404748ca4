"""Which files may be read or written, judged by the place that a path really leads to.

    check.py      the decision: spelling, place, guards, rules
    place.py      where a path leads: links resolved part by part, as the system does
    spelling.py   paths that other systems would read differently
    globs.py      the patterns of the rules
    guards.py     places that stay closed whatever the rules say
    opening.py    opening exactly what was checked

Start with `check.py`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.paths.check import Decision, PathRules, check_path
    from hermes.safety.paths.open_checked import PathRefusedError, open_checked

__all__ = ["Decision", "PathRefusedError", "PathRules", "check_path", "open_checked"]

__getattr__ = names_from(
    __name__,
    {
        "Decision": "check",
        "PathRefusedError": "open_checked",
        "PathRules": "check",
        "check_path": "check",
        "open_checked": "open_checked",
    },
)

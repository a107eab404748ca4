"""Path decisions: the files that may be read or written, judged by the real target of a path.

    check.py         the decision: syntax, target, guards, rules
    guards.py        paths that stay closed under any rule; symbolic links resolved part by part
    checked_file.py  opens exactly the file that was checked

Start with `check.py`. The patterns of the rules are in `text/globs.py`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.paths.check import Decision, PathRules, check_path
    from hermes.safety.paths.checked_file import PathRefusedError, open_checked

__all__ = ["Decision", "PathRefusedError", "PathRules", "check_path", "open_checked"]

__getattr__ = names_from(
    __name__,
    {
        "check": "Decision PathRules check_path",
        "checked_file": "PathRefusedError open_checked",
    },
)

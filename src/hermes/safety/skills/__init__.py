"""Skill scan: the effects of following a skill, judged before it is installed.

    scan.py            every file of the folder by its type; findings and the verdict
    prose.py           instructions to the agent, fake prerequisites, links that lead outside
    code_blocks.py     code blocks and scripts, analysed as commands; secrets sent elsewhere
    concealed_text.py  invisible characters, hidden elements, encoded payloads

Start with `scan.py`. Text that teaches security is allowed: a warning or a quoted example does not
count, unless the text also instructs the reader to run it.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.safety.skills.scan import Finding, Report, scan_skill

__all__ = ["Finding", "Report", "scan_skill"]

__getattr__ = names_from(
    __name__,
    {
        "scan": "Finding Report scan_skill",
    },
)

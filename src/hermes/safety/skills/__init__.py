"""Skills from elsewhere, read before they are installed: what would following them do?

    scan.py           the folder: every file, links, programs, and what each text is read as
    report.py         what was found, and the verdict
    pieces.py         a document taken apart: prose, code, comments, front matter
    prose.py          orders to the agent, fake prerequisites, paths that lead out
    commands.py       code blocks and scripts, judged as the commands they are
    sending.py        which keys may go to which hosts
    payloads.py       text encoded so that nobody reads it
    hidden.py         text that people don't see and models do

Start with `scan.py`. Teaching security is no offence: what a text warns of or quotes as an example
does not count, unless the text also tells the reader to run it.
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
        "Finding": "scan",
        "Report": "scan",
        "scan_skill": "scan",
    },
)

"""Unpack archives that nobody vouches for: completely, or not at all.

    values      what callers pass and get: ArchiveLimits, Member, Extracted, ArchiveError
    meter       what an archive has cost so far, held against its limits
    names       which names may become paths, and when two of them are one file
    tree        the files, folders and links an archive makes; where its links lead
    streams     compressed bytes in, plain bytes out, a piece at a time (zstd: if installed)
    tar, zip    one format each: a file -> its members and their bytes; seven_zip likewise
    opening     which format a file is, by its content
    placing     a finished folder -> the target, without overwriting
    extraction  extract_archive, list_archive, check_archive

Start with extraction.py. Nested archives stay files; nothing is opened twice.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.runtime.archives.extraction import check_archive, extract_archive, list_archive
    from hermes.runtime.archives.values import (
        ArchiveError,
        ArchiveLimits,
        Extracted,
        Member,
        Placed,
    )

__all__ = [
    "ArchiveError",
    "ArchiveLimits",
    "Extracted",
    "Member",
    "Placed",
    "check_archive",
    "extract_archive",
    "list_archive",
]

__getattr__ = names_from(
    __name__,
    {
        "ArchiveError": "values",
        "ArchiveLimits": "values",
        "Extracted": "values",
        "Member": "values",
        "Placed": "values",
        "check_archive": "extraction",
        "extract_archive": "extraction",
        "list_archive": "extraction",
    },
)

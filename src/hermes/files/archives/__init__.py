"""Archives: create, list, check and extract tar, zip and 7z files, from untrusted sources too.

    limits       ArchiveLimits, ArchiveError, results; the meter that enforces the limits
    member_tree  safe member names; the files, folders and links of an archive
    compression  bounded decompression streams; Zstandard
    tar, zip     one format each, both ways
    seven_zip    7z by py7zr, both ways; seven_zip_worker  the subprocess that reads
    pack_source  files, folders and links to pack, and their bytes
    creation     create_archive
    extraction   extract_archive, list_archive, check_archive
    placement    a complete staging folder -> the target, all or nothing
    remote_disk  archives on remote disks

Start with extraction.py. Archives inside archives stay files.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False

if TYPE_CHECKING:
    from hermes.files.archives.creation import FORMATS, Made, Packed, create_archive, format_of
    from hermes.files.archives.extraction import check_archive, extract_archive, list_archive
    from hermes.files.archives.limits import ArchiveError, ArchiveLimits, Extracted, Member, Placed
    from hermes.files.archives.pack_source import Item, gather


__all__ = [
    "FORMATS",
    "ArchiveError",
    "ArchiveLimits",
    "Extracted",
    "Item",
    "Made",
    "Member",
    "Packed",
    "Placed",
    "check_archive",
    "create_archive",
    "extract_archive",
    "format_of",
    "gather",
    "list_archive",
]

__getattr__ = names_from(
    __name__,
    {
        "FORMATS": "creation",
        "ArchiveError": "limits",
        "ArchiveLimits": "limits",
        "Extracted": "limits",
        "Item": "pack_source",
        "Made": "creation",
        "Member": "limits",
        "Packed": "creation",
        "Placed": "limits",
        "check_archive": "extraction",
        "create_archive": "creation",
        "extract_archive": "extraction",
        "format_of": "creation",
        "gather": "pack_source",
        "list_archive": "extraction",
    },
)

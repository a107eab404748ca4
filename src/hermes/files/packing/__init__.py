"""Make archives: the same sources give the same members in the same order.

    gathering.py    sources -> what will be packed: files, folders, links as links
    naming.py       which format an archive's name asks for
    streaming.py    a member's bytes, exactly as many as were announced
    tar.py, zip.py  members -> the bytes of an archive; seven_zip.py likewise
    creating.py     create_archive: all of it on the disk, or nothing
    carrying.py     archives of any disk: at hand to be read, unpacked to where they are

Start with creating.py. How archives are read is in `hermes.runtime.archives`.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.packing.creating import Made, Packed, create_archive
    from hermes.files.packing.gathering import Item, gather
    from hermes.files.packing.naming import FORMATS, format_of

__all__ = ["FORMATS", "Item", "Made", "Packed", "create_archive", "format_of", "gather"]

__getattr__ = names_from(
    __name__,
    {
        "FORMATS": "naming",
        "Item": "gathering",
        "Made": "creating",
        "Packed": "creating",
        "create_archive": "creating",
        "format_of": "naming",
        "gather": "gathering",
    },
)

"""7z files, read with the standard library and the same limits as every other archive.

    fields.py    bytes of a header, taken one field at a time
    streams.py   which stretches of the file hold what, and through which coders they go
    files.py     the names, times and modes of the members
    coders.py    a stretch of the file -> its plain bytes
    members.py   seven_zip_members: a file -> its members and their bytes

Start with members.py. LZMA, LZMA2, BZip2, Deflate, Delta and the branch filters need nothing else,
Zstandard needs the extra `archives`. PPMd, and filters with several streams (BCJ2), are refused.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.files.archives.seven_zip_reader.members import MAGIC, seven_zip_members

__all__ = ["MAGIC", "seven_zip_members"]

__getattr__ = names_from(
    __name__,
    {
        "MAGIC": "members",
        "seven_zip_members": "members",
    },
)

"""Which names in an archive may become paths, and when two of them are one file.

The rules are those of every common system at once: what unpacks here unpacks the same elsewhere.
"""

from __future__ import annotations

import os
import re
import unicodedata

from hermes.runtime.archives.values import ArchiveError

_LONGEST = 255
_DRIVE = re.compile(r"[A-Za-z]:")
# Windows opens a device for these whatever follows the first dot.
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:[.:].*)?", re.I | re.S
)
# Control characters, line and paragraph separators, and what turns the writing direction around.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def split_name(name: str, *, folder: bool, depth: int) -> list[str]:
    """The components of a member's name; none for the top folder itself.

    A leading `./` and the closing slash of a folder are how ordinary archives are written.
    """
    if name.startswith("~"):
        raise refusal(name, "starts with `~`")
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        raise refusal(name, "is absolute")
    path = name
    if folder:
        path = path.removesuffix("/")
        if path == ".":
            return []
    parts = path.removeprefix("./").split("/")
    if len(parts) > depth:
        raise refusal(name, f"is more than {depth} folders deep")
    for part in parts:
        check_part(part, name)
    return parts


def check_part(part: str, name: str) -> None:
    """Raise unless a component is a plain name on every system; `name` is what to complain of."""
    if part in ("", ".", ".."):
        raise refusal(name, f"has a component {part!r}")
    if _UNSEEN.search(part):
        raise refusal(name, "has control characters")
    if "\\" in part or (os.name == "nt" and ":" in part):
        raise refusal(name, "has a separator of another system")
    if part[-1] in ". ":
        raise refusal(name, "has a component that ends with a dot or a space")
    if _DEVICE.fullmatch(part):
        raise refusal(name, "is the name of a device on Windows")
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        raise refusal(name, "is not valid UTF-8") from None
    if size > _LONGEST:
        raise refusal(name, f"has a component of more than {_LONGEST} bytes")


def fold(part: str) -> str:
    """The same text for components that some file system takes for the same name."""
    if part.isascii():
        return part.lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", part).casefold())
    # Some file systems skip characters that have no shape.
    return "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")


def refusal(name: str, why: str) -> ArchiveError:
    """The error for a name that can't be used."""
    shown = name if len(name) <= 200 else name[:200] + "…"
    return ArchiveError(f"the archive is refused: the name {shown!a} {why}")

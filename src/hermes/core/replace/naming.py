"""What errors call the two texts of an edit: by the names that whoever reads them knows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.core.errors import EditError

# Stand for the text to replace and for what takes its place; no text has these characters.
OLD, NEW = "\ufdd0", "\ufdd1"


def name(error: EditError, old: str, new: str) -> None:
    """Put names into what an error says."""
    error.args = (_named(str(error), old, new),)
    if error.hint is not None:
        error.hint = _named(error.hint, old, new)


def _named(text: str, old: str, new: str) -> str:
    return text.replace(OLD, old).replace(NEW, new)

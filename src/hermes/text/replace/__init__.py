"""Replace a piece of text: exactly, or across differences that change no meaning, or not at all.

    engine       replace_text: exact first, then by how little has to be bridged
    search       how the old text can be found
    source       a text as lines, with where each starts and how it ends
    folding      typography: what counts as the same character; the tokens of a line
    matching     where the old text is, and what had to be bridged to find it
    indentation  how far a block moves, and in tabs or spaces
    spelling     other readings of what was sent: escapes, pasted line numbers
    transfer     the new text, in the spelling of the place where it goes
    elision      `...` that stands for text left out
    applied      whether the new text is in place already
    nearest      the place that was probably meant
    describing   how it differs, by line and by character
    refusals     the errors, with all that is needed to try again
    candidates   the error where several places fit
    naming       what errors call the two texts

Words, numbers, operators and the number of lines are never bridged. What old and new text agree
on stays as the file has it, to the byte.
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.text.replace.engine import Replacement, replace_text
    from hermes.text.replace.errors import AlreadyAppliedError

__all__ = ["AlreadyAppliedError", "Replacement", "replace_text"]

__getattr__ = names_from(
    __name__,
    {
        "AlreadyAppliedError": "errors",
        "Replacement": "engine",
        "replace_text": "engine",
    },
)

"""`{name}` in a text: where the parameters go. `{{name}}` stands for the braces themselves."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Callable

_PLACE = re.compile(r"\{(\{)?([^\W\d][\w.\-\[\]*]*)\}(?(1)\}|)")


class Template:
    """A text cut at its placeholders. `names` has each placeholder once, in order."""

    __slots__ = ("_pieces", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Literal text and names in turn: literal, name, literal, …, literal.
        self._pieces: list[str] = [""]
        at = 0
        for place in _PLACE.finditer(text):
            self._pieces[-1] += text[at : place.start()]
            if place[1]:
                self._pieces[-1] += f"{{{place[2]}}}"
            else:
                self._pieces += [place[2], ""]
            at = place.end()
        self._pieces[-1] += text[at:]
        self.names = tuple(dict.fromkeys(self._pieces[1::2]))

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    @property
    def whole(self) -> str | None:
        """The one placeholder the text consists of, if it does."""
        return self._pieces[1] if len(self._pieces) == 3 and self._pieces[::2] == ["", ""] else None

    @property
    def opening(self) -> tuple[str, ...]:
        """The placeholders that the text begins with, up to the first literal character."""
        found: list[str] = []
        for literal, name in zip(self._pieces[::2], self._pieces[1::2], strict=False):
            if literal:
                break
            found.append(name)
        return tuple(found)

    @property
    def prefix(self) -> str:
        """The literal text before the first placeholder."""
        return self._pieces[0]

    def fill(self, value: Callable[[str], str]) -> str:
        """The text with `value(name)` in each place."""
        return "".join(
            value(piece) if odd else piece
            for pair in zip(self._pieces[::2], [*self._pieces[1::2], None], strict=True)
            for odd, piece in enumerate(pair)
            if piece is not None
        )

"""Times, sizes and foreign text, as `hermes sessions` shows them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def cut(text: str) -> str:
    line = flat(text[:2000])
    return line if len(line) <= 200 else f"{line[:200]}… ({len(text)} characters)"


def flat(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def safe(text: str) -> list[str]:
    """Lines that can't speak to the terminal."""
    return [
        "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)
        for line in text.splitlines()
    ]

"""What commands print: kept within bounds, in order, and made readable.

collector.py   takes in bytes of both streams as they come; knows head, tail, size and order
spill.py       the file that a flood goes to, within a limit
decoding.py    bytes to text, whatever the console's code page
cleaning.py    text as a person would have seen it: no colours, progress bars at their end
"""

from __future__ import annotations

from hermes.core.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.environments.output.cleaning import clean
    from hermes.environments.output.collector import Collector, Output
    from hermes.environments.output.decoding import decode

__all__ = ["Collector", "Output", "clean", "decode"]

__getattr__ = names_from(
    __name__,
    {
        "Collector": "collector",
        "Output": "collector",
        "clean": "cleaning",
        "decode": "decoding",
    },
)

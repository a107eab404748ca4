"""What was found in a skill, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal


class Finding(NamedTuple):
    """One reason not to install: the file, the line (from 1), the rule, and why in a sentence."""

    file: str
    line: int
    rule: str
    description: str


class Report:
    """The findings of a scan, by file and line; any of them blocks."""

    __slots__ = ("findings",)

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted(set(findings))

    @property
    def verdict(self) -> Literal["clean", "block"]:
        """`block` where there is any reason to."""
        return "block" if self.findings else "clean"

    def __repr__(self) -> str:
        return f"<{self.verdict}: {len(self.findings)} findings>"

"""Module names: nouns, and one meaning for one name within a package."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import hermes

ROOT = Path(hermes.__file__).parent
# Nouns of the field that end as a gerund does.
NOUNS = {
    "settings", "warnings", "tracing", "testing", "encoding", "listing", "lexing", "parsing",
    "rendering", "spelling", "streaming", "indexing", "routing", "pricing", "spending", "logging",
    "scheduling", "polling", "binding", "embedding", "packaging", "timing", "string",
}  # fmt: skip


def modules() -> list[Path]:
    return [path for path in ROOT.rglob("*.py") if path.stem not in ("__init__", "__main__")]


def test_no_module_is_named_for_doing_something() -> None:
    gerunds = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.stem.endswith("ing") and path.stem.split("_")[-1] not in NOUNS
    ]

    assert gerunds == []


def test_no_name_is_used_twice_in_a_package() -> None:
    names = Counter((path.relative_to(ROOT).parts[0], path.stem) for path in modules())

    assert [name for name, count in names.items() if count > 1] == []


def test_there_are_no_more_modules_than_this() -> None:
    assert len(modules()) <= 425

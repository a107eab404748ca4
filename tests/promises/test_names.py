"""Module names: nouns, one meaning within a package, listed in its map, imported inward."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hermes

ROOT = Path(hermes.__file__).parent
PROJECT = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())
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


def packages() -> Iterator[tuple[str, set[str], str]]:
    """Each package, the modules and packages in it, and its docstring."""
    for file in ROOT.rglob("__init__.py"):
        folder = file.parent
        names = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
        names |= {path.parent.name for path in folder.glob("*/__init__.py")}
        text = ast.get_docstring(ast.parse(file.read_text()))
        yield str(folder.relative_to(ROOT)), names, text or ""


def test_the_map_of_a_package_names_all_its_modules() -> None:
    # Tools are found, not listed: adding one is adding a file.
    missing = {
        package: lacking
        for package, names, text in packages()
        if package != "tools" and (lacking := names - set(re.findall(r"\w+", text)))
    }

    assert missing == {}


def test_the_map_of_a_package_names_nothing_that_is_gone() -> None:
    gone = {}
    for package, names, text in packages():
        for line in text.splitlines():
            entries, gap, _ = line.strip().partition("  ")
            listed = {entry.removesuffix(".py").rstrip("/") for entry in entries.split(", ")}
            if (gap or ".py, " in entries) and all(map(str.isidentifier, listed)):
                gone |= {(package, name): line for name in listed - names}

    assert gone == {}


def test_modules_that_are_named_in_strings_are_imported_inward_too() -> None:
    """As in maps of lazy names; import-linter reads import statements alone, wherever they stand."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    [layers] = [contract for contract in contracts if "layers" in contract]
    order = layers["layers"]
    excepted = tuple(line.split(" -> ")[1].rstrip("*") for line in layers["ignore_imports"][1:])
    outward = []
    for path in ROOT.rglob("*/**/*.py"):
        package = path.relative_to(ROOT).parts[0]
        for target, layer in re.findall(r"""["'](hermes\.(\w+)\.[\w.]+)["']""", path.read_text()):
            known = package in order and layer in order and not target.startswith(excepted)
            if known and order.index(layer) < order.index(package):
                outward.append((str(path), target))

    assert outward == []

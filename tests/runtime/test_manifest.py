"""What is remembered of the tool modules is a cache: whatever happens to it, it heals."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hermes
from hermes.core.registry import ToolRegistry
from hermes.runtime.discovery import Manifest, discover

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import CommandLine

TOOLS = str(Path(hermes.__file__).parent / "tools")


def built_in() -> tuple[ToolRegistry, list[str]]:
    registry = ToolRegistry()
    found = discover(registry, TOOLS, "hermes.tools")
    return registry, found.imported


def only_file(home: Path) -> Path:
    (path,) = (home / "cache").iterdir()
    return path


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing left": lambda _: b"",
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut at the end": lambda data: data[:-1],
    "one bit": lambda data: data[:900] + bytes([data[900] ^ 1]) + data[901:],
    "binary": lambda _: os.urandom(500),
    "another kind of JSON": lambda _: b'["a", 1, null]',
    "an object of other things": lambda _: b'{"key": 1, "modules": [], "extra": 3}',
    "wrong types": lambda data: data.replace(b'"description": "', b'"description": 5, "x": "'),
    "doubled": lambda data: data * 2,
    "another text": lambda _: "é".encode("utf-16"),
    "deep": lambda _: b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_made_anew(home: Path, damage: Callable[[bytes], bytes]) -> None:
    wanted, _ = built_in()
    path = only_file(home)
    sound = path.read_bytes()
    path.write_bytes(damage(sound))

    registry, imported = built_in()
    again, imported_again = built_in()

    assert registry.get_definitions() == again.get_definitions() == wanted.get_definitions()
    assert imported
    assert imported_again == []


def test_it_is_json_that_only_its_owner_can_read(home: Path) -> None:
    built_in()

    path = only_file(home)

    assert json.loads(path.read_bytes())["content"]["modules"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_deleted_file_is_made_anew(home: Path) -> None:
    built_in()
    only_file(home).unlink()

    _, imported = built_in()

    assert imported
    assert only_file(home).exists()


def test_another_version_of_hermes_reads_the_modules_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_in()
    monkeypatch.setattr(hermes, "__version__", "99")

    _, imported = built_in()

    assert imported


def test_what_is_remembered_is_all_but_the_handler() -> None:
    fresh, _ = built_in()
    remembered, _ = built_in()

    for entry, twin in zip(fresh.entries(), remembered.entries(), strict=True):
        code = {"_arguments", "handler", "invoke", "check_fn"}
        if callable(entry.acts):
            assert callable(twin.acts)
            code.add("acts")
        if entry.dynamic_schema_overrides is not None:
            assert callable(twin.dynamic_schema_overrides)
            code.add("dynamic_schema_overrides")
        for slot in set(entry.__slots__) - code:
            assert json.dumps(getattr(entry, slot)) == json.dumps(getattr(twin, slot)), slot
        assert twin.handler is None
        assert (entry.check_fn is None) == (twin.check_fn is None)


@pytest.mark.parametrize("place", ["/proc/nowhere/home", "/dev/null/home"])
def test_a_home_that_can_t_be_written_costs_only_time(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HERMES_HOME", place)

    registry, imported = built_in()

    assert registry.names()
    assert imported


def test_other_findings_are_kept_beside_the_modules(home: Path) -> None:
    manifest = Manifest.load(TOOLS)
    manifest.note("key", {"found": [["a", "b"]]})
    manifest.save()

    assert Manifest.load(TOOLS).extra == {"key": {"found": [["a", "b"]]}}


def test_eight_first_runs_at_once_all_list_the_tools(hermes: CommandLine) -> None:
    command = [sys.executable, "-m", "hermes", "tools", "list", "--json"]
    runs = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=hermes.environment(),
            cwd=hermes.folder,
        )
        for _ in range(8)
    ]

    ends = [run.communicate(timeout=60) for run in runs]

    assert [run.returncode for run in runs] == [0] * 8
    assert [error for _, error in ends] == [b""] * 8
    assert len({answer for answer, _ in ends}) == 1
    assert [path.suffix for path in (hermes.home / "cache").iterdir()] == [".json"]
    assert hermes("tools", "list", "--json").stdout.encode() == ends[0][0]

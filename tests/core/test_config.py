"""The settings: read with care, changed one at a time, nothing else touched."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core import ConfigError
from hermes.core.config import DEFAULTS, Config, set_value

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "config.yaml"


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # Hundreds of files are written here; whether they survive a power cut is not the question.
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())


def test_without_a_file_the_defaults_hold(path: Path) -> None:
    config = Config.load(str(path))

    assert {name: config.get(name) for name in DEFAULTS} == {
        name: default for name, (default, _) in DEFAULTS.items()
    }
    assert config.get("artifacts") == {"max_bytes": 512 * 1024 * 1024, "keep_days": 7}
    assert not path.exists()


def test_a_default_list_is_not_shared() -> None:
    Config().get("plugins.disabled").append("x")

    assert Config().get("plugins.disabled") == []


@pytest.mark.parametrize(
    "text",
    [
        "tools:\n  parallel: many\n",
        "tools:\n  parallel: true\n",
        "tools:\n  parallel: 1.5\n",
        "tools:\n  parallel: [1]\n",
    ],
)
def test_a_value_of_the_wrong_kind_is_said_with_name_and_file(path: Path, text: str) -> None:
    write(path, text)

    with pytest.raises(ConfigError) as caught:
        Config.load(str(path)).get("tools.parallel")

    assert "tools.parallel" in str(caught.value)
    assert "whole number" in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["tools:\n", "tools:\n  parallel:\n", "tools: 5\n", "", "# c"])
def test_what_is_left_empty_is_the_default(path: Path, text: str) -> None:
    write(path, text)

    assert Config.load(str(path)).get("tools.parallel") == 16


def test_a_list_holds_texts(path: Path) -> None:
    write(path, "plugins:\n  disabled: [a, 5]\n")

    with pytest.raises(ConfigError, match=r"plugins\.disabled"):
        Config.load(str(path)).get("plugins.disabled")


@pytest.mark.parametrize(
    "data",
    [b"a: [1", b"- a\n", b"just text", b"a: 2024-99-99", b"\xff\xfe", b"a: !!python/none 1", b"\0"],
)
def test_a_file_that_can_not_be_read_is_said_to_be_so(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)

    with pytest.raises(ConfigError, match=str(path)):
        Config.load(str(path))
    with pytest.raises(ConfigError):
        set_value("tools.parallel", "4", str(path))
    assert path.read_bytes() == data


def test_an_unknown_name_is_said_with_the_nearest(path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        set_value("tool.paralel", "4", str(path))
    assert caught.value.hint == "Did you mean tools.parallel?"
    with pytest.raises(ConfigError):
        Config().get("no.such.thing")
    with pytest.raises(ConfigError):
        set_value("tools", "4", str(path))
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("tools.parallel", "4", 4),
        ("audit.enabled", "off", False),
        ("audit.enabled", "true", True),
        ("plugins.disabled", "a, b", ["a", "b"]),
        ("plugins.disabled", "[a, 'b c']", ["a", "b c"]),
        ("plugins.disabled", "a", ["a"]),
        ("plugins.disabled", "5", ["5"]),
        ("plugins.disabled", "", []),
        ("plugins.disabled", "2024-99-99", ["2024-99-99"]),
        ("network.allow_hosts", "host:8080", ["host:8080"]),
        ("plugins.disabled", "größe", ["größe"]),
    ],
)
def test_what_a_person_types_is_understood(path: Path, name: str, text: str, value: Any) -> None:
    assert set_value(name, text, str(path)) == value
    assert Config.load(str(path)).get(name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tools.parallel", "many"),
        ("tools.parallel", "true"),
        ("tools.parallel", ""),
        ("audit.enabled", "1"),
        ("audit.enabled", "maybe"),
        ("plugins.disabled", "[a, b"),
        ("plugins.disabled", "{a: b}"),
        ("plugins.disabled", "[1]"),
    ],
)
def test_what_is_not_of_the_kind_is_refused_and_nothing_written(
    path: Path, name: str, text: str
) -> None:
    with pytest.raises(ConfigError):
        set_value(name, text, str(path))
    assert not path.exists()


# -- keeping the rest ----------------------------------------------------------------------------

SHAPES = [
    "",
    "# only a comment",
    "---\n",
    "# head\ntools:\n  parallel: 4  # why\n\n# about artifacts\nartifacts:\n  keep_days: 3 # x\n",
    "tools:\n  parallel:\n  defer_above: 3\n",
    "tools:\n",
    "tools: # t\n  # inner\nartifacts:\n  keep_days: 1",
    "{tools: {parallel: 4}} # c\n",
    "{}",
    "{ # c\n a: 1,\n}\n",
    "tools: {}\n",
    "tools: { } # c\nother: 1\n",
    "tools: {parallel: 4, defer_above: 2} # c\nother: 1\n",
    "a: 1\r\ntools:\r\n  parallel: 9 # hi\r\nb: 2\r\n",
    "a: 1\r\n# c",
    "plugins:\n  disabled:\n    - a\n    - b\n  enabled: true\n",
    "plugins:\n  disabled:\n  - a\n  - b # c\n  enabled: true\ntools:\n  parallel: 4\n",
    "command_allowlist:\n- a\n- b\n# z\nx: 1\n",
    "base: &b\n  parallel: 4\ntools:\n  <<: *b\n# c\n",
    "---\ntools:\n  parallel: 4\n...\n",
    "\ufefftools:\n  parallel: 4\n",
    "tools: {parallel: 4}\ntools: {parallel: 5}\n",
    "t: |\n  text\n  # no comment\n\n# c\n",
    "tools:\n  x: |\n    lit\n    more\n# c\nb: 1\n",
    "tools:\n  x: >-\n    lit\n\n\nb: 1\n",
    "tools:\n    parallel: 4\n    y: 'q'\n\n\n",
    "'tools':\n  \"parallel\": 4\n",
    "tools:\n  x: [a,\n    b] # c\nz: 1\n",
    "tools:\n  x: # c\n# d\ny: 1\n",
    'tools:\n  x: "" # c\ny: 1',
    "tools: !!map\n  parallel: !!int 4 # c\n",
    "ключ: значение # примечание\ntools:\n  parallel: 4\n",
    "tools:\n  parallel: '4' # a text by mistake\n",
]
CHANGES = [
    ("tools.parallel", "7"),
    ("tools.defer_above", "8"),
    ("plugins.disabled", "[x, 'y: z']"),
    ("command_allowlist", "ls"),
    ("audit.enabled", "false"),
]


def merged(values: Any, name: str, value: Any) -> Any:
    first, _, rest = name.partition(".")
    values = values if isinstance(values, dict) else {}
    return {**values, first: merged(values.get(first), rest, value) if rest else value}


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize(("name", "typed"), CHANGES)
def test_one_setting_changes_and_every_other_line_stays(
    path: Path, text: str, name: str, typed: str
) -> None:
    write(path, text)

    value = set_value(name, typed, str(path))

    after = path.read_bytes().decode()
    assert yaml.safe_load(after) == merged(yaml.safe_load(text), name, value)
    assert lost(text, after) <= allowed_to_change(text, name)
    if "\r\n" in text:
        assert after.count("\n") == after.count("\r\n")


def lost(before: str, after: str) -> int:
    """How many lines of `before` are not in `after`, in their order, to the byte."""
    left = after.splitlines()
    missing = 0
    for line in before.splitlines():
        if line in left:
            left = left[left.index(line) + 1 :]
        else:
            missing += 1
    return missing


def allowed_to_change(text: str, name: str) -> int:
    """The lines of the old value; of a map in braces, the line that gets the new one."""
    if text.startswith("{"):
        return 1
    section, _, key = name.partition(".")
    values = (yaml.safe_load(text) or {}).get(section)
    if f"{section}: {{" in text:
        return 1
    if not key:
        return len(values) if values else 0
    if isinstance(values, dict) and key in values:
        return len(values[key]) if isinstance(values[key], list) else 1
    return 0


@pytest.mark.parametrize(
    "text",
    [
        "tools: &t # c\n  parallel: 4\nother: *t\n",
        "tools:\n  parallel: &p 4\nother: *p\n",
        "? tools\n: parallel: 4\nx: 1\n",
        "~",
        "x: 1\ntools: [a]\n",
    ],
)
def test_where_comments_can_not_be_kept_the_values_are(path: Path, text: str) -> None:
    write(path, text)

    set_value("tools.parallel", "7", str(path))

    assert yaml.safe_load(path.read_text()) == merged(yaml.safe_load(text), "tools.parallel", 7)


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["parallel", "defer_above", "disabled", "x"]), inner)
    ),
    max_leaves=8,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=st.dictionaries(st.sampled_from(["tools", "plugins", "other", "ü"]), values),
    flow=st.sampled_from([None, True, False]),
    indent=st.sampled_from([2, 4]),
    change=st.sampled_from(CHANGES),
    windows=st.booleans(),
    cut=st.booleans(),
)
def test_no_setting_is_ever_lost(
    path: Path,
    before: dict[str, Any],
    flow: bool | None,
    indent: int,
    change: tuple[str, str],
    windows: bool,
    cut: bool,
) -> None:
    text = yaml.safe_dump(
        before, default_flow_style=flow, indent=indent, sort_keys=False, allow_unicode=True
    )
    if cut:
        text = text.rstrip("\n")
    if windows:
        text = text.replace("\n", "\r\n")
    before = yaml.safe_load(text)
    write(path, text)

    value = set_value(*change, str(path))

    assert yaml.safe_load(path.read_bytes().decode()) == merged(before, change[0], value)


def test_a_linked_file_stays_a_link(tmp_path: Path, path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("# mine\n")
    path.parent.mkdir()
    path.symlink_to(real)

    set_value("tools.parallel", "4", str(path))

    assert path.is_symlink()
    assert real.read_text() == "# mine\ntools:\n  parallel: 4\n"


def test_a_relative_path_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    set_value("tools.parallel", "4", "config.yaml")

    assert Config.load("config.yaml").get("tools.parallel") == 4
    assert os.listdir(tmp_path) == ["config.yaml"]


def test_programs_that_set_at_the_same_time_lose_nothing(path: Path) -> None:
    code = (
        "import sys; from hermes.core.config import set_value\n"
        "for n in range(1, 21): set_value(sys.argv[1], str(n), sys.argv[2])"
    )
    names = ["tools.parallel", "tools.defer_above", "artifacts.keep_days"]
    running = [subprocess.Popen([sys.executable, "-c", code, name, str(path)]) for name in names]

    assert [process.wait(30) for process in running] == [0, 0, 0]
    config = Config.load(str(path))
    assert [config.get(name) for name in names] == [20, 20, 20]

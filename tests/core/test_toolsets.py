"""Toolsets: groups that compose, however they are tangled."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import each

from hermes.core import RegistrationError, ToolRegistry
from hermes.core.toolsets import ALIASES, TOOLSETS, Toolsets, UnknownToolsetError


def fresh(*tools: tuple[str, str]) -> Toolsets:
    registry = ToolRegistry()
    for name, toolset in tools:
        registry.register(name, toolset, {}, lambda: None)
    return Toolsets(registry)


def test_a_toolset_reached_by_two_ways_gives_its_tools_once() -> None:
    toolsets = fresh()
    toolsets.create("bottom", "", ["d"])
    toolsets.create("left", "", ["b"], ["bottom"])
    toolsets.create("right", "", ["c"], ["bottom"])
    toolsets.create("top", "", ["a"], ["left", "right"])

    assert toolsets.resolve("top") == ["a", "b", "c", "d"]


def test_toolsets_that_include_each_other_end() -> None:
    toolsets = fresh()
    toolsets.create("one", "", ["a"])
    toolsets.create("two", "", ["b"], ["one", "two"])
    toolsets.create("one", "", ["a"], ["two"])

    assert toolsets.resolve("one") == toolsets.resolve("two") == ["a", "b"]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"))))
def test_any_tangle_resolves_to_all_that_can_be_reached(graph: dict[str, list[str]]) -> None:
    toolsets = fresh()
    for name in "abcdef":
        toolsets.create(f"g-{name}", "", [f"tool_{name}"])
    for name, includes in graph.items():
        toolsets.create(f"g-{name}", "", [f"tool_{name}"], [f"g-{i}" for i in includes])

    reached, waiting = set(), ["a"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(graph.get(name, []))
    assert toolsets.resolve("g-a") == sorted(f"tool_{name}" for name in reached)


@each("name", sorted(TOOLSETS))
def test_every_shipped_toolset_resolves_also_under_its_old_name(name: str) -> None:
    toolsets = fresh()

    assert toolsets.resolve(name)
    assert toolsets.resolve(f"{name}_tools") == toolsets.resolve(name)


def test_aliases_lead_where_they_say() -> None:
    toolsets = fresh(("fetch", "web"))
    toolsets._registry.register_toolset_alias("internet", "web")
    toolsets._registry.register_toolset_alias("net", "internet")

    for alias, name in ALIASES.items():
        assert toolsets.resolve(alias) == toolsets.resolve(name)
    assert toolsets.resolve("internet") == toolsets.resolve("net") == toolsets.resolve("web")
    assert "fetch" in toolsets.resolve("internet")


@pytest.mark.parametrize("name", ["all", "*"])
def test_all_is_every_tool_there_is(name: str) -> None:
    toolsets = fresh(("odd_one", "mcp-x"), ("mine", "custom"))

    found = toolsets.resolve(name)

    assert {"odd_one", "mine", "read_file", "terminal"} <= set(found)
    assert found == sorted(set(found))


def test_the_toolset_of_a_server_is_there_as_long_as_its_tools_are() -> None:
    toolsets = fresh(("mcp_x_one", "mcp-x"), ("mcp_x_two", "mcp-x"))
    assert toolsets.resolve("mcp-x") == ["mcp_x_one", "mcp_x_two"]
    assert "mcp-x" in toolsets

    toolsets._registry.deregister("mcp_x_one")
    assert toolsets.resolve("mcp-x") == ["mcp_x_two"]

    toolsets._registry.deregister("mcp_x_two")
    assert "mcp-x" not in toolsets


def test_a_tool_that_names_a_shipped_toolset_is_in_it() -> None:
    assert "my_reader" in fresh(("my_reader", "file")).resolve("file")


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("webb", "web"), ("fil", "file"), ("mcp-xx", "mcp-x"), ("qqqqqq", None)]
)
def test_an_unknown_name_is_said_with_the_nearest(wrong: str, nearest: str | None) -> None:
    toolsets = fresh(("t", "mcp-x"))

    with pytest.raises(UnknownToolsetError) as caught:
        toolsets.resolve(["file", wrong])

    assert caught.value.nearest == nearest
    assert wrong in str(caught.value)
    assert nearest is None or nearest in str(caught.value.hint)


def test_a_made_toolset_can_be_made_anew_and_taken_away() -> None:
    toolsets = fresh()
    toolsets.create("mine", "", ["a"])
    toolsets.create("mine", "better", ["b"], includes=["search"])
    assert toolsets.resolve("mine") == ["b", "web_search"]

    assert toolsets.remove("mine")
    assert not toolsets.remove("mine")
    assert "mine" not in toolsets


@pytest.mark.parametrize("name", ["file", "all", "*", "files", "file_tools", "", None])
def test_names_that_have_a_meaning_are_not_given_another(name: Any) -> None:
    with pytest.raises(RegistrationError):
        fresh().create(name, "", ["a"])


def test_an_unknown_include_is_refused() -> None:
    toolsets = fresh()

    with pytest.raises(UnknownToolsetError):
        toolsets.create("mine", "", ["a"], ["fyle"])
    assert "mine" not in toolsets


def test_an_alias_does_not_take_over_a_shipped_name() -> None:
    toolsets = fresh(("evil", "evil"))
    before = toolsets.resolve("web"), toolsets.resolve("all")

    toolsets._registry.register_toolset_alias("web", "evil")
    toolsets._registry.register_toolset_alias("all", "evil")

    assert (toolsets.resolve("web"), toolsets.resolve("all")) == before


def test_the_toolsets_of_a_tool_are_those_that_lead_to_it() -> None:
    toolsets = fresh(("mine", "mcp-x"))
    toolsets.create("above", "", (), ["mcp-x"])

    assert toolsets.holding("mine") == ["above", "mcp-x"]


def test_every_change_is_counted_even_from_many_threads() -> None:
    toolsets = fresh()
    before = toolsets._registry.generation

    def work(number: int) -> None:
        for index in range(50):
            toolsets.create(f"set-{number}-{index}", "", ["a"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert toolsets._registry.generation == before + 8 * 50
    assert sum(name.startswith("set-") for name in toolsets.names()) == 8 * 50

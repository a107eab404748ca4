"""Few schemas in the prompt, every tool within reach, and a beginning that never changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes.core.entry import ToolCall
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.pipeline import Runtime
from hermes.runtime.tool_offer import CATALOGUE, CORE, Offer

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.entry import ToolEntry


def filled(count: int, families: int = 8) -> ToolRegistry:
    """A registry with the real tools and many made up ones."""
    registry = ToolRegistry()
    assert App(registry).registry is registry
    for number in range(count):
        registry.register(
            f"tool_{number:03}",
            f"family_{number % families}",
            {"properties": {"x": {"type": "string"}}},
            lambda x="": f"did {x}",
            description=f"Handles widget number {number} of the warehouse.",
            effect="read",
        )
    return registry


def add(registry: ToolRegistry, name: str, toolset: str = "late", **more: Any) -> ToolEntry:
    return registry.register(name, toolset, {}, lambda: "done", effect="read", **more)


def catalogue_of(offer: Offer) -> str:
    found = {d["function"]["name"]: d["function"] for d in offer.definitions()}
    return str(found["tool_search"]["description"])


def names(found: list[dict[str, Any]]) -> list[str]:
    return [definition["function"]["name"] for definition in found]


@pytest.fixture
def registry() -> ToolRegistry:
    return filled(60)


@pytest.fixture
def offer(registry: ToolRegistry) -> Offer:
    return Offer(registry, registry.entries())


def test_few_tools_are_all_sent_and_there_is_nothing_to_search() -> None:
    registry = filled(2)

    offer = Offer(registry, registry.entries(), defer_above=len(registry.entries()))

    assert not offer.deferred
    assert set(names(offer.definitions())) == set(registry.names()) - {"tool_search"}


def test_of_many_only_the_core_is_sent(offer: Offer) -> None:
    assert offer.deferred
    assert {"read_file", "terminal", "tool_search"} <= set(names(offer.definitions())) <= set(CORE)


def test_the_catalogue_names_every_tool_that_is_not_sent(
    registry: ToolRegistry, offer: Offer
) -> None:
    text = catalogue_of(offer)

    assert all(f"tool_{number:03}" in text for number in range(60))
    assert all(name in text for name in ("system_info", "sleep", "clipboard"))


def test_a_long_catalogue_folds_its_largest_families_and_all_stay_within_reach() -> None:
    registry = filled(400)
    for number in range(300):
        add(registry, f"huge:thing_{number:03}", "huge", description=f"Moves crate {number}.")

    offer = Offer(registry, registry.entries())

    text = catalogue_of(offer)
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    assert lines["huge"].startswith("300 tools such as thing_000")
    assert text.count("tool_") <= CATALOGUE + 60
    assert len(text) < 12_000
    for name in registry.names():
        if name != "tool_search":
            assert names(offer.search(f"select:{name}")[0]) == [name]


def test_the_beginning_stays_the_same_to_the_byte(registry: ToolRegistry, offer: Offer) -> None:
    seen = [json.dumps(offer.definitions())]

    def grown() -> str:
        now = json.dumps(offer.definitions())
        assert now[:-1].startswith(seen[-1][:-1])
        seen.append(now)
        return now

    offer.load(["tool_030", "tool_010"])
    grown()
    offer.search("how warm is the processor")
    grown()
    offer.admit([add(registry, "late_tool")])
    assert grown() == seen[-2]
    offer.search("select:late_tool,tool_005")
    grown()
    registry.register("tool_030", "family_6", {}, lambda: None, description="Anew.", effect="read")
    registry.deregister("tool_010")
    offer.load(["tool_030"])
    assert grown() == seen[-2]


def test_a_tool_that_changed_before_it_was_loaded_is_sent_as_it_is_now(
    registry: ToolRegistry, offer: Offer
) -> None:
    registry.register("tool_030", "family_6", {}, lambda: None, description="Anew.", effect="read")

    (found,) = offer.load(["tool_030"])

    assert found["function"]["description"] == "Anew."


def test_late_tools_are_sent_at_once_where_nothing_is_deferred() -> None:
    registry = filled(3)
    offer = Offer(registry, registry.entries(), defer_above=100)
    before = names(offer.definitions())

    late = [
        add(registry, "late_one", description="See late_two. And system_info. And web_search."),
        add(registry, "late_two"),
    ]
    offer.admit(late)

    assert names(offer.definitions()) == [*before, "late_one", "late_two"]
    text = offer.definitions()[-2]["function"]["description"]
    assert text == "See late_two. And system_info."


@pytest.mark.parametrize("query", ["select:tool_007,sleep", " Select: tool_007 , `sleep` "])
def test_select_loads_exactly_those_in_that_order(offer: Offer, query: str) -> None:
    found, unknown = offer.search(query)

    assert names(found) == ["tool_007", "sleep"]
    assert unknown == []
    assert names(offer.definitions())[-2:] == ["tool_007", "sleep"]


def test_select_says_which_names_it_does_not_know(offer: Offer) -> None:
    found, unknown = offer.search("select:slep,tool_007")

    assert names(found) == ["tool_007"]
    assert unknown == ["slep"]
    assert "sleep" in offer.nearest("slep")


def test_select_knows_aliases(registry: ToolRegistry, offer: Offer) -> None:
    offer.admit([add(registry, "canonical", aliases=["nickname"])])

    assert names(offer.search("select:nickname")[0]) == ["canonical"]


def test_a_need_in_plain_words_finds_its_tool(offer: Offer) -> None:
    assert "system_info" in names(offer.search("how much memory is free")[0])


def test_what_is_not_offered_is_never_found_whatever_its_rank(registry: ToolRegistry) -> None:
    offered = [entry for entry in registry.entries() if entry.name in ("tool_059", "tool_search")]
    offer = Offer(registry, offered, defer_above=1)

    found, _ = offer.search("widget of the warehouse", limit=5)
    selected, unknown = offer.search("select:tool_001")

    assert names(found) == ["tool_059"]
    assert (selected, unknown) == ([], ["tool_001"])
    assert "tool_001" not in offer.nearest("tool_001")


def test_a_tool_works_without_being_loaded_and_is_refused_outside_the_offer(
    registry: ToolRegistry,
) -> None:
    offered = [entry for entry in registry.entries() if entry.name != "tool_001"]
    offer = Offer(registry, offered)
    with Runtime(registry) as runtime:
        context = runtime.context(services=runtime.services.replace(offer=offer))

        within = runtime.call_sync(ToolCall("tool_002", {"x": "it"}), context)
        outside = runtime.call_sync(ToolCall("tool_001", {"x": "it"}), context)
        unknown = runtime.call_sync(ToolCall("tool_zzz", {}), context)

    assert within.value == "did it"
    assert outside.status == "error"
    assert outside.value["error"].startswith("no tool is called")
    assert "tool_001" not in json.dumps(unknown.value)


def test_an_offer_without_search_sends_everything(registry: ToolRegistry) -> None:
    without = [entry for entry in registry.entries() if entry.name != "tool_search"]

    offer = Offer(registry, without)

    assert not offer.deferred
    assert len(offer.definitions()) == len(without)


def test_loading_from_many_threads_loads_each_once(offer: Offer) -> None:
    import threading

    before = len(offer.definitions())
    wanted = [f"tool_{number:03}" for number in range(60)]
    threads = [threading.Thread(target=offer.load, args=(wanted,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    sent = names(offer.definitions())
    assert len(sent) == len(set(sent)) == before + 60

"""The registry: names, owners, versions, definitions, from many threads at once."""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.corpus import each

from hermes.core import RegistrationError, ToolCall, ToolRegistry
from hermes.core.entry import DEFAULT_RESULT_SIZE
from hermes.core.registry import owned_by
from hermes.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


def echo(text: str = "") -> str:
    return text


def add(registry: ToolRegistry, name: str, toolset: str = "own", **fields: Any) -> Any:
    fields.setdefault("handler", echo)
    fields.setdefault("effect", "read")
    return registry.register(name, toolset, SCHEMA, **fields)


def in_threads(count: int, work: Callable[[int], object]) -> None:
    start = threading.Barrier(count)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_registrations_from_many_threads_are_all_there() -> None:
    registry = ToolRegistry()

    def work(number: int) -> None:
        for index in range(25):
            add(
                registry, f"tool_{number}_{index}", f"set_{number}", aliases=[f"a_{number}_{index}"]
            )
            registry.entries()
            registry.toolsets()

    in_threads(32, work)

    assert len(registry) == 32 * 25
    assert len(registry.aliases()) == 32 * 25
    assert registry.generation == 32 * 25
    assert all(len(tools) == 25 for tools in registry.toolsets().values())


def test_of_many_that_want_one_name_at_once_one_gets_it() -> None:
    registry = ToolRegistry()
    refused: list[str] = []

    def work(number: int) -> None:
        try:
            add(registry, "wanted", f"set_{number}")
        except RegistrationError as error:
            refused.append(str(error))

    in_threads(32, work)

    assert len(registry) == 1
    assert len(refused) == 31


def test_coming_and_going_from_many_threads_leaves_nothing_behind() -> None:
    registry = ToolRegistry()

    def work(number: int) -> None:
        for _ in range(50):
            add(registry, f"tool_{number}", f"set_{number}", aliases=[f"alias_{number}"])
            assert registry.get(f"alias_{number}") is not None
            assert registry.deregister(f"tool_{number}")

    in_threads(16, work)

    assert len(registry) == 0
    assert registry.aliases() == {}
    assert registry.toolsets() == {}


def test_definitions_are_sorted_whatever_the_order_of_registration() -> None:
    listings = []
    for names in itertools.permutations(["beta", "alpha", "gamma"]):
        registry = ToolRegistry()
        for name in names:
            add(registry, name)
        listings.append([d["function"]["name"] for d in registry.get_definitions()])

    assert listings == [["alpha", "beta", "gamma"]] * 6


def test_definitions_leave_out_what_can_not_work_here() -> None:
    registry = ToolRegistry()
    add(registry, "works", check_fn=lambda: True)
    add(registry, "fails", check_fn=lambda: False)
    add(registry, "raises", check_fn=lambda: 1 / 0)
    add(registry, "needs_key", requires_env=["HERMES_TEST_KEY_THAT_NOBODY_SETS"])

    names = [d["function"]["name"] for d in registry.get_definitions()]

    assert names == ["works"]


def test_definitions_by_name_take_aliases_and_come_once() -> None:
    registry = ToolRegistry()
    add(registry, "read_file", aliases=["file_read"])

    found = registry.get_definitions(["file_read", "read_file", "no_such_tool"])

    assert [d["function"]["name"] for d in found] == ["read_file"]
    with pytest.raises(Exception, match="no_such_tool"):
        registry.get_definitions(["no_such_tool"], quiet=False)


def test_definitions_have_the_wrapping_that_model_apis_want() -> None:
    registry = ToolRegistry()
    registry.register(
        "t", "own", {"name": "t", "description": "Do it.", "parameters": SCHEMA}, echo
    )

    (found,) = registry.get_definitions()

    assert found == {
        "type": "function",
        "function": {"name": "t", "description": "Do it.", "parameters": SCHEMA},
    }


def test_a_tool_can_say_its_description_anew_at_every_listing() -> None:
    registry = ToolRegistry()
    add(registry, "other")
    add(registry, "t", dynamic_schema_overrides=lambda offered: {"description": f"{len(offered)}"})
    add(registry, "u", dynamic_schema_overrides=lambda: {"description": "now"})

    texts = [d["function"]["description"] for d in registry.get_definitions()]

    assert texts == ["", "3", "now"]


def test_the_size_of_a_result_has_a_default() -> None:
    registry = ToolRegistry()
    add(registry, "plain")
    add(registry, "small", max_result_size_chars=10, aliases=["tiny"])
    add(registry, "none", max_result_size_chars=0)

    sizes = [registry.get_max_result_size(n) for n in ("plain", "small", "tiny", "none", "?")]

    assert sizes == [DEFAULT_RESULT_SIZE, 10, 10, 0, DEFAULT_RESULT_SIZE]


# -- who holds a name ---------------------------------------------------------------------------


def as_builtin(registry: ToolRegistry, **fields: Any) -> None:
    add(registry, "read_file", "file", origin="builtin", description="built in", **fields)


def as_plugin(registry: ToolRegistry, **fields: Any) -> None:
    add(registry, "read_file", "acme", origin="plugin", owner="acme", description="acme", **fields)


def outcome(*steps: Callable[[ToolRegistry], None]) -> tuple[str, list[str]]:
    registry = ToolRegistry()
    refusals = []
    for step in steps:
        try:
            step(registry)
        except RegistrationError as error:
            refusals.append(str(error))
    held = registry.get("read_file")
    assert held is not None
    assert len(registry) == 1
    return held.description, refusals + registry.conflicts


def test_a_held_name_is_refused_and_both_owners_are_named() -> None:
    registry = ToolRegistry()
    add(registry, "read_file", "file", origin="builtin")

    with pytest.raises(RegistrationError) as caught:
        add(registry, "read_file", "acme-tools", origin="plugin", owner="acme")

    message = str(caught.value)
    assert "read_file" in message
    assert '"file" (builtin)' in message
    assert '"acme-tools" (plugin acme)' in message
    assert caught.value.hint is not None
    assert "override=True" in caught.value.hint


@pytest.mark.parametrize("order", [1, -1])
def test_without_override_the_built_in_tool_stays_in_either_order(order: int) -> None:
    holder, said = outcome(*[as_builtin, as_plugin][::order])

    assert holder == "built in"
    assert len(said) == 1
    assert "acme" in said[0]


@pytest.mark.parametrize("order", [1, -1])
def test_with_override_the_plugin_has_it_in_either_order(order: int) -> None:
    holder, said = outcome(*[as_builtin, lambda r: as_plugin(r, override=True)][::order])

    assert holder == "acme"
    assert len(said) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_a_plugin_does_not_get_in_by_calling_its_toolset_like_ours(order: int) -> None:
    def disguised(registry: ToolRegistry) -> None:
        add(registry, "read_file", "file", origin="plugin", owner="acme", description="acme")

    holder, said = outcome(*[as_builtin, disguised][::order])

    assert holder == "built in"
    assert len(said) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_an_alias_is_held_like_a_name(order: int) -> None:
    def shadowing(registry: ToolRegistry) -> None:
        add(registry, "mine", "acme", origin="plugin", owner="acme", aliases=["read_file"])

    registry = ToolRegistry()
    for step in [as_builtin, shadowing][::order]:
        with contextlib.suppress(RegistrationError):
            step(registry)

    assert registry.names() == ["read_file"]
    assert registry.aliases() == {}


def test_a_refusal_costs_nobody_anything() -> None:
    registry = ToolRegistry()
    add(registry, "first", "file", origin="builtin")
    add(registry, "second", "other", origin="plugin", owner="other", override=True)
    before = registry.entries()

    with pytest.raises(RegistrationError):
        add(
            registry,
            "first",
            "acme",
            origin="plugin",
            owner="acme",
            override=True,
            aliases=["second"],
        )

    assert registry.entries() == before


def test_two_tools_of_a_toolset_do_not_share_an_alias() -> None:
    registry = ToolRegistry()
    add(registry, "one", aliases=["short"])

    with pytest.raises(RegistrationError, match="short"):
        add(registry, "two", aliases=["short"])

    assert registry.aliases() == {"short": "one"}


def test_what_a_plugin_is_refused_can_be_gathered() -> None:
    registry = ToolRegistry()
    as_builtin(registry)

    with registry.collecting() as refused, owned_by("plugin", "acme"):
        add(registry, "read_file", "acme")
        add(registry, "fine", "acme")

    assert [entry.name for entry, _ in refused] == ["read_file"]
    assert registry.names() == ["fine", "read_file"]


# -- versions -----------------------------------------------------------------------------------


def test_registering_again_makes_a_new_version_and_leaves_the_old_as_it_was() -> None:
    registry = ToolRegistry()
    first = add(registry, "t", description="old")
    second = add(registry, "t", description="new")

    assert (first.version, first.description) == (1, "old")
    assert (second.version, second.description) == (2, "new")
    assert registry.get("t") is second


def test_versions_never_repeat_even_after_a_tool_was_away() -> None:
    registry = ToolRegistry()
    versions = []
    for _ in range(3):
        versions.append(add(registry, "t").version)
        registry.deregister("t")
    versions.append(add(registry, "t", "other", override=True).version)

    assert versions == [1, 2, 3, 4]


def test_a_call_in_flight_finishes_on_the_version_it_began_with() -> None:
    registry = ToolRegistry()
    begun, go_on = threading.Event(), threading.Event()
    runtime = Runtime(registry)

    def old(text: str = "") -> str:
        begun.set()
        assert go_on.wait(10)
        return "old"

    add(registry, "t", handler=old)
    said: list[str] = []
    call = threading.Thread(target=lambda: said.append(runtime.dispatch("t", {})))
    call.start()
    assert begun.wait(10)

    add(registry, "t", handler=lambda text="": "new")
    during = runtime.dispatch("t", {})
    go_on.set()
    call.join()

    assert (during, said) == ('"new"', ['"old"'])


def test_a_thousand_calls_survive_a_registry_that_changes_under_them() -> None:
    registry = ToolRegistry()
    runtime = Runtime(registry)
    add(registry, "t", handler=lambda text="": "v0")
    stop = threading.Event()

    def change() -> None:
        for number in itertools.count(1):
            if stop.is_set():
                return
            add(registry, "t", handler=lambda text="", number=number: f"v{number}")
            add(registry, f"extra_{number % 7}", f"set_{number % 7}")
            registry.deregister(f"extra_{(number + 3) % 7}")

    changer = threading.Thread(target=change)
    changer.start()
    try:
        outcomes = runtime.call_many_sync([ToolCall("t", {}) for _ in range(1000)])
    finally:
        stop.set()
        changer.join()

    assert len(outcomes) == 1000
    assert {o.status for o in outcomes} == {"ok"}
    assert all(o.value.startswith("v") for o in outcomes)


# -- toolsets -----------------------------------------------------------------------------------


def test_the_last_tool_of_a_toolset_takes_its_checks_and_aliases_along() -> None:
    registry = ToolRegistry()
    add(registry, "one", "web", check_fn=lambda: True)
    add(registry, "two", "web")
    registry.set_toolset_check("web", lambda: True)
    registry.register_toolset_alias("internet", "web")

    registry.deregister("one")
    assert "web" in registry.get_toolset_checks()
    assert registry.toolset_aliases() == {"internet": "web"}

    registry.deregister("two")
    assert registry.get_toolset_checks() == {}
    assert registry.toolset_aliases() == {}
    assert not registry.deregister("two")


def test_the_check_of_a_toolset_follows_the_tools_it_has() -> None:
    registry = ToolRegistry()

    def first() -> bool:
        return True

    def second() -> bool:
        return True

    add(registry, "a", "web", check_fn=first)
    add(registry, "b", "web", check_fn=second)
    assert registry.get_toolset_checks() == {"web": first}

    registry.deregister("a")
    assert registry.get_toolset_checks() == {"web": second}


def test_a_toolset_is_available_when_one_of_its_tools_is() -> None:
    registry = ToolRegistry()
    add(registry, "no", "web", check_fn=lambda: False)
    assert not registry.is_toolset_available("web")

    add(registry, "yes", "web")
    registry.register_toolset_alias("internet", "web")
    assert registry.is_toolset_available("web")
    assert registry.is_toolset_available("internet")
    assert not registry.is_toolset_available("no-such-toolset")


def test_a_check_set_for_a_toolset_closes_all_of_it() -> None:
    registry = ToolRegistry()
    add(registry, "fetch", "web")
    add(registry, "read", "file")
    registry.set_toolset_check("web", lambda: False)

    assert not registry.is_toolset_available("web")
    assert [d["function"]["name"] for d in registry.get_definitions()] == ["read"]


def test_a_toolset_alias_is_not_given_away_twice() -> None:
    registry = ToolRegistry()
    add(registry, "a", "one")
    add(registry, "b", "two")
    registry.register_toolset_alias("short", "one")
    registry.register_toolset_alias("short", "one")

    with pytest.raises(RegistrationError, match="one"):
        registry.register_toolset_alias("short", "two")
    with pytest.raises(RegistrationError):
        registry.register_toolset_alias("two", "one")


# -- what can't be registered -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a b", "a\n", "ä/b", "x" * 129, None, 5])
def test_odd_names_are_refused(name: Any) -> None:
    with pytest.raises(RegistrationError):
        add(ToolRegistry(), name)


@each(
    "fields",
    [
        {"handler": "no function"},
        {"effect": "everything"},
        {"concurrency": "sometimes"},
        {"timeout_seconds": 0},
        {"timeout_seconds": -1},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": "3"},
        {"check_fn": "no function"},
        {"toolset": ""},
        {"schema": []},
        {"schema": {"type": "string"}},
        {"schema": {"parameters": {"type": "object", "properties": None}}},
        {"aliases": ["not a name"]},
    ],
)
def test_odd_fields_are_refused(fields: dict[str, Any]) -> None:
    registry = ToolRegistry()
    whole = {"toolset": "own", "schema": {}, "handler": lambda: None, **fields}

    with pytest.raises(RegistrationError):
        registry.register("t", **whole)
    assert len(registry) == 0


def test_a_single_text_where_several_are_meant_is_one() -> None:
    registry = ToolRegistry()

    entry = add(
        registry, "t", aliases="other", tags="tag", requires_env="HOME", permissions="file:read"
    )

    assert entry.aliases == ("other",)
    assert entry.tags == ("tag",)
    assert entry.requires_env == ("HOME",)
    assert entry.permissions == ("file:read",)


def test_reads_when_compares_whole_values_of_one_type() -> None:
    registry = ToolRegistry()

    entry = add(registry, "t", effect="write", reads_when={"action": "list", "dry": [True]})

    assert entry.effect_of({"action": "list"}) == "read"
    assert entry.effect_of({"dry": True}) == "read"
    for arguments in ({"action": "li"}, {"action": ""}, {"dry": 1}, {"dry": "true"}, {}):
        assert entry.effect_of(arguments) == "write"


def test_dispatch_makes_one_runtime_when_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Runtime] = []

    def make(registry: ToolRegistry) -> Runtime:
        made.append(Runtime(registry))
        return made[-1]

    monkeypatch.setattr(ToolRegistry, "default_dispatcher", staticmethod(make))
    registry = ToolRegistry()
    add(registry, "t")

    in_threads(8, lambda _: registry.dispatch("t", {"text": "x"}))

    assert len(made) == 1

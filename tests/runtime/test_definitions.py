"""What a model is offered: chosen by toolset, working here, consistent, worked out once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes.core.toolsets import Toolsets, UnknownToolsetError
from hermes.runtime.definitions import Definitions, get_tool_definitions, without_mentions

if TYPE_CHECKING:
    from typing import Any

    from hermes.core.registry import ToolRegistry


def add(registry: ToolRegistry, name: str, toolset: str, text: str = "", **more: Any) -> None:
    schema = more.pop("schema", {})
    registry.register(name, toolset, schema, lambda **_: None, description=text, **more)


@pytest.fixture
def definitions(registry: ToolRegistry) -> Definitions:
    for name, toolset in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c")):
        add(registry, name, toolset, f"Does {name}.")
    return Definitions(registry, Toolsets(registry))


def names(found: list[dict[str, Any]]) -> list[str]:
    return [definition["function"]["name"] for definition in found]


@pytest.mark.parametrize(
    ("enabled", "disabled", "wanted"),
    [
        (None, None, ["a1", "a2", "b1", "c1"]),
        ([], [], ["a1", "a2", "b1", "c1"]),
        (["a"], None, ["a1", "a2"]),
        (["c", "a"], None, ["a1", "a2", "c1"]),
        (["a"], ["a"], ["a1", "a2"]),
        (["a"], ["b"], ["a1", "a2"]),
        (None, ["a"], ["b1", "c1"]),
        ([], ["a", "b"], ["c1"]),
        (["all"], None, ["a1", "a2", "b1", "c1"]),
        (None, ["all"], []),
    ],
)
def test_enabled_wins_else_all_but_disabled_else_all(
    definitions: Definitions,
    enabled: list[str] | None,
    disabled: list[str] | None,
    wanted: list[str],
) -> None:
    assert names(definitions.get(enabled, disabled)) == wanted


def test_tools_that_can_t_work_here_are_left_out(
    registry: ToolRegistry, definitions: Definitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(registry, "never", "a", check_fn=lambda: False)
    add(registry, "raising", "a", check_fn=lambda: 1 / 0)
    add(registry, "needy", "a", requires_env=["DEFINITIONS_TEST"])

    assert names(definitions.get(["a"])) == ["a1", "a2"]
    monkeypatch.setenv("DEFINITIONS_TEST", "set now")
    assert names(definitions.get(["a"])) == ["a1", "a2", "needy"]
    monkeypatch.delenv("DEFINITIONS_TEST")
    assert names(definitions.get(["a"])) == ["a1", "a2"]


def test_an_unknown_toolset_is_refused_or_passed_over(definitions: Definitions) -> None:
    with pytest.raises(UnknownToolsetError, match="nonesuch"):
        definitions.get(["a", "nonesuch"])

    assert names(definitions.get(["a", "nonesuch"], quiet=True)) == ["a1", "a2"]


def test_the_answer_is_remembered_and_no_check_runs_again(
    registry: ToolRegistry, definitions: Definitions
) -> None:
    runs: list[int] = []
    add(registry, "counted", "a", check_fn=lambda: bool(runs.append(1)) or True)

    first = definitions.get()
    seconds = [definitions.get() for _ in range(20)]

    assert len(runs) == 1
    assert all(second == first for second in seconds)
    assert all(a is b for a, b in zip(first, seconds[-1], strict=True))


def test_a_change_of_the_list_that_was_given_out_changes_nothing(
    definitions: Definitions,
) -> None:
    definitions.get().clear()

    assert len(definitions.get()) == 4


def test_registering_taking_away_and_regrouping_are_seen_at_once(
    registry: ToolRegistry, definitions: Definitions
) -> None:
    toolsets = Toolsets(registry)
    definitions = Definitions(registry, toolsets)
    assert names(definitions.get(["a"])) == ["a1", "a2"]

    add(registry, "a3", "a")
    assert names(definitions.get(["a"])) == ["a1", "a2", "a3"]
    registry.deregister("a1")
    assert names(definitions.get(["a"])) == ["a2", "a3"]
    toolsets.create("mine", "Mine", ["b1"])
    assert names(definitions.get(["mine"])) == ["b1"]
    toolsets.create("mine", "Mine", ["c1"])
    assert names(definitions.get(["mine"])) == ["c1"]


# -- no word of what is not offered --------------------------------------------------------------


def test_no_description_mentions_a_tool_that_is_not_offered(
    registry: ToolRegistry, definitions: Definitions
) -> None:
    add(registry, "acme_gone", "gone")
    add(
        registry,
        "talker",
        "t",
        "Talks. Use web_search for the web. Better than acme_gone! See `patch`; patch it up.",
        schema={
            "properties": {
                "one": {"type": "string", "description": "From acme_gone or web_search."},
                "two": {
                    "type": "array",
                    "items": {
                        "anyOf": [{"type": "string", "description": "Plain. Or web_search."}]
                    },
                },
                "description": {"type": "string", "description": "A word."},
            }
        },
    )
    entry = registry.get("talker")
    assert entry is not None
    before = json.dumps(entry.parameters)

    together = definitions.get(["t", "gone"])
    alone = definitions.get(["t"])

    assert "acme_gone" in json.dumps(together[1])
    text = json.dumps(alone)
    assert not any(name in text for name in ("acme_gone", "web_search", "`patch`"))
    function = alone[0]["function"]
    assert function["description"].startswith("Talks.")
    assert "patch it up" in function["description"]
    properties = function["parameters"]["properties"]
    assert properties["two"]["items"]["anyOf"][0]["description"] == "Plain."
    assert properties["description"] == {"type": "string", "description": "A word."}
    assert json.dumps(entry.parameters) == before


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Nothing to see.", "Nothing to see."),
        ("First. Then read_file. Last.", "First. Last."),
        ("Like read_file.", "Like another tool."),
        ("`memory` only", "another tool only"),
        ("It has memory. A `memory` too.", "It has memory."),
        ("my_read_file stays. read_files stays.", "my_read_file stays. read_files stays."),
        ("Do:\n- read_file: reads\n- this: that", "Do:\n- this: that"),
        ("One.\n\nread_file\n\nTwo.", "One.\n\nTwo."),
    ],
)
def test_sentences_with_an_absent_tool_go(text: str, left: str) -> None:
    absent = frozenset({"read_file", "memory"})

    assert without_mentions(text, absent).split() == left.split()


def test_a_tool_may_say_at_run_time_what_it_is(
    registry: ToolRegistry, definitions: Definitions
) -> None:
    class Speaker:
        def whole(self) -> dict[str, str]:
            return {"description": "A method.", "name": "renamed"}

    add(registry, "d1", "d", "x", dynamic_schema_overrides=lambda: {"description": "No argument."})
    add(
        registry,
        "d2",
        "d",
        "x",
        dynamic_schema_overrides=lambda offered: {"description": f"One of {len(offered)}."},
    )
    add(registry, "d3", "d", "x", dynamic_schema_overrides=Speaker().whole)
    add(registry, "d4", "d", "As defined.", dynamic_schema_overrides=lambda: 1 / 0)
    add(registry, "d5", "d", "As defined.", dynamic_schema_overrides=lambda: None)

    found = definitions.get(["d"])

    assert [d["function"]["description"] for d in found] == [
        "No argument.",
        "One of 5.",
        "A method.",
        "As defined.",
        "As defined.",
    ]
    assert names(found) == ["d1", "d2", "d3", "d4", "d5"]


def test_the_shipped_tools_mention_only_each_other() -> None:
    from hermes.core.toolsets import declared_tools

    for enabled in (None, ["system"], ["discovery"]):
        found = get_tool_definitions(enabled, quiet_mode=True)
        offered = set(names(found))

        assert offered
        text = json.dumps(found)
        absent = {name for name in declared_tools() - offered if "_" in name}
        assert not [name for name in absent if name in text]

"""What a file may say, and how it is told what is wrong."""

from __future__ import annotations

import json
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus import each

from hermes.runtime.yaml_tools.document import DefinitionError
from hermes.runtime.yaml_tools.reader import read_tools
from hermes.runtime.yaml_tools.spec import CommandSpec, HttpSpec


def problems(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        read_tools(textwrap.dedent(text), "tools.yaml")
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def command_problems(argv: str, more: str = "") -> list[str]:
    return problems(f"name: t\ntype: command\ncommand: {argv}\n{more}")


def http_problems(more: str, endpoint: str = "https://api.example/v1") -> list[str]:
    return problems(f'name: t\ntype: http_wrapper\nendpoint: "{endpoint}"\n{textwrap.dedent(more)}')


def test_a_whole_file_becomes_definitions() -> None:
    tools = read_tools(
        textwrap.dedent(
            """
            tools:
              - name: weather
                description: The weather in a city.
                type: http_wrapper
                endpoint: https://api.example/v1/{city}
                method: GET
                auth: {type: bearer, token_env: WEATHER_TOKEN}
                parameters:
                  - name: city
                    type: string
                    required: true
                    in: path
                    description: Where.
                    enum: [Paris, Rome]
                  - {name: days, type: integer, default: 3}
                headers: {Accept: application/json}
                response: {jsonpath: "$.items[*].name"}
                tags: [forecast]
                timeout_seconds: 20
                toolset: travel
              - name: git_log
                type: command
                command: ["git", "log", "--oneline", ["-n", "{count}"]]
                parameters: {count: {type: integer}}
                env: [GIT_DIR]
            """
        ),
        "tools.yaml",
    )

    weather, log = tools
    assert isinstance(weather.spec, HttpSpec)
    assert isinstance(log.spec, CommandSpec)
    assert weather.schema() == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where.", "enum": ["Paris", "Rome"]},
            "days": {"type": "integer", "default": 3},
        },
        "additionalProperties": False,
        "required": ["city"],
    }
    assert (weather.effect, log.effect) == ("network", "execute")
    assert (weather.toolset, log.toolset) == ("travel", "yaml")
    assert (weather.timeout_seconds, log.timeout_seconds) == (20.0, 60.0)
    assert weather.spec.auth.names == ("WEATHER_TOKEN",)
    assert log.description


def test_every_problem_is_told_at_once_with_its_line() -> None:
    found = problems(
        """\
        tools:
          - name: one
            type: comand
          - name: two
            type: command
            commnd: [ls]
            command: ls -l {x}
          - name: three
            type: http_wrapper
            endpoint: ftp://x
            parameters:
              - {name: a, type: int}
              - {name: b, in: boddy}
              - {type: string}
              - {name: b}
          - name: four
            name: four
            type: command
            command: [ls]
          - name: five
            type: command
            command: [ls]
          - name: five
            type: command
            command: [ls]
        tool: x
        """
    )

    assert [line.partition(":")[0] for line in found] == [
        f"line {n}" for n in (3, 6, 7, 10, 12, 13, 14, 15, 17, 23, 26)
    ]
    assert "did you mean `command`" in found[0]
    assert "did you mean `command`" in found[1]
    assert "shell" in found[2]
    assert "did you mean `integer`" in found[4]
    assert "did you mean `body`" in found[5]
    assert "comes twice" in found[8]
    assert "already in line 20" in found[9]
    assert "did you mean `tools`" in found[10]


@pytest.mark.parametrize("effect", ["read", "write", "none", "READ"])
@pytest.mark.parametrize(
    "kind", ["type: command\ncommand: [ls]", "type: http_wrapper\nendpoint: https://a.example"]
)
def test_a_file_can_not_lower_the_effect(kind: str, effect: str) -> None:
    assert "can't lower it" in problems(f"name: t\n{kind}\neffect: {effect}\n")[0]


@each(
    "argv",
    [
        '"ls {x}"',
        "[]",
        '["{x}", a]',
        '["/bin/{x}", a]',
        '[ls, "{y}", "{x}"]',
        "[ls]",
        '[sh, -c, "echo {x}"]',
        '[/bin/bash, -lc, "echo {x}"]',
        '[bash, --norc, -ec, "{x}"]',
        '[bash, "-c{x}"]',
        '[env, A=1, sh, -c, "{x}"]',
        '[sudo, -u, me, python3.12, -c, "print({x})"]',
        '[perl, -ne, "{x}"]',
        '[node, --eval, "{x}"]',
        '[node, "--eval={x}"]',
        '[php, -r, "{x}"]',
        '[awk, "/{x}/"]',
        '[sed, -n, "{x}p", file]',
        '[sed, -e, "s/a/b/", -e, "{x}"]',
        '[ssh, host, ls, "{x}"]',
        '[xargs, -0, sh, -c, "{x}"]',
        '[docker, exec, box, bash, -c, "{x}"]',
        '[powershell, -Command, "{x}"]',
        '[ls, "--x={x}y"]',
    ],
)
def test_a_command_that_would_run_what_the_model_sends_is_refused(argv: str) -> None:
    kind = "array" if "x={x}y" in argv else "string"
    assert command_problems(argv, f"parameters: [{{name: x, type: {kind}}}]")


@pytest.mark.parametrize(
    "argv",
    [
        '[sh, -c, \'echo "$1"\', sh, "{x}"]',
        '[python3, script.py, "{x}", -v]',
        '[grep, -c, "{x}", file]',
        '[grep, python, -c, "{x}"]',
        '[git, show, "HEAD@{{upstream}}", "{x}"]',
        '[docker, ps, --format, "{{.Names}}", "{x}"]',
        '[awk, "{ print $1 }", "{x}"]',
        '[sleep, 5, "{x}"]',
        '[curl, -e, "{x}"]',
        '[env, "A={x}", printenv]',
    ],
)
def test_a_command_that_takes_values_as_data_is_fine(argv: str) -> None:
    assert read_tools(f"name: t\ntype: command\ncommand: {argv}\nparameters: [{{name: x}}]\n", "f")


@each(
    "endpoint",
    [
        "https://{host}/x",
        "https://api.{zone}.example/x",
        "https://api.example:{port}/x",
        "https://user:password@api.example/x",
        "//api.example/x",
        "file:///etc/passwd",
        "gopher://x",
        "https:///x",
        "https://",
        "https://api.example/x#part",
        "https://api.example:99999/x",
        "https://api.example/a b",
        "https://api.example\\\\@evil.example/x",
        "{url}",
        "https://api.example/{unknown}",
    ],
)
def test_an_endpoint_must_name_its_host_and_its_parameters(endpoint: str) -> None:
    names = ("host", "zone", "port", "url")
    found = http_problems(
        f"parameters: [{', '.join(f'{{name: {n}, required: true}}' for n in names)}]", endpoint
    )

    assert "endpoint" in found[0]
    assert "password@" not in found[0]


@each(
    ("more", "said"),
    [
        ("headers: {Authorization: Bearer sk-abcdef}", "use `auth`"),
        ("headers: {Cookie: a=b}", "use `auth`"),
        ("headers: {Host: other.example}", "connection itself"),
        ('headers: {X-A: "a\\nb"}', "line break"),
        ("headers: {'X A': b}", "name of a header"),
        ("headers: [a]", "keys with values"),
        ("auth: {type: bearer, token: sk-abcdef}", "did you mean `token_env`"),
        ("auth: {type: bearer, token_env: sk-abc-def}", "name of an environment variable"),
        ("auth: {type: bearer}", "needs `token_env`"),
        ("auth: {token_env: T}", "no type"),
        ("auth: {type: digest}", "can't be `digest`"),
        ("auth: {type: none, token_env: T}", "knows no `token_env`"),
        ("auth: bearer sk-abcdef", "keys with values"),
        ("auth: {type: header, header: Host, token_env: T}", "connection itself"),
        (
            "auth: {type: header, header: X-K, token_env: T}\nheaders: {x-k: 1}",
            "already set by `auth`",
        ),
        (
            "auth: {type: header, header: K, token_env: T}\nparameters: [{name: k, in: header}]",
            "would replace",
        ),
        ("parameters: [{name: Authorization, in: header}]", "would replace"),
        ("parameters: [{name: Host, in: header}]", "connection itself"),
        ("parameters: [{name: a, in: body}]", "GET sends none"),
        ("parameters: [{name: a, in: path}]", "no `{a}`"),
        ("parameters: [{name: a b}]", "can't be a parameter's name"),
        ("parameters: [{name: a, enum: [yes, no]}]", "put it in quotes"),
        ("parameters: [{name: a, type: integer, default: x}]", "not of the type integer"),
        ("parameters: [{name: a, enum: [x], default: y}]", "not in its enum"),
        ("parameters: [{name: a, required: sometimes}]", "true or false"),
        ("parameters: [{name: a, default: .nan, type: number}]", "JSON"),
        ("parameters: [{name: a, default: !!binary aGk=}]", "can't be used"),
        ("parameters: [{name: a, allow_dash: true}]", "no key `allow_dash`"),
        ("parameters: 5", "must be a list"),
        ("method: FETCH", "must be one of"),
        ("timeout_seconds: 0", "number of seconds"),
        ("timeout_seconds: 1e9", "number of seconds"),
        ("timeout_seconds: true", "number of seconds"),
        ("toolset: a b", "toolset"),
        ('response: {jsonpath: "$.a["}', "can't be read"),
        ('response: {jsonpath: "a"}', "begin with `$`"),
        ('response: {template: "nothing"}', "names no"),
        ("response: {jsonpat: $.a}", "did you mean `jsonpath`"),
        ("command: [ls]", "no key `command`"),
        ("tags: x", "must be a list"),
    ],
)
def test_a_mistake_is_named_and_no_secret_is_repeated(more: str, said: str) -> None:
    found = http_problems(more)

    assert any(said in line for line in found), found
    assert all("sk-" not in line for line in found)


def test_values_read_as_they_were_written_where_text_belongs() -> None:
    (tool,) = read_tools(
        "name: 'on'\ntype: command\ncommand: [printf, 010, no, 1.50, 2024-01-01, '']\n", "f"
    )

    assert isinstance(tool.spec, CommandSpec)
    words = [argument.text for group in tool.spec.groups for argument in group]
    assert words == ["010", "no", "1.50", "2024-01-01", ""]


def test_anchors_can_not_make_a_small_file_huge() -> None:
    lines = ["name: t", "type: command", "command: [ls]", "parameters:"]
    bomb = "x0: &a0 [a, a, a, a, a, a, a, a, a, a]\n" + "".join(
        f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    text = (
        "\n".join(lines)
        + "\n  - {name: p, type: array, default: {"
        + bomb.replace("\n", ", ")
        + "}}\n"
    )

    assert any("more than" in line for line in problems(text))
    assert problems("name: t\ntype: command\ncommand: &a [ls, *a]\n")
    assert problems("name: t\ntype: command\ncommand: [ls]\ntags: &a [*a]\ntoolset: &b {c: *b}\n")
    assert problems("[" * 5000)
    assert problems("a: " * 50)


def read(text: str) -> list[str]:
    """The names of the tools in a text, or the problems."""
    try:
        return [tool.name for tool in read_tools(text, "f")]
    except DefinitionError as error:
        return [str(problem) for problem in error.problems]


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_is_tools_or_problems(text: str) -> None:
    assert read(text)


_leaf = st.sampled_from(
    (None, True, 0, -1, "", "x", "{a}", "{b}", "command", "https://a.example/{a}", "sh", "-c")
)
_keys = st.sampled_from(
    (
        *("name", "type", "command", "endpoint", "method", "auth", "headers", "response", "items"),
        *("parameters", "env", "workdir", "effect", "tags", "in", "required", "default", "enum"),
        *("tools", "jsonpath", "template", "timeout_seconds", "toolset", "token_env"),
    )
)
_node = st.recursive(
    _leaf,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_keys, _node, max_size=6), st.sampled_from(["command", "http_wrapper"]))
@settings(max_examples=100, deadline=None)
def test_any_shape_of_file_is_tools_or_problems(tool: dict[str, object], kind: str) -> None:
    text = json.dumps({"tools": [{**tool, "name": "t", "type": kind}]}, indent=1)

    assert read(text)

"""Tools that wrap an HTTP endpoint, against a real server."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def wrapper(url: str, more: str = "", path: str = "/v1/items") -> str:
    lines = "".join(f"    {line}\n" for line in more.strip("\n").splitlines())
    return (
        "tools:\n"
        "  - name: api\n"
        "    description: Ask the service.\n"
        "    type: http_wrapper\n"
        f'    endpoint: "{url}{path}"\n{lines}'
    )


def test_each_parameter_goes_to_its_place(bench: Any, server: Any) -> None:
    bench.register(
        wrapper(
            server.url,
            """
method: post
headers: {Accept: application/json, X-Version: 2}
parameters:
  - {name: id, in: path, required: true}
  - {name: page, type: integer, in: query, default: 1}
  - {name: tag, type: array, in: query}
  - {name: X-Trace, in: header}
  - {name: title, in: body}
  - {name: size, type: object}
""",
            path="/v1/{id}?fixed=yes",
        )
    )

    outcome = bench.call(
        "api", id="a b/ü", tag=["x&y", "z"], **{"X-Trace": "t1"}, title="Ü", size={"w": 1}
    )

    assert outcome.ok, outcome.content
    asked = server.seen[0]
    assert asked["method"] == "POST"
    assert asked["path"].startswith("/v1/a%20b%2F%C3%BC?fixed=yes&")
    assert "page=1" in asked["path"]
    assert "tag=x%26y&tag=z" in asked["path"]
    assert json.loads(asked["body"]) == {"title": "Ü", "size": {"w": 1}}
    assert asked["headers"]["x-trace"] == "t1"
    assert asked["headers"]["x-version"] == "2"
    assert asked["headers"]["accept"] == "application/json"
    assert asked["headers"]["content-type"] == "application/json"


@pytest.mark.parametrize("value", ["..", ".", "../admin", "a/../b", "..\\x", "", "x/.."])
def test_a_path_parameter_stays_below_its_folder(bench: Any, server: Any, value: str) -> None:
    bench.register(
        wrapper(server.url, "parameters: [{name: id, required: true}]", "/v1/public/{id}")
    )

    outcome = bench.call("api", id=value)

    assert outcome.status == "error"
    assert not server.seen


def test_two_parameters_can_not_make_dots_together(bench: Any, server: Any) -> None:
    bench.register(
        wrapper(
            server.url,
            "parameters: [{name: a, required: true}, {name: b, required: true}]",
            "/v1/{a}{b}/x",
        )
    )

    assert bench.call("api", a=".", b=".").status == "error"
    assert bench.call("api", a="x", b=".y").ok
    assert [asked["path"] for asked in server.seen] == ["/v1/x.y/x"]


@pytest.mark.parametrize("value", ["%2e%2e", "a?b=c", "a#b", "a;b", "%00", "\x00", "日本", "a\nb"])
def test_odd_path_values_arrive_as_they_were(bench: Any, server: Any, value: str) -> None:
    from urllib.parse import unquote

    bench.register(wrapper(server.url, "parameters: [{name: id, required: true}]", "/v1/{id}/x"))

    assert bench.call("api", id=value).ok
    path = server.seen[0]["path"]
    assert path.count("/") == 3
    assert unquote(path) == f"/v1/{value}/x"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "\x7f"])
def test_a_header_value_can_not_begin_another_header(bench: Any, server: Any, value: str) -> None:
    bench.register(wrapper(server.url, "parameters: [{name: X-Id, in: header}]"))

    outcome = bench.call("api", **{"X-Id": value})

    assert outcome.status == "error"
    assert not server.seen


def test_bearer_basic_and_header_auth_read_the_environment_at_call_time(
    bench: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.register(wrapper(server.url, "auth: {type: bearer, token_env: YT_TOKEN}"), "a.yaml")
    bench.register(
        wrapper(
            server.url, "auth: {type: basic, username_env: YT_USER, password_env: YT_PASS}"
        ).replace("name: api", "name: basic"),
        "b.yaml",
    )
    bench.register(
        wrapper(server.url, "auth: {type: header, header: X-Api-Key, token_env: YT_TOKEN}").replace(
            "name: api", "name: header"
        ),
        "c.yaml",
    )
    monkeypatch.setenv("YT_TOKEN", "first-token-value\n")
    monkeypatch.setenv("YT_USER", "ada")
    monkeypatch.setenv("YT_PASS", "päss:word")

    outcomes = [bench.call("api"), bench.call("basic"), bench.call("header")]
    monkeypatch.setenv("YT_TOKEN", "second-token-value")
    outcomes.append(bench.call("api"))

    assert all(outcome.ok for outcome in outcomes)
    sent = [asked["headers"] for asked in server.seen]
    assert sent[0]["authorization"] == "Bearer first-token-value"
    pair = base64.b64decode(sent[1]["authorization"].removeprefix("Basic ")).decode()
    assert pair == "ada:päss:word"
    assert sent[2]["x-api-key"] == "first-token-value"
    assert "authorization" not in sent[2]
    assert sent[3]["authorization"] == "Bearer second-token-value"


@pytest.mark.parametrize(
    "secret", ["plain-secret-value", 'quo"ted\\sec/ret', "tökén-with-ümlauts", "a b c d e f"]
)
def test_a_server_that_echoes_a_secret_does_not_give_it_away(
    bench: Any,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    secret: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("YT_TOKEN", secret)
    monkeypatch.setenv("YT_USER", "ada")
    bench.register(wrapper(server.url, "auth: {type: header, header: X-Key, token_env: YT_TOKEN}"))
    bench.register(
        wrapper(
            server.url, "auth: {type: basic, username_env: YT_USER, password_env: YT_TOKEN}"
        ).replace("name: api", "name: basic"),
        "b.yaml",
    )
    encoded = [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        base64.b64encode(f"ada:{secret}".encode()).decode(),
    ]
    texts = []

    for tool in ("api", "basic"):
        texts.append(bench.call(tool).content)
        server.answer("/v1/items", {"x" * 1990: "", "you sent": encoded}, status=403)
        outcome = bench.call(tool)
        texts += [outcome.content, outcome.error or ""]
        server.answer("/v1/items", ("x" * 1995 + encoded[0]).encode(), status=500)
        outcome = bench.call(tool)
        texts += [outcome.content, outcome.error or ""]
        assert secret[:5] not in outcome.content
        server.answers.clear()
    texts += [caplog.text, json.dumps(bench.registry.get_definitions()), repr(bench.tools.files())]

    for text in texts:
        for spelling in encoded:
            assert spelling not in text


def test_a_missing_variable_is_named_and_hides_the_tool(
    bench: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("YT_ABSENT", raising=False)
    bench.register(wrapper(server.url, "auth: {type: bearer, token_env: YT_ABSENT}"))

    assert bench.registry.get_definitions() == []
    missing = bench.registry.availability.missing(bench.registry.entries())
    assert "YT_ABSENT" in missing["api"]
    assert "YT_ABSENT" in bench.call("api").error
    assert not server.seen


def test_a_variable_with_a_line_break_is_refused_without_its_value(
    bench: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YT_TOKEN", "good\r\nX-Evil: bad-part")
    bench.register(wrapper(server.url, "auth: {type: bearer, token_env: YT_TOKEN}"))

    outcome = bench.call("api")

    assert "YT_TOKEN" in outcome.error
    assert "bad-part" not in outcome.content
    assert not server.seen


def test_the_whole_body_is_json_or_else_text(bench: Any, server: Any) -> None:
    bench.register(wrapper(server.url))

    server.answer("/v1/items", {"a": [1, "ü"]})
    assert bench.call("api").value == {"a": [1, "ü"]}
    server.answer("/v1/items", b"plain words")
    assert bench.call("api").value == "plain words"
    server.answer("/v1/items", "für".encode("latin-1"), Content_Type="text/plain; charset=latin-1")
    assert bench.call("api").value == "für"
    server.answer("/v1/items", b"\x89PNG\0\xff\xfe", Content_Type="image/png")
    assert bench.call("api").value["bytes"] == 7
    server.answer("/v1/items", b"[" * 100_000)
    assert bench.call("api").ok
    server.answer("/v1/items", b'{"a": NaN}')
    assert bench.call("api").value == '{"a": NaN}'
    server.answer("/v1/items", b"", status=204)
    assert bench.call("api").value == {"status": 204, "body": ""}


def test_a_part_of_the_answer_can_be_picked(bench: Any, server: Any) -> None:
    bench.register(wrapper(server.url, 'response: {jsonpath: "$.items[*].name"}'))

    server.answer("/v1/items", {"items": [{"name": "a"}, {"x": 1}, {"name": "b"}]})
    assert bench.call("api").value == ["a", "b"]
    server.answer("/v1/items", {"things": 1, "more": 2})
    empty = bench.call("api").value
    assert empty["result"] == []
    assert "things, more" in empty["notes"][0]
    server.answer("/v1/items", b"<html>")
    assert bench.call("api").status == "error"


def test_a_definite_path_gives_the_value_itself_or_says_it_is_not_there(
    bench: Any, server: Any
) -> None:
    bench.register(wrapper(server.url, """response: {jsonpath: "$['a b'][1].c"}"""))

    server.answer("/v1/items", {"a b": [0, {"c": {"d": None}}]})
    assert bench.call("api").value == {"d": None}
    server.answer("/v1/items", {"a b": []})
    assert bench.call("api").status == "error"


def test_a_template_makes_a_line_of_each_item(bench: Any, server: Any) -> None:
    bench.register(
        wrapper(
            server.url,
            """
response:
  jsonpath: "$.items[*]"
  template: "{name}: {price.value} {{x}} {tags[*]}"
""",
        )
    )
    server.answer(
        "/v1/items",
        {
            "items": [
                {"name": "tea", "price": {"value": 3}, "tags": ["hot", "green"]},
                {"name": "{name}", "price": {}},
            ]
        },
    )

    assert bench.call("api").value == "tea: 3 {x} hot, green\n{name}:  {x} "

    server.answer("/v1/items", {"items": [{"other": 1}]})
    assert bench.call("api").status == "error"


def test_an_answer_that_says_no_is_an_error_with_its_body(bench: Any, server: Any) -> None:
    bench.register(wrapper(server.url))
    server.answer("/v1/items", {"message": "no such item"}, status=404)

    outcome = bench.call("api")

    assert outcome.status == "error"
    assert outcome.value["status"] == 404
    assert "404 Not Found" in outcome.error
    assert "no such item" in outcome.value["body"]


def test_redirects_are_followed_and_auth_stays_on_its_host(
    bench: Any, server: Any, other_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YT_TOKEN", "secret-token-value")
    bench.register(
        wrapper(
            server.url,
            """
auth: {type: header, header: X-Key, token_env: YT_TOKEN}
headers: {X-Fixed: inner, Accept: text/plain}
parameters: [{name: X-Mine, in: header}]
""",
        )
    )
    server.answer("/v1/items", b"", status=302, Location="/next")
    server.answer("/next", b"", status=307, Location=f"{other_server.url}/there")
    other_server.answer("/there", {"ok": True})

    outcome = bench.call("api", **{"X-Mine": "m"})

    assert outcome.value == {"ok": True}
    assert [asked["headers"].get("x-key") for asked in server.seen] == ["secret-token-value"] * 2
    sent = other_server.seen[0]["headers"]
    assert "secret-token-value" not in json.dumps(sent)
    assert "x-fixed" not in sent
    assert "x-mine" not in sent
    assert sent["accept"] == "text/plain"


def test_every_hop_is_checked_and_there_are_at_most_five(
    bench: Any, server: Any, home: Path
) -> None:
    (home / "config.yaml").write_text("network: {allow_hosts: ['127.0.0.1']}\n")
    bench.register(wrapper(server.url))

    for target in (
        "http://169.254.169.254/latest/meta-data",
        "http://localhost:1/",
        "file:///etc/passwd",
        "http://[::1",
        "http://x:99999/",
    ):
        server.answer("/v1/items", b"", status=302, Location=target)
        outcome = bench.call("api")
        assert outcome.status == "error", target
    server.seen.clear()
    server.answer("/v1/items", b"", status=302, Location="/v1/items")
    outcome = bench.call("api")
    assert "redirects more than 5" in outcome.error
    assert len(server.seen) == 6


def test_a_body_is_not_sent_on_to_another_host(bench: Any, server: Any, other_server: Any) -> None:
    bench.register(wrapper(server.url, "method: POST\nparameters: [{name: note}]"))
    server.answer("/v1/items", b"", status=307, Location=f"{other_server.url}/there")

    outcome = bench.call("api", note="private")

    assert outcome.status == "error"
    assert not other_server.seen
    server.answer("/v1/items", b"", status=303, Location=f"{other_server.url}/there")
    assert bench.call("api", note="private").ok
    assert other_server.seen[0]["method"] == "GET"
    assert other_server.seen[0]["body"] == ""


def test_private_addresses_need_the_setting(bench: Any, server: Any, home: Path) -> None:
    (home / "config.yaml").write_text("network: {allow_private: false}\n")
    bench.register(wrapper(server.url))

    assert bench.call("api").status == "error"
    (home / "config.yaml").write_text(
        "network: {allow_private: false, allow_hosts: ['127.0.0.1']}\n"
    )
    assert bench.call("api").ok
    (home / "config.yaml").write_text("network: {allow_private: true, deny_hosts: ['127.0.0.1']}\n")
    assert bench.call("api").status == "error"
    assert len(server.seen) == 1


def test_an_answer_that_is_too_large_is_refused(bench: Any, server: Any) -> None:
    import gzip

    bench.register(wrapper(server.url))

    server.answer("/v1/items", b"x" * 10_000_001)
    assert "larger" in bench.call("api").error
    server.answer("/v1/items", gzip.compress(bytes(50_000_000)), Content_Encoding="gzip")
    assert "larger" in bench.call("api").error
    server.answer("/v1/items", gzip.compress(b'{"a": 1}'), Content_Encoding="gzip")
    assert bench.call("api").value == {"a": 1}
    server.answer("/v1/items", b"not gzip at all", Content_Encoding="gzip")
    assert bench.call("api").status == "error"


def test_cookies_are_not_carried_from_call_to_call(bench: Any, server: Any) -> None:
    bench.register(wrapper(server.url))
    server.answer("/v1/items", {}, Set_Cookie="session=1; Path=/")

    bench.call("api")
    bench.call("api")

    assert all("cookie" not in asked["headers"] for asked in server.seen)


def test_a_dead_server_is_an_error_and_a_slow_one_a_timeout(bench: Any, server: Any) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        bench.register(wrapper(f"http://127.0.0.1:{port}", "timeout_seconds: 0.3"))
        assert bench.call("api").status == "timeout"
    outcome = bench.call("api")
    assert outcome.status == "error"
    assert "failed" in outcome.error

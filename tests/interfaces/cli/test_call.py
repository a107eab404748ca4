"""`hermes call`: one call or many, arguments in every spelling, answers a program can read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.conftest import approve_plugins

if TYPE_CHECKING:
    from typing import Any

    from tests.conftest import CommandLine

ECHO = '''
from hermes.tools import tool

@tool(effect="read")
def echo(text: str = "", number: int = 0, flag: bool = False, items: list[str] | None = None,
         options: dict | None = None) -> dict:
    """Give back what came."""
    return {"text": text, "number": number, "flag": flag, "items": items, "options": options}

@tool(effect="read")
def plain(text: str) -> str:
    """Give back a text."""
    return text

@tool(effect="write")
def change(text: str = "") -> str:
    """Change something."""
    return "changed"
'''


@pytest.fixture(autouse=True)
def _echo(hermes: CommandLine) -> None:
    (hermes.home / "plugins").mkdir(parents=True)
    (hermes.home / "plugins" / "echoing.py").write_text(ECHO)
    approve_plugins(hermes.home)


def echo(hermes: CommandLine, *words: str, stdin: str = "") -> dict[str, Any]:
    done = hermes("call", "echo", *words, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_words_become_arguments_of_their_kind(hermes: CommandLine) -> None:
    found = echo(hermes, "text=007", "number=42", "flag=true", "items=a", "items=b", "items=c d")

    assert found["text"] == "007"
    assert found["number"] == 42
    assert found["flag"] is True
    assert found["items"] == ["a", "b", "c d"]


def test_json_for_one_value_or_for_all(hermes: CommandLine) -> None:
    assert echo(hermes, 'items=["a", "b"]', 'options={"k": [1]}')["options"] == {"k": [1]}
    assert echo(hermes, '{"text": "é=1", "number": 3}')["text"] == "é=1"


def test_values_from_files_and_stdin_come_as_they_are(hermes: CommandLine) -> None:
    (hermes.folder / "note.txt").write_bytes("line\r\né = x\n".encode())

    assert echo(hermes, "text=@note.txt")["text"] == "line\r\né = x\n"
    assert echo(hermes, "text=-", stdin="from\nstdin\n")["text"] == "from\nstdin\n"
    assert echo(hermes, "text=a=b=c")["text"] == "a=b=c"
    assert echo(hermes, "text=")["text"] == ""


def test_a_text_is_printed_as_it_is(hermes: CommandLine) -> None:
    done = hermes("call", "plain", "text=two\nlines é")

    assert done.stdout == "two\nlines é\n"


def test_what_changes_something_is_refused_unless_approved(hermes: CommandLine) -> None:
    refused = hermes("call", "change")
    approved = hermes("call", "change", "--yes")

    assert refused.returncode == 3
    assert refused.stderr.count("\n") == 1
    assert "Not run" in refused.stderr
    assert (approved.returncode, approved.stdout) == (0, "changed\n")


def test_a_failed_call_says_so_on_both_streams(hermes: CommandLine) -> None:
    done = hermes("call", "echo", "number=x")

    assert done.returncode == 1
    assert "number" in json.loads(done.stdout)["error"]
    assert done.stderr.startswith("hermes: ")
    assert done.stderr.count("\n") == 1


def protocol(hermes: CommandLine, *calls: Any, **more: Any) -> tuple[int, list[dict[str, Any]]]:
    done = hermes("call", "--json", stdin=json.dumps({"tool_calls": list(calls)}), **more)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)["tool_results"]


def a_call(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def test_the_protocol_answers_in_the_order_of_the_calls(hermes: CommandLine) -> None:
    code, results = protocol(
        hermes,
        a_call("sleep", '{"seconds": 0.3}', "slow"),
        a_call("plain", {"text": "quick"}, "quick"),
        a_call("nonesuch", "{}", "lost"),
        a_call("plain", '{"text": "cut', "cut"),
        a_call("plain", [1, 2], "odd"),
        {"function": {"name": "echo"}},
    )

    assert code == 1
    assert [result["tool_call_id"] for result in results][:5] == [
        "slow",
        "quick",
        "lost",
        "cut",
        "odd",
    ]
    assert results[5]["tool_call_id"]
    assert {result["role"] for result in results} == {"tool"}
    contents = [json.loads(result["content"]) for result in results]
    assert contents[0]["cancelled"] is False
    assert contents[1] == "quick"
    assert all("error" in content for content in contents[2:5])
    assert contents[5]["number"] == 0


def test_the_protocol_s_exit_code_tells_of_refusals(hermes: CommandLine) -> None:
    refused, results = protocol(
        hermes, a_call("change", {}, "1"), a_call("plain", {"text": "x"}, "2")
    )
    fine, _ = protocol(hermes, a_call("plain", {"text": "x"}, "1"))
    nothing, none = protocol(hermes)

    assert refused == 3
    assert "Not run" in results[0]["content"]
    assert fine == nothing == 0
    assert none == []


@pytest.mark.parametrize(
    "stdin",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"tool_calls": {}}',
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"tool_calls": [{"function": {"name": "plain", "arguments": ' + b"[" * 200_000 + b"}}]}",
    ],
)
def test_what_is_no_protocol_is_one_line(hermes: CommandLine, stdin: bytes) -> None:
    done = hermes("call", "--json", stdin=stdin)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_the_protocol_may_begin_with_a_byte_order_mark(hermes: CommandLine) -> None:
    done = hermes("call", "--json", stdin=b'\xef\xbb\xbf{"tool_calls": []}')

    assert (done.returncode, json.loads(done.stdout)) == (0, {"tool_results": []})


def test_odd_ids_are_given_back_as_text(hermes: CommandLine) -> None:
    _, results = protocol(
        hermes, a_call("plain", {"text": "x"}, 7), a_call("plain", {"text": "y"}, "é\n")
    )

    assert [result["tool_call_id"] for result in results] == ["7", "é\n"]

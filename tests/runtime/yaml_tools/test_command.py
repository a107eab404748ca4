"""Tools that run a program: no shell, no options from values, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.environments.confinement.conftest import require

from hermes.core.entry import ToolCall
from hermes.core.errors import ToolError
from hermes.core.registry import ToolRegistry
from hermes.runtime.app import App
from hermes.runtime.yaml_tools.spec import CommandSpec, Parameter
from hermes.runtime.yaml_tools.template import Template, build_argv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHOW = "import sys, json; print(json.dumps(sys.argv[1:]))"


def command(argv: str, more: str = "", name: str = "run") -> str:
    lines = "".join(f"    {line}\n" for line in more.strip("\n").splitlines())
    return f"tools:\n  - name: {name}\n    type: command\n    command: {argv}\n{lines}"


def shown(*arguments: str | list[str]) -> str:
    """A command that prints its arguments as JSON."""
    import json

    return json.dumps([sys.executable, "-c", SHOW, *arguments])


def printed(outcome: Any) -> Any:
    import json

    assert outcome.ok, outcome.content
    return json.loads(outcome.value["stdout"])


def until(done: Callable[[], bool]) -> bool:
    for _ in range(200):
        if done():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    "value",
    [
        "; touch evil",
        "$(touch evil)",
        "`touch evil`",
        "a && touch evil",
        "| touch evil",
        "a\ntouch evil",
        "' ; touch evil ; '",
        '" ; touch evil ; "',
        "${IFS}touch${IFS}evil",
        "> evil",
        "{other}",
        "{{value}}",
        "*",
        "~",
        "$HOME",
        "",
        " ",
        "日本",
    ],
)
def test_a_value_stays_one_argument_whatever_it_says(
    bench: Any, tmp_path: Path, value: str
) -> None:
    bench.register(
        command(
            shown("--", "{value}", "x={value}", "{other}"),
            "parameters: [{name: value, required: true}, {name: other, default: o}]",
        )
    )

    assert printed(bench.call("run", value=value)) == ["--", value, f"x={value}", "o"]
    assert not (tmp_path / "evil").exists()


def test_a_value_can_not_become_an_option(bench: Any) -> None:
    bench.register(
        command(
            shown("{plain}", "{free}", "--out={glued}", "{a}{b}", "{many}", "--", "{after}"),
            """
parameters:
  - {name: plain}
  - {name: free, allow_dash: true}
  - {name: glued}
  - {name: a}
  - {name: b}
  - {name: many, type: array}
  - {name: after}
""",
        )
    )

    for bad in (
        {"plain": "-rf"},
        {"plain": "--upload-pack=evil"},
        {"plain": "-"},
        {"a": "", "b": "-x"},
        {"a": "-", "b": "x"},
        {"many": ["ok", "-x"]},
    ):
        outcome = bench.call("run", **bad)
        assert outcome.status == "error", bad
        assert "option" in outcome.error
    assert printed(bench.call("run", free="-v")) == ["-v", "--"]
    assert printed(bench.call("run", glued="-v")) == ["--out=-v", "--"]
    assert printed(bench.call("run", after="-v")) == ["--", "-v"]
    assert printed(bench.call("run", many=["a", "b c"])) == ["a", "b c", "--"]
    assert printed(bench.call("run", many=[])) == ["--"]


def test_what_is_missing_is_left_out_with_its_group(bench: Any) -> None:
    argv = shown(["-n", "{count}"], "{x}", "end")
    bench.register(command(argv, "parameters: [{name: count, type: integer}, {name: x}]"))

    assert printed(bench.call("run")) == ["end"]
    assert printed(bench.call("run", count=3)) == ["-n", "3", "end"]
    assert printed(bench.call("run", x="y")) == ["y", "end"]


def test_a_nul_is_refused(bench: Any) -> None:
    bench.register(command(shown("{x}"), "parameters: [{name: x}]"))

    assert "NUL" in bench.call("run", x="a\0b").error


@given(
    values=st.lists(st.text(max_size=12), min_size=3, max_size=3),
    templates=st.lists(
        st.sampled_from(["{a}", "{b}", "{c}", "x{a}", "{a}{b}", "lit", "--", "{b}={c}", "{{a}}"]),
        max_size=6,
    ),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_template_gives_one_argument_and_none_begins_as_an_option_by_itself(
    values: list[str], templates: list[str]
) -> None:
    parameters = {name: Parameter(name) for name in "abc"}
    spec = CommandSpec("p", [(Template(text),) for text in templates])
    given_values = dict(zip("abc", values, strict=True))

    try:
        argv = build_argv(spec, parameters, given_values)
    except ToolError:
        assert any(value.startswith("-") or "\0" in value for value in values)
        return

    assert len(argv) == len(templates) + 1
    before = templates.index("--") if "--" in templates else len(templates)
    for text, argument in list(zip(templates, argv[1:], strict=True))[:before]:
        assert not argument.startswith("-") or text.startswith("-")


def test_the_environment_is_an_allow_list(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "parent-secret")
    monkeypatch.setenv("YT_DECLARED", "declared")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    import json

    bench.register(
        command(json.dumps([sys.executable, "-c", code]), "env: [YT_DECLARED, YT_UNSET]")
    )
    task = bench.runtime.task("main")
    task.env.update({"FROM_TASK": "yes", "LANG": None})

    seen = printed(bench.call("run"))

    assert "AWS_SECRET_ACCESS_KEY" not in seen
    assert seen["YT_DECLARED"] == "declared"
    assert seen["FROM_TASK"] == "yes"
    assert seen["LC_ALL"] == "C.UTF-8"
    assert "LANG" not in seen
    assert seen["PATH"] == os.environ["PATH"]


def test_a_declared_secret_is_masked_in_the_output(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YT_API_TOKEN", "a-quite-ordinary-value")
    bench.register(command('[sh, -c, "echo now $YT_API_TOKEN; exit 4"]', "env: [YT_API_TOKEN]"))

    outcome = bench.call("run")

    assert "a-quite-ordinary-value" not in outcome.content
    assert outcome.value["exit_code"] == 4


def test_a_failure_is_an_error_with_the_output(bench: Any) -> None:
    bench.register(command('[sh, -c, "echo out; echo err >&2; exit 3"]'))

    outcome = bench.call("run")

    assert outcome.status == "error"
    assert "exit code 3" in outcome.error
    assert outcome.value["exit_code"] == 3
    assert outcome.value["stdout"] == "out\n"
    assert outcome.value["stderr"] == "err\n"


def test_the_standard_input_is_closed_and_the_workspace_is_the_folder(
    bench: Any, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    bench.register(command('[sh, -c, "cat; pwd"]'), "a.yaml")
    bench.register(command("[pwd]", "workdir: sub", name="inner"), "b.yaml")
    bench.register(command("[pwd]", "workdir: gone", name="gone"), "c.yaml")

    assert bench.call("run").value["stdout"] == f"{tmp_path}\n"
    assert bench.call("inner").value["stdout"] == f"{tmp_path / 'sub'}\n"
    assert "is not there" in bench.call("gone").error


def test_a_program_that_is_missing_hides_the_tool_and_says_so(bench: Any) -> None:
    bench.register(command("[no-such-program-here]"))

    assert bench.registry.get_definitions() == []
    assert "no-such-program-here" in bench.call("run").error


# A number that no other run of these tests uses at the same time.
LONG = f"31337.{os.getpid()}"
STUBBORN = f"trap '' TERM HUP; setsid sleep {LONG} & sleep {LONG} & sleep {LONG}; sleep {LONG}"


def sleepers() -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if line == ["sleep", LONG] or (line and STUBBORN in line):
            found.append(process)
    return found


def test_a_timeout_leaves_no_process_not_even_one_that_ran_away(bench: Any) -> None:
    import json

    bench.register(command(json.dumps(["sh", "-c", STUBBORN]), "timeout_seconds: 0.4"))

    outcome = bench.call("run")

    assert outcome.status == "timeout"
    assert until(lambda: not sleepers())
    assert not [p for p in psutil.Process().children() if p.status() == psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("seconds", [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016])
def test_a_timeout_at_any_instant_of_the_start_leaves_no_process(
    bench: Any, seconds: float
) -> None:
    text = command(f'[sh, -c, "setsid sleep {LONG} & sleep {LONG} & sleep {LONG}"]')
    bench.register(text + f"    timeout_seconds: {seconds}\n")

    for _ in range(5):
        assert bench.call("run").status == "timeout"
        assert until(lambda: not sleepers())


def test_a_cancelled_call_leaves_no_process(bench: Any) -> None:
    import json

    bench.register(command(json.dumps(["sh", "-c", STUBBORN])))

    async def cancelled() -> Any:
        waiting = asyncio.ensure_future(bench.runtime.call(ToolCall("run", {}, id="c1")))
        await asyncio.to_thread(until, lambda: len(sleepers()) >= 4)
        assert bench.runtime.cancel("c1")
        return await waiting

    outcome = asyncio.run(cancelled())

    assert outcome.status == "cancelled"
    assert until(lambda: not sleepers())


def test_a_cancelled_caller_leaves_no_process(bench: Any) -> None:
    import json

    bench.register(command(json.dumps(["sh", "-c", STUBBORN])))

    async def abandoned() -> None:
        waiting = asyncio.ensure_future(bench.runtime.call(ToolCall("run", {})))
        await asyncio.to_thread(until, lambda: len(sleepers()) >= 4)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(abandoned())

    assert until(lambda: not sleepers())


def test_what_a_command_leaves_in_the_background_ends_with_it(bench: Any) -> None:
    bench.register(command(f'[sh, -c, "sleep {LONG} & echo started"]'))

    outcome = bench.call("run")

    assert outcome.value["stdout"] == "started\n"
    assert until(lambda: not sleepers())


def test_a_flood_of_output_is_cut_in_the_middle(bench: Any) -> None:
    bench.register(command('[sh, -c, "echo first; yes 0123456789 | head -c 9000000; echo last"]'))
    bench.registry.add(bench.registry.get("run").replaced(max_result_size_chars=10_000_000))

    out = bench.call("run").value["stdout"]

    assert len(out) < 1_100_000
    assert out.startswith("first\n")
    assert out.endswith("last\n")
    assert "bytes left out" in out


def test_a_command_is_confined_and_says_what_was_blocked(bench: Any) -> None:
    require("bubblewrap")
    bench.register(command('[sh, -c, "touch inside; touch /etc/hermes-mark"]'))

    outcome = bench.call("run")

    assert outcome.status == "error"
    assert "blocked: /etc/hermes-mark" in outcome.content
    assert not os.path.exists("/etc/hermes-mark")
    assert (bench.folder / "inside").exists()
    entry = bench.registry.get("run")
    [act] = entry.acts({}, bench.runtime.context())
    assert act[3] == "bubblewrap"


def test_a_command_runs_outside_where_the_settings_say_so(home: Path, tmp_path: Path) -> None:
    require("bubblewrap")
    app = App(ToolRegistry(), project=str(tmp_path))
    path = tmp_path / "tools.yaml"
    path.write_text(
        command("[readlink, /proc/self/ns/pid]", name="inside")
        + "  - {name: outside, type: command,"
        + " command: [readlink, /proc/self/ns/pid, /dev/null]}\n"
    )
    (home / "config.yaml").write_text(
        "terminal: {confine: {outside: [readlink /proc/self/ns/pid /dev/null]}}\n"
    )
    app.yaml_tools.register(str(path))
    ours = os.readlink("/proc/self/ns/pid")

    assert ours not in app.runtime.call_sync(ToolCall("inside", {})).content
    assert ours in app.runtime.call_sync(ToolCall("outside", {})).content
    app.close()

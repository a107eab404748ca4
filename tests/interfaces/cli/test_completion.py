"""Completion, asked for by the real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.conftest import HERMES, approve_plugins

if TYPE_CHECKING:
    from tests.conftest import CommandLine


def need(shell: str) -> None:
    """Skip on a laptop without that shell; fail where everything has to be there."""
    if shutil.which(shell) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{shell} is not installed")
        pytest.skip(f"{shell} is not installed")


def in_shell(hermes: CommandLine, *command: str) -> str:
    path = f"{HERMES.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        env=hermes.environment(PATH=path, TERM="xterm", HOME=str(hermes.folder)),
        cwd=hermes.folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


CASES = [
    ("hermes too", {"tools", "toolsets", "tool"}),
    ("hermes tools s", {"show", "search"}),
    ("hermes call sle", {"sleep"}),
    ("hermes call sleep ", {"seconds="}),
    ("hermes call system_info t", {"top="}),
    ("hermes tools list --to", {"--toolset"}),
    ("hermes tools list --toolset sys", {"system"}),
    ("hermes toolsets show disc", {"discovery"}),
    ("hermes config get tools.d", {"tools.defer_above", "tools.disabled_toolsets"}),
    ("hermes completion z", {"zsh"}),
]


@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_the_words_that_may_come_next(hermes: CommandLine, line: str, wanted: set[str]) -> None:
    done = hermes("completion", "words", "--", *line.split(" ")[1:])

    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split("\n")) >= wanted
    begun = line.split(" ")[-1]
    assert all(word.startswith(begun) for word in done.stdout.splitlines())


BASH = """
eval "$(hermes completion bash 2>/dev/null)"
COMP_LINE=$1 COMP_POINT=${#1}
read -ra COMP_WORDS <<< "$1"
[[ $1 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
compopt() { echo "compopt $*"; }
_hermes hermes "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_bash_completes(hermes: CommandLine, line: str, wanted: set[str]) -> None:
    need("bash")

    found = in_shell(hermes, "bash", "--norc", "-c", BASH, "bash", line)

    assert set(found.split("\n")) >= wanted
    assert ("compopt -o nospace" in found) == (wanted in ({"seconds="}, {"top="}))


def test_bash_completes_names_with_colons_from_the_last_one_on(hermes: CommandLine) -> None:
    need("bash")
    (hermes.home / "plugins").mkdir(parents=True)
    (hermes.home / "plugins" / "p.py").write_text(
        "from hermes.tools import tool\n"
        "@tool('far:away:thing', effect='read')\ndef a() -> None: 'x'\n"
    )
    approve_plugins(hermes.home)

    found = in_shell(hermes, "bash", "--norc", "-c", BASH, "bash", "hermes call far:aw")

    assert found == "away:thing\n"


def test_a_real_bash_at_a_real_prompt_completes(hermes: CommandLine) -> None:
    need("bash")
    need("tmux")
    import time
    import uuid

    (hermes.folder / "rc").write_text(
        f'PS1="> "; PATH="{HERMES.parent}:$PATH"; eval "$(hermes completion bash 2>/dev/null)"\n'
    )
    socket = f"hermes-{uuid.uuid4().hex[:12]}"

    def tmux(*words: str) -> str:
        return subprocess.run(
            ["tmux", "-L", socket, *words],
            env=hermes.environment(TERM="xterm"),
            cwd=hermes.folder,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout

    def wait_for(text: str) -> str:
        for _ in range(120):
            seen = tmux("capture-pane", "-p", "-t", "t")
            if text in seen:
                return seen
            time.sleep(0.25)
        raise AssertionError(f"never saw {text!r}: {seen}")

    tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", "100", "-y", "20",
         "bash --noprofile --rcfile rc")  # fmt: skip
    try:
        wait_for(">")
        tmux("send-keys", "-t", "t", "hermes call slee", "Tab")
        wait_for("hermes call sleep")
        tmux("send-keys", "-t", "t", "sec", "Tab", "0", "Enter")
        seen = wait_for("slept_seconds")
    finally:
        tmux("kill-server")

    assert "hermes call sleep seconds=0" in seen


ZSH = """
autoload -Uz compinit && compinit -u -d "$HOME/dump"
eval "$(hermes completion zsh 2>/dev/null)"
compadd() { local -a given; [[ $1 == -S ]] && shift 2; given=("${(@P)2}"); print -l -- $given }
_files() { print files }
words=("${(@s: :)1}")
CURRENT=${#words}
_hermes
"""


@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_zsh_completes(hermes: CommandLine, line: str, wanted: set[str]) -> None:
    need("zsh")

    found = in_shell(hermes, "zsh", "-f", "-c", ZSH, "zsh", line)

    assert set(found.split("\n")) >= wanted


@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_fish_completes(hermes: CommandLine, line: str, wanted: set[str]) -> None:
    need("fish")
    script = "hermes completion fish 2>/dev/null | source; complete -C $argv[1]"

    found = in_shell(hermes, "fish", "--no-config", "-c", script, line)

    assert {word.split("\t")[0] for word in found.split("\n")} >= wanted


def test_commands_of_plugins_are_completed(hermes: CommandLine) -> None:
    (hermes.home / "plugins").mkdir(parents=True)
    (hermes.home / "plugins" / "p.py").write_text(
        "def register(api):\n    api.add_command('zzgreet', lambda app, options: 0)\n"
    )
    approve_plugins(hermes.home)

    assert hermes("completion", "words", "--", "zz").stdout == "zzgreet\n"


@pytest.mark.parametrize("words", [["nonesuch", ""], ["call", "nonesuch", ""], ["tools", "x", "y"]])
def test_where_nothing_can_come_next_nothing_is_said(hermes: CommandLine, words: list[str]) -> None:
    done = hermes("completion", "words", "--", *words)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_shell_is_guessed_and_an_unknown_one_said(hermes: CommandLine) -> None:
    guessed = hermes("completion", env={"SHELL": "/usr/bin/fish"})
    unknown = hermes("completion", env={"SHELL": "/bin/csh"})

    assert "function __hermes_words" in guessed.stdout
    assert unknown.returncode == 1
    assert "no completion for csh" in unknown.stderr

"""A refusal survives every way to spell, quote or wrap the same command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.safety.shell import detect_dangerous_command

if TYPE_CHECKING:
    from collections.abc import Callable

CWD, HOME = "/home/dev/projects/app", "/home/dev"
LOSSES = st.sampled_from(
    [
        ["rm", "-rf", "/"],
        ["rm", "-r", "-f", "/home/dev"],
        ["rm", "--recursive", "/"],
        ["rm", "-fr", "--", "/home/dev/"],
        ["dd", "if=/dev/zero", "of=/dev/sda"],
        ["mkfs.ext4", "/dev/sdb1"],
        ["find", "/", "-delete"],
        ["tee", "/home/dev/.hermes/config.yaml"],
    ]
)


def _plain(word: str) -> str:
    return word


def _single(word: str) -> str:
    return shlex.quote(word)


def _double(word: str) -> str:
    return f'"{word}"'


def _empty_quotes(word: str) -> str:
    return word[:1] + "''" + word[1:]


def _escaped(word: str) -> str:
    return "\\" + word if word[0].isalpha() else word


def _ansi(word: str) -> str:
    return "$'" + "".join(f"\\x{ord(char):02x}" for char in word) + "'"


def _octal(word: str) -> str:
    return "$'" + "".join(f"\\{ord(char):03o}" for char in word) + "'"


def _substituted(word: str) -> str:
    return f'"$(echo {shlex.quote(word)})"'


QUOTES = st.sampled_from(
    [_plain, _single, _double, _empty_quotes, _escaped, _ansi, _octal, _substituted]
)
WRAPPERS = st.sampled_from(
    [
        "{}",
        "sudo {}",
        "env {}",
        "env A=1 {}",
        "nohup {} &",
        "timeout 5 {}",
        "nice -n 5 {}",
        "command {}",
        "exec {}",
        "time {}",
        "busybox {}",
        "true && {}",
        "false || {}",
        "ls; {}; ls",
        "({})",
        "{{ {}; }}",
        "if true; then {}; fi",
        "for i in 1; do {}; done",
        "echo $({})",
        "f() {{ {}; }}; f",
        "! {}",
        "{} > /dev/null 2>&1",
        "ls | {}",
        "bash -c {q}",
        "sh -ec {q}",
        "eval {q}",
        "echo {q} | sh",
        "bash <<< {q}",
        "su -c {q}",
        "ssh host {q}",
        "bash <<'EOF'\n{}\nEOF",
        "cat <<'EOF' | sh\n{}\nEOF",
        "trap {q} EXIT",
        'x={q}; eval "$x"',
        "find . -exec {} \\;",
        "watch {q}",
    ]
)


def _wrap(wrapper: str, command: str) -> str:
    return wrapper.format(command, q=shlex.quote(command))


def _spelled(words: list[str], quotes: list[Callable[[str], str]]) -> str:
    return " ".join(quote(word) for quote, word in zip(quotes, words, strict=False))


@settings(max_examples=150, deadline=None)
@given(LOSSES, st.lists(QUOTES, min_size=4, max_size=4), WRAPPERS)
def test_quoting_and_wrapping_leave_a_refusal_as_it_is(
    words: list[str], quotes: list[Callable[[str], str]], wrapper: str
) -> None:
    command = _wrap(wrapper, _spelled(words, quotes))

    assert detect_dangerous_command(command, cwd=CWD, home=HOME).action == "refuse", command


@settings(max_examples=150, deadline=None)
@given(LOSSES, st.lists(QUOTES, min_size=4, max_size=4), st.lists(WRAPPERS, max_size=4))
def test_no_pile_of_wrappers_makes_a_refused_command_pass(
    words: list[str], quotes: list[Callable[[str], str]], wrappers: list[str]
) -> None:
    command = _spelled(words, quotes)

    for wrapper in wrappers:
        command = _wrap(wrapper, command)

    assert detect_dangerous_command(command, cwd=CWD, home=HOME).action != "allow", command


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_gets_a_verdict(text: str) -> None:
    verdict = detect_dangerous_command(text, cwd=CWD, home=HOME)

    assert verdict.action in ("allow", "ask", "refuse")
    assert all(0 <= f.span[0] <= f.span[1] <= len(text) for f in verdict.findings)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="rm -f/~$(){}[]<>|&;`'\"\\\n *?=ax!#", max_size=60))
def test_any_shell_like_text_gets_a_verdict(text: str) -> None:
    verdict = detect_dangerous_command(text, cwd=CWD, home=HOME)

    assert verdict.action in ("allow", "ask", "refuse")
    assert all(0 <= f.span[0] <= f.span[1] <= len(text) for f in verdict.findings)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["grep -n {} f", "echo {}", "git commit -m {}"]))
def test_quoted_text_is_data(text: str, command: str) -> None:
    clean = "".join(char for char in text if char.isprintable() and ord(char) < 0x2000)

    verdict = detect_dangerous_command(command.format(shlex.quote(clean)), cwd=CWD, home=HOME)

    assert verdict.action == "allow", clean

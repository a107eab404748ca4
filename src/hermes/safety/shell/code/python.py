"""Inline Python, read with `ast`: what it deletes, starts, writes, reads and sends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.code.source import find_source
from hermes.safety.shell.inner_command import run_words
from hermes.safety.shell.path_rules import judge_shown
from hermes.safety.shell.script_files import run_file
from hermes.safety.shell.stream import ANYTHING, Stream

if TYPE_CHECKING:
    from hermes.safety.shell.analysis import Judge
    from hermes.safety.shell.command import Command


def run_python(command: Command, judge: Judge) -> Stream | None:
    """Judge what a Python interpreter was given to run."""
    module = _module(command)
    if module is not None:
        words = command.words[module:]
        name = words[0].text.partition(".")[0]
        if name in ("pip", "uv", "pipx", "poetry", "ansible", "conda", "aws", "black", "alembic"):
            return run_words([words[0].part(name), *words[1:]], command, judge)
        if words[0].text in ("http.server", "SimpleHTTPServer", "pyftpdlib", "smtpd"):
            given = [word.text for word in words]
            near = any(text.endswith(("127.0.0.1", "localhost", "::1")) for text in given)
            if not near and not {"-h", "--help"} & set(given):
                judge.blame("network.listener", command)
        judge_shown(words[1:], command, judge)
        if command.scope.elevated:
            judge.blame("system.elevated-script", command)
        if words[0].known:
            place, args = words[0].text.replace(".", "/"), [word.text for word in words[1:]]
            for path in (f"{place}.py", f"{place}/__main__.py"):
                run_file(path, command, judge, kind="python", args=args)
        return ANYTHING
    front = next((word for word in command.operands[:1] if word.text.endswith("manage.py")), None)
    if front is not None:
        inner = [front.part("manage.py"), *command.after(front)]
        return run_words(inner, command, judge)
    source = find_source(command, judge, inline="c", valued="WXQ")
    if source is not None:
        from hermes.safety.shell.code.python_calls import judge_source

        judge_source(source.text, command, judge)
    return None


def _module(command: Command) -> int | None:
    """Index of the module after `-m`, if that is how Python was started."""
    words = command.words
    index = 1
    while index < len(words):
        text = words[index].text
        if len(text) < 2 or text[0] != "-" or text[1] == "-":
            return None
        if "c" in text and "m" not in text:
            return None
        if text.endswith("m"):
            return index + 1 if index + 1 < len(words) else None
        index += 2 if text in ("-W", "-X", "-Q") else 1
    return None

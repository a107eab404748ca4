"""Folders of this machine inside a container: what happens to them there happens here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.opening import run_words

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.judge import Judge
    from hermes.safety.shell.word_building import Word

# What a container does to itself is its own affair; only the fate of files counts here.
_COUNTS = ("delete.", "hermes.", "persist.", "system.write", "disk.", "secrets.")


def judge_mounted(inner: list[Word], command: Command, judge: Judge) -> None:
    """Judge a container's command once more, with mounted paths as what they are outside."""
    mounts = _mounts(command)
    if not mounts:
        return
    changed = False
    words: list[Word] = []
    for word in inner:
        text = word.text
        for inside, outside in mounts.items():
            pattern = rf"(?<![\w/.-]){re.escape(inside)}(?=/|[\s'\";&|)*]|\Z)"
            text = re.sub(pattern, lambda _, outside=outside: outside, text)  # type: ignore[misc]
        changed = changed or text != word.text
        part = word.part(text)
        part.glob = word.glob
        words.append(part)
    scope = command.scope.copy()
    for folder in command.values("-w", "--workdir") or _after(command, "-w", "--workdir"):
        for inside, outside in mounts.items():
            if (folder.text + "/").startswith(inside + "/"):
                scope.go(outside + folder.text[len(inside) :])
                changed = True
    if not changed:
        return
    own = judge.apart(200)
    run_words(words, command, own, scope=scope)
    for finding in own.findings:
        if finding.rule.startswith(_COUNTS):
            judge.report(finding.rule, command.origin, finding.command)


def _after(command: Command, *options: str) -> list[Word]:
    words = command.words
    return [words[at + 1] for at, word in enumerate(words[:-1]) if word.text in options]


def _mounts(command: Command) -> dict[str, str]:
    """Paths inside the container, and what they are on this machine."""
    found: dict[str, str] = {}
    for word in _after(command, "-v", "--volume", "--mount"):
        _add(word.text, command, found)
    for word in command.words:
        name, equals, value = word.text.partition("=")
        if equals and name in ("-v", "--volume", "--mount"):
            _add(value, command, found)
    return found


def _add(text: str, command: Command, found: dict[str, str]) -> None:
    if "=" in text.partition(",")[0]:
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        source = fields.get("source") or fields.get("src", "")
        target = fields.get("target") or fields.get("dst") or fields.get("destination", "")
    else:
        source, _, target = text.partition(":")
        target = target.partition(":")[0]
    if source.startswith(("/", ".", "~")) and target.startswith("/") and len(target) > 1:
        home = command.scope.home
        source = home + source[1:] if source[:1] == "~" else command.scope.absolute(source)
        found[target.rstrip("/")] = source

"""Output options: the files and folders into which programs write their results."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.read_only import only_reads
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.word_builder import Word

# What most programs call the file or folder that they make.
_OUTPUT = re.compile(
    r"--?(?:out(?:put|file|dir|-?file|-?dir(?:ectory)?|put-?(?:file|dir(?:ectory)?|path|folder))?|"
    r"dest(?:ination|dir)?(?:-dir)?|target-dir|report-file|save-?(?:to|dir|path)|export-path|"
    r"junit-?xml|log-?file)\Z"
)
# Options that name the folder a program works in, as `cd` before it would.
_FOLDER_OPTIONS = {
    "git": ("-C", "--git-dir", "--work-tree"),
    "make": ("-C", "--directory"),
    "gmake": ("-C", "--directory"),
    "ninja": ("-C",),
    "cmake": ("-B", "--build", "--install"),
    "meson": ("-C",),
    "npm": ("--prefix", "-C"),
    "pnpm": ("--prefix", "-C", "--dir"),
    "yarn": ("--cwd",),
    "bun": ("--cwd",),
    "cargo": ("-C", "--target-dir"),
    "go": ("-C",),
    "uv": ("--directory", "--project"),
    "poetry": ("-C", "--directory", "-P", "--project"),
    "pip": ("-t", "--target", "--prefix", "--root"),
    "composer": ("-d", "--working-dir"),
    "gradle": ("-p", "--project-dir"),
    "gradlew": ("-p", "--project-dir"),
    "terraform": ("-chdir",),
    "tofu": ("-chdir",),
    "just": ("-d", "--working-directory"),
}
# What programs that install something call the place for it.
_INSTALL_FOLDERS = (
    "--dir",
    "--directory",
    "--prefix",
    "--root",
    "--path",
    "--target",
    "--to",
    "-d",
)
# Their other words are a command for another machine or a container.
_ELSEWHERE = names(
    "ssh docker podman nerdctl docker-compose podman-compose kubectl oc vagrant gcloud heroku"
)
_CLONE_VALUES = names(
    "-b --branch --depth -o --origin -j --jobs --reference --filter -c --config -u --upload-pack "
    "--template --shallow-since --separate-git-dir --bundle-uri"
)


def works_elsewhere(name: str) -> bool:
    """Whether a program's options may name a folder to work in, or something that it makes."""
    return name in _FOLDER_OPTIONS or name in _MAKERS


def output_words(command: Command) -> list[Word]:
    """The words that name what a command makes or works in, beyond its plain operands."""
    found = [] if command.name in _ELSEWHERE else _outputs(command)
    options = _FOLDER_OPTIONS.get(command.name)
    if options is not None:
        folders = _values(command, options)
        if folders and not only_reads(command, opened=False):
            found += folders
    maker = _MAKERS.get(command.name)
    if maker is not None:
        found += maker(command)
    if "install" in command.name:
        found += _values(command, _INSTALL_FOLDERS)
    return found


def _outputs(command: Command) -> list[Word]:
    """The values of options that say by their name that something is written there."""
    words = command.words
    found = []
    for index, word in enumerate(words):
        if word.text[:1] != "-":
            continue
        option, equals, value = word.text.partition("=")
        if _OUTPUT.match(option):
            named = word.part(value) if equals else next(iter(words[index + 1 : index + 2]), None)
            if named is not None and _is_place(named):
                found.append(named)
    return found


def _is_place(word: Word) -> bool:
    """Whether a value is spelled like a path out of here; a plain name stays in the folder."""
    return word.text.startswith(("/", "~", "..")) and "://" not in word.text


def _values(command: Command, options: tuple[str, ...]) -> list[Word]:
    """The values of some options, attached or not, whatever the table of options knows."""
    words = command.words
    found = []
    for index, word in enumerate(words):
        option, equals, value = word.text.partition("=")
        if option in options and equals:
            found.append(word.part(value))
        elif word.text in options:
            found += words[index + 1 : index + 2]
        elif word.text[:2] in options and word.text[1] != "-" and len(word.text) > 2:
            found.append(word.part(word.text[2:]))
    return found


def _git(command: Command) -> list[Word]:
    words = command.operands
    sub = [word.text for word in words[:2]]
    if sub[:1] == ["clone"]:
        given = command.words[command.words.index(words[0]) + 1 :]
        plain = [
            word
            for before, word in pairwise([words[0], *given])
            if word.text[:1] != "-" and before.text not in _CLONE_VALUES
        ]
        return plain[1:2]
    if sub == ["worktree", "add"] or sub == ["bundle", "create"]:
        return [word for word in words[2:] if _is_place(word)][:1]
    return words[1:2] if sub[:1] == ["init"] else []


def _environment_folder(command: Command) -> list[Word]:
    return [word for word in command.operands if _is_place(word)]


def _module(command: Command) -> list[Word]:
    texts = command.args
    if texts[:2] in (["-m", "venv"], ["-m", "virtualenv"]):
        return [word for word in command.words[3:] if _is_place(word)]
    return []


def _copied_out(command: Command) -> list[Word]:
    """`docker cp web:/x here`, `kubectl cp`: the target, unless that is in the container."""
    words = command.operands
    if [word.text for word in words[:1]] == ["cp"] and len(words) == 3:
        return [] if ":" in words[2].text else words[2:]
    if [word.text for word in words[:1]] in (["save"], ["export"]):
        return _values(command, ("-o",))
    return []


def _last(command: Command) -> list[Word]:
    words = [word for word in command.words[1:] if word.text[:1] != "-"]
    return words[-1:] if len(words) > 1 and _is_place(words[-1]) else []


def _after(*options: str) -> Callable[[Command], list[Word]]:
    return lambda command: [word for word in _values(command, options) if word.text != "-"]


def _seven_zip(command: Command) -> list[Word]:
    texts = command.args
    if texts[:1] in (["x"], ["e"]):
        return [word.part(word.text[2:]) for word in command.words if word.text.startswith("-o")]
    return command.operands[1:2] if texts[:1] in (["a"], ["u"], ["d"]) else []


def _unrar(command: Command) -> list[Word]:
    return [word for word in command.operands[2:] if word.text.endswith("/")]


_MAKERS: dict[str, Callable[[Command], list[Word]]] = {
    "git": _git,
    "python": _module,
    "virtualenv": _environment_folder,
    "docker": _copied_out,
    "podman": _copied_out,
    "kubectl": _copied_out,
    "ffmpeg": _last,
    "convert": _last,
    "magick": _last,
    "pandoc": _after("-o"),
    "gfortran": _after("-o"),
    "rustc": _after("-o"),
    "c++": _after("-o"),
    "g++": _after("-o"),
    "ld": _after("-o"),
    "as": _after("-o"),
    "nvcc": _after("-o"),
    "javac": _after("-d"),
    "tcpdump": _after("-w"),
    "strace": _after("-o"),
    "ltrace": _after("-o"),
    "perf": _after("-o"),
    "pg_dump": _after("-f", "--file"),
    "pg_dumpall": _after("-f", "--file"),
    "mysqldump": _after("-r", "--result-file"),
    "yt-dlp": _after("-o", "-P"),
    "aria2c": _after("-o"),
    "xh": _after("-o"),
    "zip": lambda command: command.operands[:1],
    "7z": _seven_zip,
    "7za": _seven_zip,
    "unrar": _unrar,
    "mktemp": _after("-p", "--tmpdir"),
    "mknod": lambda command: command.operands[:1],
    "chmod": lambda command: command.operands[1:],
    "chown": lambda command: command.operands[1:],
    "chgrp": lambda command: command.operands[1:],
    "ditto": _last,
    "link": _last,
    "rename": lambda command: command.operands[1:],
    "jar": _after("-f"),
    "csplit": _after("-f"),
    "black": _environment_folder,
    "prettier": lambda command: _environment_folder(command) if command.has("--write") else [],
}

"""Shell state during the analysis: variables, functions, directories; streams between commands."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hermes.safety.shell.walk import Function


# Where text came from, when it is not spelled out in the command itself.
NETWORK = "network"
DECODED = "decoded"
SECRET = "secret"
FILE = "file"
ARCHIVE = "archive"
ENVIRONMENT = "environment"
UNKNOWN = "unknown"
# Text that was kept from others until a key opened it.
DECRYPTED = "decrypted"
# Lines of `NAME=value`, which a program is given rather than shown.
SETTINGS = "settings"
# Lines by which an installed program sets up the shell that asks it for them.
SET_UP = "set-up"
# What nobody else is meant to get.
PRIVATE = frozenset((SECRET, ENVIRONMENT, DECRYPTED))
# Not the secrets themselves, but the names of the files that hold them.
SECRET_FILES = "secret files"
# Stands among the files that a text fetched for whatever was in an archive.
UNPACKED = "//unpacked"


# What was in a file before this text wrote to it may be in it still.
KEPT = "kept"
_LONGEST = 200_000


class Stream:
    """Output of a command: its `text` when that is certain, and `tags` for where it came from.

    `path` is the file that it is the content of, if it is that and nothing else.
    """

    __slots__ = ("path", "tags", "text")

    def __init__(
        self, text: str | None, tags: frozenset[str] = frozenset(), path: str = ""
    ) -> None:
        self.text = text
        self.tags = tags
        self.path = path


NOTHING = Stream("")
ANYTHING = Stream(None, frozenset((UNKNOWN,)))
FROM_FILE = Stream(None, frozenset((FILE,)))


def tagged(*tags: str) -> Stream:
    """A stream of unknown text with a known origin."""
    return Stream(None, frozenset(tags))


def joined(streams: list[Stream]) -> Stream:
    """Several outputs one after the other."""
    if not streams:
        return NOTHING
    if len(streams) == 1:
        return streams[0]
    tags = frozenset().union(*(stream.tags for stream in streams))
    texts = [stream.text for stream in streams]
    if any(text is None for text in texts):
        return Stream(None, tags)
    if sum(len(text or "") for text in texts) > _LONGEST:
        # More than anyone reads.
        return Stream(None, tags | {DECODED})
    return Stream("".join(text or "" for text in texts), tags)


class Substituter(Protocol):
    """Runs, on paper, what stands inside `$(…)`, backticks and process substitutions."""

    def substitute(self, text: str, origin: Origin, scope: Scope, *, feeds: bool) -> Stream:
        """Judge an inner command and say what it would print."""

    def scan(self, text: str, origin: Origin, scope: Scope) -> None:
        """Judge the substitutions inside text that is no command itself (arithmetic, tests)."""

    def too_large(self) -> None:
        """Note that something was not looked at to its end."""


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


class Origin:
    """A stretch of the given text; `exact` when offsets inside the piece still hold outside."""

    __slots__ = ("end", "exact", "start")

    def __init__(self, start: int, end: int, *, exact: bool = True) -> None:
        self.start = start
        self.end = end
        self.exact = exact

    def at(self, start: int, end: int) -> Origin:
        """The part from `start` to `end` of this piece, as closely as it can be told."""
        if not self.exact:
            return self
        return Origin(self.start + start, self.start + end)

    def vague(self) -> Origin:
        """The same stretch, for text that was changed on the way."""
        return Origin(self.start, self.end, exact=False)


# Stand-ins inside resolved text. HOLE is something that can't be known; UNSET is a variable that
# nobody assigned, so it may well be empty. Neither can come from outside: see normalise.
HOLE = "\ue000"
UNSET = "\ue001"
UNKNOWN_CHARS = HOLE + UNSET

_ALWAYS_SET = names(
    "PATH RANDOM UID EUID PPID HOSTNAME SECONDS LINENO BASHPID EPOCHSECONDS LANG TERM SHLVL ? $ ! "
    "# - _ 0 "
    "OLDPWD BASH_SOURCE BASH FUNCNAME GITHUB_WORKSPACE GITHUB_SHA"
)


class Word:
    """One argument: its resolved `text`, the `raw` spelling, and what it was made from."""

    __slots__ = ("glob", "origin", "process", "quoted", "raw", "stream", "text", "variables")

    text: str
    variables: tuple[str, ...]

    def __init__(self, text: str, raw: str, origin: Origin) -> None:
        self.text = text
        self.raw = raw
        self.origin = origin
        self.glob = False
        self.quoted = False
        self.variables = ()
        self.stream: Stream | None = None
        self.process: Stream | None = None

    @property
    def known(self) -> bool:
        """Whether the whole text is certain."""
        return HOLE not in self.text and UNSET not in self.text

    def part(self, text: str) -> Word:
        """A word made of a piece of this one, with the same provenance."""
        word = Word(text, text, self.origin)
        word.glob, word.variables, word.stream = self.glob, self.variables, self.stream
        return word

    def __repr__(self) -> str:
        return f"Word({self.text!r})"


class Value:
    """A variable: one text, or several for an array; `glob` when it stands for file names.

    `stream` is the output that a loop takes it from, if it does.
    """

    __slots__ = ("array", "glob", "items", "refers", "stream")

    def __init__(
        self,
        items: list[str],
        *,
        array: bool = False,
        glob: bool = False,
        stream: Stream | None = None,
    ) -> None:
        self.items = items
        # It stands for the variable of which it has the name.
        self.refers = False
        self.array = array
        self.glob = glob
        self.stream = stream

    @property
    def text(self) -> str:
        return self.items[0] if self.items else ""


class Scope:
    """The state of one shell; a subshell works on a copy."""

    __slots__ = (
        "aliases",
        "calls",
        "captured",
        "container",
        "cwd",
        "descriptors",
        "elevated",
        "elsewhere",
        "follows",
        "functions",
        "home",
        "links",
        "listening",
        "loads",
        "loop",
        "oldpwd",
        "positional",
        "root",
        "script",
        "unsure",
        "variables",
        "workspace",
        "written",
    )

    def __init__(self, cwd: str, home: str, *, root: str = "") -> None:
        self.cwd = cwd
        # Scripts below this folder are read; none without one.
        self.root = root
        # How many script files are open around what is being judged.
        self.script = 0
        self.workspace = cwd
        self.home = home
        self.oldpwd = HOLE
        # Whether what is printed here goes into the text around it.
        self.captured = False
        # Whether what is printed here becomes variables of a program.
        self.loads = False
        # The next command of a pipeline, as written: what this one prints goes there.
        self.follows: list[str] = []
        self.variables: dict[str, Value] = {}
        # Whether one of them names every address of the machine.
        self.listening = False
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.positional: list[str] | None = None
        self.calls: tuple[str, ...] = ()
        self.loop = 0
        # How many conditions what is being judged depends on.
        self.unsure = 0
        self.container = False
        self.elevated = False
        # On another machine or in a container, where paths are not ours.
        self.elsewhere = False
        # What this command text put into files, as far as it is known; shared by all copies.
        self.written: dict[str, Stream] = {}
        # Files that stand open under a number with nothing written to them yet; shared likewise.
        self.descriptors: dict[str, str] = {}
        # Symbolic links that this command text made, and where they lead; shared likewise.
        self.links: dict[str, str] = {}

    def copy(self) -> Scope:
        """A scope whose changes stay its own."""
        other = Scope.__new__(Scope)
        for name in Scope.__slots__:
            setattr(other, name, getattr(self, name))
        other.variables = self.variables.copy()
        other.functions = self.functions.copy()
        other.aliases = self.aliases.copy()
        return other

    def lookup(self, name: str) -> Value:
        """The value of a variable or parameter, with a stand-in where it is not known."""
        value = self.variables.get(name)
        if value is not None:
            return self.variables.get(value.text, value) if value.refers else value
        if name.isdigit() and name != "0":
            if self.positional is None:
                return Value([HOLE if self.calls else UNSET])
            index = int(name) - 1
            return Value([self.positional[index] if index < len(self.positional) else UNSET])
        if name in "@*":
            return Value(
                list(self.positional) if self.positional is not None else [HOLE], array=True
            )
        return Value([self._environment(name)])

    def _environment(self, name: str) -> str:
        if name in ("HOME", "USERPROFILE"):
            return self.home
        if name == "PWD":
            return self.cwd
        if name == "OLDPWD":
            return self.oldpwd
        if name in ("USER", "LOGNAME", "USERNAME"):
            return posixpath.basename(self.home) or "root"
        if name == "IFS":
            return " \t\n"
        if name == "HERMES_HOME":
            return posixpath.join(self.home, ".hermes")
        if name in ("XDG_CONFIG_HOME",):
            return posixpath.join(self.home, ".config")
        if name in ("TMPDIR", "TEMP", "TMP", "RUNNER_TEMP"):
            return "/tmp/" + HOLE
        if name == "SHELL":
            return "/bin/bash"
        return HOLE if name in _ALWAYS_SET else UNSET

    def assign(self, name: str, value: Value, *, append: bool = False) -> None:
        """Set a variable; with `append`, as `+=` does."""
        if "0.0.0.0" in value.text or "::" in value.text:
            self.listening = True
        old = self.variables.get(name) if append else None
        if old is None:
            self.variables[name] = value
        elif value.array:
            self.variables[name] = Value([*old.items, *value.items], array=True)
        else:
            self.variables[name] = Value([old.text + value.text, *old.items[1:]], array=old.array)

    def go(self, target: str) -> None:
        """Change the directory, as `cd` does."""
        self.oldpwd, self.cwd = self.cwd, self.absolute(target)

    def absolute(self, path: str) -> str:
        """A path as seen from the current directory, with `.` and `..` taken out."""
        if path[:1].isalnum() and "/" not in path:
            # One plain name, by far the commonest, needs no straightening.
            path = f"{self.cwd}/{path}" if self.cwd != "/" else f"/{path}"
        else:
            if not path.startswith(("/", HOLE)):
                path = posixpath.join(self.cwd, path)
            path = posixpath.normpath(path)
        for link, place in self.links.items():
            if path == link or path.startswith(link + "/"):
                path = place + path[len(link) :]
                break
        return path[1:] if path.startswith("//") else path


def expand_home(text: str, scope: Scope) -> str:
    """A path with its leading `~` replaced."""
    return scope.home + text[1:] if text == "~" or text.startswith("~/") else text

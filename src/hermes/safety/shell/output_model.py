"""Model of a command's output, as far as its words determine it."""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

import hermes.safety.shell.path_classes as path_classes
from hermes.safety.shell.file_flow import FETCHED, fetch, is_unread, place_of
from hermes.safety.shell.file_operands import READERS
from hermes.safety.shell.path_rules import is_settings_file
from hermes.safety.shell.scope import (
    ANYTHING,
    ARCHIVE,
    DECODED,
    DECRYPTED,
    ENVIRONMENT,
    FILE,
    HOLE,
    NETWORK,
    NOTHING,
    SECRET,
    SET_UP,
    SETTINGS,
    UNKNOWN,
    UNPACKED,
    Stream,
    joined,
    names,
    tagged,
)
from hermes.safety.shell.words import unescape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word

_MOST_PIECES = 400
_DIRECTIVE = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[sbdiqcxXouefgE])")
_DOWNLOADERS = names(
    "curl wget fetch aria2c lynx w3m links http https httpie xh curlie axel nc ncat netcat socat "
    "telnet ftp "
    "lwp-request get invoke-webrequest iwr irm invoke-restmethod"
)
_FILTERS = names(
    "cat tee head tail grep egrep fgrep sort uniq pv cut nl tac dos2unix less more sponge"
)
_SETTING_UP = names("ssh-agent gpg-agent dircolors lesspipe keychain register-python-argcomplete")
_SET_UP_WORDS = names(
    "completion completions init hook shellenv env activate docker-env podman-env "
    "generate-shell-completion shell.bash shell.zsh --completion --print-completion shell-init"
)
_SCRIPTED = names("grep egrep fgrep")
# What these print is in a file, or anything that the file makes them print.
_READ_OR_RUN = names(
    "strings jq yq xxd od python python3 node deno bun ruby perl php lua bash sh zsh ssh rsh make"
)
# Which option names the file that a downloader fills.
_SAVED_BY = {
    "aria2c": ("-o", "--out"),
    "axel": ("-o", "--output"),
    "fetch": ("-o",),
    "http": ("-o", "--output"),
    "https": ("-o", "--output"),
    "xh": ("-o", "--output"),
    "curlie": ("-o", "--output"),
    "lynx": (),
    "iwr": ("-OutFile", "-outfile", "-o"),
    "irm": ("-OutFile", "-outfile"),
    "invoke-webrequest": ("-OutFile", "-outfile"),
    "invoke-restmethod": ("-OutFile", "-outfile"),
}
_DECODERS = names(
    "gunzip zcat bunzip2 bzcat unxz xzcat unzstd zstdcat uudecode lz4cat uncompress xxd base64 "
    "base32 basenc rev tr gpg gpg2 gpgsm openssl age rage sops ccrypt"
)
# Of these, the ones that need a key.
_DECRYPTERS = names("gpg gpg2 gpgsm openssl age rage sops ccrypt")
_BOTH_WAYS = _DECRYPTERS | {"base64", "base32", "xxd", "basenc"}
_ENCODINGS = frozenset(("base64", "-base64", "-a", "-A", "enc", "-d", "-in", "-out"))


def output(command: Command) -> Stream:
    """What a program prints, with where it came from when the text is not certain."""
    name = command.name
    maker = _MAKERS.get(name)
    if maker is not None:
        return maker(command)
    if name in _DOWNLOADERS:
        return _download(command)
    if name in _FILTERS:
        return _filter(command)
    if name in _DECODERS:
        return _decode(command)
    stdin = command.stdin
    if stdin is None:
        return tagged(UNKNOWN, SET_UP) if command.scope.captured and _sets_up(command) else ANYTHING
    return Stream(None, stdin.tags | {UNKNOWN})


def _sets_up(command: Command) -> bool:
    """Whether a program was asked for the lines by which a shell learns to work with it."""
    if command.name in _SETTING_UP:
        return True
    # The first word that it is given, past one option: a later one is data to most programs.
    args = command.args
    asked = (
        args[2:3] if args[:1] and args[0][:1] == "-" and args[0] not in _SET_UP_WORDS else args[:1]
    )
    return (
        "/" not in command.words[0].text
        and command.name not in READERS
        and command.name not in _READ_OR_RUN
        and not _SET_UP_WORDS.isdisjoint(asked)
    )


def _echo(command: Command) -> Stream:
    words = command.words[1:]
    escapes = False
    newline = "\n"
    while words and re.fullmatch(r"-[neE]+", words[0].text):
        escapes = escapes or "e" in words[0].text
        newline = "" if "n" in words[0].text else newline
        words = words[1:]
    text = " ".join(word.text for word in words)
    tags = _tags(command)
    # A shell's own echo may read escapes without -e.
    return Stream((unescape(text) if escapes else text) + newline, tags)


def _tags(command: Command) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for word in command.words[1:]:
        if word.stream is not None:
            found |= word.stream.tags
    return found


def _printf(command: Command) -> Stream:
    args = command.args
    if args[:1] == ["--"]:
        args = args[1:]
    if not args or args[0] == "-v":
        return NOTHING
    # A sign that is spelled as an escape begins no directive.
    texts, slots = _DIRECTIVE.split(args[0]), _DIRECTIVE.findall(args[0])
    texts, values = [unescape(text) for text in texts], iter(args[1:])
    more = len(args) - 1
    taking = sum(slot != "%%" for slot in slots)
    pieces = []
    while True:
        for text, slot in zip_longest(texts, slots):
            pieces += [text, _slot(slot, values) if slot else ""]
        more -= taking
        if more <= 0 or not taking or len(pieces) > _MOST_PIECES:
            break
    return Stream("".join(pieces), _tags(command))


def _slot(directive: str, values: Iterator[str]) -> str:
    if directive == "%%":
        return "%"
    value = next(values, "")
    if directive.endswith("b"):
        return unescape(value)
    if directive.endswith("c"):
        return value[:1]
    if directive[-1] in "xXo" and value.isdigit():
        return format(int(value), directive[-1])
    return value


def reads_nothing(command: Command, files: list[Word]) -> bool:
    """Whether there is nothing in what a filter reads: the files that it names, or its input."""
    if files:
        return all(word.text == "/dev/null" for word in files)
    return command.stdin is not None and command.stdin.text == ""


def _filter(command: Command) -> Stream:
    operands = command.operands
    if command.name in _SCRIPTED:
        operands = READERS["grep"](command)
    if command.name in ("head", "tail") and command.values("-c", "-n", "--bytes", "--lines"):
        sizes = command.values("-c", "-n", "--bytes", "--lines")
        if all(size.text == "0" for size in sizes):
            return NOTHING
    if command.name in ("tee", "sponge") or not operands or [w.text for w in operands] == ["-"]:
        return command.stdin or ANYTHING
    if command.name in ("cut", "sort") and command.stdin is not None:
        return Stream(None, command.stdin.tags | {UNKNOWN})
    return _contents(command, operands)


def _contents(command: Command, files: list[Word]) -> Stream:
    scope = command.scope
    if reads_nothing(command, files):
        return NOTHING
    written = [scope.written.get(place_of(word, scope)) for word in files] if scope.written else []
    if len(written) > 1 and all(written):
        return joined([known for known in written if known is not None])
    tags = {FILE, UNKNOWN}
    for word in files:
        if word.process is not None:
            tags |= word.process.tags
        for path in path_classes.targets(word, scope):
            known = scope.written.get(path)
            if known is not None:
                if len(files) == 1:
                    return known
                tags |= known.tags
            if path_classes.is_credential(path, scope):
                tags.add(SECRET)
            if is_settings_file(path):
                tags.add(SETTINGS)
    return Stream(None, frozenset(tags))


def _edited(command: Command) -> Stream:
    """What `sed` or `awk` make of a file or their input: new text of the same origin."""
    files = READERS["sed"](command)
    stream = _contents(command, files) if files else command.stdin or ANYTHING
    return Stream(None, stream.tags | {UNKNOWN})


def _download(command: Command) -> Stream:
    target = command.values("-o", "--output", "-O", "--output-document")
    if command.name in ("curl", "wget") and target and target[0].text != "-":
        command.scope.written[place_of(target[0], command.scope)] = FETCHED
        return NOTHING
    for word, following in pairwise(command.words):
        option, equals, value = word.text.partition("=")
        if option in _SAVED_BY.get(command.name, ()):
            fetch(value if equals else following.text, command.scope)
            return NOTHING
    url = next((word.text for word in command.operands if "/" in word.text), "")
    saved = posixpath.basename(url.partition("?")[0])
    # `curl -O` and plain `wget` keep the name of the address.
    plain_wget = command.name in ("wget", "aria2c", "axel") and not target
    remote_name = command.name == "curl" and command.has("-O", "--remote-name")
    if (plain_wget or remote_name) and saved:
        folders = command.values("-P", "--directory-prefix", "--output-dir")
        base = f"{folders[0].text}/" if folders else ""
        fetch(base + saved, command.scope)
        return NOTHING
    return tagged(NETWORK)


def _decode(command: Command) -> Stream:
    name, stdin = command.name, command.stdin
    tags = (stdin.tags if stdin is not None else frozenset()) | {DECODED}
    decoding = command.has("-d", "--decode", "-D", "-r", "--decrypt", "-decrypt", "-revert")
    if name in _BOTH_WAYS and not decoding:
        return Stream(None, tags - {DECODED} | {UNKNOWN})
    if name in _DECRYPTERS and _needs_key(command):
        tags |= {DECRYPTED}
    return Stream(None, tags)


def _needs_key(command: Command) -> bool:
    """Whether what is decoded was encrypted; `openssl` knows encodings without a key too."""
    return command.name != "openssl" or any(
        arg[:1] == "-" and arg not in _ENCODINGS for arg in command.args
    )


def _first_operand(command: Command) -> Stream:
    operands = command.operands
    return Stream(operands[0].text + "\n") if operands and operands[0].known else ANYTHING


def _named(part: Callable[[str], str]) -> Callable[[Command], Stream]:
    def make(command: Command) -> Stream:
        operands = command.operands
        if len(operands) != 1 or not operands[0].known:
            return ANYTHING
        return Stream(part(operands[0].text.rstrip("/") or "/") + "\n")

    return make


def _realpath(command: Command) -> Stream:
    operands = command.operands
    if len(operands) != 1 or not operands[0].known:
        return ANYTHING
    return Stream(command.scope.absolute(operands[0].text) + "\n")


def _git(command: Command) -> Stream:
    """Like an archive: what a repository has in it is code that nobody has read."""
    operands = command.operands
    if operands and operands[0].text == "clone" and any("://" in w.text for w in operands):
        command.scope.written[UNPACKED] = FETCHED
    return ANYTHING if command.stdin is None else Stream(None, command.stdin.tags | {UNKNOWN})


def _unpack(command: Command) -> Stream:
    """Note that what lies in the folder now came over the network, unread."""
    scope, stdin = command.scope, command.stdin
    sources = [scope.absolute(word.text) for word in command.words[1:] if word.known]
    fetched = any(is_unread(scope.written.get(path)) for path in sources)
    if fetched or (stdin is not None and NETWORK in stdin.tags):
        scope.written[UNPACKED] = FETCHED
    return _tar(command) if command.name in ("tar", "bsdtar", "gtar", "zip") else ANYTHING


def _tar(command: Command) -> Stream:
    reading = READERS["tar"](command)
    scope = command.scope
    tags = {ARCHIVE, UNKNOWN}
    if any(
        path_classes.is_credential(path, scope)
        for word in reading
        for path in path_classes.targets(word, scope)
    ):
        tags.add(SECRET)
    return Stream(None, frozenset(tags))


_MAKERS: dict[str, Callable[[Command], Stream]] = {
    "echo": _echo,
    "print": _echo,
    "write-output": _echo,
    "printf": _printf,
    "which": _first_operand,
    "whence": _first_operand,
    "type": _first_operand,
    "realpath": _realpath,
    "dirname": _named(posixpath.dirname),
    "basename": _named(posixpath.basename),
    "pwd": lambda command: Stream(command.scope.cwd + "\n"),
    "whoami": lambda command: Stream(command.scope.lookup("USER").text + "\n"),
    "mktemp": lambda _: Stream("/tmp/" + HOLE + "\n"),
    "env": lambda _: tagged(ENVIRONMENT),
    "printenv": lambda command: _environment(command),
    "history": lambda _: tagged(ENVIRONMENT),
    **dict.fromkeys(names("get-childitem gci dir ls get-item"), lambda c: _listing(c)),
    "compgen": lambda _: tagged(ENVIRONMENT),
    **dict.fromkeys(names("tar bsdtar gtar unzip 7z 7za unrar cpio"), _unpack),
    "zip": _tar,
    "git": _git,
    "mysqldump": lambda _: tagged(ARCHIVE),
    "pg_dump": lambda _: tagged(ARCHIVE),
    "pg_dumpall": lambda _: tagged(ARCHIVE),
    "cd": lambda _: NOTHING,
    **dict.fromkeys(names("sed gsed awk gawk mawk nawk"), _edited),
    **dict.fromkeys(names("pgrep pidof ps lsof"), lambda _: tagged(UNKNOWN, "processes")),
}


def _listing(command: Command) -> Stream:
    if any(arg.lower().startswith("env:") for arg in command.args):
        return tagged(ENVIRONMENT)
    return ANYTHING if command.stdin is None else Stream(None, command.stdin.tags | {UNKNOWN})


def _environment(command: Command) -> Stream:
    names = [word.text for word in command.operands]
    if not names:
        return tagged(ENVIRONMENT)
    return Stream("\n".join(command.scope.lookup(name).text for name in names) + "\n")

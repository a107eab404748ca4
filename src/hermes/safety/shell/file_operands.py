"""File operands and options: which words of which programs are read, written or moved away."""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.safety.shell.read_only import only_reads
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.words import Word


_OPENSSL_PUBLIC = frozenset(("-pubout", "-pubin", "-noout", "dgst", "s_client"))
# They take a key or a settings file to work with, or say something about it, and show none of it.
USES_KEYS = names(
    "ssh ssh-add ssh-keygen ssh-copy-id autossh sshfs mosh ansible ansible-playbook kubectl oc "
    "helm docker podman docker-compose chmod chown chgrp ls stat test [ [[ file du wc realpath "
    "readlink dirname basename touch mkdir rm rmdir unlink shred cd pushd find fd tree lsattr "
    "getfacl echo printf export : true false git-crypt age-keygen mv sha256sum sha1sum md5sum "
    "cksum terraform tofu packer hermes k9s stern kubectx source . sudo su env npm pip python "
    "python3 chezmoi stow direnv dotenv crontab systemctl journalctl service tee truncate nginx "
    "sshd visudo set-content get-acl icacls test-path"
)


def _operands(command: Command) -> list[Word]:
    return command.operands


def _destination(command: Command) -> list[Word]:
    """The target of `cp` and its like, and each name that would appear inside it."""
    given = command.values("-t", "--target-directory")
    operands = command.operands
    if given:
        target, sources = given[0], operands
    elif len(operands) > 1:
        target, sources = operands[-1], operands[:-1]
    else:
        return []
    return [target, *_inside(target, sources)]


def _inside(target: Word, sources: list[Word]) -> list[Word]:
    folder = target.text.rstrip("/")
    return [
        target.part(f"{folder}/{posixpath.basename(source.text.rstrip('/'))}") for source in sources
    ]


def _sources(command: Command) -> list[Word]:
    given = command.values("-t", "--target-directory")
    return command.operands if given else command.operands[:-1]


def _link(command: Command) -> list[Word]:
    if len(command.operands) == 1:
        return []
    return _destination(command)


def _dd(command: Command) -> list[Word]:
    return [word.part(word.text[3:]) for word in command.operands if word.text.startswith("of=")]


def _dd_input(command: Command) -> list[Word]:
    return [word.part(word.text[3:]) for word in command.operands if word.text.startswith("if=")]


def _sed(command: Command) -> list[Word]:
    if not command.has("-i", "--in-place", "-I") and not any(
        flag.startswith(("-i", "--in-place")) for flag in command.flags
    ):
        return []
    return _after_script(command)


def _after_script(command: Command) -> list[Word]:
    """Operands of `sed`, `awk`, `grep`: the first is the script unless an option gave one."""
    given = command.values("-e", "--expression", "-f", "--file", "--regexp", "--source")
    return command.operands if given else command.operands[1:]


def _perl(command: Command) -> list[Word]:
    if not any(
        flag.startswith("-") and "i" in flag[1:4] for flag in command.flags if flag[1:2] != "-"
    ):
        return []
    return command.operands[1:]


def _curl(command: Command) -> list[Word]:
    given = command.values(
        "-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace"
    )
    return [word for word in given if word.text != "-"]


def _wget(command: Command) -> list[Word]:
    given = command.values(
        "-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file", "-a"
    )
    return [word for word in given if word.text != "-"]


def _tar(command: Command) -> list[Word]:
    words = command.values("-C", "--directory")
    first = command.args[0] if command.args else ""
    # Old style: the letters of the first word need no dash, their values follow in turn.
    cluster = first if first[:1] != "-" else ""
    if "x" in cluster or command.has("-x", "--extract", "--get"):
        if "C" in cluster and not words:
            return command.operands[-1:]
        return words
    if "c" in cluster or command.has("-c", "--create", "-r", "-u", "--append", "--update"):
        archives = command.values("-f", "--file") or (
            command.operands[1:2] if "f" in cluster else []
        )
        return [word for word in archives if word.text != "-"]
    return []


def _tar_input(command: Command) -> list[Word]:
    first = command.args[0] if command.args else ""
    if "x" in first or "t" in first:
        return []
    base = command.values("-C", "--directory")
    plain = command.operands
    if base:
        return [*plain, *(word.part(f"{base[0].text}/{word.text}") for word in plain)]
    return plain


def _option(*names: str) -> Callable[[Command], list[Word]]:
    return lambda command: command.values(*names)


def _after_flag(flag: str) -> Callable[[Command], list[Word]]:
    """The word after an option of a program that the options table does not know."""

    def find(command: Command) -> list[Word]:
        words = command.words
        return [following for word, following in pairwise(words) if word.text == flag]

    return find


def _unzip(command: Command) -> list[Word]:
    return command.values("-d")


def _patch(command: Command) -> list[Word]:
    return [*command.operands[:1], *command.values("-o", "--output", "-d", "--directory")]


def _rsync(command: Command) -> list[Word]:
    operands = command.operands
    if len(operands) < 2 or _is_remote(operands[-1].text):
        return []
    return [operands[-1], *_inside(operands[-1], operands[:-1])]


def _is_remote(text: str) -> bool:
    head = text.partition("/")[0]
    return ":" in head


def _url_data(command: Command) -> list[Word]:
    """Files that `curl` or `wget` send: `-T file`, `-d @file`, `-F name=@file`."""
    files = command.values("-T", "--upload-file", "--post-file", "--body-file", "-K", "--config")
    for word in command.values(
        "-d",
        "--data",
        "--data-binary",
        "--data-ascii",
        "--data-urlencode",
        "--json",
        "-F",
        "--form",
    ):
        _, at, path = word.text.partition("@")
        if not at:
            _, at, path = word.text.partition("=<")
        if at:
            files.append(word.part(path.partition(";")[0]))
    for word in command.operands:
        if word.text.startswith("file://"):
            files.append(word.part(word.text[7:]))
    return files


def _packed(command: Command) -> list[Word]:
    """Files that `gzip` and its like replace by others."""
    shown = command.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test")
    return [] if shown else command.operands


def _openssl(command: Command) -> list[Word]:
    """The file that is read, unless its public part or its sum is all that is shown."""
    args = command.args
    if args[:1] and args[0] in ("x509", "crl", "req", "verify"):
        return []
    if not _OPENSSL_PUBLIC.isdisjoint(args) and ("-text" not in args or "-pubin" in args):
        return []
    return _after_flag("-in")(command)


def _git(command: Command) -> list[Word]:
    """Files that git takes in or shows, whether they are of a repository or not."""
    operands = command.operands
    sub = operands[0].text if operands else ""
    if sub in ("add", "hash-object") or "--no-index" in command.args:
        return operands[1:]
    return []


_GIT_CHANGES = names("stash reset checkout switch pull merge rebase am apply revert cherry-pick")
_LOOKS = frozenset(("list", "show", "--check", "--stat"))


def _git_restores(command: Command) -> list[Word]:
    """Files that git puts back as they were in some commit."""
    operands = command.operands
    sub = operands[0].text if operands else ""
    cwd = command.scope.cwd
    if "/.hermes" in cwd and sub in _GIT_CHANGES and not _LOOKS.intersection(command.args):
        return [command.words[0].part(cwd)]
    if sub == "restore":
        return operands[1:]
    if sub == "checkout" and (len(operands) > 2 or "--" in command.args):
        return operands[1:]
    return []


def moved_from(command: Command) -> list[Word]:
    """Operands that are no longer where they were after the command."""
    return _sources(command) if command.name in ("mv", "gmv") else []


WRITERS: dict[str, Callable[[Command], list[Word]]] = {
    **dict.fromkeys(("cp", "gcp", "mv", "gmv", "install", "ginstall", "scp"), _destination),
    "git": _git_restores,
    "ln": _link,
    "gln": _link,
    "rsync": _rsync,
    "tee": _operands,
    "sponge": _operands,
    "touch": _operands,
    "mkdir": _operands,
    "mkfifo": _operands,
    "truncate": _operands,
    "vim": _operands,
    "vi": _operands,
    "nvim": _operands,
    "nano": _operands,
    "emacs": _operands,
    "ed": _operands,
    "ex": _operands,
    "rm": _operands,
    "unlink": _operands,
    "rmdir": _operands,
    "shred": _operands,
    "srm": _operands,
    "dd": _dd,
    "sed": _sed,
    "gsed": _sed,
    "perl": _perl,
    "ruby": _perl,
    "sort": _option("-o", "--output"),
    "curl": _curl,
    "wget": _wget,
    "tar": _tar,
    "bsdtar": _tar,
    "gtar": _tar,
    "unzip": _unzip,
    "patch": _patch,
    "yq": lambda command: command.operands[1:] if command.has("-i", "--inplace") else [],
    **dict.fromkeys(
        ("awk", "gawk"),
        lambda command: command.operands[1:] if "inplace" in command.args else [],
    ),
    "gpg": _option("-o", "--output"),
    "openssl": _after_flag("-out"),
    "gcc": _after_flag("-o"),
    "cc": _after_flag("-o"),
    "clang": _after_flag("-o"),
    "go": _after_flag("-o"),
    **dict.fromkeys(names("gzip gunzip xz unxz bzip2 bunzip2 zstd unzstd lz4"), _packed),
    "split": lambda command: command.operands[1:2],
    "script": _operands,
    "cpio": lambda command: [
        *command.values("-D", "--directory"),
        *(command.operands if command.has("-p", "--pass-through") else []),
    ],
    "pax": lambda command: command.operands[-1:] if command.has("-w") else [],
    "ssh-keygen": _after_flag("-f"),
    "chattr": lambda command: command.operands[1:],
    "setfacl": lambda command: command.operands[1:],
    "aria2c": _after_flag("-d"),
    "visudo": _operands,
    "copy-item": _destination,
    "move-item": _destination,
    "set-content": lambda command: command.operands[:1],
    "add-content": lambda command: command.operands[:1],
    "out-file": lambda command: command.operands[:1],
    "new-item": lambda command: command.operands[:1],
    "http": _option("-o", "--output"),
    "ddrescue": lambda command: command.operands[1:2],
    "dcfldd": _dd,
    "dc3dd": _dd,
    "pv": _option("-o", "--output"),
    **dict.fromkeys(
        names("partclone.ext4 partclone.dd partclone.restore partclone.ntfs partimage"),
        _after_flag("-o"),
    ),
}

_ALL_OPERANDS = names(
    "cat tac nl less more most bat batcat head tail strings xxd od hexdump hd base64 base32 "
    "uuencode pr fold fmt "
    "column cut paste sort uniq diff sdiff cmp comm vim vi nvim view nano emacs ed ex code subl "
    "zip 7z gzip "
    "bzip2 xz zstd scp sftp pbcopy xclip xsel split csplit expand look rev zcat gpg2john ssh2john "
    "jq yq "
    "get-content gc type mapfile lp lpr mail mutt sendmail ftp tftp smbclient rclone croc wormhole "
    "gpg age sops dos2unix iconv recode enscript a2ps qrencode"
)


def _windows(command: Command) -> list[Word]:
    """Operands of a command that may stand for a path with backslashes, which a shell takes out."""
    from hermes.safety.shell.code.powershell import windows_path

    return [
        word.part(windows_path(word.raw.strip("\"'"), command.scope)) if "\\" in word.raw else word
        for word in command.operands
    ]


READERS: dict[str, Callable[[Command], list[Word]]] = {
    **dict.fromkeys(_ALL_OPERANDS, _operands),
    **dict.fromkeys(("cp", "gcp", "mv", "install", "ln", "rsync"), _sources),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "rg", "ag", "ack", "awk", "gawk", "mawk", "sed", "gsed"),
        _after_script,
    ),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), _tar_input),
    **dict.fromkeys(("get-content", "gc", "type", "select-string"), _windows),
    "dd": _dd_input,
    "curl": _url_data,
    "wget": _url_data,
    "http": lambda command: [
        word.part(word.text.partition("@")[2]) for word in command.operands if "@" in word.text
    ],
    "openssl": _openssl,
    # A signature is checked and a key taken in without anything being shown.
    "gpg": lambda command: (
        []
        if command.has("--verify", "--import", "--show-keys", "--list-packets", "--dearmor")
        else command.operands
    ),
    **dict.fromkeys(("perl", "ruby"), _operands),
    "git": _git,
    **dict.fromkeys(
        names("aws gsutil gcloud azcopy az s3cmd s5cmd mc b2 gh wormhole croc transfer"),
        lambda c: [w for w in c.operands[1:] if "://" not in w.text],
    ),
    **dict.fromkeys(("sqlite3", "sqlite", "litecli", "duckdb"), lambda c: c.operands[:1]),
}


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


def _output_options_git(command: Command) -> list[Word]:
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
    "git": _output_options_git,
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

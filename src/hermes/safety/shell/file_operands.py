"""File operands and options: which words of which programs are read, written or moved away.

A row of the tables below has programs and a selector of words: a slice of the operands such as
`1:`, options whose values are meant, or the name of a function in this module.
"""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from hermes.safety.shell.programs import rows
from hermes.safety.shell.read_only import only_reads
from hermes.safety.shell.scope import names

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from hermes.safety.shell.command import Command
    from hermes.safety.shell.scope import Word

Selector: TypeAlias = "Callable[[Command], list[Word]]"

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
    return _destination(command) if len(command.operands) > 1 else []


def _of(command: Command) -> list[Word]:
    """`dd of=FILE`."""
    return [word.part(word.text[3:]) for word in command.operands if word.text.startswith("of=")]


def _if(command: Command) -> list[Word]:
    return [word.part(word.text[3:]) for word in command.operands if word.text.startswith("if=")]


def _in_place(command: Command) -> list[Word]:
    """Files that `sed -i`, `yq -i` and `perl -pi` change."""
    if command.name in ("perl", "ruby"):
        edits = any(flag[1:2] != "-" and "i" in flag[1:4] for flag in command.flags)
        return command.operands[1:] if edits else []
    edits = any(flag.startswith(("-i", "-I", "--in-place", "--inplace")) for flag in command.flags)
    return _after_script(command) if edits else []


def _after_script(command: Command) -> list[Word]:
    """Operands of `sed`, `awk`, `grep`: the first is the script unless an option gave one."""
    given = command.values("-e", "--expression", "-f", "--file", "--regexp", "--source")
    return command.operands if given else command.operands[1:]


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


def _patch(command: Command) -> list[Word]:
    return [*command.operands[:1], *command.values("-o", "--output", "-d", "--directory")]


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
    return option_values(command, ("-in",))


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


def _cpio(command: Command) -> list[Word]:
    passed = command.operands if command.has("-p", "--pass-through") else []
    return [*command.values("-D", "--directory"), *passed]


def _attached(command: Command) -> list[Word]:
    """`http POST host field@file`."""
    return [word.part(word.text.partition("@")[2]) for word in command.operands if "@" in word.text]


def _shown(command: Command) -> list[Word]:
    """A signature is checked and a key taken in without anything being shown."""
    hides = command.has("--verify", "--import", "--show-keys", "--list-packets", "--dearmor")
    return [] if hides else command.operands


def _uploaded(command: Command) -> list[Word]:
    return [word for word in command.operands[1:] if "://" not in word.text]


def _windows(command: Command) -> list[Word]:
    """Operands of a command that may stand for a path with backslashes, which a shell takes out."""
    from hermes.safety.shell.code.powershell import windows_path

    return [
        word.part(windows_path(word.raw.strip("\"'"), command.scope)) if "\\" in word.raw else word
        for word in command.operands
    ]


# What most programs call the file or folder that they make.
_OUTPUT = re.compile(
    r"--?(?:out(?:put|file|dir|-?file|-?dir(?:ectory)?|put-?(?:file|dir(?:ectory)?|path|folder))?|"
    r"dest(?:ination|dir)?(?:-dir)?|target-dir|report-file|save-?(?:to|dir|path)|export-path|"
    r"junit-?xml|log-?file)\Z"
)
# Options for the place of what a program installs.
_INSTALL_FOLDERS = names("--dir --directory --prefix --root --path --target --to -d")
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
        folders = option_values(command, options)
        if folders and not only_reads(command, opened=False):
            found += folders
    maker = _MAKERS.get(command.name)
    if maker is not None:
        found += maker(command)
    if "install" in command.name:
        found += option_values(command, _INSTALL_FOLDERS)
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


def option_values(command: Command, options: Container[str]) -> list[Word]:
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


def _git_output(command: Command) -> list[Word]:
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


def _places(command: Command) -> list[Word]:
    return [word for word in command.operands if _is_place(word)]


def _module(command: Command) -> list[Word]:
    if command.args[:2] in (["-m", "venv"], ["-m", "virtualenv"]):
        return [word for word in command.words[3:] if _is_place(word)]
    return []


def _copied_out(command: Command) -> list[Word]:
    """`docker cp web:/x here`, `kubectl cp`: the target, unless that is in the container."""
    words = command.operands
    if [word.text for word in words[:1]] == ["cp"] and len(words) == 3:
        return [] if ":" in words[2].text else words[2:]
    if [word.text for word in words[:1]] in (["save"], ["export"]):
        return option_values(command, ("-o",))
    return []


def _last(command: Command) -> list[Word]:
    words = [word for word in command.words[1:] if word.text[:1] != "-"]
    return words[-1:] if len(words) > 1 and _is_place(words[-1]) else []


def _seven_zip(command: Command) -> list[Word]:
    texts = command.args
    if texts[:1] in (["x"], ["e"]):
        return [word.part(word.text[2:]) for word in command.words if word.text.startswith("-o")]
    return command.operands[1:2] if texts[:1] in (["a"], ["u"], ["d"]) else []


def _written(command: Command) -> list[Word]:
    return _places(command) if command.has("--write") else []


def _selector(text: str) -> Selector:
    if text[0] == "-":
        options = tuple(text.split())
        return lambda command: [
            word
            for word in command.values(*options) or option_values(command, options)
            if word.text != "-"
        ]
    if ":" in text:
        cut = slice(*(int(part) if part else None for part in text.split(":")))
        return lambda command: command.operands[cut]
    function: Selector = globals()[f"_{text}"]
    return function


def _table(text: str) -> dict[str, Selector]:
    return {name: _selector(spec) for name, spec in rows(text).items()}


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
WRITERS = _table("""
cp gcp mv gmv install ginstall scp copy-item move-item = destination
git = git_restores
ln gln = link
rsync = rsync
tee sponge touch mkdir mkfifo truncate vim vi nvim nano emacs ed ex rm unlink rmdir shred srm script
  visudo = :
dd dcfldd dc3dd = of
sed gsed awk gawk yq perl ruby = in_place
sort gpg http pv = -o --output
curl = -o --output --output-dir -D --dump-header -c --cookie-jar --trace
wget = -O --output-document -P --directory-prefix -o --output-file -a
tar bsdtar gtar = tar
unzip aria2c = -d
patch = patch
openssl = -out
gcc cc clang go partclone.ext4 partclone.dd partclone.restore partclone.ntfs partimage = -o
gzip gunzip xz unxz bzip2 bunzip2 zstd unzstd lz4 = packed
split ddrescue = 1:2
cpio = cpio
ssh-keygen = -f
chattr setfacl = 1:
set-content add-content out-file new-item = :1
""")
READERS = {
    **dict.fromkeys(_ALL_OPERANDS, _selector(":")),
    **_table("""
cp gcp mv install ln rsync = sources
grep egrep fgrep rg ag ack awk gawk mawk sed gsed = after_script
tar bsdtar gtar = tar_input
get-content gc type select-string = windows
dd = if
curl wget = url_data
http = attached
openssl = openssl
gpg = shown
perl ruby = :
git = git
aws gsutil gcloud azcopy az s3cmd s5cmd mc b2 gh wormhole croc transfer = uploaded
sqlite3 sqlite litecli duckdb = :1
"""),
}
# Words beyond the plain operands that name something a program makes.
_MAKERS = _table("""
git = git_output
python = module
virtualenv black = places
docker podman kubectl = copied_out
ffmpeg convert magick ditto link = last
pandoc gfortran rustc c++ g++ ld as nvcc strace ltrace perf aria2c xh = -o
javac = -d
tcpdump = -w
pg_dump pg_dumpall = -f --file
mysqldump = -r --result-file
yt-dlp = -o -P
zip mknod = :1
7z 7za = seven_zip
mktemp = -p --tmpdir
chmod chown chgrp rename = 1:
jar csplit = -f
prettier = written
""")
# Options that name the folder a program works in, as `cd` before it would.
_FOLDER_OPTIONS = {
    name: tuple(text.split())
    for name, text in rows("""
git = -C --git-dir --work-tree
make gmake = -C --directory
ninja meson go = -C
cmake = -B --build --install
npm = --prefix -C
pnpm = --prefix -C --dir
yarn bun = --cwd
cargo = -C --target-dir
uv = --directory --project
poetry = -C --directory -P --project
pip = -t --target --prefix --root
composer = -d --working-dir
gradle gradlew = -p --project-dir
terraform tofu = -chdir
just = -d --working-directory
""").items()
}

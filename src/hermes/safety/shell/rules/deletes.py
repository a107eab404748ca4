"""Data lost past one named ordinary file below the working directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.delete_targets import covers_everything, kind_of_delete
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import ALWAYS, INSIDE, OUTSIDE, REFUSE, REMOTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.safety.shell.command import Command

_RECURSIVE = ("-r", "-R", "--recursive")


def _deletes(kind: str) -> Callable[[Command], bool]:
    """Whether a delete is of this kind; the rules below share one look at the operands."""

    def test(command: Command) -> bool:
        if "delete" not in command.memo:
            command.memo["delete"] = _kind(command)
        return command.memo["delete"] == kind

    return test


def _kind(command: Command) -> str | None:
    recursive = command.name in ("rimraf", "del-cli") or (
        command.name != "unlink" and command.has(*_RECURSIVE)
    )
    return kind_of_delete(command.operands, command.scope, recursive=recursive, found=command.found)


def _takes_what_it_packs(command: Command) -> bool:
    if command.name == "7z":
        return command.has("-sdel")
    return command.has("-m", "--move") if command.name == "zip" else command.has("--remove-files")


def _mirrors_home(command: Command) -> bool:
    return any(covers_everything(word, command.scope) for word in command.operands[-1:])


def _copies_nothing(command: Command) -> bool:
    return len(command.operands) > 1 and command.operands[0].text == "/dev/null"


def _links_to_nothing(command: Command) -> bool:
    forced = command.has("-f", "--force") and len(command.operands) > 1
    return forced and command.operands[0].text == "/dev/null"


def _is_fed_nothing(command: Command) -> bool:
    if command.has("-a", "--append") or not command.operands:
        return False
    if command.stdin is not None and command.stdin.text == "":
        return True
    return any(
        redirect.operator == "<"
        and redirect.target is not None
        and redirect.target.text == "/dev/null"
        for redirect in command.redirects
    )


def _reads_null(command: Command) -> bool:
    return any(word.text == "if=/dev/null" for word in command.operands)


def _shrinks(command: Command) -> bool:
    sizes = command.values("-s", "--size")
    return not any(size.text.startswith(("+", ">", "%")) for size in sizes)


_DELETERS = "rm unlink srm grm rimraf del-cli"

RULES = (
    Rule(
        "delete.root-or-home",
        ALWAYS,
        "It deletes the root directory or a whole home directory.",
        programs=_DELETERS,
        when=_deletes("delete.root-or-home"),
        severity=REFUSE,
        human_only=True,
        matches=(
            "rm -rf /",
            "rm -fr ~/",
            'rm -r --force -- "$HOME"',
            "cd ~ && rm -rf * .*",
            'rm -rf -- "$UNSET/"*',
            "find ~ -delete",
            "cd && git clean -fdx",
            "mv ~ /dev/null",
        ),
        passes=(
            "rm -rf ~/project/build",
            "rm -rf ./build",
            "rm -rf /tmp/x",
            "find ~ -name x",
            "ls /",
        ),
    ),
    Rule(
        "delete.recursive",
        INSIDE,
        "It deletes a directory with everything in it.",
        programs=_DELETERS,
        when=_deletes("delete.recursive"),
        matches=("rm -rf build", "rm --recursive x", "rm -fR -- a b", "rm --rec x", "sudo rm -r x"),
        passes=("rm build.log", "git rm --cached -r x", "echo rm -rf build", "rm -- -r"),
    ),
    Rule(
        "delete.glob",
        INSIDE,
        "It deletes every file that fits a pattern.",
        programs=_DELETERS,
        when=_deletes("delete.glob"),
        matches=("rm *.log", "rm -f data/*", "rm ?.txt"),
        passes=("rm '*.log'", "rm a.log", "ls *.log"),
    ),
    Rule(
        "delete.several",
        INSIDE,
        "It deletes more than one file.",
        programs=_DELETERS,
        when=_deletes("delete.several"),
        matches=("rm a.txt b.txt", "rm -f one two three", "rm {a,b}.txt"),
        passes=("rm a.txt", "rm -f a.txt", "rm 'a b.txt'"),
    ),
    Rule(
        "delete.each",
        INSIDE,
        "It deletes whatever a search, a list or a loop turns up.",
        programs=_DELETERS,
        when=_deletes("delete.each"),
        matches=(
            "find . -name '*.tmp' -delete",
            "find . -type f -exec rm {} +",
            "git ls-files -o | xargs rm",
            "for f in a b; do rm $f; done",
            "fd -e pyc -x rm",
        ),
        passes=(
            "find . -name '*.tmp'",
            "find . -exec grep x {} +",
            "for f in a b; do cat $f; done",
        ),
    ),
    Rule(
        "delete.unknown",
        INSIDE,
        "What it deletes is decided only when it runs.",
        programs=_DELETERS,
        when=_deletes("delete.unknown"),
        matches=('rm "$FILE"', "rm $(cat list)", "rm src/$NAME"),
        passes=("f=a.txt; rm $f", "t=$(mktemp); rm $t", "rm a.txt"),
    ),
    Rule(
        "delete.outside",
        OUTSIDE,
        "It deletes a file outside the working directory.",
        programs=_DELETERS,
        when=_deletes("delete.outside"),
        matches=("rm ~/notes.txt", "rm /srv/data.db", "cd .. && rm other.txt"),
        passes=("rm notes.txt", "rm /tmp/x.log", "rm src/../notes.txt"),
    ),
    Rule(
        "delete.moved-home",
        OUTSIDE,
        "It moves a whole home directory or the root away.",
        matches=("mv ~ /tmp/old", 'mv "$HOME" /backup', "mv ~/* /tmp/"),
        passes=("mv a b", "mv ~/a.txt ~/b.txt", "mv src/* lib/"),
    ),
    Rule(
        "delete.emptied",
        INSIDE,
        "It empties a file.",
        matches=(
            ": > app.log",
            "> app.log",
            "cat /dev/null > app.log",
            "echo -n > app.log",
            "true >| x",
        ),
        passes=(
            "echo hi > app.log",
            "make > build.log",
            ": >> app.log",
            "ls > /dev/null",
            "true > /dev/null",
        ),
    ),
    Rule(
        "delete.truncated",
        INSIDE,
        "It cuts a file to a size and loses the rest.",
        programs="truncate gtruncate",
        when=_shrinks,
        matches=("truncate -s 0 app.db", "truncate --size=0 a b", "sudo truncate -s0 x"),
        passes=("truncate -s +1M sparse.img", "ls app.db", "echo truncate -s 0 x"),
    ),
    Rule(
        "delete.overwritten",
        INSIDE,
        "It overwrites a file with nothing.",
        programs="cp install",
        when=_copies_nothing,
        matches=("cp /dev/null app.log", "cp -f /dev/null x", "install /dev/null x"),
        passes=("cp a b", "cp x /dev/null", "cat /dev/null"),
    ),
    Rule(
        "delete.linked-away",
        INSIDE,
        "It replaces a file by a link to nothing.",
        programs="ln gln",
        when=_links_to_nothing,
        matches=("ln -sf /dev/null app.log", "ln -fs /dev/null a", "ln --force -s /dev/null x"),
        passes=("ln -s a b", "ln -sf a b", "ln -s /dev/null x"),
    ),
    Rule(
        "delete.emptied-by-tee",
        INSIDE,
        "It empties a file.",
        programs="tee sponge",
        when=_is_fed_nothing,
        matches=(
            "tee a.db < /dev/null",
            "tee a b </dev/null",
            "sudo tee x < /dev/null",
            "cat /dev/null | tee a.db",
        ),
        passes=("tee -a a.db < /dev/null", "tee a < b", "tee < /dev/null"),
    ),
    Rule(
        "delete.overwritten-by-dd",
        INSIDE,
        "It overwrites a file with nothing.",
        programs="dd",
        when=_reads_null,
        matches=("dd if=/dev/null of=app.log", "dd of=x if=/dev/null", "sudo dd if=/dev/null of=x"),
        passes=("dd if=a of=b", "dd if=/dev/zero of=test.img bs=1M count=1", "dd --help"),
    ),
    Rule(
        "delete.shredded",
        INSIDE,
        "It destroys the contents of files beyond recovery.",
        programs="shred wipe srm scrub bleachbit",
        matches=("shred -u key.txt", "wipe -rf dir", "srm a.txt"),
        passes=("rm a.txt", "grep shred x", "shred --help"),
    ),
    Rule(
        "delete.mirrored",
        INSIDE,
        "It deletes at the target whatever the source does not have.",
        programs="rsync rclone",
        flags="--delete --delete-before --delete-after --delete-during --delete-excluded --del "
        "--remove-source-files --delete-delay --delete-missing-args",
        unless="-n --dry-run",
        matches=(
            "rsync -a --delete a/ b/",
            "rsync -av --delete-after src/ host:/srv/",
            "rsync -a --remove-source-files a/ b/",
        ),
        passes=("rsync -av a/ b/", "rsync -avn --delete a/ b/", "rsync --dry-run --delete a/ b/"),
    ),
    Rule(
        "delete.mirrored-remote",
        REMOTE,
        "It deletes at a remote target whatever the source does not have.",
        programs="rsync",
        flags="--delete --delete-before --delete-after --delete-during --delete-excluded --del",
        unless="-n --dry-run",
        when=lambda command: any(
            ":" in word.text.partition("/")[0] for word in command.operands[-1:]
        ),
        matches=(
            "rsync -a --delete a/ host:/srv/",
            "rsync -av --del ./ me@host:site",
            "rsync -r --delete a/ backup::module/x",
        ),
        passes=("rsync -a --delete a/ b/", "rsync -a a/ host:/srv/", "rsync -n --delete a h:/b"),
    ),
    Rule(
        "delete.mirrored-home",
        ALWAYS,
        "It would empty the root or a home directory by mirroring something else onto it.",
        programs="rsync",
        flags="--delete --delete-before --delete-after --delete-during --delete-excluded --del",
        unless="-n --dry-run",
        when=_mirrors_home,
        severity=REFUSE,
        human_only=True,
        matches=(
            "rsync -a --delete empty/ ~/",
            "rsync -r --delete e/ /",
            'rsync --delete -a e/ "$HOME"',
        ),
        passes=("rsync -a --delete a/ b/", "rsync -a a/ ~/", "rsync -n --delete a/ ~/"),
    ),
    Rule(
        "delete.remote-sync",
        REMOTE,
        "It deletes at the target whatever the source does not have.",
        programs="rclone",
        sub=("sync", "purge", "delete", "deletefile", "rmdirs", "move", "cleanup"),
        unless="-n --dry-run",
        matches=("rclone sync a remote:b", "rclone purge remote:b", "rclone delete remote:b"),
        passes=("rclone copy a remote:b", "rclone sync --dry-run a b:c", "rclone ls remote:b"),
    ),
    Rule(
        "delete.archived",
        INSIDE,
        "It deletes the files that it has packed.",
        programs="tar bsdtar gtar zip 7z",
        when=lambda command: _takes_what_it_packs(command),
        matches=("tar czf a.tgz --remove-files src", "zip -rm a.zip src", "7z a a.7z src -sdel"),
        passes=("tar czf a.tgz src", "zip -r a.zip src", "7z a -mx=9 a.7z src"),
    ),
    Rule(
        "delete.archived-home",
        ALWAYS,
        "It deletes a whole home directory or the root after packing it.",
        programs="tar bsdtar gtar zip 7z",
        when=lambda command: (
            _takes_what_it_packs(command)
            and any(covers_everything(word, command.scope) for word in command.operands)
        ),
        severity=REFUSE,
        human_only=True,
        matches=(
            'tar cf /dev/null --remove-files "$HOME"',
            "zip -rm /tmp/a.zip ~",
            "7z a /tmp/a.7z ~/* -sdel",
        ),
        passes=("tar cf a.tar --remove-files src", 'tar czf /tmp/a.tgz "$HOME"', "zip -r a.zip ~"),
    ),
    Rule(
        "delete.trash",
        OUTSIDE,
        "It empties the trash.",
        programs="trash-empty gio",
        when=lambda command: command.name == "trash-empty" or command.has("--empty"),
        matches=("trash-empty", "gio trash --empty", "trash-empty 30"),
        passes=("gio trash a.txt", "trash-list", "gio info a.txt"),
    ),
)

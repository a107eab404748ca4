"""Git: local work, remote state, configuration and hooks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.path_classes import is_home, is_root
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import ALWAYS, INSIDE, OUTSIDE, REFUSE, REMOTE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command
    from hermes.safety.shell.word_builder import Word


# A single name is a branch or a file; with a usual suffix it is a file.
_FILE = re.compile(r"\.[a-z][a-z0-9]{0,4}\Z", re.I)


# A substitution that puts a colon before what it lists.
_REMADE = re.compile(r"\|.*\b(?:sed|awk|perl|xargs|printf)\b.*:", re.S)


def _texts(command: Command) -> list[str]:
    return [word.text for word in command.operands]


def _discards(command: Command) -> bool:
    texts = _texts(command)
    sub = texts[0] if texts else ""
    if sub == "reset":
        return command.has("--hard", "--merge", "--keep")
    if sub == "checkout":
        if command.has("-b", "-B", "--orphan") and not command.has("-f", "--force"):
            return command.has("-B")
        if command.has("-f", "--force"):
            return True
        if command.has("-p", "--patch"):
            return False
        if len(texts) == 2 and _FILE.search(texts[1]) and "-t" not in command.flags:
            return True
        # `git checkout -- f`, `git checkout HEAD f`, `git checkout .`: the working copy is lost.
        return "--" in command.args[:-1] or texts[1:2] in (["."], ["*"]) or len(texts) > 2
    if sub == "restore":
        return not (
            command.has("--staged", "-S") and not command.has("--worktree", "-W")
        ) and not command.has("-p", "--patch")
    if sub == "switch":
        return command.has("-f", "--force", "--discard-changes", "-C", "--force-create")
    if sub == "stash":
        return texts[1:2] in (["drop"], ["clear"])
    if sub == "branch":
        if command.has("-D", "-M", "-C") or (
            command.has("-d", "--delete", "-m", "--move") and command.has("-f", "--force")
        ):
            return True
        return command.has("-f", "--force") and len(texts) > 1
    if sub == "worktree":
        return texts[1:2] == ["remove"] and command.has("-f", "--force")
    if sub == "clean":
        return command.has("-f", "--force", "-x", "-X", "-d") and not command.has("-n", "--dry-run")
    if sub == "rm":
        return not command.has("--cached", "-n", "--dry-run") and (
            command.has("-r", "-f", "--force")
            or len(texts) > 2
            or command.found
            or any(w.glob for w in command.operands)
        )
    if sub == "reflog":
        return texts[1:2] in (["expire"], ["delete"])
    if sub == "gc":
        return any(
            flag.startswith("--prune") and "never" not in flag for flag in command.flags
        ) or (command.has("--aggressive") and command.has("--prune"))
    if sub == "tag":
        return command.has("-d", "--delete") or (command.has("-f", "--force") and len(texts) > 1)
    if sub in ("filter-branch", "filter-repo"):
        return True
    if sub == "update-ref":
        return command.has("-d", "--delete", "--stdin") or len(texts) > 2
    if sub == "symbolic-ref":
        return command.has("-d", "--delete")
    if sub == "prune":
        return not command.has("-n", "--dry-run")
    if sub == "submodule":
        return texts[1:2] == ["deinit"] and command.has("-f", "--force")
    if sub == "read-tree":
        return command.has("--reset") or (command.has("-u") and command.has("-m"))
    if sub == "checkout-index":
        return command.has("-f", "--force")
    if sub == "notes":
        return texts[1:2] in (["remove"], ["prune"])
    if sub == "replace":
        return command.has("-d", "--delete")
    if sub in ("cherry-pick", "merge", "rebase", "am", "revert"):
        return False
    return sub == "replay"


# A setting by which every later push overwrites, or makes the other side the same as here.
_FORCING = re.compile(
    r"remote\.[^=]+\.(?:push=\+|push=:[^=]|mirror(?:=(?!false|0|no|off)|\Z))", re.I
)


def _sets_force(texts: list[str]) -> bool:
    """`git config remote.origin.push +main`: the same as forcing each push from now on."""
    pair = [text for text in texts[1:] if text not in ("set", "add")][:2]
    return len(pair) == 2 and _FORCING.match("=".join(pair)) is not None


def _rewrites_remote(command: Command) -> bool:
    texts = _texts(command)
    if texts[:1] == ["config"]:
        return _sets_force(texts)
    if texts[:1] == ["http-push"]:
        return command.has("--force", "-d", "-D") and not command.has("--dry-run")
    if texts[:1] in (["push"], ["send-pack"]):
        if command.has("-n", "--dry-run"):
            return False
        if any(_FORCING.match(word.text) for word in command.values("-c")):
            return True
        if command.has(
            "-f",
            "--force",
            "--force-with-lease",
            "--force-if-includes",
            "-d",
            "--delete",
            "--mirror",
            "--prune",
        ):
            return True
        if any(flag.startswith("--force") for flag in command.flags):
            return True
        if any(text.startswith(("+", ":")) and len(text) > 1 for text in texts[1:]):
            return True
        # References that another command lists may be of any kind.
        return any(_may_delete(word, command) for word in command.operands[2:])
    return False


def _may_delete(word: Word, command: Command) -> bool:
    if word.known:
        return False
    return command.found or bool(_REMADE.search(word.raw))


def _cleans_home(command: Command) -> bool:
    if (
        _texts(command)[:1] != ["clean"]
        or command.has("-n", "--dry-run")
        or not command.has("-f", "--force")
    ):
        return False
    if not command.has("-d"):
        return False
    cwd = command.scope.cwd
    return is_root(cwd) or is_home(cwd, command.scope)


def _config_file(command: Command) -> str:
    """The file after `git config --file`, for which there is no other sign."""
    args = command.args
    for index, arg in enumerate(args):
        if arg in ("-f", "--file") and index + 1 < len(args):
            return args[index + 1]
        if arg.startswith("--file="):
            return arg[7:]
    return ""


def _plants(command: Command) -> bool:
    texts = _texts(command)
    if texts[:1] != ["config"]:
        return False
    given = _config_file(command)
    texts = [text for text in texts if text != given]
    names = [text.lower() for text in texts[1:] if "." in text]
    reading = command.has(
        "--get", "--get-all", "--list", "-l", "--get-regexp", "--unset", "--show-origin"
    )
    if reading or len([text for text in texts[1:] if text != "set"]) < 2:
        return False
    wide = command.has("--global", "--system") or given.startswith((command.scope.home, "/etc/"))
    for name in names[:1]:
        if name in (
            "core.hookspath",
            "core.fsmonitor",
            "core.sshcommand",
            "core.gitproxy",
            "init.templatedir",
        ):
            return True
        if wide and (
            name.startswith(
                (
                    "alias.",
                    "credential",
                    "url.",
                    "include",
                    "filter.",
                    "http.",
                    "gpg",
                    "diff.external",
                    "uploadpack",
                    "protocol.",
                )
            )
            or name
            in (
                "core.pager",
                "core.editor",
                "core.askpass",
                "sequence.editor",
                "core.attributesfile",
            )
        ):
            return not (name.startswith("alias.") and not any("!" in text for text in texts))
    return False


RULES = (
    Rule(
        "git.discards-work",
        INSIDE,
        "It throws away uncommitted or unreferenced work.",
        programs="git",
        when=_discards,
        matches=(
            "git reset --hard",
            "git clean -fdx",
            "git checkout -- .",
            "git restore src",
            "git stash drop",
            "git branch -D x",
        ),
        passes=(
            "git reset HEAD~1",
            "git clean -n",
            "git checkout -b x",
            "git restore --staged x",
            "git stash",
            "git branch -d x",
            "git checkout main",
        ),
    ),
    Rule(
        "delete.home-cleaned",
        ALWAYS,
        "It deletes everything in a home directory or the root that git does not track.",
        programs="git",
        when=_cleans_home,
        severity=REFUSE,
        human_only=True,
        matches=("cd ~ && git clean -fdx", "git -C ~ clean -xdf", "cd / && git clean -ffd"),
        passes=("git clean -fdx", "cd ~ && git clean -n", "cd ~ && git status"),
    ),
    Rule(
        "git.rewrites-remote",
        REMOTE,
        "It rewrites or deletes what others have on the server.",
        programs="git",
        when=_rewrites_remote,
        matches=(
            "git push --force",
            "git push -f origin main",
            "git push origin +main",
            "git push origin :old",
            "git push --force-with-lease",
            "git push origin --delete x",
            "git -c remote.origin.push=+refs/heads/main push origin",
            "git -c remote.origin.mirror=true push",
            "git config remote.origin.push +refs/heads/*:refs/heads/*",
            "git send-pack --force host:repo.git main",
            "git branch -r | sed s#origin/#:# | xargs git push origin",
        ),
        passes=(
            "git push",
            "git push origin main",
            "git push -u origin x",
            "git push --tags",
            "git push --force --dry-run",
            "git -c push.default=current push",
            "git -c remote.origin.push=refs/heads/main push origin",
            "git config --get remote.origin.push",
            "git send-pack --dry-run --force host:repo.git main",
        ),
    ),
    Rule(
        "git.hooks",
        OUTSIDE,
        "It makes git run a program of someone's choice from now on.",
        programs="git",
        when=_plants,
        matches=(
            "git config --global core.hooksPath /tmp/h",
            "git config core.fsmonitor /tmp/x",
            "git config --global alias.st '!sh /tmp/x'",
            "git config --file ~/.gitconfig core.hooksPath ~/.hooks",
        ),
        passes=(
            "git config user.name me",
            "git config --get core.hooksPath",
            "git config --global user.email a@b.c",
        ),
    ),
    Rule(
        "git.command-transport",
        OUTSIDE,
        "It fetches through a command that the address itself names.",
        programs="git",
        when=lambda command: (
            any(word.text.startswith("ext::") for word in command.operands)
            or command.has("--upload-pack", "--receive-pack")
        ),
        matches=(
            "git clone 'ext::sh -c id'",
            "git fetch ext::x",
            "git clone --upload-pack='touch x' a b",
        ),
        passes=("git clone https://example.com/a.git", "git fetch origin", "git pull"),
    ),
    Rule(
        "git.other-systems",
        INSIDE,
        "It throws away work in another version control system.",
        programs="svn hg jj fossil bzr",
        when=lambda command: (
            _texts(command)[:1]
            in (["revert"], ["strip"], ["purge"], ["rollback"], ["abandon"], ["cleanup"])
            or (_texts(command)[:1] in (["update"], ["up"]) and command.has("-C", "--clean"))
        ),
        matches=("svn revert -R .", "hg update -C", "jj abandon"),
        passes=("svn status", "hg update", "jj log"),
    ),
    Rule(
        "git.other-remote",
        REMOTE,
        "It rewrites or deletes the shared history of another version control system.",
        programs="svn hg jj fossil bzr",
        when=lambda command: (
            (_texts(command)[:1] == ["push"] and command.has("-f", "--force", "--deleted"))
            or (
                _texts(command)[:1] in (["delete"], ["del"], ["rm"], ["remove"])
                and any("://" in text for text in _texts(command))
            )
        ),
        matches=(
            "hg push --force",
            "svn delete https://svn.example.com/trunk -m x",
            "jj push --deleted",
        ),
        passes=("hg push", "svn delete old.c", "svn commit -m x"),
    ),
)

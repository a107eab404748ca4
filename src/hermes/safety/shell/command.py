"""`Command`: a simple command with its program, words, options, input and redirections."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from hermes.safety.shell.scope import HOLE, UNSET, Origin, names

if TYPE_CHECKING:
    from hermes.safety.shell.scope import Scope
    from hermes.safety.shell.stream import Stream
    from hermes.safety.shell.word_builder import Word


_AWS = "--profile --region --output --endpoint-url --query --ca-bundle --cli-read-timeout"
_KUBE = (
    "-n --namespace --context --kubeconfig --cluster --user -s --server --token --as -o --output "
    "-l "
    "--selector -f --filename -c --container --timeout --cascade --grace-period -k --kustomize "
    "--replicas --field-selector"
)
_DOCKER = (
    "-H --host -c --context --config -l --log-level -f --file -p --project-name --env-file "
    "--profile"
)

_TABLE = {
    "git": "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env",
    "kubectl": _KUBE,
    "oc": _KUBE,
    "k9s": _KUBE,
    "helm": "-n --namespace --kube-context --kubeconfig --set -f --values --version --timeout",
    "docker": _DOCKER,
    "podman": _DOCKER,
    "nerdctl": _DOCKER,
    "docker-compose": _DOCKER,
    "podman-compose": _DOCKER,
    "aws": _AWS,
    "gcloud": "--project --zone --region --format --filter --account --configuration",
    "az": "--name -n --resource-group -g --subscription -o --output --query",
    "gsutil": "-h -o",
    "gh": "-R --repo --hostname -X --method -f -F -H --jq -q",
    "glab": "-R --repo -X -f -F -H",
    "terraform": "-target -var -var-file -state -lock-timeout",
    "tofu": "-target -var -var-file -state -lock-timeout",
    "npm": "--prefix -w --workspace --registry --loglevel --tag --otp",
    "pnpm": "--prefix -C --dir --filter -F --registry",
    "yarn": "--cwd --registry",
    "pip": (
        "-r -c -t --target --prefix --root -i --index-url --extra-index-url -e --editable --python"
    ),
    "cargo": "--manifest-path --target-dir -p --package --features -j --color --registry",
    "systemctl": (
        "-H --host -M --machine -t --type -p --property -n --lines -o --output -s --signal "
        "--kill-who"
    ),
    "loginctl": "-H -M",
    "apt": "-o -c -t --option --config-file --target-release",
    "apt-get": "-o -c -t --option --config-file --target-release",
    "aptitude": "-o -t",
    "dnf": "-c -x --repo --enablerepo --disablerepo --installroot",
    "yum": "-c -x --repo --enablerepo --disablerepo --installroot",
    "pacman": "-r -b --root --dbpath --config",
    "chmod": "--reference",
    "chown": "--reference --from",
    "chgrp": "--reference",
    "cp": "-t --target-directory -S --suffix",
    "mv": "-t --target-directory -S --suffix",
    "ln": "-t --target-directory -S --suffix",
    "install": "-t --target-directory -m --mode -o --owner -g --group -S --suffix",
    "truncate": "-s --size -r --reference",
    "shred": "-n --iterations -s --size --random-source",
    "kill": "-s -n --signal -q",
    "pkill": "-u -U -G -g -t -P -s --signal --uid --euid --parent --session --terminal",
    "killall": "-s --signal -u --user -o -y -n --ns",
    "rsync": (
        "-e --rsh --exclude --include --exclude-from --include-from --filter -f --rsync-path "
        "--bwlimit "
        "--max-delete --log-file --password-file --backup-dir --partial-dir --temp-dir -T --chmod "
        "--chown "
        "--files-from --port --timeout --out-format --compare-dest --copy-dest --link-dest --info "
        "-B"
    ),
    "scp": "-i -P -F -o -c -J -l -S",
    "sftp": "-i -P -F -o -c -J -b -S",
    "ssh": "-i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B",
    "autossh": "-M -i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B",
    "man": "-P --pager -H --html -M -S -L",
    "curl": (
        "-o --output -d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F "
        "--form -T "
        "--upload-file -H --header -X --request -u --user -A --user-agent -e --referer -b "
        "--cookie -c "
        "--cookie-jar -K --config -m --max-time --connect-timeout --retry --retry-delay -x "
        "--proxy -E --cert "
        "--key --cacert --output-dir -D --dump-header -w --write-out --url -r --range --resolve -C "
        "--form-string --interface --limit-rate -Y -y -z --unix-socket -Q --netrc-file --variable "
        "--expand-url"
    ),
    "wget": (
        "-O --output-document -P --directory-prefix -o --output-file -a --append-output -t "
        "--tries -T --timeout "
        "-U --user-agent --header --post-data --post-file --body-data --body-file --method -i "
        "--input-file -e "
        "--execute --user --password -w --wait -l --level -A -R -D -I -X --load-cookies "
        "--use-askpass"
    ),
    "http": "-o --output -a --auth --session --timeout --proxy",
    "https": "-o --output -a --auth --session --timeout --proxy",
    "grep": (
        "-e --regexp -f --file -m --max-count -A -B -C --include --exclude --exclude-dir --color -d"
    ),
    "rg": (
        "-e --regexp -f --file -m -A -B -C -g --glob -t --type -T -j -r --replace --max-depth -M "
        "--color"
    ),
    "sed": "-e --expression -f --file -l --line-length",
    "awk": "-f --file -v --assign -F --field-separator -i --include -l -e --source -E --exec",
    "head": "-n --lines -c --bytes",
    "tail": "-n --lines -c --bytes -s --pid",
    "sort": "-k --key -t --field-separator -o --output -S -T --parallel --files0-from",
    "cut": "-d --delimiter -f --fields -c --characters -b",
    "tar": (
        "-f --file -C --directory -T --files-from -X --exclude-from --exclude -I "
        "--use-compress-program "
        "--to-command --checkpoint-action --transform --xform -b --blocking-factor -N --newer -g "
        "-F "
        "--info-script --new-volume-script --rsh-command --rmt-command --owner --group --mode "
        "--strip-components"
    ),
    "unzip": "-d -x -P",
    "7z": "-o -p",
    "zip": "-x -i -b -t -P",
    "patch": "-i --input -o --output -d --directory -p --strip -r --reject-file -B -D -F",
    "tee": "--output-error",
    "dd": "",
    "psql": (
        "-c --command -f --file -h --host -p --port -U --username -d --dbname -v --set -o "
        "--output -L "
        "--log-file -F -P -R -T"
    ),
    "mysql": (
        "-e --execute -h --host -P --port -u --user -D --database -S --socket "
        "--default-character-set"
    ),
    "sqlite3": "-cmd -init -separator -newline -nullvalue -mmap -vfs",
    "mongo": "--eval --host --port -u --username -p --password --authenticationDatabase -f --file",
    "redis-cli": "-h -p -a -n -u --user --pass -s -r -i --eval --pipe-timeout "
    "--pattern --type --count --rdb --sni --cacert --cert --key --tls-ciphers -c -d -x -X",
    "docker-machine": "",
    "useradd": "-d -g -G -s -u -c -e -k -p -b",
    "nc": "-p -s -w -i -x -X -q -e -c -g -G -I -O -P -T -V -b -m -o --source-port --exec --sh-exec",
    "socat": "-T -t -b",
    "crontab": "-u -c",
    "hermes": "--profile --home --config --model -m --toolset --session",
    "bash": "-o -O --rcfile --init-file",
    "mount": "-t -o -L -U",
    "openssl": "",
    "gpg": "-o --output -r --recipient -u --local-user --homedir --passphrase --keyserver",
    "journalctl": (
        "-u --unit -n --lines --since --until --vacuum-time --vacuum-size --vacuum-files -o -p -t "
        "-D"
    ),
    "iptables": "-t -w",
    "ip6tables": "-t -w",
    "vault": "-address -namespace -format -field",
    "pulumi": "-s --stack -C --cwd",
    "heroku": "-a --app -r --remote",
    "fly": "-a --app -c --config",
    "flyctl": "-a --app -c --config",
    "ansible": "-i -m -a -e -l -u -f -c --module-name --args --inventory --connection",
    "ansible-playbook": "-i -e -l -u -f -t --tags",
    "make": "-f --file -C --directory -j -l -o -W -I --eval -E",
    "just": "-f --justfile -d --working-directory --shell --shell-arg --set -c",
    "code": "--user-data-dir --extensions-dir -g --goto -d",
    "vim": "-c --cmd -S -s -u -U -i -T -w -W",
    "ex": "-c --cmd -S -u -i",
    "split": "-l --lines -b --bytes -n --number -C -a --suffix-length --filter",
    "cpio": "-D --directory -F -I -O -H -E",
    "pax": "-s -f -x -b -o -T",
    "diskutil": "",
    "sgdisk": "",
}
VALUED: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _TABLE.items()}
_SAME = {
    "mariadb": "mysql",
    "vi": "vim",
    "nvim": "vim",
    "view": "vim",
    "mongosh": "mongo",
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "egrep": "grep",
    "fgrep": "grep",
    "gsed": "sed",
    "bsdtar": "tar",
    "gtar": "tar",
    "ncat": "nc",
    "netcat": "nc",
    "minikube-kubectl": "kubectl",
    "microk8s.kubectl": "kubectl",
    "doas": "sudo",
    "cockroach": "psql",
    "valkey-cli": "redis-cli",
    "sh": "bash",
    "zsh": "bash",
    "dash": "bash",
    "ksh": "bash",
}
for _name, _like in _SAME.items():
    if _like in VALUED:
        VALUED[_name] = VALUED[_like]
NO_VALUES: frozenset[str] = frozenset()


_VERSIONED = re.compile(
    r"(python|pypy|perl|ruby|php|lua|luajit|node|nodejs|pip|bash|tclsh|clang|"
    r"gcc)-?\d+(?:\.\d+)*(?:w|\.exe)?\Z"
)

_CMDLET_VERBS = names(
    "add clear copy disable enable format get initialize invoke move new out register remove "
    "rename reset restart set start stop uninstall unregister"
)


class Redirect:
    """One redirection: its operator, its target word, or the text of a here-document."""

    __slots__ = ("copies", "descriptor", "operator", "origin", "stream", "target")

    def __init__(self, operator: str, descriptor: str, target: Word | None, origin: Origin) -> None:
        self.operator = operator
        self.descriptor = descriptor
        self.target = target
        self.origin = origin
        self.stream: Stream | None = None
        # The descriptor that this one goes along with, or a dash when it is closed.
        self.copies = ""

    @property
    def writes(self) -> bool:
        """Whether the target is opened for writing (and is not another descriptor)."""
        return ">" in self.operator and self.target is not None

    @property
    def empties(self) -> bool:
        """Whether the target loses what it had before."""
        return self.operator in (">", ">|", "&>", ">&")


class Command:
    """A program with its arguments, after every expansion."""

    __slots__ = (
        "_args",
        "_flags",
        "_operands",
        "_texts",
        "_values",
        "assignments",
        "found",
        "memo",
        "name",
        "redirects",
        "scope",
        "stdin",
        "words",
    )

    name: str
    scope: Scope
    found: bool

    def __init__(
        self,
        words: list[Word],
        scope: Scope,
        *,
        stdin: Stream | None = None,
        redirects: list[Redirect] | None = None,
        assignments: list[tuple[str, Word]] | None = None,
        found: bool = False,
    ) -> None:
        self.words = words
        self.name = program_name(words[0].text)
        self.scope = scope
        self.stdin = stdin
        self.redirects = redirects or []
        self.assignments = assignments or []
        self.found = found
        # What rules of one family work out once for all of them.
        self.memo: dict[str, str | None] = {}
        self._args: list[str] | None = None
        self._flags: set[str] | None = None
        self._values: dict[str, list[Word]] = {}
        self._operands: list[Word] = []
        self._texts: list[str] | None = None

    @property
    def origin(self) -> Origin:
        """From the program to the last argument, in the given text."""
        first, last = self.words[0].origin, self.words[-1].origin
        return Origin(first.start, max(first.end, last.end))

    @property
    def text(self) -> str:
        """The command in one line, for people."""
        line = " ".join(word.text[:200] for word in self.words[:40])
        return line.replace(HOLE, "…").replace(UNSET, "…")[:400]

    @property
    def args(self) -> list[str]:
        """The arguments after the program."""
        if self._args is None:
            self._args = [word.text for word in self.words[1:]]
        return self._args

    @property
    def flags(self) -> set[str]:
        """Options as given and, for clusters such as `-rf`, each letter on its own."""
        if self._flags is None:
            self._read_options()
        return self._flags  # type: ignore[return-value]

    @property
    def operands(self) -> list[Word]:
        """Arguments that are neither options nor values of options."""
        if self._flags is None:
            self._read_options()
        return self._operands

    @property
    def texts(self) -> list[str]:
        """The operands as text, without the `compose` of a container program."""
        if self._texts is None:
            self._texts = [word.text for word in self.operands]
            if self._texts[:1] == ["compose"]:
                del self._texts[0]
        return self._texts

    def after(self, word: Word) -> list[Word]:
        """Every word after one of them, options and all: the command that a program starts."""
        return self.words[next(i for i, own in enumerate(self.words) if own is word) + 1 :]

    def values(self, *names: str) -> list[Word]:
        """The values given to any of these options."""
        if self._flags is None:
            self._read_options()
        return [word for name in names for word in self._values.get(name, ())]

    def has(self, *names: str) -> bool:
        """Whether one of these options was given; long ones may be shortened as getopt allows."""
        flags = self.flags
        for name in names:
            if name in flags:
                return True
            if name.startswith("--"):
                shortest = 3 if self.name == "rm" else 5
                for flag in flags:
                    if len(flag) >= shortest and name.startswith(flag) and flag.startswith("--"):
                        return True
        return False

    def _read_options(self) -> None:
        valued = VALUED.get(self.name, NO_VALUES)
        flags: set[str] = set()
        words = self.words
        index, size = 1, len(words)
        while index < size:
            word = words[index]
            text = word.text
            index += 1
            if len(text) < 2 or text[0] != "-":
                self._operands.append(word)
                continue
            if text == "--":
                self._operands.extend(words[index:])
                break
            option, _, value = text.partition("=")
            if value:
                flags.add(option)
                self._values.setdefault(option, []).append(word.part(value))
                if text[1] == "-":
                    continue
            flags.add(text)
            if text in valued:
                if index < size:
                    self._values.setdefault(text, []).append(words[index])
                    index += 1
                continue
            if text[1] == "-" or (len(text) > 3 and self._is_cmdlet()):
                continue
            index = self._read_cluster(word, flags, valued, index)
        self._flags = flags

    def _is_cmdlet(self) -> bool:
        """Whether options are words after a single dash, as PowerShell spells them."""
        verb, dash, _ = self.name.partition("-")
        return bool(dash) and verb in _CMDLET_VERBS

    def _read_cluster(self, word: Word, flags: set[str], valued: frozenset[str], index: int) -> int:
        text = word.text
        for position, letter in enumerate(text[1:], 1):
            flag = "-" + letter
            flags.add(flag)
            if flag in valued:
                rest = text[position + 1 :]
                if rest:
                    self._values.setdefault(flag, []).append(word.part(rest))
                elif index < len(self.words):
                    self._values.setdefault(flag, []).append(self.words[index])
                    index += 1
                break
        return index


def program_name(text: str) -> str:
    """The program behind a path or a versioned name: `/usr/bin/python3.12` is `python`."""
    name = posixpath.basename(text.rstrip("/")) if "/" in text else text
    if "\\" in name:
        name = name.rpartition("\\")[2]
    if name.isalnum() and name.islower() and not name[-1].isdigit():
        return name
    lowered = name.lower()
    if lowered.endswith((".exe", ".cmd", ".com")):
        name = lowered = lowered[:-4]
    found = _VERSIONED.match(lowered)
    if found:
        return found.group(1)
    if lowered.startswith("zf_"):
        # The builtins of a shell with file modules loaded.
        return lowered[3:]
    if lowered.startswith(("ld-linux", "ld-musl", "ld64.so", "ld.so")):
        return "ld.so"
    if lowered.startswith(("mkfs.", "fsck.", "newfs_", "mke2fs")):
        return "mkfs" if not lowered.startswith("fsck") else "fsck"
    # Case-insensitive file systems and PowerShell both run `RM` and `remove-item` alike.
    return lowered

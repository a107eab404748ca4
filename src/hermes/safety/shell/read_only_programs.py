"""Read-only programs, as data: commands that an undo history may leave out."""

from __future__ import annotations

from hermes.safety.shell.scope import names

# Without any option that writes or starts something.
PLAIN = names(
    "ls dir vdir cat tac nl head tail wc cut paste join comm cmp diff diff3 fold fmt expand "
    "unexpand rev od hexdump hd strings stat du df basename dirname realpath readlink pwd id "
    "whoami groups users who w uname cal uptime free vmstat lscpu lsblk lsusb lspci ps pgrep pidof "
    "pstree printenv locale getconf getent tty arch nproc true false : echo test [ [[ seq sleep "
    "factor md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum tr column grep "
    "egrep fgrep zgrep jq which whereis type host dig nslookup netstat readelf last "
    "zcat bzcat xzcat zstdcat eza exa lsd cd pushd popd set shopt shift alias export declare "
    "typeset local readonly let getopts wait return exit break continue times dirs jobs unset"
)

# With options that do; the rest of them only read.
EXCEPT = {
    "sort": "-o -T --output --compress-program --temporary-directory",
    "shuf": "-o --output",
    "base64": "-o --output",
    "base32": "-o --output",
    "tree": "-o -R",
    "file": "-C --compile",
    "rg": "--pre --hostname-bin",
    "ag": "--pager",
    "fd": "-x -X --exec --exec-batch",
    "fdfind": "-x -X --exec --exec-batch",
    "bat": "--pager",
    "batcat": "--pager",
    "yq": "-i -s --inplace --in-place --split-exp --split-exp-file",
    "printf": "-v",
    "read": "",
    "mapfile": "-C",
    "readarray": "-C",
    "lsof": "-D",
    "ss": "-K --kill",
    "nm": "--plugin",
    "objdump": "--plugin",
    "size": "--plugin",
    "dmesg": "-c -C -D -E -n --clear --read-clear --console-off --console-on --console-level",
    "journalctl": (
        "--vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --setup-keys "
        "--update-catalog --relinquish-var --smart-relinquish-var --cursor-file"
    ),
    "find": "-delete -fprint -fprint0 -fprintf -fls",
    "gfind": "-delete -fprint -fprint0 -fprintf -fls",
}

# The most operands with which these only read: one more would be written to, or set something.
MOST_OPERANDS = {"uniq": 1, "hostname": 0, "history": 0, "date": 0}
OPERANDS_EXCEPT = {
    "uniq": "",
    "hostname": "-F -b --file --boot",
    "history": "-c -d -a -n -r -w -p -s",
    "date": "-s --set",
}

# Programs that start what follows; they change nothing if that does not.
OPENED = {
    "nice": "",
    "ionice": "-p -P -u --pid",
    "timeout": "",
    "gtimeout": "",
    "time": "-o -f -a -v --output --format --append --verbose",
    "stdbuf": "",
    "unbuffer": "",
    "setsid": "",
    "taskset": "-p --pid",
    "builtin": "",
    "command": "",
    "exec": "",
    "env": "",
    "busybox": "--install",
    "sudo": "-e --edit -k -K -b --background",
    "doas": "-C -L",
    "watch": "",
    "xargs": "",
    "gxargs": "",
    "eval": "",
    "trap": "",
    "noglob": "",
    "nocorrect": "",
    "bash": "-i --rcfile --init-file --login -l",
    "sh": "-i -l",
    "dash": "-i -l",
    "zsh": "-i -l --login",
}
# Of these, the ones that change nothing on their own either.
OPENED_ALONE = names("command exec env time builtin xargs gxargs trap eval")

_CONFIG = "--unset --unset-all --replace-all --add --edit -e --remove-section --rename-section"
_DIFF = "--output --ext-diff --textconv"
_DOCKER = {
    "ps": "",
    "images": "",
    "logs": "",
    "inspect": "",
    "version": "",
    "info": "",
    "top": "",
    "port": "",
    "diff": "",
    "history": "",
    "compose ps": "",
    "compose logs": "",
    "compose images": "",
    "compose ls": "",
    "compose top": "",
    "container ls": "",
    "container inspect": "",
    "container logs": "",
    "image ls": "",
    "image inspect": "",
    "volume ls": "",
    "volume inspect": "",
    "network ls": "",
    "network inspect": "",
    "context ls": "",
}
_KUBE = {
    "get": "--raw",
    "describe": "",
    "logs": "",
    "top": "",
    "version": "",
    "explain": "",
    "api-resources": "",
    "api-versions": "",
    "cluster-info": "--output-directory",
    "config view": "",
    "config current-context": "",
    "config get-contexts": "",
    "auth can-i": "",
    "rollout status": "",
    "rollout history": "",
}

# By subcommand, with the options that make even these change something. An empty subcommand is
# the program with options alone.
SUBCOMMANDS: dict[str, dict[str, str]] = {
    "git": {
        "status": "",
        "log": _DIFF,
        "diff": _DIFF,
        "show": _DIFF,
        "diff-tree": _DIFF,
        "diff-index": _DIFF,
        "diff-files": _DIFF,
        "range-diff": _DIFF,
        "whatchanged": _DIFF,
        "blame": "--textconv",
        "annotate": "--textconv",
        "shortlog": "--output",
        "grep": "-O --open-files-in-pager --textconv",
        "rev-parse": "",
        "rev-list": "",
        "ls-files": "",
        "ls-tree": "",
        "ls-remote": "--upload-pack --exec",
        "cat-file": "--textconv --filters",
        "describe": "",
        "name-rev": "",
        "merge-base": "",
        "for-each-ref": "--shell --perl --python --tcl",
        "show-ref": "",
        "show-branch": "--reflog",
        "count-objects": "",
        "check-ignore": "",
        "check-attr": "",
        "cherry": "",
        "version": "",
        "stash list": _DIFF,
        "stash show": _DIFF,
        "remote show": "",
        "remote get-url": "",
        "worktree list": "",
        "reflog show": _DIFF,
        "config list": _CONFIG,
        "config get": _CONFIG,
        "bisect log": "",
        "notes list": "",
        "notes show": "",
        "submodule status": "",
        "": "-c",
    },
    "docker": _DOCKER,
    "podman": _DOCKER,
    "kubectl": _KUBE,
    "oc": _KUBE,
    "helm": {"list": "", "ls": "", "status": "", "get": "", "history": "", "version": ""},
    "systemctl": {
        "status": "",
        "show": "",
        "cat": "",
        "is-active": "",
        "is-enabled": "",
        "is-failed": "",
        "get-default": "",
        "list-units": "",
        "list-unit-files": "",
        "list-timers": "",
        "list-sockets": "",
        "list-dependencies": "",
        "list-jobs": "",
    },
    "terraform": {"version": "", "output": "", "show": "", "state list": "", "state show": ""},
    "pip": {"list": "--log", "show": "--log", "freeze": "--log", "check": "--log", "": "--log"},
    "npm": {"ls": "", "list": "", "view": "", "root": "", "prefix": "", "": ""},
    "gh": {
        "pr list": "-w --web",
        "pr view": "-w --web",
        "pr diff": "-w --web",
        "pr checks": "-w --web",
        "pr status": "-w --web",
        "issue list": "-w --web",
        "issue view": "-w --web",
        "issue status": "-w --web",
        "run list": "-w --web",
        "run view": "-w --web",
        "repo view": "-w --web",
        "release list": "-w --web",
        "release view": "-w --web",
        "auth status": "-t --show-token",
    },
    "go": {"version": "", "env": "-w -u"},
    "ip": {
        f"{thing} {verb}".strip(): "-b -batch --batch"
        for thing in ("a", "addr", "address", "r", "route", "l", "link", "n", "neigh", "rule")
        for verb in ("", "show", "list", "ls")
    },
    "rustup": {"show": "", "which": "", "toolchain list": "", "target list": ""},
}

# Without a first operand of these, `git branch x` and the like make something.
LISTING: dict[str, frozenset[str]] = {
    "branch": names(
        "--list -l -a --all -r --remotes -v -vv --verbose --show-current --contains --no-contains "
        "--merged --no-merged --sort --format --points-at --column --no-column --color --no-color "
        "-i --ignore-case --abbrev --no-abbrev"
    ),
    "tag": names(
        "--list -l -n --contains --no-contains --merged --no-merged --sort --format --points-at "
        "--column --no-column --color -i --ignore-case"
    ),
    "remote": names("-v --verbose"),
    "reflog": frozenset(),
    "symbolic-ref": names("--short -q --quiet"),
    "config": names(
        "--get --get-all --list -l --get-regexp --show-origin --show-scope --global --local "
        "--system --worktree --name-only -z --null --type --bool --int --path --includes "
        "--get-urlmatch --default"
    ),
}
# What turns operands of these into questions.
LISTING_SWITCHES: dict[str, frozenset[str]] = {
    "branch": names("--list -l --contains --no-contains --merged --no-merged --points-at"),
    "tag": names("--list -l --contains --no-contains --merged --no-merged --points-at"),
    "config": names("--get --get-all --get-regexp --get-urlmatch"),
}
# Settings that `git -c` may carry without starting anything.
GIT_SETTINGS = ("color.", "core.quotepath=", "core.pager=cat", "advice.", "pager.", "log.date=")

# `--version` of these prints one line.
VERSIONED = names(
    "python pypy pip node npm npx pnpm yarn bun deno cargo rustc rustup go java javac mvn gradle "
    "ruby gem bundle php composer perl lua gcc g++ cc c++ clang clang++ make cmake ninja meson "
    "docker podman kubectl helm terraform tofu aws gcloud az gh git bash sh zsh uv poetry pytest "
    "ruff mypy black psql mysql sqlite3 redis-cli curl wget tar gzip sed awk gawk dotnet swift"
)

CHANGES_NOTHING = (
    "true",
    "ls -la src | head -5",
    "cat a.txt b.txt",
    "grep -rn 'rm -rf' . 2>/dev/null",
    "rg -n pattern src 2>&1 | wc -l",
    "find . -name '*.py' -type f",
    "find . -name '*.py' -exec grep -l x {} +",
    "git status && git diff --stat && git log --oneline -5",
    "git -C sub show HEAD:file.txt",
    "git branch -a",
    "git branch --list 'feat/*'",
    "git --no-pager log -3",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "x=5; echo $((x + 1))",
    "for f in a b; do cat $f; done",
    "if [ -f x ]; then echo yes; else echo no; fi",
    "timeout 5 env LC_ALL=C sort a.txt | uniq -c",
    "bash -c 'ls; pwd'",
    "ps aux | awk '{print $2}'",
    "sed -n '1,20p' a.py",
    "sed 's/a/b/g' a.txt",
    "git ls-files | xargs wc -l",
    "python3 -c 'import json, sys; print(json.load(sys.stdin)[\"x\"])' < a.json",
    "python --version",
    "kubectl get pods -n prod -o wide",
    "docker ps -a",
    "date +%F",
    "f() { ls; }; f",
    "cat <<'EOF'\nrm -rf /\nEOF",
    "echo hi >&2",
    "tar -tzf a.tgz",
    "cd sub && pwd",
)
MAY_CHANGE = (
    "touch a",
    "echo hi > a.txt",
    "cat a >> b",
    "ls > list.txt",
    "exec 3<>file",
    "sort -o a.txt a.txt",
    "sort -uoa.txt a.txt",
    "uniq a b",
    "find . -name x -delete",
    "find . -exec sed -i s/a/b/ {} +",
    "find . -fprint out",
    "git branch new",
    "git branch -d old",
    "git tag v1",
    "git stash",
    "git log --output=x",
    "git diff --outp=x",
    "git config user.name me",
    "git -c core.pager='touch x' log",
    "git -c alias.status='!touch x' status",
    "git lg",
    "sed -i s/a/b/ a",
    "sed 's/a/b/w out' a",
    "sed -n 'w out' a",
    "awk '{print > \"out\"}' a",
    "awk 'BEGIN{system(\"x\")}'",
    "./ls",
    "PATH=.:$PATH ls",
    "export PATH=.; ls",
    "alias ls='touch x'\nls",
    "ls() { touch x; }; ls",
    "bash script.sh",
    "bash",
    "source env.sh",
    "make",
    "npm test",
    "python app.py",
    'python -c \'open("x", "w")\'',
    "python -c 'import os; os.remove(\"x\")'",
    "python -c 'import mymodule'",
    "python -m pytest",
    "ls | xargs touch",
    "ls | xargs find",
    "ls *; sort *",
    "tee a < b",
    "$CMD x",
    "ls; $(touch x)",
    "echo `touch x`",
    "echo ${x:?$(touch y)}",
    "echo ${HOME#$(touch y)}",
    "fd -e py -x echo {} \\; -x touch",
    "hostname new",
    "date -s tomorrow",
    "sudo -e a",
    "curl -O https://example.com/x",
    "tar xzf a.tgz",
    "tar -tf a --to-command=x",
    "tree -o out",
    "rg --pre ./x y",
    "cat >(touch x)",
    "if",
    "read PATH < p; ls",
    "printf -v PATH .; ls",
    "env -S 'touch x'",
    "trap 'touch x' EXIT",
    "cp a b",
    "dd if=a of=b",
    "docker exec c ls",
    "kubectl delete pod x",
    "ls &> out",
    "ls 2> errors.txt",
    "unknown-program",
)

"""Programs that start another program, as data: how each of them is written.

A new wrapper of the plain form (options, perhaps some operands, then a command) is one line.
"""

from __future__ import annotations


class Prefix:
    """How a wrapper is written: options with values, operands before the command, assignments."""

    __slots__ = ("assigns", "elevates", "skip", "valued")

    def __init__(
        self, valued: str = "", *, skip: int = 0, assigns: bool = False, elevates: bool = False
    ) -> None:
        self.valued = frozenset(valued.split())
        self.skip = skip
        self.assigns = assigns
        self.elevates = elevates


PREFIXES = {
    "nohup": Prefix(),
    "setsid": Prefix(),
    "nice": Prefix("-n --adjustment"),
    "ionice": Prefix("-c --class -n --classdata -p -P -u"),
    "chrt": Prefix("-T -P -D -p", skip=1),
    "taskset": Prefix("", skip=1),
    "timeout": Prefix("-s --signal -k --kill-after", skip=1),
    "gtimeout": Prefix("-s --signal -k --kill-after", skip=1),
    "time": Prefix("-f --format -o --output"),
    "stdbuf": Prefix("-i --input -o --output -e --error"),
    "unbuffer": Prefix(),
    "builtin": Prefix(),
    "coproc": Prefix(),
    "exec": Prefix("-a"),
    "chroot": Prefix("--userspec --groups", skip=1),
    "unshare": Prefix("-R --root -w --wd -S --setuid -G --setgid --map-user --map-group"),
    "nsenter": Prefix("-t --target -S -G -r -w --setuid --setgid", elevates=True),
    "strace": Prefix("-e -o -p -s -u -E -a -I -O -S -P -X"),
    "ltrace": Prefix("-e -o -p -s -u -a -n -l"),
    "fakeroot": Prefix("-l -s -i -b"),
    "proot": Prefix("-r -b -w -q -k"),
    "caffeinate": Prefix("-t -w"),
    "dbus-run-session": Prefix("--config-file --dbus-daemon"),
    "dbus-launch": Prefix(),
    "xvfb-run": Prefix("-e -f -n -p -s -w --server-args --server-num"),
    "rlwrap": Prefix("-f -H -s -p -b -C"),
    "torsocks": Prefix(),
    "proxychains": Prefix("-f"),
    "proxychains4": Prefix("-f"),
    "numactl": Prefix("-N -m -C -i -p"),
    "firejail": Prefix(),
    "bwrap": Prefix(
        "--bind --ro-bind --dev-bind --tmpfs --proc --dev --setenv --unsetenv --chdir --symlink "
        "--uid --gid"
    ),
    "chronic": Prefix(),
    "prlimit": Prefix("-p --pid"),
    "setarch": Prefix("", skip=1),
    "linux32": Prefix(),
    "linux64": Prefix(),
    "setpriv": Prefix("--reuid --regid --groups --inh-caps --bounding-set"),
    "capsh": Prefix(),
    "valgrind": Prefix(),
    "doppler": Prefix("-p -c --project --config"),
    "dotenv": Prefix("-f --file -e"),
    "dotenvx": Prefix("-f"),
    "catchsegv": Prefix(),
    "ts": Prefix(),
    "sudo": Prefix(
        "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T -U -D "
        "--chdir -R "
        "--chroot --other-user --command-timeout",
        assigns=True,
        elevates=True,
    ),
    "doas": Prefix("-u -C -a", assigns=True, elevates=True),
    "pkexec": Prefix("--user", elevates=True),
    "gosu": Prefix("", skip=1),
    "su-exec": Prefix("", skip=1),
    "run0": Prefix("--user -u", elevates=True),
    "please": Prefix("-u", elevates=True),
    "uvx": Prefix("--from --with -p --python --index-url"),
    "bunx": Prefix(),
    "npx": Prefix("-p --package -w --workspace"),
    "bundle-exec": Prefix(),
    "winpty": Prefix(),
    "arch": Prefix(),
    "noglob": Prefix(),
    "nocorrect": Prefix(),
    "cgexec": Prefix("-g"),
    "systemd-cat": Prefix("-t --identifier -p --priority"),
    "sshpass": Prefix("-p -f -d -P"),
    "cpulimit": Prefix("-l --limit -p -e"),
    "trickle": Prefix("-d -u -w"),
    "faketime": Prefix("-f", skip=1),
    "eatmydata": Prefix(),
    "dumb-init": Prefix(),
    "tini": Prefix("-p"),
    "setuidgid": Prefix(skip=1),
    "s6-setuidgid": Prefix(skip=1),
    "chpst": Prefix("-u -U -e -/ -n -l -L -m -d -o -p -f -c -b"),
    "envdir": Prefix(skip=1),
    "daemonize": Prefix("-c -e -o -p -l -u -E"),
    "tsp": Prefix("-L -D -N -W"),
    "nq": Prefix(),
    "ccache": Prefix(),
    "fakechroot": Prefix(),
    "schroot": Prefix("-c --chroot -u --user -d --directory"),
    "systemd-nspawn": Prefix("-D --directory -M --machine -u --user --bind -i --image"),
    "aa-exec": Prefix("-p --profile -n"),
    "runcon": Prefix("-t -u -r -l", skip=0),
    "pasta": Prefix(),
    "slirp4netns": Prefix(),
    "rr": Prefix(),
    "heaptrack": Prefix("-o"),
    "gtime": Prefix("-f --format -o --output"),
    "hyperfine": Prefix("-w --warmup -r --runs -m -M -n --export-json --export-markdown"),
}
PREFIXES["ld.so"] = PREFIXES["ld-linux"] = Prefix(
    "--preload --audit --library-path --inhibit-rpath --argv0 --glibc-hwcaps-prepend"
)
PREFIXES["busybox"] = PREFIXES["toybox"] = Prefix()

# Tools with a subcommand that starts what follows it.
RUNNERS = {
    "uv": (
        ("run", "--with -p --python --extra --group --project --directory --env-file --package -m"),
    ),
    "poetry": (("run", ""),),
    "pdm": (("run", ""),),
    "pipenv": (("run", ""),),
    "hatch": (("run", "-e --env"),),
    "conda": (("run", "-n --name -p --prefix --cwd"),),
    "mamba": (("run", "-n --name -p --prefix --cwd"),),
    "micromamba": (("run", "-n --name -p --prefix --cwd"),),
    "npm": (("exec", "-p --package -w --workspace"), ("x", "-p --package -w --workspace")),
    "yarn": (("exec", ""), ("dlx", "-p --package")),
    "pnpm": (("exec", ""), ("dlx", "--package")),
    "bun": (("x", ""),),
    "bundle": (("exec", ""),),
    "rbenv": (("exec", ""),),
    "pyenv": (("exec", ""),),
    "asdf": (("exec", ""),),
    "mise": (("exec", ""), ("x", "")),
    "op": (("run", "--env-file --account"),),
    "doppler": (("run", "-p -c --project --config"),),
    "aws-vault": (("exec", ""),),
    "perf": (("stat", "-e -r -o -p"), ("record", "-e -o -F -p -g")),
    "systemd-inhibit": (("", "--what --who --why --mode"),),
    "rustup": (("run", ""),),
    "nix": (("shell", ""), ("develop", "")),
    "cargo": (("watch", ""),),
    "direnv": (("exec", ""),),
    "watchexec": (("", "-w --watch -e --exts -f --filter -i --ignore"),),
    "entr": (("", ""),),
    "lxc": (("exec", ""),),
    "incus": (("exec", ""),),
    "multipass": (("exec", ""),),
    "machinectl": (("shell", "-M --machine --uid -E --setenv"),),
}
RUNNER_OPERANDS = {
    **dict.fromkeys(("aws-vault", "lxc", "incus", "multipass", "direnv", "rustup"), 1),
    "machinectl": 1,
}

"""Shell scripts for the remote side (POSIX `sh` and common tools), and parsers of their output.

The guard is a shell that reads requests from its stdin: calls of the functions below. At the end of
its stdin it stops all processes with the task's mark (an environment variable that all processes of
a command inherit), and the process groups of all commands. A worker is a shell that runs one
command after the other, each in a session of its own.

Both send messages in frames (`frames`). The guard's folder has these files for each worker `N`:
`pN` the pid and the number of its command, `sN` its shell state, `iN` its stdin, `tN` a long
command, `bN` the script of a background command; `dK` says that command `K` is detached.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.environments.command import UNATTENDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
# Input of `parse_listeners`, for the processes in `$@`.
LIST_SOCKETS = (
    'for q in "$@"; do for f in /proc/$q/fd/*; do readlink "$f"; done; done 2>/dev/null; '
    "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null"
)
_HAS_SCRIPT = "script --version 2>/dev/null | grep -q util-linux"
CAN_MAKE_TERMINAL = f"{{ {_HAS_SCRIPT} || command -v python3 >/dev/null; }}"
_PTY = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) & 255)"


def quote(text: str) -> str:
    """A text as one word for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def exports(variables: Mapping[str, str | None]) -> str:
    """The commands that set variables, and unset those that are None."""
    lines = []
    for name, value in variables.items():
        lines.append(f"unset {name}" if value is None else f"export {name}={quote(value)}")
    return "".join(f"{line}\n" for line in lines)


def make_terminal(path: str) -> str:
    """The beginning of the script at `path`: without a terminal it runs itself again on one."""
    return (
        f"[ -t 0 ] || if {_HAS_SCRIPT}; then exec script -qfec 'exec sh {path}' /dev/null\n"
        f"elif command -v python3 >/dev/null; then exec python3 -c {quote(_PTY)} sh {path}; fi\n"
    )


def guard(mark: str, token: str) -> str:
    """The first text for the guard."""
    return f"{{ M={mark}; T={token}; R={_limit(token)}; {_TELL}{_GUARD}}}\n"


def worker(mark: str, token: str, folder: str, number: int) -> str:
    """The first text for a worker."""
    text = _WORKER.replace("@limit@", set_limit_mark(token))
    return f"{{ M={mark}; D={quote(folder)}; N={number}; {exports(UNATTENDED)}{text}}}\n"


def set_limit_mark(token: str) -> str:
    """The command that marks a shell and its children by a resource limit (RLIMIT_RTTIME)."""
    # A limit that is set already is the mark of a guardian there.
    return (
        "case $(prlimit --pid $$ --rttime --noheadings -o SOFT 2>/dev/null) in "
        f"unlimited*) prlimit --pid $$ --rttime={_limit(token)}: 2>/dev/null;; esac"
    )


def _limit(token: str) -> int:
    """A limit in microseconds that no process reaches: at least a century."""
    return (1 << 58) + int(token[:14], 16)


def parse_listeners(text: str) -> list[str]:
    """The listening addresses of some processes, sorted, from the output of `LIST_SOCKETS`."""
    inodes = set(_SOCKET.findall(text))
    return sorted({address for inode, address in _listeners(text.splitlines()) if inode in inodes})


def _listeners(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        words = line.split()
        if len(words) > 9 and words[3] == _LISTEN and words[0].endswith(":"):
            address, _, port = words[1].partition(":")
            yield words[9], f"{_address(address)}:{int(port, 16)}"


def _address(digits: str) -> str:
    """An IP address from the hexadecimal form of `/proc/net/tcp`."""
    from ipaddress import IPv6Address, ip_address

    raw = bytes.fromhex(digits)
    # Words of four bytes in the machine's byte order, which is little-endian nearly everywhere.
    packed = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ip_address(packed)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


_TELL = r"""
tell() { printf '\036%s<' "$M"; cat; printf '\036%s>' "$M"; }
"""

_GUARD = r"""
umask 077
trap '' PIPE INT
D=
for d in "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm "$HOME"; do
  case $d in *[!A-Za-z0-9/._-]*) continue;; esac
  D=$(mktemp -d "$d/hermes-XXXXXX" 2>/dev/null) && break
  D=
done
# Some greps stop at a zero byte; then each file is read line by line.
Z=$(printf 'a\0b\n' | grep -cF b)
marked() {
  if [ "$Z" = 1 ]; then
    grep -lsF -e "HERMES_COMMAND=$T.$1" /proc/[0-9]*/environ | tr -dc '0-9\n'
    return
  fi
  for f in /proc/[0-9]*/environ; do
    while IFS= read -r l || [ -n "$l" ]; do
      case $l in *"HERMES_COMMAND=$T.$1"*) f=${f#/proc/}; echo "${f%/*}"; break;; esac
    done <"$f"
  done
} 2>/dev/null
# Sets p to the process group of worker $1 while it runs command $2 (or any). The worker may run the
# next command by now, and the pid may belong to another process.
group() {
  p=; k=; [ -r "$D/p$1" ] && read -r p k <"$D/p$1"
  [ -n "$p" ] && [ "$k" = "${2:-$k}" ] || return 1
  [ ! -e "/proc/$p/environ" ] ||
    { tr '\0' '\n' <"/proc/$p/environ" | grep -qF "HERMES_COMMAND=$T."; } 2>/dev/null
}
# The members of that group; they may have cleared the mark.
grouped() {
  group "$1" "$2" || return
  for f in /proc/[0-9]*/stat; do
    read -r l <"$f" || continue
    # The program's name, in parentheses, may contain anything.
    set -- ${l##*) }
    [ "$3" != "$p" ] || [ "$1" = Z ] || { f=${f#/proc/}; echo "${f%/*}"; }
  done
} 2>/dev/null
# Processes without mark and group, by the resource limit of the shell that started them.
limited() {
  grep -ls "^Max realtime timeout  *$R " /proc/[0-9]*/limits 2>/dev/null | tr -dc '0-9\n'
}
hit() {
  group "$2" "$3" && kill "-$1" "-$p"
  for q in $(marked "$3."); do kill "-$1" "$q"; done
} 2>/dev/null
alive() {
  [ -n "$(marked "$2.")" ] && return
  group "$1" "$2" && kill -0 "-$p" 2>/dev/null
}
stop() {
  hit TERM "$1" "$2"; hit CONT "$1" "$2"
  i=0
  while alive "$1" "$2"; do
    i=$((i + 1))
    [ "$i" -lt 14 ] || hit KILL "$1" "$2"
    [ "$i" -lt 60 ] || break
    sleep 0.05
  done
}
# Whether command $1 waits for input: one of its processes reads a terminal, or the stdin of the
# first one. Where /proc has no system call, its wait channel tells.
waits() {
  group "$1" "$1"
  z=$(readlink "/proc/$p/fd/0") || z=-
  for q in $(marked "$1."); do
    s=; f=; read -r s f l <"/proc/$q/syscall"
    [ -n "$s" ] || { read -r s <"/proc/$q/wchan"; f=0; }
    case $s in 0|63|wait_woken|n_tty_read) ;; *) continue;; esac
    f=$(readlink "/proc/$q/fd/$((f))")
    case $f in /dev/tty|/dev/pts/*|"$z") echo y; return;; esac
  done
} 2>/dev/null
number() {
  tr '\0' '\n' <"/proc/$1/environ" | sed -n "s/^HERMES_COMMAND=$T\.\([0-9]*\)\..*/\1/p"
} 2>/dev/null
spared() { [ -n "$S" ] && n=$(number "$1") && [ -n "$n" ] && [ -e "$D/d$n" ]; }
finish() {
  trap - EXIT
  S=; for f in "$D"/d*; do [ ! -e "$f" ] || S=1; done
  i=0; s=TERM
  while [ "$i" -lt 30 ]; do
    left=
    for q in $(marked ''); do
      spared "$q" || { kill "-$s" "$q" 2>/dev/null && left=1; }
    done
    if [ -z "$S" ]; then
      for f in "$D"/p*; do
        if group "${f##*/p}"; then kill "-$s" "-$p" 2>/dev/null && left=1; fi
      done
      for q in $(limited); do kill "-$s" "$q" 2>/dev/null && left=1; done
    fi
    [ -n "$left" ] || break
    i=$((i + 1)); [ "$i" -lt 5 ] || s=KILL
    sleep 0.1
  done
  [ -n "$S" ] || rm -rf "$D"
}
trap finish EXIT
trap exit HUP TERM
B=$(command -v bash) || B=$(command -v sh)
X=$(command -v setsid)
{ printf '%s\0' "$D" "$B" "$X" "$HOME" "$PWD"; export -p; printf '\0'; } | tell
"""

# `go` changes the directory; if it is gone, to the nearest ancestor, unless $2 is set.
_WORKER = r"""
export PWD
@limit@
# Messages of this shell itself ("Killed") are no output of commands.
exec 3>&2 2>/dev/null
# Sets l to the newest pid.
newest() { l=; read -r l l l l l </proc/loadavg; }
# Whether a process with a pid above $1 is alive, or there are too many to check.
younger() {
  [ -n "$l" ] && [ "$l" -gt "$1" ] && [ "$((l - $1))" -lt 300 ] || return 0
  q=$1
  while [ "$q" -lt "$l" ]; do
    q=$((q + 1))
    [ ! -r "/proc/$q/environ" ] || return 0
  done
  return 1
}
end() {
  b=$l; newest
  p=; k=; a=0
  if [ -r "$D/p$N" ]; then read -r p k <"$D/p$N"; fi
  if [ -n "$p" ]; then
    if kill -0 "-$p" 2>/dev/null; then a=2; else : >"$D/p$N"; fi
  fi
  [ "$a" = 2 ] || ! younger "${b:-0}" || a=1
  if [ -n "$2" ]; then printf '\036%s<S' "$M"; cat "$D/s$N"; printf '\036%s>' "$M"; fi
  printf '\036%s<E %s %s %s\036%s>' "$M" "$1" "${p:-0}" "$a" "$M"
  printf '\036%s<e\036%s>' "$M" "$M" >&3
}
go() {
  printf '\036%s<B\036%s>' "$M" "$M"
  newest
  cd "$1" 2>/dev/null && return
  [ -z "$2" ] || { printf '\036%s<F\036%s>' "$M" "$M"; return 1; }
  d=$1
  while :; do
    d=${d%/*}
    cd "${d:-/}" 2>/dev/null && break
    [ -n "$d" ] || return 1
  done
  printf '\036%s<G%s\036%s>' "$M" "$PWD" "$M"
}
# Waits for the end of all processes of command $1, the given ones first.
linger() {
  k=$1; shift
  while [ "$#" -gt 0 ]; do
    while [ "$#" -gt 0 ] && ! kill -0 "$1" 2>/dev/null; do shift; done
    if [ "$#" -gt 0 ]; then sleep 0.3; else
      set -- $(grep -lsF -e "HERMES_COMMAND=$k." /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n')
    fi
  done
  exit 0
}
printf '\036%s<R\036%s>' "$M" "$M"
"""

"""Disks behind a shell, and such a disk with one folder of this machine."""

from __future__ import annotations

import errno
import io
import os
import shlex
from typing import TYPE_CHECKING

from hermes.core.paths import is_below
from hermes.environments.disk.local_disk import LocalDisk
from hermes.environments.disk.protocol import DiskError, Entry, Status, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from hermes.environments.disk.protocol import Disk


if TYPE_CHECKING:
    # A script and its stdin; its exit code, stdout and stderr.
    Answer = Callable[[str, bytes], tuple[int, bytes, bytes]]

# Exit codes of the scripts; others are those of the tools.
_NOTHING, _KIND, _SWAPPED = 81, 82, 83
_PAGE = 1 << 20
_MOST_ERRORS = (
    ("No such file", errno.ENOENT, FileNotFoundError),
    ("not found", errno.ENOENT, FileNotFoundError),
    ("Permission denied", errno.EACCES, PermissionError),
    ("not permitted", errno.EPERM, PermissionError),
    ("Not a directory", errno.ENOTDIR, NotADirectoryError),
    ("Is a directory", errno.EISDIR, IsADirectoryError),
    ("not empty", errno.ENOTEMPTY, OSError),
    ("File exists", errno.EEXIST, FileExistsError),
    ("Read-only", errno.EROFS, OSError),
    ("No space left", errno.ENOSPC, OSError),
    ("quota", errno.EDQUOT, OSError),
)
_KINDS = {"d": "folder", "f": "file", "l": "link", "p": "pipe", "s": "socket"}
# Changes to the parent folder of the path, without following any link.
_ENTER = """
LC_ALL=C; export LC_ALL
cd -P / && cd -P -- "$1" 2>/dev/null || {
  if [ -d "$1" ]; then echo "Permission denied" >&2; exit 1; fi
  if [ -e "$1" ]; then echo "Not a directory" >&2; exit 1; fi
  exit 81
}
[ "$(pwd -P; printf .)" = "$1
." ] || exit 83
"""
# %f mode in hex; the time of a GNU stat has its fraction in %y.
_STATUS = "stat -c '%f %s %Y %i %d %h %u %g|%y' -- \"$2\""
_READ = """
[ -e "$2" ] || [ -h "$2" ] || exit 81
[ -f "$2" ] && [ ! -h "$2" ] || exit 82
"""
_WRITE = """
mode=$3
if [ -e "$2" ] || [ -h "$2" ]; then
  [ -f "$2" ] && [ ! -h "$2" ] || exit 82
  old=$(stat -c '%a %u:%g' -- "$2") || exit 1
fi
draft=".hermes.$4.new"
trap 'rm -f -- "$draft"' EXIT
if [ -n "$old" ]; then
  (umask 077; set -C; cat > "$draft") || exit 1
  [ "$(stat -c %u:%g -- "$draft")" = "${old#* }" ] || chown "${old#* }" "$draft" 2>/dev/null ||
    chgrp "${old##*:}" "$draft" 2>/dev/null
  [ -n "$mode" ] || mode=${old%% *}
else
  (set -C; cat > "$draft") || exit 1
fi
[ -z "$mode" ] || chmod "$mode" "$draft" || exit 1
sync "$draft" 2>/dev/null
[ "$(wc -c < "$draft")" -eq "$5" ] || { echo "No space left: the file came out short" >&2; exit 1; }
if [ -d "$2" ] && [ ! -h "$2" ]; then exit 82; fi
mv -f -- "$draft" "./$2" || exit 1
trap - EXIT
"""
_REMOVE = """
[ -e "$2" ] || [ -h "$2" ] || exit 81
if [ -d "$2" ] && [ ! -h "$2" ]; then rmdir -- "$2"; else rm -f -- "$2"; fi
"""
_SCAN = """
[ -e "$2" ] || [ -h "$2" ] || exit 81
if [ -h "$2" ]; then exit 83; fi
[ -d "$2" ] || { echo "Not a directory" >&2; exit 1; }
cd -P -- "$2" || exit 1
for n in * .[!.]* ..?*; do
  if [ -h "$n" ]; then k=l; elif [ -f "$n" ]; then k=f; elif [ -d "$n" ]; then k=d
  elif [ -p "$n" ]; then k=p; elif [ -S "$n" ]; then k=s; elif [ -e "$n" ]; then k=b; else continue
  fi
  printf '%s%s\\0' "$k" "$n"
done
"""


class ShellDisk:
    """Files behind a remote shell. `answer` runs a script there."""

    def __init__(
        self, answer: Answer, *, label: str, remote: Callable[[str], str] | None = None
    ) -> None:
        self.label = label
        self._answer = answer
        # Maps a path to its name on the remote.
        self._remote_path = remote

    def status(self, place: str) -> Status | None:
        """The status of a path; None if there is nothing."""
        code, out, err = self._ask(_STATUS, place)
        if code in (_NOTHING, 127) or b"No such file" in err or b"Not a directory" in err:
            if code == 127:
                raise self._trouble(place, code, err)
            return None
        self._check(place, code, err)
        words, _, when = out.decode("ascii", "replace").partition("|")
        mode, size, mtime, inode, device, links, uid, gid = words.split()
        bits = int(mode, 16)
        return Status(
            kind_of(bits),
            int(size),
            bits & 0o7777,
            int(mtime) * 10**9 + _fraction(when),
            int(inode),
            int(device),
            int(links),
            int(uid),
            int(gid),
        )

    def open(self, place: str) -> BinaryIO:
        """A file for reading, positioned at its start; large ones are fetched as they are read."""
        found = self.status(place)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        if found.kind != "file":
            raise DiskError(f"{place} is not a file but a {found.kind}")
        if found.size <= _PAGE:
            return io.BytesIO(self.read(place))
        return io.BufferedReader(_Pages(self, place), _PAGE)

    def read(self, place: str) -> bytes:
        """A whole file."""
        code, out, err = self._ask(f'{_READ}cat -- "$2"', place)
        self._check(place, code, err)
        return out

    def read_page(self, place: str, page: int) -> bytes:
        """One page of a file; empty past its end."""
        script = f'{_READ}dd if="./$2" bs={_PAGE} skip="$3" count=1 2>/dev/null'
        code, out, err = self._ask(script, place, str(page))
        self._check(place, code, err)
        return out

    def write(self, place: str, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
        """Replace or make a file as a whole: old bytes or new ones, never a mixture."""
        whole = data if isinstance(data, bytes) else b"".join(data)
        given = "" if mode is None else f"{mode:o}"
        draft = os.urandom(8).hex()
        code, _, err = self._ask(_WRITE, place, given, draft, str(len(whole)), data=whole)
        self._check(place, code, err)

    def make_folder(self, place: str) -> list[str]:
        """Make a folder and its missing parents; the made ones, outermost first."""
        missing: list[str] = []
        above = place
        while (found := self.status(above)) is None:
            missing.append(above)
            above = os.path.dirname(above)
        if found.kind != "folder":
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", place)
        made = []
        for one in reversed(missing):
            code, _, err = self._ask('mkdir -- "$2"', one)
            if b"File exists" not in err:
                self._check(one, code, err)
                made.append(one)
        return made

    def make_link(self, place: str, target: str) -> None:
        """Make a symbolic link."""
        script = (
            '{ [ -e "$2" ] || [ -h "$2" ]; } && { echo "File exists" >&2; exit 1; }\n'
            'ln -s -- "$3" "$2"'
        )
        code, _, err = self._ask(script, place, target)
        self._check(place, code, err)

    def link_target(self, place: str) -> str:
        """Where a symbolic link points."""
        script = (
            '[ -h "$2" ] || { [ -e "$2" ] || exit 81; echo "Invalid argument" >&2; exit 1; }\n'
            'readlink -n -- "$2"'
        )
        code, out, err = self._ask(script, place)
        self._check(place, code, err)
        return os.fsdecode(out)

    def set_mode(self, place: str, mode: int) -> None:
        """Change the permission bits of a file or folder."""
        script = '[ -h "$2" ] && exit 82; [ -e "$2" ] || exit 81; chmod "$3" -- "$2"'
        code, _, err = self._ask(script, place, f"{mode:o}")
        if code == _KIND:
            raise DiskError(f"{place} is a link, which has no mode")
        self._check(place, code, err)

    def remove(self, place: str) -> None:
        """Remove a file or link, or an empty folder."""
        code, _, err = self._ask(_REMOVE, place)
        self._check(place, code, err)

    def scan(self, place: str) -> Iterator[Entry]:
        """The entries of a folder, in no order."""
        code, out, err = self._ask(_SCAN, place)
        self._check(place, code, err)
        for item in out.split(b"\0")[:-1]:
            kind = _KINDS.get(chr(item[0]), "device")
            yield Entry(os.fsdecode(item[1:]), kind)  # type: ignore[arg-type]

    def run(self, place: str, script: str) -> tuple[int, bytes, bytes]:
        """Run a script in the parent folder of a path: exit code, output, errors."""
        return self._ask(script, place)

    def _ask(
        self, script: str, place: str, *arguments: str, data: bytes = b""
    ) -> tuple[int, bytes, bytes]:
        if self._remote_path is not None:
            place = self._remote_path(place)
        parts = [part for part in place.split("/") if part]
        if not place.startswith("/") or ".." in parts or "." in parts or "\0" in place:
            raise DiskError(f"{place} is not a resolved place")
        folder = "/" + "/".join(parts[:-1])
        words = " ".join(map(shlex.quote, (folder, parts[-1] if parts else ".", *arguments)))
        return self._answer(f"set -- {words}\n{_ENTER}{script}\n", data)

    def _check(self, place: str, code: int, err: bytes) -> None:
        if code:
            raise self._trouble(place, code, err)

    def _trouble(self, place: str, code: int, err: bytes) -> OSError | DiskError:
        error_text = err.decode("utf-8", "replace").strip()[-300:]
        if code == _NOTHING:
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        if code == _KIND:
            return DiskError(f"{place} is not a file")
        if code == _SWAPPED:
            return DiskError(
                f"not opened: a link was put in the way of {place}",
                hint="Name the file by the place that it is really in.",
            )
        for words, number, kind in _MOST_ERRORS:
            if words in error_text and code != 127:
                return kind(number, os.strerror(number), place)
        return DiskError(f"{place}: {error_text or f'the shell there answered {code}'}")


class _Pages(io.RawIOBase):
    """A file that is fetched page by page."""

    def __init__(self, disk: ShellDisk, place: str) -> None:
        self._disk = disk
        self._place = place
        self._at = 0
        self._number = -1
        self._page = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            found = self._disk.status(self._place)
            offset += found.size if found is not None else 0
        elif whence == io.SEEK_CUR:
            offset += self._at
        if offset < 0:
            raise ValueError("there is nothing before the start")
        self._at = offset
        return offset

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        number, start = divmod(self._at, _PAGE)
        if number != self._number:
            self._page, self._number = self._disk.read_page(self._place, number), number
        piece = self._page[start : start + len(view)]
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _fraction(when: str) -> int:
    """The nanoseconds of `2026-01-02 03:04:05.123456789 +0000`; 0 where there are none."""
    _, dot, digits = when.partition(".")
    found = digits.split(" ", 1)[0]
    return int(found[:9].ljust(9, "0")) if dot and found.isdigit() else 0


class SharedFolderDisk:
    """`inside` for everything but `shared`, which is `outside` on this machine.

    Only for folders that were proven to be the same; neither side follows a link out of it.
    """

    def __init__(self, shared: str, outside: str, inside: ShellDisk) -> None:
        self.label = inside.label
        self._shared = shared
        self._outside = outside
        self._inside = inside
        self._local = LocalDisk()

    def status(self, place: str) -> Status | None:
        """The status of a path; None if there is nothing."""
        disk, there = self._at(place)
        return disk.status(there)

    def open(self, place: str) -> BinaryIO:
        """A file for reading, positioned at its start."""
        disk, there = self._at(place)
        return disk.open(there)

    def read(self, place: str) -> bytes:
        """A whole file."""
        disk, there = self._at(place)
        return disk.read(there)

    def write(self, place: str, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
        """Replace or make a file as a whole."""
        disk, there = self._at(place)
        disk.write(there, data, mode=mode)

    def make_folder(self, place: str) -> list[str]:
        """Make a folder and its missing parents; the made ones, outermost first."""
        disk, there = self._at(place)
        made = disk.make_folder(there)
        if disk is self._inside:
            return made
        return [f"{self._shared}{one[len(self._outside) :]}" for one in made]

    def make_link(self, place: str, target: str) -> None:
        """Make a symbolic link."""
        disk, there = self._at(place)
        disk.make_link(there, target)

    def link_target(self, place: str) -> str:
        """Where a symbolic link points."""
        disk, there = self._at(place)
        return disk.link_target(there)

    def set_mode(self, place: str, mode: int) -> None:
        """Change the permission bits of a file or folder."""
        disk, there = self._at(place)
        disk.set_mode(there, mode)

    def remove(self, place: str) -> None:
        """Remove a file or link, or an empty folder."""
        disk, there = self._at(place)
        disk.remove(there)

    def run(self, place: str, script: str) -> tuple[int, bytes, bytes]:
        """Run a script inside, in the parent folder of a path: exit code, output, errors."""
        return self._inside.run(place, script)

    def scan(self, place: str) -> Iterator[Entry]:
        """The entries of a folder, in no order."""
        disk, there = self._at(place)
        return disk.scan(there)

    def _at(self, place: str) -> tuple[Disk, str]:
        if is_below(place, self._shared):
            return self._local, f"{self._outside}{place[len(self._shared) :]}"
        return self._inside, place

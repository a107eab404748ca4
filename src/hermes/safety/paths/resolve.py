"""Path resolution: symbolic links followed left to right, without opening a file."""

from __future__ import annotations

import os
import stat

# As many links as the system follows before it gives up.
_MOST_LINKS = 40
# Below a process's folder, links lead where their text doesn't say.
_MAGIC = frozenset(("self", "thread-self"))


class ResolveError(ValueError):
    """A path that leads nowhere; the message says why."""


class ForbiddenPathError(ResolveError):
    """A path into a folder that must not even be looked at."""


class ResolvedPath:
    """A resolved path: its parts, how many exist, and the stat of the last (None: missing)."""

    __slots__ = ("existing", "parts", "status")

    def __init__(
        self, parts: tuple[str, ...], status: os.stat_result | None, *, missing: int = 0
    ) -> None:
        self.parts = parts
        self.status = status
        self.existing = len(parts) - missing

    @property
    def path(self) -> str:
        return join(self.parts)


def join(parts: tuple[str, ...] | list[str]) -> str:
    """The absolute path with these parts."""
    if os.name == "nt":
        return os.sep.join(parts) + (os.sep if len(parts) == 1 else "")
    return "/" + "/".join(parts)


def split(path: str) -> list[str]:
    """The parts of an absolute path, links and `..` left as they are."""
    if os.name == "nt":
        path = path.replace("\\", "/")
    return [part for part in path.split("/") if part and part != "."]


def resolve(path: str, *, fixed: tuple[str, ...] | None = None) -> ResolvedPath:
    """The real target of an absolute path; raises `ResolveError` when it can't be determined.

    A missing path is placed below its deepest existing folder. With `fixed`, links strictly inside
    that folder are not followed.
    """
    if os.name == "nt":
        return _resolve_on_windows(path)
    todo = split(path)
    todo.reverse()
    must_be_folder = path.endswith(("/", "/."))
    done: list[str] = []
    status: os.stat_result | None = None
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            if done:
                done.pop()
            status = None
            continue
        if len(done) == 1 and done[0] == "proc" and (part.isdigit() or part in _MAGIC):
            raise ForbiddenPathError("it leads into a process")
        here = join([*done, part])
        status = _look(here)
        if status is None:
            if ".." in todo:
                raise ResolveError("a folder on the way does not exist")
            return ResolvedPath((*done, part, *reversed(todo)), None, missing=len(todo) + 1)
        if stat.S_ISLNK(status.st_mode):
            inside = fixed is not None and tuple(done[: len(fixed)]) == fixed
            if not inside:
                links += 1
                if links > _MOST_LINKS:
                    raise ResolveError("its links lead in circles")
                target = _read_link(here)
                if target.startswith("/"):
                    done.clear()
                todo.extend(reversed(split(target)))
                must_be_folder = must_be_folder or (not todo and target.endswith("/"))
                status = None
                continue
        elif (todo or must_be_folder) and not stat.S_ISDIR(status.st_mode):
            raise ResolveError("a part of it is a file, not a folder")
        done.append(part)
    if status is None:
        status = _look(join(done))
    return ResolvedPath(tuple(done), status)


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ResolveError(f"it can't be examined ({_why(error)})") from None


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError as error:
        raise ResolveError(f"a link on the way can't be read ({_why(error)})") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _resolve_on_windows(path: str) -> ResolvedPath:
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise ResolveError(f"it can't be examined ({_why(error)})") from None
    status = _look(real)
    return ResolvedPath(tuple(split(real)), status, missing=0 if status else 1)

"""Home directory: one per user, readable by its owner only."""

from __future__ import annotations

import os


def hermes_home() -> str:
    """`HERMES_HOME`, or `~/.hermes`; not made by asking."""
    # Only the real environment is read, never a project's `.env`.
    return os.path.abspath(os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes"))


def home_path(*parts: str) -> str:
    """A path below the home folder."""
    return os.path.join(hermes_home(), *parts)


def make_private(folder: str) -> str:
    """The folder, made if need be, with nobody but its owner allowed in."""
    above = os.path.dirname(folder)
    if above not in ("", folder) and not os.path.isdir(above):
        # `makedirs` would give the parents the usual mode, and the home itself is one of them.
        make_private(above)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    return folder


def write_private(path: str, data: bytes) -> None:
    """Write a file as a whole: whoever reads it finds the old bytes or the new ones.

    The name of the file in the making is random and must not exist yet, so that nobody can have
    put a link there.
    """
    make_private(os.path.dirname(path) or os.curdir)
    draft = f"{path}.{os.urandom(8).hex()}.new"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise

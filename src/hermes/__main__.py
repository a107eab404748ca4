"""The program's entry. `--version` is answered before anything else is imported."""

from __future__ import annotations

import sys

from hermes import __version__


def main() -> int:
    """Run the command line; the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        return _say(f"hermes {__version__}\n")
    try:
        from hermes.interfaces.cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        # Before the command line could catch it: while it was being imported.
        return 130


def _say(text: str) -> int:
    """Print to whoever still reads; nobody reading is no trouble."""
    try:
        if sys.stdout is not None:
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError:
        # The interpreter must not try again, and complain, at its end.
        sys.stdout = None
    return 0


if __name__ == "__main__":
    sys.exit(main())

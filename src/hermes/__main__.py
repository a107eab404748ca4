"""The program's entry. `--version` is answered before anything else is imported."""

from __future__ import annotations

import sys

from hermes import __version__


def main() -> int:
    """Run the command line; the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"hermes {__version__}\n")
        return 0
    from hermes.interfaces.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

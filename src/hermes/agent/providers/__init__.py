"""Models that can be asked, behind one protocol.

protocol     what the loop asks of a model, and what it hears; start here
choosing     which model is asked: option, environment, settings
services     where models are: addresses, keys, local servers
profiles     what is known of model families: windows, prices, habits
finding      what could be asked from here, and a try
fallback     several models in order

remote       a model over HTTP: asked, asked again, heard to the end
connection   one server: a request out, bytes in, a limit to every wait
sse          bytes -> events
trouble      what a refusal means, and whether to ask again
chat, responses, anthropic    the three APIs: a request written, events read
history      a conversation as every server accepts it
answer       pieces -> one answer; glued calls taken apart
textflow     text as it streams; reasoning in tags, calls held back
spelled      calls that a model writes into its text

embedded/    the model that needs no key and no server
"""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.core.config import Config
    from hermes.core.model_protocol import Provider


def choose(config: Config, environ: Mapping[str, str], option: str | None = None) -> list[Provider]:
    """The models to ask, in order; see `choosing`."""
    from hermes.agent.providers.model_choice import choose as found

    return found(config, environ, option)

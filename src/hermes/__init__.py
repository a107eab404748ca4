"""Hermes: tools for language models, and the agent that works through them.

From the inside out; each package imports only from those listed before it:

    core          words everyone shares: ToolEntry, registry, schema, coercion, errors
    safety        what may happen: shell analysis, paths, URLs, approval, redaction
    runtime       how a call happens: pipeline, discovery, bridge, disk, artifacts
    stores        what is remembered: checkpoints of files, sessions
    environments  where commands run: this machine, a sandbox, a container, another host
    files         what is done with files: text, edits, search, differences
    tools         what the model can call; one file per family
    agent         the loop: prompt, model call, tool calls, repeat
    interfaces    how people and programs reach it: the command line
    testing       for tests, ours and yours: a temporary home, a scripted model

New here? Read core/registry.py, then runtime/pipeline.py, then tools/files.py, then agent/loop.py.
"""

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from hermes.agent.agent import Agent

__version__ = "0.1.0"
__all__ = ["Agent", "__version__"]


def __getattr__(name: str) -> object:
    """`Agent`, imported when it is first asked for: most programs here never need it."""
    if name == "Agent":
        from hermes.agent.agent import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

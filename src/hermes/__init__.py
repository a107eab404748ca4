"""Hermes: tools for language models, and the runtime that carries out each call safely.

From the inside out; each package imports only from those listed before it:

    core          words everyone shares: ToolEntry, registry, schema, coercion, errors
    safety        what may happen: shell analysis, paths, URLs, approval, redaction
    runtime       how a call happens: pipeline, discovery, bridge, artifacts
    tools         what the model can call; one file per family
    interfaces    how people and programs reach it: the command line
    testing       for tests, ours and yours: a temporary home, a registry of one's own

New here? Read core/registry.py, then runtime/pipeline.py, then tools/system.py.
"""

__version__ = "0.1.0"

"""Arguments of a tool call: parse, coerce, fill in defaults, validate.

    reader           ArgumentReader, coerce_tool_args: order of the steps, fast path, defaults
    json_repair      raw text to one object: near-JSON, fences, double encoding, glued objects
    compiled_schema  validator and references of a schema; older drafts rewritten
    coerce           a schema compiled into coercion functions
    problems         validation errors as lines for a model

Start with reader.py. Valid arguments are returned unchanged; arguments with more than one reading
raise ArgumentError.
"""

from __future__ import annotations

from hermes.core.arguments.reader import ArgumentReader, coerce_tool_args

__all__ = ["ArgumentReader", "coerce_tool_args", "split_glued"]


def split_glued(text: str) -> list[str]:
    """The JSON objects of a text that holds several in a row, each as its own text.

    Equal neighbours are one. Any other text is returned alone and unchanged.
    """
    from hermes.core.arguments.json_repair import split_glued as split

    return split(text)

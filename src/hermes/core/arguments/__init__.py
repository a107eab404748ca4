"""The arguments of one tool call: read, coerce, fill defaults, validate.

    reader     ArgumentReader and coerce_tool_args: the order of the steps, and the fast path
    text       raw text -> one object: JSON, fences, double encoding, glued objects
    lenient    the parser behind it: near-JSON and Python literals, and where a text breaks
    dialect    schemas of every age in, one dialect out
    schema     a compiled schema: what is valid, where references lead
    plan       schema -> coercers, functions that repair a value or leave it
    objects    what becomes an object, and its members
    arrays     what becomes an array, and what is too unclear to become one
    unions     several allowed types or branches, one reading
    run        what one coercion carries along
    scalars    numbers, booleans, null and enum members out of text, and numbers into text
    defaults   schema -> values for absent keys
    whole      2.0 as 2 where only integers are allowed, for handlers
    problems   what is wrong with a value, in lines that a small model can act on
    values     small questions about JSON values

Start with reader.py. Valid arguments come back untouched; what can't be read in exactly one way
is an ArgumentError, never a guess.
"""

from __future__ import annotations

from hermes.core.arguments.reader import ArgumentReader, coerce_tool_args

__all__ = ["ArgumentReader", "coerce_tool_args", "split_glued"]


def split_glued(text: str) -> list[str]:
    """The JSON objects of a text that holds several in a row, each as its own text.

    Neighbours that say the same are one. Any other text comes back alone and unchanged.
    """
    from hermes.core.arguments.json_repair import split_glued as split

    return split(text)

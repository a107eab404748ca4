"""From a Python function to a tool schema, and from JSON arguments back to Python values.

    function    function_schema: what everything else here serves
    signature   the parameters of a callable, read without `inspect`
    docstring   the text for the model, and one description per parameter
    hints       the hints of one function; which of them is the context of the call
    scope       annotations written as text become objects
    build       a type hint becomes JSON Schema and a converter
    containers  converters for arrays and objects
    records     dataclasses, typed dicts, named tuples
    atoms       single values: dates, paths, enums, bytes
    unions      one of several: the schema, and which member a value belongs to
    field       constraints inside `Annotated`
    defaults    default values, where JSON can say them
    values      what converters are, and what they say about a value that can't be used

Start-up pays for what it uses: a function annotated with plain builtins needs neither `typing`
nor anything below `scope` in this list.
"""

from __future__ import annotations

from hermes.core.schema.field import Field
from hermes.core.schema.function import FunctionSchema, function_schema

__all__ = ["Field", "FunctionSchema", "function_schema"]

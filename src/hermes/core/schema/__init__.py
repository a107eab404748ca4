"""Tool schemas from Python signatures, and converters from JSON arguments to the annotated types.

    function    function_schema: parameters, hints, docstring of a callable
    docstrings  docstring parser: description of the tool, and of each parameter
    field       `Field` constraints, converter types, default values
    types       type hints to JSON Schema and converter; dataclasses, typed dicts, pydantic classes
    composites  unions, arrays, mappings; dates, paths, enums, bytes

A function annotated with plain builtins needs only `function`, `docstrings` and `field`, and no
`typing`: start-up depends on it.
"""

from __future__ import annotations

from hermes.core.schema.field import Field
from hermes.core.schema.function import FunctionSchema, function_schema

__all__ = ["Field", "FunctionSchema", "function_schema"]

"""function_schema: what a function's signature and docstring say, as a tool schema."""

from __future__ import annotations

from hermes.core.errors import ArgumentError, RegistrationError
from hermes.core.schema.docstring import parse
from hermes.core.schema.hints import HintReader, is_context
from hermes.core.schema.signature import MISSING, Signature
from hermes.core.schema.values import BadValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from hermes.core.schema.values import Convert, Schema


class FunctionSchema:
    """What the model is told about a function, and how its arguments become Python values."""

    __slots__ = (
        "accepts_kwargs",
        "context_parameter",
        "convert",
        "is_async",
        "parameters",
        "summary",
    )

    def __init__(
        self,
        *,
        parameters: Schema,
        summary: str,
        context_parameter: str | None,
        is_async: bool,
        accepts_kwargs: bool,
        convert: Callable[[dict[str, Any]], dict[str, Any]] | None,
    ) -> None:
        self.parameters = parameters
        self.summary = summary
        self.context_parameter = context_parameter
        self.is_async = is_async
        self.accepts_kwargs = accepts_kwargs
        self.convert = convert


def function_schema(fn: Callable[..., Any], *, skip: Collection[str] = ()) -> FunctionSchema:
    """Read a function as a tool: its parameters as JSON Schema, its docstring as the text.

    Args:
        fn: A function, a bound method, a partial or an object that can be called.
        skip: Parameters that the caller fills in; the model never hears of them.

    Raises:
        RegistrationError: It takes what no tool call can pass, a hint has no schema, or the
            docstring describes a parameter that does not exist.
    """
    signature = Signature(fn)
    summary, described = parse(signature.doc)
    reader = HintReader(signature)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    converters: dict[str, Convert] = {}
    context: str | None = None
    for parameter in signature.parameters:
        name = parameter.name
        text = described.pop(name, "")
        if name in skip:
            continue
        if is_context(parameter.annotation):
            if context is not None:
                raise RegistrationError(
                    f"{signature.name} takes two contexts: '{context}' and '{name}'",
                    hint="Keep one of them.",
                )
            context = name
            continue
        schema, convert = reader.shape(parameter)
        if text:
            schema.setdefault("description", text)
        if parameter.default is MISSING:
            required.append(name)
        else:
            _show_default(parameter.default, convert, schema)
        properties[name] = schema
        if convert is not None:
            converters[name] = convert
    others: Schema | bool = False
    other_convert: Convert | None = None
    if signature.keywords_name is not None:
        described.pop(signature.keywords_name, None)
        others, other_convert = reader.others(signature.keywords_name, signature.keywords)
        properties.update((name, {"description": text}) for name, text in described.items())
    elif described:
        _refuse_drift(signature, described)
    parameters: Schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": others or signature.keywords_name is not None,
    }
    definitions = reader.definitions()
    if definitions:
        parameters["definitions"] = definitions
    return FunctionSchema(
        parameters=parameters,
        summary=summary,
        context_parameter=context,
        is_async=signature.is_async,
        accepts_kwargs=signature.keywords_name is not None,
        convert=_arguments(converters, other_convert, properties),
    )


def _show_default(default: object, convert: Convert | None, schema: Schema) -> None:
    if convert is None and (default is None or type(default) in (str, int, bool)):
        schema["default"] = default
        return
    from hermes.core.schema.defaults import as_json

    as_json(default, convert, schema)


def _refuse_drift(signature: Signature, described: dict[str, str]) -> None:
    code = signature.function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    unknown = [name for name in described if name not in known]  # bound ones may be described
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        raise RegistrationError(
            f"{signature.name}: the docstring describes {names}, which it does not take",
            hint="Rename or remove the entry under Args.",
        )


def _arguments(
    converters: dict[str, Convert], others: Convert | None, known: Collection[str]
) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """One converter for all arguments of a call; None when all are used as they come."""
    if not converters and others is None:
        return None

    def convert(args: dict[str, Any]) -> dict[str, Any]:
        """The arguments as Python values; raises ArgumentError naming each that can't be one."""
        result = dict(args)
        problems: list[str] = []
        for name, value in args.items():
            change = converters.get(name) or (None if name in known else others)
            if change is not None:
                try:
                    result[name] = change(value)
                except BadValueError as error:
                    problems.append(f"{name}{error.path}: {error.reason}")
        if problems:
            raise ArgumentError("; ".join(problems), problems=problems)
        return result

    return convert

"""The reader of one tool's arguments: text or object in, checked arguments out.

The usual call is valid: it costs one look at each value and one run of the compiled validator.
Everything else (parsing, repairing, explaining) is loaded and built at its first use.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any

from hermes.core.arguments.values import has_other_keys, is_simple, plain, unusable
from hermes.core.arguments.whole import whole
from hermes.core.errors import ArgumentError

if TYPE_CHECKING:
    from hermes.core.arguments.defaults import Filler
    from hermes.core.arguments.plan import Plan
    from hermes.core.arguments.schema import Document

_CACHE_SIZE = 128


class ArgumentReader:
    """Reads the arguments of calls to one tool; cheap to make, compiled at the first call.

    The schema is copied at the first call: later changes to it need a new reader. With
    `for_python`, whole numbers come as `int` where only integers are allowed, also `2.0`.
    """

    __slots__ = ("_document", "_fill", "_for_python", "_is_valid", "_plan", "_schema")

    def __init__(self, schema: dict[str, Any], *, for_python: bool = False) -> None:
        self._schema = schema
        self._for_python = for_python
        self._document: Document | None = None
        self._fill: Filler | None = None
        self._is_valid: Any = None
        self._plan: Plan | None = None

    def read(self, raw: dict[str, Any] | str | None) -> dict[str, Any]:
        """The arguments, coerced and with defaults; raises `ArgumentError` with every problem."""
        document = self._document or self._compile()
        arguments = raw if type(raw) is dict else self._parse(document, raw)
        simple = is_simple(arguments)
        if not simple and (reason := unusable(arguments)):
            raise _unusable(reason)
        fill = self._fill
        filled = fill(arguments) if fill else arguments
        try:
            if self._is_valid(filled):
                return filled if simple else self._handed(document, filled)
        except ValueError:
            if document.check(filled):
                return self._handed(document, filled)
        return self._repair(document, raw, arguments, filled, simple=simple)

    def _handed(self, document: Document, arguments: dict[str, Any]) -> dict[str, Any]:
        """Valid arguments as whoever asked for them wants them."""
        return whole(arguments, document) if self._for_python else arguments

    def _compile(self) -> Document:
        from hermes.core.arguments.defaults import Defaults
        from hermes.core.arguments.schema import Document

        document = Document(self._schema)
        self._fill = Defaults(document).filler()
        self._is_valid = document.is_valid
        self._document = document
        return document

    def _parse(self, document: Document, raw: object, *, exact: bool = False) -> dict[str, Any]:
        if isinstance(raw, str):
            from hermes.core.arguments.text import read_object

            found = read_object(raw, exact=exact)
            if found is not None:
                return found
        elif isinstance(raw, dict):
            return dict(raw)
        elif raw is not None:
            raise ArgumentError(
                f"arguments must be an object or its text, received {type(raw).__name__}",
                hint='Send the call again with an object: {"name": value, ...}.',
                problems=[f"expected an object, received {type(raw).__name__}"],
            )
        # Nothing at all is a call without arguments, where the tool can be called that way.
        if document.check({}):
            return {}
        from hermes.core.arguments.problems import explain

        raise explain(document, {}, ())

    def _repair(
        self,
        document: Document,
        raw: object,
        arguments: dict[str, Any],
        filled: dict[str, Any],
        *,
        simple: bool,
    ) -> dict[str, Any]:
        # A default that is fine alone can break a rule between fields; then it stays out.
        if filled is not arguments and document.check(arguments):
            return self._handed(document, arguments)
        if self._plan is None:
            from hermes.core.arguments.plan import Plan

            self._plan = Plan(document)
        parsed = isinstance(raw, str)
        if parsed:
            arguments = self._parse(document, raw, exact=True)
        coerced, run = self._plan.run(arguments, parsed=parsed)
        if run.parsed:
            coerced = plain(coerced)
        if run.parsed or not simple:
            # Repairs alone make no such number: it was sent, or read from a text.
            coerced = self._handed(document, coerced)
        complete: dict[str, Any] = self._fill(coerced) if self._fill else coerced
        if document.check(complete):
            return complete
        if complete is not coerced and document.check(coerced):
            return coerced
        if has_other_keys(complete):
            raise _unusable("a key is not a string")
        # Inside containers the validator takes a subclass of float for no number at all.
        strict: dict[str, Any] = plain(complete)
        if document.check(strict):
            return strict
        from hermes.core.arguments.problems import explain

        raise explain(document, strict, run.remarks)


def _unusable(reason: str) -> ArgumentError:
    message = f"arguments can't be used, not executed: {reason}"
    return ArgumentError(message, hint="Send a smaller, flatter value.", problems=[message])


_readers: dict[bytes, ArgumentReader] = {}


def coerce_tool_args(schema: dict[str, Any], args: dict[str, Any] | str | None) -> dict[str, Any]:
    """The arguments of one call, read, coerced, completed with defaults and validated.

    Valid arguments come back unchanged. Raises `ArgumentError` with every problem otherwise.
    Compiled schemas are remembered by content, so a schema may change between calls.
    """
    try:
        key = marshal.dumps(schema)
    except ValueError:
        return ArgumentReader(schema).read(args)
    reader = _readers.get(key)
    if reader is None:
        if len(_readers) >= _CACHE_SIZE:
            _readers.clear()
        # The copy keeps a reader from seeing changes that its key does not show.
        reader = _readers[key] = ArgumentReader(marshal.loads(key))
    return reader.read(args)

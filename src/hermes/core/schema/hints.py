"""The hints of one function: the common ones at once, the others by way of `build`."""

from __future__ import annotations

from hermes.core.errors import RegistrationError
from hermes.core.schema.signature import MISSING
from hermes.core.schema.values import HintError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermes.core.schema.build import Builder
    from hermes.core.schema.signature import Parameter, Signature
    from hermes.core.schema.values import Convert, Schema, Shape

_CONTEXT = "ToolContext"
_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_BUILTINS = {"str", "int", "float", "bool", "object", "list", "dict"}
# The schemas of hints like "list[str] | None", which most functions share, by their text;
# with the names in it, as a module may give the name of a builtin to something else.
_shared: dict[str, tuple[Schema, tuple[str, ...]]] = {
    cls.__name__: ({"type": kind}, (cls.__name__,)) for cls, kind in _PLAIN.items()
}


class HintReader:
    """Reads the hints of one function; loads what that takes only when a hint asks for it."""

    __slots__ = ("_builder", "_signature")

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._builder: Builder | None = None

    def shape(self, parameter: Parameter) -> Shape:
        """The schema of a parameter, which the caller may change, and its converter."""
        hint = parameter.annotation
        if hint is MISSING:
            return {}, None
        shape = self._known(hint) or self._built(parameter.name, hint)
        if parameter.default is None:
            from hermes.core.schema.unions import nullable

            shape = nullable(shape)
        return shape

    def others(self, name: str, hint: object) -> tuple[Schema | bool, Convert | None]:
        """What `**kwargs` takes: a schema for each value, or True for anything."""
        if hint is MISSING:
            return True, None
        schema, convert = self._built(f"**{name}", hint)
        return schema or True, convert

    def definitions(self) -> dict[str, Schema]:
        """The definitions that the schemas refer to."""
        return self._builder.definitions() if self._builder else {}

    def _known(self, hint: Any) -> Shape | None:
        if isinstance(hint, type):
            return ({"type": _PLAIN[hint]}, None) if hint in _PLAIN else None
        found = _shared.get(hint) if isinstance(hint, str) else None
        if found is None or not self._means_builtins(found[1]):
            return None
        return _copied(found[0]), None

    def _built(self, name: str, hint: object) -> Shape:
        from hermes.core.schema.build import Builder
        from hermes.core.schema.scope import Scope, names_in

        try:
            if self._builder is None:
                self._builder = Builder(Scope.of_function(self._signature.function))
            schema, convert = self._builder.shape(hint)
        except HintError as error:
            written = hint if isinstance(hint, str) else getattr(hint, "__qualname__", repr(hint))
            raise RegistrationError(
                f"{self._signature.name}: the hint of parameter '{name}', {written}, "
                f"can't be used: {error}",
                hint=error.advice,
            ) from None
        if convert is None and isinstance(hint, str):
            names = names_in(hint)
            if _BUILTINS.issuperset(names) and self._means_builtins(names):
                _shared[hint] = _copied(schema), names
        return schema, convert

    def _means_builtins(self, names: tuple[str, ...]) -> bool:
        return self._signature.function.__globals__.keys().isdisjoint(names)


def _copied(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _copied(value) for key, value in schema.items()}
    return list(schema) if isinstance(schema, list) else schema


def is_context(hint: Any) -> bool:
    """Whether a hint is the context of the call, alone, quoted, annotated or optional."""
    if hint is MISSING or hint is None:
        return False
    hint = getattr(hint, "__forward_arg__", hint)
    if isinstance(hint, str):
        return _CONTEXT in hint and _names_context(hint)
    if isinstance(hint, type):
        return any(base.__name__ == _CONTEXT for base in hint.__mro__)
    if hasattr(hint, "__metadata__"):
        return is_context(hint.__origin__)
    members = [arg for arg in getattr(hint, "__args__", ()) if arg is not type(None)]
    union = type(hint).__name__ == "UnionType" or str(hint).startswith("typing.Optional")
    return union and len(members) == 1 and is_context(members[0])


def _names_context(text: str) -> bool:
    text = text.strip().strip("'\"").strip()
    for wrapper in ("Optional[", "typing.Optional[", "Annotated[", "typing.Annotated["):
        if text.startswith(wrapper) and text.endswith("]"):
            inner = text[len(wrapper) : -1]
            return _names_context(inner.split(",")[0] if "Annotated" in wrapper else inner)
    members = [part.strip().strip("'\"") for part in text.split("|")]
    named = [part for part in members if part != "None"]
    return len(named) == 1 and named[0].rpartition(".")[2] == _CONTEXT

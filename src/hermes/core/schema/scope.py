"""Name lookup for annotations written as strings."""

from __future__ import annotations

import sys

from hermes.core.schema.field import HintError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

# Names that authors import for type checkers only, because nothing else needs them at run time.
_WELL_KNOWN = {
    "collections.abc": "Collection Iterable Mapping MutableMapping MutableSequence Sequence Set",
    "datetime": "date datetime time timedelta",
    "decimal": "Decimal",
    "pathlib": "Path PurePath",
    "typing": "Annotated Any Dict FrozenSet List Literal NamedTuple Optional Tuple TypedDict Union",
    "uuid": "UUID",
}
_HOMES = {name: module for module, names in _WELL_KNOWN.items() for name in names.split()}
_compiled: dict[str, CodeType] = {}


class Scope:
    """The names that a function or a class can see, from the inside out."""

    __slots__ = ("module", "names", "parent")

    def __init__(
        self, module: dict[str, Any], names: dict[str, Any], *, parent: Scope | None = None
    ) -> None:
        self.module = module
        self.names = names
        self.parent = parent

    @classmethod
    def of_function(cls, function: Any) -> Scope:
        """Scope of a function: its closure, the enclosing functions that still run, its module."""
        names = _enclosing(function.__qualname__, function.__globals__)
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                names[name] = cell.cell_contents
            except ValueError:
                continue  # a variable that has no value yet
        for parameter in getattr(function, "__type_params__", ()):
            names[parameter.__name__] = parameter
        return cls(function.__globals__, names, parent=cls({}, _class_names(function)))

    @classmethod
    def of_module(cls, name: str, *, parent: Scope) -> Scope:
        """Scope of a module, then the parent scope."""
        module = sys.modules.get(name)
        return cls(vars(module) if module else {}, {}, parent=parent)

    def of_class(self, owner: type) -> Scope:
        """Scope of a class body; missing names are looked up where the class was used."""
        module = sys.modules.get(owner.__module__)
        found = vars(module) if module else {}
        # The class's own names come last: in `date: date | None = None` they would hide the type.
        own = Scope({}, {owner.__name__: owner, **vars(owner)}, parent=self)
        names = _enclosing(owner.__qualname__, found)
        if "<locals>" in owner.__qualname__:
            names[owner.__name__] = owner  # the function around it may have ended
        return Scope(found, names, parent=own)

    def resolve(self, text: str) -> Any:
        """The object that an annotation stands for; HintError when a name is unknown."""
        code = _code(text)
        extra: dict[str, Any] = {}
        while True:
            try:
                # What is evaluated is source code of the tool's author, as Python itself would.
                return eval(code, self.module, {**extra, **self.names})
            except NameError as error:
                name = error.name
                found = self._elsewhere(name) if name and name not in extra else None
                if name is None or found is None:
                    raise HintError(
                        f"{error}",
                        advice=f"Import {name} where the module runs, not only under "
                        "`if TYPE_CHECKING:`, or define it before the function.",
                    ) from None
                extra[name] = found
            except (TypeError, AttributeError, LookupError, ValueError) as error:
                raise HintError(f"{error}", advice="Write a type that Python can run.") from None

    def _elsewhere(self, name: str) -> object:
        scope = self.parent
        while scope is not None:
            for known in (scope.names, scope.module):
                if name in known:
                    found: object = known[name]
                    return found
            scope = scope.parent
        if name in _HOMES:
            return getattr(__import__(_HOMES[name], fromlist=[name]), name)
        return None


def names_in(text: str) -> tuple[str, ...]:
    """Every name that an annotation mentions."""
    return _code(text).co_names


def _code(text: str) -> CodeType:
    code = _compiled.get(text)
    if code is None:
        try:
            code = compile(text.strip(), "<annotation>", "eval")
        except SyntaxError as error:
            raise HintError(f"{error.msg}", advice="Write it as a Python expression.") from None
        _compiled[text] = code
    return code


def _class_names(function: Any) -> dict[str, Any]:
    """The names of the class that a method of a module's class belongs to."""
    owner: Any = None
    first, *rest = function.__qualname__.split(".")[:-1] or [""]
    if first:
        owner = function.__globals__.get(first)
    for name in rest:
        owner = getattr(owner, name, None)
    return dict(vars(owner)) if isinstance(owner, type) else {}


def _enclosing(qualname: str, module: dict[str, Any]) -> dict[str, Any]:
    """The local names of those functions and classes around a definition that still run."""
    names: dict[str, Any] = {}
    if "." not in qualname:
        return names
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect is not worth it
    while frame is not None:
        if frame.f_globals is module and qualname.startswith(frame.f_code.co_qualname + "."):
            frames.append(frame)
        frame = frame.f_back
    for enclosing in reversed(frames):
        names.update(enclosing.f_locals)
    return names

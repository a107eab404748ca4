"""function_schema: the JSON Schema of a function, from its signature, type hints and docstring."""

from __future__ import annotations

import sys
from types import FunctionType, MethodType

from hermes.core.errors import ArgumentError, RegistrationError
from hermes.core.schema.docstrings import parse
from hermes.core.schema.field import BadValueError, HintError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import CodeType, FrameType
    from typing import Any

    from hermes.core.schema.field import Convert, Schema, Shape
    from hermes.core.schema.types import Builder


_VARARGS, _VARKEYWORDS, _COROUTINE = 0x04, 0x08, 0x80
_MOST_LAYERS = 100  # of decorators and partials around one function


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


class Parameter:
    """One parameter that can be passed by name."""

    __slots__ = ("annotation", "default", "name")

    def __init__(self, name: str, annotation: object, default: object) -> None:
        self.name = name
        self.annotation = annotation
        self.default = default


class Signature:
    """Parameters of a callable without the bound ones, and its underlying function."""

    __slots__ = ("doc", "function", "is_async", "keywords", "keywords_name", "name", "parameters")

    def __init__(self, fn: Callable[..., Any]) -> None:
        consumed = 0
        fixed: set[str] = set()
        if type(fn) is FunctionType and not fn.__dict__:  # the common case, at a third of the cost
            function = fn
            self.is_async = bool(fn.__code__.co_flags & _COROUTINE)
            self.doc = fn.__doc__
        else:
            function, consumed, fixed = _unwrap(fn)
            self.is_async = _is_async(fn)
            self.doc = _doc(fn) or function.__doc__
        self.function = function
        self.name = function.__qualname__
        self.parameters: list[Parameter] = []
        self.keywords: object = MISSING  # the annotation of **kwargs
        self.keywords_name: str | None = None
        self._read(consumed, fixed)

    def _read(self, consumed: int, fixed: set[str]) -> None:
        function = self.function
        code = function.__code__
        names = code.co_varnames
        count = code.co_argcount
        end = count + code.co_kwonlyargcount
        hints = annotations_of(function)
        if code.co_flags & _VARARGS:
            raise RegistrationError(
                f"{self.name} takes *{names[end]}, and a tool is called by name",
                hint="Take a list instead; in a decorator, use functools.wraps.",
            )
        defaults = function.__defaults__ or ()
        first_default = count - len(defaults)
        for index in range(consumed, count):
            name = names[index]
            if name in fixed:
                continue
            if index < code.co_posonlyargcount:
                raise RegistrationError(
                    f"{self.name}: the parameter '{name}' is positional-only, "
                    "and a tool is called by name",
                    hint="Remove the '/' from the signature.",
                )
            default = defaults[index - first_default] if index >= first_default else MISSING
            self.parameters.append(Parameter(name, hints.get(name, MISSING), default))
        keyword_defaults = function.__kwdefaults__ or {}
        for name in names[count:end]:
            if name not in fixed:
                default = keyword_defaults.get(name, MISSING)
                self.parameters.append(Parameter(name, hints.get(name, MISSING), default))
        if code.co_flags & _VARKEYWORDS:
            self.keywords_name = names[end]
            self.keywords = hints.get(names[end], MISSING)


def annotations_of(owner: Any) -> dict[str, Any]:
    """The annotations written on a function or on this very class; text where they can't run."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        try:
            return get_annotations(owner)
        except NameError:
            return get_annotations(owner, format=Format.STRING)
    found = owner.__dict__ if isinstance(owner, type) else {}
    return found.get("__annotations__", {}) if found else getattr(owner, "__annotations__", {})


def _unwrap(fn: Any) -> tuple[FunctionType, int, set[str]]:
    """The innermost function, how many leading parameters are bound, and which names are."""
    consumed = 0
    fixed: set[str] = set()
    target = fn
    for _ in range(_MOST_LAYERS):
        if isinstance(target, MethodType):
            consumed += 1
            target = target.__func__
        elif _is_partial(target):
            consumed += len(target.args)
            fixed.update(target.keywords)
            target = target.func
        elif getattr(target, "__wrapped__", None) is not None:
            target = target.__wrapped__
        elif isinstance(target, FunctionType):
            return target, consumed, fixed
        elif not isinstance(target, type) and isinstance(_call_method(target), FunctionType):
            consumed += 1
            target = _call_method(target)
        else:
            break
    raise RegistrationError(
        f"{fn!r} has no Python signature to make a schema from",
        hint="Write a function with `def` that calls it.",
    )


def _is_partial(target: object) -> bool:
    functools = sys.modules.get("functools")
    return functools is not None and isinstance(target, functools.partial)


def _is_async(fn: Any) -> bool:
    """Whether calling it makes a coroutine: the outermost function decides."""
    while _is_partial(fn) or isinstance(fn, MethodType):
        fn = fn.func if _is_partial(fn) else fn.__func__
    code = getattr(fn, "__code__", None) or getattr(_call_method(fn), "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE)


def _doc(fn: Any) -> str | None:
    if _is_partial(fn):
        own: str | None = fn.__dict__.get("__doc__")
        return own or _doc(fn.func)
    if isinstance(fn, (FunctionType, MethodType)) or hasattr(fn, "__wrapped__"):
        text: str | None = fn.__doc__
        return text
    return getattr(_call_method(fn), "__doc__", None) or type(fn).__doc__


def _call_method(target: object) -> Any:
    return getattr(type(target), "__call__", None)  # noqa: B004 - the method itself is wanted


_CONTEXT = "ToolContext"
_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_BUILTINS = {"str", "int", "float", "bool", "object", "list", "dict"}
# The schemas of hints like "list[str] | None", which most functions share, by their text;
# with the names in it, as a module may give the name of a builtin to something else.
_shared: dict[str, tuple[Schema, tuple[str, ...]]] = {
    cls.__name__: ({"type": kind}, (cls.__name__,)) for cls, kind in _PLAIN.items()
}


class HintReader:
    """Reads the hints of one function; loads the general part only for uncommon hints."""

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
            from hermes.core.schema.composites import nullable

            shape = nullable(shape)
        return shape

    def others(self, name: str, hint: object) -> tuple[Schema | bool, Convert | None]:
        """Schema of the values of `**kwargs`; True for any value."""
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
        from hermes.core.schema.types import Builder

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


class FunctionSchema:
    """Description and parameters of a function for the model; converter of its arguments."""

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
        skip: Parameters that the caller fills in; they stay out of the schema.

    Raises:
        RegistrationError: A parameter that no call can pass, a hint without a schema, or a
            docstring that describes a parameter that does not exist.
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
    from hermes.core.schema.field import as_json

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

"""Tools, calls and results: ToolEntry, ToolCall, ToolResult, ToolOutcome; handler invocation."""

from __future__ import annotations

from hermes.core.errors import RegistrationError
from hermes.core.json_text import to_json
from hermes.core.log import Log

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Literal


if TYPE_CHECKING:
    Effect = Literal["read", "write", "execute", "network", "message"]
    Concurrency = Literal["parallel", "exclusive", "resource"]
    Origin = Literal["builtin", "yaml", "plugin", "mcp", "custom"]

log = Log("hermes.entry")

# What a call may change. Only "read" is known to change nothing.
EFFECTS = ("read", "write", "execute", "network", "message")

DEFAULT_RESULT_SIZE = 50_000

# Who may hold a name when two want it and neither asked to override, whatever the load order.
PRECEDENCE = {"builtin": 0, "custom": 1, "yaml": 2, "plugin": 3, "mcp": 4}


class ToolEntry:
    """One version of one tool. Immutable: a change is a new entry.

    `invoke(arguments, context)` calls the handler as its signature requires. `handler` is None
    while the tool is known only from the manifest; `module` is then the module to import.
    """

    __slots__ = (
        "_arguments",
        "acts",
        "aliases",
        "check_fn",
        "concurrency",
        "description",
        "dynamic_schema_overrides",
        "effect",
        "emoji",
        "handler",
        "invoke",
        "is_async",
        "keeps",
        "lifecycle",
        "locks",
        "max_result_size_chars",
        "module",
        "name",
        "origin",
        "override",
        "owner",
        "parameters",
        "permissions",
        "reads_when",
        "requires_env",
        "tags",
        "takes_context",
        "timeout_seconds",
        "toolset",
        "untrusted",
        "version",
    )

    def __init__(
        self,
        name: str,
        toolset: str,
        schema: Mapping[str, Any],
        handler: Callable[..., Any] | None,
        *,
        invoke: Callable[[dict[str, Any], Any], Any] | None = None,
        check_fn: Callable[[], bool] | None = None,
        requires_env: Sequence[str] = (),
        is_async: bool = False,
        description: str = "",
        emoji: str = "",
        max_result_size_chars: int | None = None,
        dynamic_schema_overrides: Callable[[frozenset[str]], Mapping[str, Any]] | None = None,
        aliases: Sequence[str] = (),
        permissions: Sequence[str] = (),
        effect: Effect = "execute",
        reads_when: Mapping[str, Sequence[Any]] | None = None,
        acts: Mapping[str, str] | Callable[..., Any] | None = None,
        keeps: str = "",
        untrusted: bool = False,
        concurrency: Concurrency | None = None,
        locks: Sequence[str] = (),
        timeout_seconds: float | None = None,
        tags: Sequence[str] = (),
        origin: Origin = "custom",
        owner: str = "",
        override: bool = False,
        module: str = "",
        lifecycle: Lifecycle | None = None,
        version: int = 1,
        takes_context: bool = True,
    ) -> None:
        if effect not in EFFECTS:
            raise RegistrationError(
                f"tool {name!r} has the unknown effect {effect!r}",
                hint=f"Use one of {', '.join(EFFECTS)}.",
            )
        if concurrency not in (None, "parallel", "exclusive", "resource"):
            raise RegistrationError(f"tool {name!r} has the unknown concurrency {concurrency!r}")
        if not toolset or not isinstance(toolset, str):
            raise RegistrationError(f"tool {name!r} names no toolset")
        if check_fn is not None and (not callable(check_fn) or type(check_fn).__hash__ is None):
            raise RegistrationError(f"check_fn of {name!r} is no function: {check_fn!r:.80}")
        self.name = name
        self.toolset = toolset
        self.parameters = parameters_of(name, schema)
        self.description = description or str(schema.get("description", ""))
        self.handler = handler
        self.invoke = invoke
        self.check_fn = check_fn
        self.requires_env = _several(requires_env)
        self.is_async = is_async
        self.emoji = emoji
        self.max_result_size_chars = max_result_size_chars
        self.dynamic_schema_overrides = dynamic_schema_overrides
        self.aliases = _several(aliases)
        self.permissions = _several(permissions)
        self.effect: Effect = effect
        self.reads_when = {key: _several(values) for key, values in (reads_when or {}).items()}
        # Which parameters are paths, commands, addresses, for the gate: `safety/call_effects.py`.
        self.acts: Any = acts if callable(acts) else dict(acts or {})
        # What it writes that later conversations load by themselves: "memory", "skills", "cron", …
        self.keeps = keeps
        # Whether its results hold words of strangers; those of web and MCP tools do anyway.
        self.untrusted = untrusted
        self.locks = _several(locks)
        self.concurrency: Concurrency = concurrency or _concurrency(effect, self.locks)
        self.timeout_seconds = _limit(name, timeout_seconds)
        self.tags = _several(tags)
        self.origin: Origin = origin
        self.owner = owner
        self.override = override
        self.module = module
        self.lifecycle = lifecycle
        self.version = version
        # Whether the handler looks at its context; most do not, and need none of their own.
        self.takes_context = takes_context
        self._arguments: Any = None

    def __repr__(self) -> str:
        return f"<tool {self.name} v{self.version} of {self.holder}>"

    @property
    def schema(self) -> dict[str, Any]:
        """The function as model APIs want it: name, description, parameters."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": _visible(self.parameters),
        }

    def effect_of(self, arguments: Mapping[str, Any]) -> Effect:
        """Effect of one call: `read` with the arguments that `reads_when` names."""
        for name, values in self.reads_when.items():
            given = arguments.get(name)
            # By type too: 1 is not True here, and what asks must not be talked out of asking.
            if any(type(value) is type(given) and value == given for value in values):
                return "read"
        return self.effect

    @property
    def definition(self) -> dict[str, Any]:
        """The schema in OpenAI's wrapping."""
        return {"type": "function", "function": self.schema}

    def definition_among(self, offered: frozenset[str]) -> dict[str, Any]:
        """The definition for a model, adapted to the other tools that are offered."""
        function = self.schema
        overrides = self.dynamic_schema_overrides
        if overrides is not None:
            code = getattr(overrides, "__code__", None)
            takes_none = code is not None and code.co_argcount == 0
            try:
                changes: Any = overrides() if takes_none else overrides(offered)  # type: ignore[call-arg]
                function.update(changes or {})
            except Exception:
                # Said less well, but said: one tool must not take every definition down.
                log.exception("the schema overrides of %s failed", self.name)
        return {"type": "function", "function": function}

    @property
    def arguments(self) -> Any:
        """The compiled reader of this tool's arguments, made at the first call."""
        if self._arguments is None:
            from hermes.core.arguments import ArgumentReader

            self._arguments = ArgumentReader(self.parameters, for_python=True)
        return self._arguments

    @property
    def holder(self) -> str:
        """Who holds the name, for people: `toolset "web" (plugin acme)`."""
        owner = f"{self.origin} {self.owner}".strip()
        return f'toolset "{self.toolset}" ({owner})'

    def replaced(self, **changes: Any) -> ToolEntry:
        """A copy of this entry with some fields changed."""
        twin = ToolEntry.__new__(ToolEntry)
        for slot in ToolEntry.__slots__:
            setattr(twin, slot, changes[slot] if slot in changes else getattr(self, slot))
        return twin


class Lifecycle:
    """A tool with a life of its own, and so an end; `core/tool_definition.py` implements it."""

    def close(self) -> Any:
        """Release the resources of the tool at shutdown; may return an awaitable."""


class ToolCall:
    """A call by a model: tool name, and arguments as an object or as raw text."""

    __slots__ = ("arguments", "id", "name")

    def __init__(
        self,
        name: str,
        arguments: dict[str, Any] | str | None = None,
        *,
        id: str = "",  # noqa: A002
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.id = id

    def __repr__(self) -> str:
        return f"ToolCall({self.name!r}, {self.arguments!r}, id={self.id!r})"


class ToolOutcome:
    """Outcome of a call. `content` is the JSON text for the model, in every case.

    `source` names the origin of untrusted text in it.
    """

    __slots__ = (
        "artifact",
        "call_id",
        "content",
        "error",
        "name",
        "rule",
        "seconds",
        "source",
        "status",
    )

    def __init__(
        self,
        call_id: str,
        name: str,
        content: str,
        status: Literal["ok", "error", "refused", "timeout", "cancelled"] = "ok",
        error: str | None = None,
        rule: str = "",
        seconds: float = 0.0,
        artifact: str | None = None,
        source: str = "",
    ) -> None:
        self.call_id = call_id
        self.name = name
        self.content = content
        self.status = status
        self.error = error
        self.rule = rule
        self.seconds = seconds
        self.artifact = artifact
        self.source = source

    def __repr__(self) -> str:
        return f"<{self.status} {self.name} {self.content[:80]}>"

    def copy(self) -> ToolOutcome:
        """A copy, for observers."""
        twin = ToolOutcome.__new__(ToolOutcome)
        for slot in ToolOutcome.__slots__:
            setattr(twin, slot, getattr(self, slot))
        return twin

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.status == "ok"

    @property
    def value(self) -> Any:
        """`content` as Python values."""
        import json

        return json.loads(self.content)


def parameters_of(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the arguments, from a function schema or from itself."""
    if not isinstance(schema, dict):
        raise RegistrationError(f"the schema of {name!r} is not an object: {schema!r:.80}")
    inner = schema.get("function", schema)
    if not isinstance(inner, dict):
        inner = schema
    parameters = inner.get("parameters", None) if "properties" not in inner else None
    if parameters is None:
        parameters = {} if inner.keys() & {"name", "parameters"} else dict(inner)
        parameters.pop("description", None)
    if not isinstance(parameters, dict):
        raise RegistrationError(f"the parameters of {name!r} are not an object")
    whole = {"type": "object", "properties": {}, **parameters}
    if whole["type"] != "object" or not isinstance(whole["properties"], dict):
        raise RegistrationError(
            f"the parameters of {name!r} are no object",
            hint='Use {"type": "object", "properties": {...}}.',
        )
    return whole


def _several(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values; a single text is one value, not its letters."""
    return (values,) if isinstance(values, str) else tuple(values)


def _limit(name: str, seconds: float | None) -> float | None:
    if seconds is None or seconds == float("inf"):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise RegistrationError(f"timeout_seconds of {name!r} must be above 0, not {seconds!r:.40}")
    # Longer waits than this are refused by the system.
    return min(seconds, 1e6)


def _concurrency(effect: str, locks: tuple[str, ...]) -> Concurrency:
    if locks:
        return "resource"
    return "parallel" if effect == "read" else "exclusive"


def _visible(parameters: dict[str, Any]) -> dict[str, Any]:
    """A schema without the parameters that models are not sent (`Field(hidden=True)`)."""
    fields = parameters.get("properties")
    if not isinstance(fields, dict) or not any(
        isinstance(field, dict) and "x-hidden" in field for field in fields.values()
    ):
        return parameters
    shown = {name: field for name, field in fields.items() if "x-hidden" not in field}
    return {**parameters, "properties": shown}


class ToolResult:
    """Result of a handler, with more than plain data.

    With `error` set, the call failed. `notes` are short remarks for the model beside the data
    (cut, skipped). `source` names the origin of untrusted data that only the handler knows; the
    data are marked as a whole.
    """

    __slots__ = ("data", "error", "extra", "hint", "notes", "source")

    def __init__(
        self,
        data: Any = None,
        *,
        error: str | None = None,
        hint: str | None = None,
        notes: list[str] | None = None,
        source: str = "",
        **extra: Any,
    ) -> None:
        self.data = data
        self.error = error
        self.hint = hint
        self.notes = notes or []
        self.source = source
        self.extra = extra

    def __repr__(self) -> str:
        return f"ToolResult({self.value()!r})"

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None

    def value(self) -> Any:
        """The JSON value the model reads."""
        if self.error is not None:
            shown: dict[str, Any] = {"error": self.error}
            if self.hint:
                shown["hint"] = self.hint
            if self.data is not None:
                shown["data"] = self.data
        elif not self.notes and not self.extra:
            return self.data
        else:
            shown = dict(self.data) if isinstance(self.data, dict) else {"result": self.data}
        shown.update(self.extra)
        if self.notes:
            shown["notes"] = self.notes
        return shown


class JsonText(str):
    """Text that is JSON already and is not encoded again."""

    __slots__ = ()


def tool_error(message: str, **extra: Any) -> str:
    """`{"error": message, …}` as JSON text, non-ASCII kept."""
    return JsonText(to_json({"error": str(message), **extra}))


def tool_result(data: Any = None, **fields: Any) -> str:
    """`data`, or the named fields, or both in one object, as JSON text, non-ASCII kept."""
    if not fields:
        return JsonText(to_json(data))
    if data is None:
        return JsonText(to_json(fields))
    if isinstance(data, dict):
        return JsonText(to_json({**data, **fields}))
    return JsonText(to_json({"result": data, **fields}))


if TYPE_CHECKING:
    Invoke = Callable[[dict[str, Any], Any], Any]

_VARIADIC = 0x08  # code flag: takes **kwargs
_COROUTINE = 0x80
_CONTEXT_NAMES = ("ctx", "context")


def is_coroutine_function(handler: Callable[..., Any]) -> bool:
    """Whether calling `handler` gives an awaitable, seen without importing `inspect`."""
    code = _code(_unwrapped(handler))
    return code is not None and bool(code.co_flags & _COROUTINE)


def keyword_invoke(
    handler: Callable[..., Any],
    context_parameter: str | None,
    convert: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Invoke:
    """Calls `handler` with the arguments as keywords."""
    if convert is not None:
        if context_parameter:
            return lambda args, ctx: handler(**convert(args), **{context_parameter: ctx})
        return lambda args, ctx: handler(**convert(args))  # noqa: ARG005
    if context_parameter:
        return lambda args, ctx: handler(**args, **{context_parameter: ctx})
    return lambda args, ctx: handler(**args)  # noqa: ARG005


def invoke_for(handler: Callable[..., Any], properties: Collection[str]) -> Invoke:
    """How to call a handler that was registered beside an explicit schema."""
    function = _unwrapped(handler)
    code = _code(function)
    if code is None:
        # A builtin or C callable says nothing of itself: the arguments go in by name.
        return keyword_invoke(handler, None)
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    positional = names[: code.co_argcount]
    by_place = set(names[: code.co_posonlyargcount])
    given = _given(handler) + bool(positional and _is_bound(function))
    names = [name for name in names if name not in positional[:given]]
    positional = positional[given:]
    context = _context_parameter(function, names, properties)
    if context in positional:
        positional.remove(context)
    variadic = bool(code.co_flags & _VARIADIC)
    if not positional or positional[0] in properties:
        missing = [
            name for name in properties if name in by_place or (name not in names and not variadic)
        ]
        if missing:
            raise RegistrationError(
                f"handler {handler!r} has no parameter for {', '.join(missing)} of its schema",
                hint="Name the parameters as in the schema, or take one mapping: handler(args).",
            )
        return keyword_invoke(handler, context)
    if context:
        return lambda args, ctx: handler(args, **{context: ctx})
    if variadic:
        return lambda args, ctx: handler(args, context=ctx, task_id=ctx.task_id)
    return lambda args, ctx: handler(args)  # noqa: ARG005


def _unwrapped(handler: Any) -> Any:
    """The function inside `functools.partial`."""
    while _is_partial(handler):
        handler = handler.func
    return handler


def _given(handler: Any) -> int:
    """How many leading arguments a `functools.partial` has filled in."""
    return _given(handler.func) + len(handler.args) if _is_partial(handler) else 0


def _is_partial(handler: Any) -> bool:
    return type(handler).__module__ == "functools" and hasattr(handler, "func")


def _code(handler: Callable[..., Any]) -> Any:
    target: Any = handler
    if not hasattr(target, "__code__") and not hasattr(target, "__func__"):
        target = getattr(type(target), "__call__", None)  # noqa: B004
    target = getattr(target, "__func__", target)
    return getattr(target, "__code__", None)


def _is_bound(handler: Callable[..., Any]) -> bool:
    return hasattr(handler, "__self__") or not hasattr(handler, "__code__")


def _context_parameter(handler: Any, names: list[str], properties: Collection[str]) -> str | None:
    notes = getattr(handler, "__annotations__", {})
    for name in names:
        note = notes.get(name)
        if (note if isinstance(note, str) else getattr(note, "__name__", "")) == "ToolContext":
            return name
    return next((n for n in _CONTEXT_NAMES if n in names and n not in properties), None)

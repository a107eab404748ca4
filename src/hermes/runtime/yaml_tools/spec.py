"""Tool specifications of a YAML file as plain values."""

from __future__ import annotations

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from hermes.core.entry import Effect
    from hermes.runtime.yaml_tools.jsonpath import JsonPath
    from hermes.runtime.yaml_tools.template import Template

    Place = Literal["path", "query", "body", "header", "argument"]

TYPES = ("string", "integer", "number", "boolean", "array", "object")


class Parameter:
    """One parameter of a tool: its schema and its location in the request."""

    __slots__ = ("allow_dash", "line", "name", "place", "required", "schema", "type")

    def __init__(
        self,
        name: str,
        type: str = "string",  # noqa: A002
        *,
        required: bool = False,
        place: Place | None = None,
        allow_dash: bool = False,
        schema: dict[str, Any] | None = None,
        line: int = 0,
    ) -> None:
        self.name = name
        self.type = type
        self.required = required
        self.place = place
        self.allow_dash = allow_dash
        self.schema = schema or {"type": type}
        self.line = line

    @property
    def always(self) -> bool:
        """Whether every call has a value for it."""
        return self.required or "default" in self.schema


class Auth:
    """How a request says who it is: a header, made of environment variables."""

    __slots__ = ("header", "names", "type")

    def __init__(
        self,
        type: str = "none",  # noqa: A002
        *,
        header: str = "Authorization",
        names: Sequence[str] = (),
    ) -> None:
        self.type = type
        self.header = header
        # The variables: user name and password for `basic`, the token for the others.
        self.names = tuple(names)


class HttpSpec:
    """The HTTP side of an `http_wrapper`."""

    __slots__ = ("auth", "headers", "method", "origin", "query", "response", "segments")

    def __init__(
        self,
        origin: str,
        segments: Sequence[Template],
        query: Sequence[Template],
        *,
        method: str = "GET",
        auth: Auth | None = None,
        headers: dict[str, str] | None = None,
        response: ResponseSpec | None = None,
    ) -> None:
        self.origin = origin
        self.segments = tuple(segments)
        self.query = tuple(query)
        self.method = method
        self.auth = auth or Auth()
        self.headers = headers or {}
        self.response = response or ResponseSpec()


class ResponseSpec:
    """Which part of an answer the model sees, and how it reads; the whole when both are None."""

    __slots__ = ("path", "template")

    def __init__(self, path: JsonPath | None = None, template: Template | None = None) -> None:
        self.path = path
        self.template = template


class CommandSpec:
    """The process side of a `command`; a group of arguments is there as a whole or not at all."""

    __slots__ = ("env", "groups", "program", "workdir")

    def __init__(
        self,
        program: str,
        groups: Sequence[tuple[Template, ...]],
        *,
        workdir: str = "",
        env: Sequence[str] = (),
    ) -> None:
        self.program = program
        self.groups = tuple(groups)
        self.workdir = workdir
        self.env = tuple(env)


class Definition:
    """One tool of a file. Two that compare equal were written with the same values."""

    __slots__ = (
        "description",
        "effect",
        "line",
        "name",
        "parameters",
        "source",
        "spec",
        "tags",
        "timeout_seconds",
        "toolset",
        "type",
    )

    def __init__(
        self,
        name: str,
        type: str,  # noqa: A002
        spec: HttpSpec | CommandSpec,
        *,
        description: str,
        parameters: Sequence[Parameter],
        effect: Effect,
        toolset: str,
        timeout_seconds: float,
        tags: Sequence[str],
        source: Any,
        line: int,
    ) -> None:
        self.name = name
        self.type = type
        self.spec = spec
        self.description = description
        self.parameters = {parameter.name: parameter for parameter in parameters}
        self.effect: Effect = effect
        self.toolset = toolset
        self.timeout_seconds = timeout_seconds
        self.tags = tuple(tags)
        self.source = source
        self.line = line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and self.source == other.source

    __hash__ = None  # type: ignore[assignment]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: one.schema for name, one in self.parameters.items()},
            "additionalProperties": False,
        }
        required = [
            name
            for name, one in self.parameters.items()
            if one.required and "default" not in one.schema
        ]
        if required:
            schema["required"] = required
        return schema

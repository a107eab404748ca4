"""ToolResult, and its JSON form."""

from __future__ import annotations

from hermes.core.json_text import to_json

TYPE_CHECKING = False  # spelled out: `typing` costs 4 ms at start-up
if TYPE_CHECKING:
    from typing import Any


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

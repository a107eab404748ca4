"""HTTP error responses of model servers: the error for the person, and whether to retry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from hermes.core.model_protocol import ModelError, WindowError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
# Longest wait that a server may ask for.
_MAX_WAIT_SECONDS = 120.0

# Text patterns, compiled when an error occurs: compiling costs time at start-up.
_TOO_LONG = (
    r"context[ _-]?(?:length|window|size)|maximum context|prompt (?:is )?too long|too many tokens"
    r"|exceeds? (?:the )?(?:available )?context|input (?:is )?too long|reduce the length"
    r"|exceeds the (?:maximum|limit).{0,40}tokens|request_too_large|string_above_max_length"
)
_NO_CREDIT = (
    r"insufficient[ _](?:quota|balance|credits?|funds)|credit balance|billing|payment|exceeded your"
    r" current quota|out of credits"
)
_NO_MODEL = r"model.{0,80}(?:not (?:found|exist)|does not exist|unknown|invalid)"


class RetryLater(Exception):  # noqa: N818 - not an error yet
    """A request failed before the answer began and can be retried, after `wait` seconds if set."""

    def __init__(self, error: ModelError, wait: float | None = None, *, tries: int = 5) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait
        self.tries = tries


class BrokenStream(Exception):  # noqa: N818 - not an error yet
    """A stream that broke off, stalled, or is invalid."""


def response_error(
    status: int, headers: Mapping[str, str], body: bytes, *, where: str, model: str
) -> ModelError | RetryLater:
    """The error for a response with an error status."""
    text, code = _body_fields(body)
    return _error(status, text, code, headers, where=where, model=model)


def stream_error(
    event: dict[str, Any], *, where: str, model: str
) -> ModelError | RetryLater | None:
    """The error that an event of a stream reports; None for any other event."""
    error = event.get("error")
    if not error and event.get("type") == "response.failed":
        error = (event.get("response") or {}).get("error")
    if not error and event.get("type") == "error":
        error = event
    if not error:
        return None
    text, code = _error_fields(error)
    numbers = {"rate_limit_error": 429, "rate_limit_exceeded": 429, "overloaded_error": 529}
    numbers |= {"api_error": 500, "server_error": 500, "invalid_request_error": 400}
    numbers |= {"authentication_error": 401, "permission_error": 403, "timeout_error": 504}
    status = int(code) if code.isdecimal() and len(code) == 3 else numbers.get(code, 500)
    return _error(status, text, code, {}, where=where, model=model)


def _error(
    status: int, text: str, code: str, headers: Mapping[str, str], *, where: str, model: str
) -> ModelError | RetryLater:
    """Classify an error by its status and text."""
    reason = _redacted_line(text)
    message = f"{where} answered {status}" + (f": {reason}" if reason else "")
    if status == 413 or (status in (400, 422, 500) and _matches(_TOO_LONG, f"{code} {text}")):
        return WindowError(
            f"the conversation is too long for {model}: {reason or status}",
            hint="Compress the conversation, or choose a model with a larger window.",
            status=status,
        )
    if status == 402 or (status in (400, 403, 429) and _matches(_NO_CREDIT, f"{code} {text}")):
        return ModelError(message, hint="Add credit there, or choose another model.", status=status)
    if status in (401, 403):
        return ModelError(message, hint="Look at the key: hermes setup.", status=status)
    if status == 404 or (status == 400 and _matches(_NO_MODEL, text)):
        return ModelError(
            message,
            hint=f"Look at the model's name ({model}) and the address: hermes model.",
            status=status,
        )
    if 300 <= status < 400:
        target = headers.get("location", "elsewhere")
        hint = f"The address leads to {target[:200]}: set model.base_url to it."
        return ModelError(message, hint=hint, status=status)
    if status not in _TRANSIENT or headers.get("x-should-retry") == "false":
        return ModelError(
            message,
            hint=None if reason else "The server gave no reason; its log may.",
            status=status,
        )
    error = ModelError(message, hint="Try again later.", retryable=True, status=status)
    wait = retry_after(headers)
    if wait is not None and wait > _MAX_WAIT_SECONDS:
        error.hint = f"It asks to wait for {wait:.0f} s. Try again then, or use another model."
        return error
    return RetryLater(error, wait)


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from the response headers; None if there is no such header."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return _seconds_until(headers.get("retry-after", ""))


def _seconds_until(date: str) -> float | None:
    import time
    from email.utils import mktime_tz, parsedate_tz

    parsed = parsedate_tz(date) if date else None
    try:
        return None if parsed is None else max(mktime_tz(parsed) - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _body_fields(body: bytes) -> tuple[str, str]:
    """Text and code of an error body: JSON of several shapes, HTML or plain text."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body.decode("utf-8", "replace")
        # An HTML page of a proxy: its title is enough.
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        return (title.group(1) if title else text), ""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        return _error_fields(value.get("error") or value.get("errors") or value)
    return str(value), ""


def _error_fields(error: Any) -> tuple[str, str]:
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, dict):
        return str(error), ""
    text = error.get("message") or error.get("detail") or error.get("msg") or ""
    inner = error.get("metadata")
    if isinstance(inner, dict) and inner.get("raw"):
        # A gateway quotes the error of the provider behind it.
        text = f"{text}: {inner['raw']}"
    if not isinstance(text, str):
        text = msgspec.json.encode(text).decode()
    code = error.get("code") or error.get("type") or error.get("status") or ""
    return text or msgspec.json.encode(error).decode(), str(code)


def _redacted_line(text: str) -> str:
    """An error text as one line without secrets: some servers repeat the rejected key."""
    from hermes.safety import redact

    line = " ".join(redact(text).split())
    return line if len(line) <= 400 else f"{line[:400]}…"

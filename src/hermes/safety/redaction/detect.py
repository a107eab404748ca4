"""Detection: runs the detectors that the prefilter selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.redaction.credential_formats import find_keys, find_shapes
from hermes.safety.redaction.http_values import find_headers, find_links, find_queries
from hermes.safety.redaction.option_values import (
    find_named_values,
    find_netrc,
    find_options,
    find_program_options,
    find_settings,
    find_sql,
)
from hermes.safety.redaction.pairs import find_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.prefilter import Prefilter, Span


def detect(text: str, seen: Prefilter) -> Iterator[Span]:
    """Each secret by format or name; `seen` is the result of `prefilter(text)`."""
    low, keywords = seen.low, seen.keywords
    if seen.run:
        yield from find_shapes(text, seen.classed)
    if seen.linked:
        yield from find_links(text)
    if (seen.linked or keywords) and "=" in text and ("?" in text or "&" in text):
        yield from find_queries(text)
    if keywords:
        yield from _by_name(text, low, keywords)
    if "auth" in keywords or "cookie" in keywords or (seen.run and "earer" in low):
        yield from find_headers(text, low)
    if seen.option:
        yield from find_program_options(text)
    if seen.sql:
        yield from find_sql(text)


def _by_name(text: str, low: str, keywords: list[str]) -> Iterator[Span]:
    yield from find_pairs(text, low, keywords)
    if "--" in text:
        yield from find_options(text)
    if "val" in low:
        yield from find_named_values(text, low)
    if "ENV " in text or " set " in text:
        yield from find_settings(text)
    if "pass" in keywords and "login" in low:
        yield from find_netrc(text)
    if "key" in keywords and "PRIVATE KEY" in text:
        yield from find_keys(text)

"""The close look: every detector that can have something to say about a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.redaction.commands import find_program_options, find_sql
from hermes.safety.redaction.formats import find_shapes
from hermes.safety.redaction.gate import KEYWORDS, RUN_CLASS, classes, has_option, lower
from hermes.safety.redaction.headers import find_headers
from hermes.safety.redaction.links import find_links, find_queries
from hermes.safety.redaction.options import (
    find_named_values,
    find_netrc,
    find_options,
    find_settings,
)
from hermes.safety.redaction.pairs import find_pairs
from hermes.safety.redaction.pem import find_keys
from hermes.safety.redaction.squeeze import squeeze

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.safety.redaction.squeeze import Span


def detect(text: str) -> Iterator[Span]:
    """Each secret that shows by shape or by name, also with invisible characters in between."""
    classed = classes(text)
    yield from _detect(text, classed)
    plain = "\x01" in classed
    if plain or "\\" in text:
        seen = squeeze(text, plain=plain)
        if seen:
            yield from map(seen.original, _detect(seen.text, classes(seen.text)))


def _detect(text: str, classed: str) -> Iterator[Span]:
    low = lower(text)
    keywords = [word for word in KEYWORDS if word in low]
    run = RUN_CLASS in classed
    if run:
        yield from find_shapes(text, classed)
    linked = "://" in text
    if linked:
        yield from find_links(text)
    if (linked or keywords) and "=" in text and ("?" in text or "&" in text):
        yield from find_queries(text)
    if keywords:
        yield from _by_name(text, low, keywords)
    if "auth" in keywords or "cookie" in keywords or (run and "earer" in low):
        yield from find_headers(text, low)
    if has_option(text):
        yield from find_program_options(text)
    if "'" in text and ("identified by" in low or "password '" in low):
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

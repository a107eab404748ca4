"""Corpora: one test for all cases of a table, which names every case that fails."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def each(names: str | Sequence[str], cases: Iterable[Any], **_: Any) -> Callable[[Any], Any]:
    """Like `pytest.mark.parametrize`, for tests without fixtures: hundreds of cases cost as one test.

    Stacked, it makes all combinations.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [dict(zip(keys, _values(case, len(keys)), strict=True)) for case in cases]

    def decorate(test: Any) -> Any:
        check, before = getattr(test, "corpus", (test, [{}]))
        table = [{**some, **more} for more in rows for some in before]

        @functools.wraps(check)
        def run() -> None:
            failures = []
            for row in table:
                try:
                    check(**row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are listed
                    failures.append(f"{row!r:.300}\n    {type(error).__name__}: {error!s:.600}")
            if failures:
                text = "\n".join(failures[:50])
                pytest.fail(f"{len(failures)} of {len(table)} cases:\n{text}", pytrace=False)

        del run.__wrapped__  # pytest would ask for its arguments as fixtures
        run.corpus = check, table  # type: ignore[attr-defined]
        return run

    return decorate


def _values(case: Any, count: int) -> Sequence[Any]:
    if hasattr(case, "marks"):  # pytest.param
        return case.values
    return [case] if count == 1 else case

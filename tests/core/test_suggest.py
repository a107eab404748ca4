"""Suggestions for mistyped names."""

from __future__ import annotations

from hermes.core.errors import close_matches, did_you_mean


def test_the_most_similar_names_come_first() -> None:
    assert close_matches("slep", ["sleep", "step", "grep"], count=2) == ["sleep", "step"]


def test_a_suggestion_or_the_other_text() -> None:
    known = ["sleep", "step"]

    assert did_you_mean("slep", known, count=2) == "Did you mean sleep or step?"
    assert did_you_mean("xyz", known, "There are two.") == "There are two."

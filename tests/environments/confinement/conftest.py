"""Mechanisms of confinement: what this machine lacks is skipped, and fails where CI=true."""

from __future__ import annotations

import os

import pytest

from hermes.environments.confinement.machine import obstacle


def require(mechanism: str) -> None:
    """Go on only where a mechanism works."""
    reason = obstacle(mechanism)
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"{mechanism}: {reason}")
    if reason:
        pytest.skip(f"{mechanism}: {reason}")

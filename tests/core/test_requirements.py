"""What a tool needs to work here, as data with a reason."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermes.core import UnavailableError, needs, require
from hermes.core.availability import Requirement

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_there_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_TEST_KEY", "x")
    check = needs("json", "email.mime", programs="sh", env="HERMES_TEST_KEY")

    assert check()
    assert check.missing() is None


def test_everything_that_is_missing_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HERMES_TEST_KEY", raising=False)
    check = needs(
        "json", "no_such_pkg", programs=("no-such-prog",), env="HERMES_TEST_KEY", extra="pdf"
    )

    assert not check()
    assert check.missing() == (
        "missing Python package no_such_pkg, program no-such-prog, "
        "environment variable HERMES_TEST_KEY; pip install 'hermes-tools[pdf]'"
    )


def test_another_platform_is_the_whole_reason() -> None:
    assert needs("no_such_pkg", platforms="amiga").missing() == "works on amiga only"
    assert needs(platforms=(sys.platform, "amiga")).missing() is None


@pytest.mark.parametrize("name", ["", ".", "..x", "no such", "a-b", "json\0"])
def test_odd_package_names_are_missing_and_nothing_worse(name: str) -> None:
    assert needs(name).missing() is not None


def test_checking_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "loud_package").mkdir()
    (tmp_path / "loud_package" / "__init__.py").write_text("raise SystemExit('imported')")
    code = "from hermes.core import needs; print(needs('loud_package.part')())"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.returncode) == ("True\n", 0)


def test_a_requirement_survives_being_written_down() -> None:
    check = needs("a", "b", programs="c", env=("d",), platforms=("linux",), install="apt install c")

    values: Any = check.to_dict()
    again = Requirement.from_dict(
        {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
    )

    assert again.to_dict() == values
    assert again.missing() == check.missing()
    assert needs().to_dict() == {}


def test_require_gives_the_module_or_says_what_brings_it() -> None:
    import json.decoder

    assert require("json.decoder") is json.decoder
    with pytest.raises(UnavailableError) as caught:
        require("no_such_pkg.part", extra="browser")
    assert caught.value.hint == "pip install 'hermes-tools[browser]'"

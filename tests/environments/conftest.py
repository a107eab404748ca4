"""The real places that environments are tested against; what can't be had here is skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.environments.places import apptainer, some_apptainer, ssh_host
from tests.environments.servers import MissingError, docker_engine

__all__ = ["apptainer", "engine", "some_apptainer", "ssh_host"]


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Docker engine of our own, with one small image (busybox) in it."""
    try:
        with docker_engine(tmp_path_factory.mktemp("engine")) as address:
            yield address
    except MissingError as error:
        pytest.skip(str(error))

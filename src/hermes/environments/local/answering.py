"""A short question to a shell: a script is run to its end, and its raw output handed back."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from hermes.environments.local.process import Process
from hermes.environments.local.ready import Ready
from hermes.environments.local.stdin import readable
from hermes.environments.results import PlaceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes.environments.local.owner import Guardian

ANSWER_SECONDS = 60.0
_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def answer(
    owner: Guardian,
    argv: Sequence[bytes],
    *,
    data: bytes = b"",
    env: Mapping[bytes, bytes] | None = None,
    seconds: float = ANSWER_SECONDS,
) -> tuple[int, bytes, bytes]:
    """Run a program that reads `data`; its exit code and what it printed on each stream."""
    said = {1: bytearray(), 2: bytearray()}
    process = Process(lambda stream, piece: said[stream].extend(piece), owner)
    ready = Ready()
    stdin = readable(data)
    try:
        process.start(
            argv,
            task=f"answers/{os.getpid()}",
            env={b"PATH": _PATH, b"LC_ALL": b"C", **(env or {})},
            cwd="/",
            given={0: stdin},
            ready=ready,
        )
        until = time.monotonic() + seconds
        while process.exit_code is None and not process.gone:
            left = until - time.monotonic()
            if left <= 0:
                owner.stop(process.id)
                raise PlaceError(f"no answer within {seconds:g} s")
            for file in ready.wait(process.watched(), left):
                process.take(file)
        process.drain()
        if process.failure is not None:
            raise PlaceError(f"{os.fsdecode(argv[0])} can't be run: {process.failure.strerror}")
        if process.exit_code is None:
            raise PlaceError("the process that watches over commands was killed")
        return process.exit_code, bytes(said[1]), bytes(said[2])
    finally:
        os.close(stdin)
        ready.close()
        process.close()

"""What the shell of a sandbox is asked, whatever the service: texts there, texts back."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import hermes.environments.cloud.wrapping as wrapping
import hermes.environments.shell_state as shell_state
from hermes.core.errors import ToolError
from hermes.environments.cloud.provider import ProviderError
from hermes.environments.far.scripts import quoted
from hermes.environments.output.collector import ERR, OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes.environments.cloud.provider import Provider
    from hermes.environments.cloud.wrapping import Answer

SECONDS = 120.0
# What the service itself may need, on top of a command's time.
_SLACK_SECONDS = 15.0
_KILL = (
    "for p in $(grep -lsF -e {mark} /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n'); "
    "do kill -9 $p; done"
)


class Shell:
    """The shell of the sandbox that a provider has now. `probe` before everything else."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        # Nothing is assumed of it before it is looked at.
        self.bash = False
        self.exports: dict[str, str] = {}

    def probe(self) -> None:
        """Learn what the sandbox is like."""
        self.bash = False
        look = "command -v bash >/dev/null && echo y || echo n; export -p"
        answer = self.ask(look, "/", variables={}, seconds=30.0, strict=True)
        bash, _, exports = answer.out.partition(b"\n")
        self.bash = bash == b"y"
        self.exports = shell_state.read_exports(exports)

    def quick(self, script: str) -> str:
        """What a short script of ours prints, which is plain ASCII."""
        return self._provider.run(script, seconds=SECONDS)

    def ask(
        self,
        command: str,
        folder: str,
        *,
        variables: Mapping[str, str | None],
        seconds: float,
        strict: bool,
        data: bytes | None = None,
        definitions: str = "",
        keep: bool = False,
        counted: str = "",
        mark: str = "",
    ) -> Answer:
        """Run a command there to its end, or for so long; what came of it."""
        mark = mark or os.urandom(8).hex()
        given = "/dev/null" if data is None else self.send(data)
        text = wrapping.asked(
            command, mark=mark, folder=folder, strict=strict, variables=variables, seconds=seconds,
            given=given, definitions=definitions, keep=keep, bash=self.bash, counted=counted,
        )  # fmt: skip
        try:
            said = self._provider.run(text, seconds=seconds + _SLACK_SECONDS)
            return wrapping.answered(said, mark)
        finally:
            if data is not None:
                self.quick(f"rm -f {given}")

    def send(self, data: bytes) -> str:
        """Put bytes into a file there; its place."""
        place = f"/tmp/hermes-{os.urandom(8).hex()}"
        for step in wrapping.sending(data, place):
            self.quick(step)
        return place

    def pages(self, answer: Answer, feed: Callable[[int, memoryview], None]) -> int:
        """Pass on all that was printed, which may take several answers; how much is missing."""
        missing = 0
        long = False
        for stream, name, piece, size in (
            (OUT, "o", answer.out, answer.sizes[0]),
            (ERR, "e", answer.err, answer.sizes[1]),
        ):
            have = 0
            while piece:
                feed(stream, memoryview(piece))
                have += len(piece)
                if have >= min(size, wrapping.MOST_WHOLE):
                    break
                long = True
                piece = wrapping.paged(self.quick(wrapping.page(answer.folder, name, have)))
            missing += size - have
        if long:
            self.quick(f"rm -rf {quoted(answer.folder)}")
        return missing

    def script(self, text: str, data: bytes) -> tuple[int, bytes, bytes]:
        """Run a script of ours: its exit code, standard output and standard error."""
        answer = self.ask(text, "/", data=data or None, variables={}, seconds=SECONDS, strict=True)
        streams: dict[int, list[bytes]] = {OUT: [], ERR: []}
        if self.pages(answer, lambda stream, piece: streams[stream].append(bytes(piece))):
            raise ToolError(f"more than {wrapping.MOST_WHOLE} bytes can't be brought back at once")
        return answer.code, b"".join(streams[OUT]), b"".join(streams[ERR])

    def kill(self, mark: str) -> None:
        """End everything that has a mark in its environment."""
        with suppress(ProviderError):
            self._provider.run(_KILL.format(mark=quoted(mark)), seconds=10.0)

"""What a command in a cloud sandbox prints, shown while it runs: its files are looked at."""

from __future__ import annotations

import base64
import binascii
import threading
from typing import TYPE_CHECKING

from hermes.environments.cloud.provider import ProviderError
from hermes.environments.far.scripts import quoted
from hermes.environments.output.decoding import live_decoder

if TYPE_CHECKING:
    from collections.abc import Callable

    # Runs a short script there and gives what it prints.
    Ask = Callable[[str], str]

# Of a flood only the end is shown.
MOST = 4000
FIRST_PAUSE, LONGEST_PAUSE = 0.7, 4.0
_LOOK = """
cd {folder} 2>/dev/null || exit 0
look() {{
  s=$(wc -c <"$1"); a=$2
  [ "$((s - a))" -le {most} ] || a=$((s - {most}))
  printf '%s ' "$((s))"
  tail -c "+$((a + 1))" "$1" | head -c "$((s - a))" | base64 | tr -d '\\n'; echo
}}
look o {out}; look e {err}
"""


class Live:
    """While entered, passes on what is printed to the files `o` and `e` of a folder there."""

    def __init__(self, ask: Ask, folder: str, show: Callable[[str], None]) -> None:
        self._ask = ask
        self._folder = folder
        self._show = show
        self._seen = [0, 0]
        self._decoders = [live_decoder(), live_decoder()]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hermes-live", daemon=True)

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # A service that hangs must not hold up the command's own answer.
        self._thread.join(LONGEST_PAUSE)

    def rest(self, *streams: bytes) -> None:
        """Show the end of what came back, as far as it was not shown."""
        for number, whole in enumerate(streams):
            self._pass_on(number, whole[self._seen[number] :][-MOST:])

    def _watch(self) -> None:
        pause = FIRST_PAUSE
        while not self._over.wait(pause):
            pause = min(LONGEST_PAUSE, pause * 1.3)
            script = _LOOK.format(
                folder=quoted(self._folder), most=MOST, out=self._seen[0], err=self._seen[1]
            )
            try:
                lines = self._ask(script).splitlines()
                if self._over.is_set():
                    return
                for number, line in enumerate(lines[:2]):
                    size, _, text = line.partition(" ")
                    piece = base64.b64decode(text)
                    self._seen[number] = int(size)
                    self._pass_on(number, piece)
            except (ProviderError, ValueError, binascii.Error):
                # The command itself will say what is wrong.
                continue

    def _pass_on(self, number: int, piece: bytes) -> None:
        text = self._decoders[number].decode(piece)
        if text:
            self._show(text)

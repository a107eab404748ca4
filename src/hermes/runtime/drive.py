"""Awaiting something that may have to be stopped.

A `Drive` carries a coroutine through inside the task that awaits it, since a task of its own would
double the cost of a short handler. Told to stop, or past its time, the coroutine is cancelled; if
it swallows that and goes on, it is closed after a grace, and whoever awaited it goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.cancellation import CancelledError
from hermes.runtime.workers import stopped_error

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Generator
    from typing import Any

    from hermes.core.cancellation import Cancellation

# Coroutines that refused even to be closed; letting go of them would ask them again.
_undead: list[Any] = []


class Drive:
    """Await it for the coroutine's result; raises `CancelledError` or `StoppedLateError`.

    A cancellation of the awaiting task itself reaches the coroutine and is passed on.
    """

    __slots__ = (
        "_active",
        "_base",
        "_cancellation",
        "_coroutine",
        "_grace",
        "_late",
        "_loop",
        "_over",
        "_seconds",
        "_sent",
        "_task",
        "_timers",
    )

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        *,
        seconds: float | None,
        cancellation: Cancellation,
        grace: float,
    ) -> None:
        self._coroutine = coroutine
        self._seconds = seconds
        self._cancellation = cancellation
        self._grace = grace

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            wanted = self._coroutine.send(None)
        except StopIteration as done:
            # Most have nothing to wait for, and need nothing of what follows.
            return done.value
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - none of these may end the task that awaits
            raise ended(error) from None
        import asyncio

        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._base = task.cancelling()
        self._active = True
        self._late = self._over = False
        # How often we have cancelled the task that awaits us, to be taken back at the end.
        self._sent = 0
        self._timers: list[asyncio.TimerHandle] = []
        forget = self._cancellation.on_cancel(self._told)
        if self._seconds is not None:
            self._timers.append(self._loop.call_later(self._seconds, self._expire))
        try:
            while True:
                try:
                    yield wanted
                except GeneratorExit:
                    raise
                except BaseException as error:
                    cancelled = isinstance(error, asyncio.CancelledError)
                    if cancelled and self._over:
                        raise
                    wanted = self._coroutine.throw(error)
                    # A timeout or task group of the handler's own cancels the same task, and takes
                    # that back; what is left after it had its turn came from outside.
                    if cancelled and self._from_outside():
                        self._give_grace()
                else:
                    wanted = self._coroutine.send(None)
        except StopIteration as done:
            if self._late:
                raise self._stopped() from None
            return done.value
        except asyncio.CancelledError:
            if self._from_outside():
                self._cancellation.cancel("cancelled")
                raise
            if self._sent:
                raise self._stopped() from None
            # Nobody meant this call.
            raise CancelledError("something that it waited for was cancelled") from None
        except SystemExit as error:
            raise ended(error) from None
        except Exception as error:
            if self._sent and not self._from_outside():
                raise self._stopped() from error
            raise
        finally:
            self._active = False
            forget()
            for timer in self._timers:
                timer.cancel()
            for _ in range(self._sent):
                task.uncancel()
            self._bury()

    def _from_outside(self) -> bool:
        return self._task.cancelling() > self._base + self._sent

    def _stopped(self) -> Exception:
        reason = self._cancellation.reason or "cancelled"
        return stopped_error(not self._late, self._seconds, stuck=self._over, reason=reason)

    def _told(self) -> None:
        """In whichever thread the stop is asked for."""
        try:
            self._loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            # The loop is closed, and the coroutine with it.
            return

    def _expire(self) -> None:
        if self._active and not self._sent:
            self._late = True
            self._stop()
            self._cancellation.cancel("timed out")

    def _stop(self) -> None:
        # Later than the end, this would cancel something else that the task has gone on to.
        if self._active and not self._sent:
            self._cancel()
            self._give_grace()

    def _give_grace(self) -> None:
        self._timers.append(self._loop.call_later(self._grace, self._give_up))

    def _give_up(self) -> None:
        if self._active and (self._sent or self._from_outside()):
            self._over = True
            self._cancel()

    def _cancel(self) -> None:
        self._sent += 1
        self._task.cancel()

    def _bury(self) -> None:
        try:
            self._coroutine.close()
        except RuntimeError:
            # It goes on even now; nobody will run it any more.
            _undead.append(self._coroutine)
        except Exception:  # noqa: BLE001 - what it raises while ending is nobody's answer
            return


def ended(error: BaseException) -> RuntimeError:
    """A handler's own exit or cancellation, which is not that of whoever awaits it."""
    return RuntimeError(f"it ended with {type(error).__name__}: {error}")

"""Background reads: futures that are completed by threads of the library."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
import time
import weakref
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from . import _indexing, _plans
from ._errors import Status, make
from ._keys import make_plan
from ._plans import AnyArray, Casting
from ._system import call_in_child

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._caterva import Request
    from ._readable import Readable

_outstanding: set[Reading] = set()
_alive: weakref.WeakSet[Reading] = weakref.WeakSet()  # including completed ones
_ended = False

# As in C.
_PARENTS = "the read was begun before a fork: only the parent process can wait for it"


class Reading(concurrent.futures.Future[AnyArray]):
    """A background read: ``await`` it, or call its ``result()``.

    A `concurrent.futures.Future`, also for ``as_completed`` and ``wait``. `cancel` stops it
    between two blocks; it then counts as cancelled, even if it was just complete. Functions
    given to ``add_done_callback`` are called on a thread of the library and should be quick.

    In a forked child a read that was in progress has ended: its ``result()`` raises
    `StoppedError`. It continues in the parent, where functions added before are called.
    """

    def __init__(self, array: Readable, steps: Generator[_plans.Step, None, AnyArray]) -> None:
        super().__init__()
        self._array: Readable | None = array
        self._steps = steps
        self._lock = threading.Lock()
        self._request: Request | None = None
        self._n = 0  # steps begun
        self._stopping = False
        self._finished = False
        self._awaits: list[tuple[int, Callable[[object], None]]] = []  # with their threads
        _alive.add(self)

    def _advance(self) -> None:
        """Begin the next step, or set the result."""
        array = self._array
        assert array is not None
        try:
            step = next(self._steps)
        except StopIteration as end:
            self._finish(end.value, None)
            return
        self._n += 1
        n = self._n
        request = array._read_begin(self._on_done, *step)
        with self._lock:
            if self._n == n:  # else the step has ended and the next one has begun
                self._request = request
            stopping = self._stopping
        if stopping:
            request.cancel()

    def _on_done(self, error: BaseException | None) -> None:
        """Handle the end of a step, on a thread of the library."""
        if error is None and not self._stopping:
            try:
                self._advance()
                return
            except BaseException as other:
                error = other
        self._finish(None, error)

    def _finish(self, result: AnyArray | None, error: BaseException | None) -> None:
        with self._lock:
            if self._finished:  # by _end_in_child
                return
            self._finished = True
        self._array = None
        try:
            self._set_outcome(result, error)
        finally:
            _outstanding.discard(self)  # last: a child forked before it must still find it

    def _set_outcome(self, result: AnyArray | None, error: BaseException | None) -> None:
        if self._stopping:
            super().cancel()
            self.set_running_or_notify_cancel()
        elif error is not None:
            self.set_exception(error)
        else:
            assert result is not None
            self.set_result(result)

    def _renew(self) -> None:
        """In a forked child: replace locks that threads of the parent may hold."""
        self._lock = threading.Lock()
        if self._condition.acquire(blocking=False):
            self._condition.release()
        else:
            self._condition = threading.Condition()

    def _end_in_child(self) -> None:
        """In a forked child: end the read here; it continues in the parent."""
        self._finished = True
        self._array = None
        if self._request is not None:
            self._request.forget()
        if self._state in ("FINISHED", "CANCELLED_AND_NOTIFIED"):
            return
        for waiter in self._waiters:  # of as_completed, which may continue here
            vars(waiter).update(lock=threading.Lock(), event=threading.Event())
        here = threading.get_ident()
        self._done_callbacks = [wake for thread, wake in self._awaits if thread == here]
        self._set_outcome(None, make(Status.ESTOPPED, 0, -1, _PARENTS, None))

    def cancel(self) -> bool:
        """Stop the read; return True unless it is too late."""
        with self._lock:
            if self._finished:
                return self.cancelled()
            self._stopping = True
            request = self._request
        if request is not None:
            request.cancel()
        return True

    async def _over(self) -> AnyArray:
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def wake(_: object) -> None:
            try:
                loop.call_soon_threadsafe(over.set_result, None)
            except RuntimeError:  # the loop has been closed
                return

        self._awaits.append((threading.get_ident(), wake))
        self.add_done_callback(wake)
        try:
            await asyncio.wait((over,))
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.wait((over,))  # the library uses the memory until then
            raise
        if self.cancelled():
            raise asyncio.CancelledError
        return self.result()

    def __await__(self) -> Generator[Any, None, AnyArray]:
        return self._over().__await__()


def begin(
    array: Readable,
    sel: Any,
    out: AnyArray | None,
    dtype: npt.DTypeLike | None,
    casting: Casting,
    field: str | None,
) -> Reading:
    """Implement `read_async` of arrays and views."""
    return begin_plan(array, make_plan(sel, array.shape), out, dtype, casting, field)


def begin_plan(
    array: Readable,
    plan: _plans.Plan,
    out: AnyArray | None = None,
    dtype: npt.DTypeLike | None = None,
    casting: Casting = "same_kind",
    field: str | None = None,
) -> Reading:
    """Begin to read what a plan selects."""
    if _ended:
        raise RuntimeError("the interpreter is shutting down: no background read can begin")
    reading = Reading(array, _indexing.steps_into(array, plan, out, dtype, casting, field))
    _outstanding.add(reading)
    try:
        reading._advance()
    except BaseException:
        _outstanding.discard(reading)
        raise
    return reading


# ---- Shutdown and fork -------------------------------------------------------------------


def _end() -> None:
    """End all reads: no thread of the library may enter a finalized interpreter."""
    global _ended
    _ended = True
    while _outstanding:
        for reading in tuple(_outstanding):
            reading.cancel()
            if reading._request is not None:
                reading._request.wait()
        time.sleep(0)


atexit.register(_end)


def _end_all_in_child() -> None:
    """In a forked child: end outstanding reads, which no thread here would complete."""
    left = tuple(_outstanding)
    _outstanding.clear()
    for reading in tuple(_alive):
        reading._renew()
    for reading in left:
        reading._end_in_child()


call_in_child(_end_all_in_child)

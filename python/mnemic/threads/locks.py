"""Locks that refuse the thread that holds them, in place of letting it wait for itself.

A signal handler or a finalizer runs in the midst of whatever its thread does. If it uses a memory
while the call that it interrupts holds a lock, waiting for that lock would never end, and going on
without it would see a half-made state.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from weakref import ref

from mnemic.errors import BusyThreadError
from mnemic.reporting.habits import NotPickled

ReentrantLock = threading.RLock

if TYPE_CHECKING:

    class _ReentrantLock:
        def _is_owned(self) -> bool: ...
        def acquire(self, blocking: bool, timeout: float) -> bool: ...  # noqa: FBT001 # pyright: ignore[reportUnusedParameter] - as below
        def release(self) -> None: ...
        def __enter__(self) -> bool: ...
        def __exit__(self, *exception: object) -> None: ...
else:
    _ReentrantLock = type(ReentrantLock())


class Lock(NotPickled, _ReentrantLock):
    """Held by one thread at a time; it is taken and released in C, and its holder knows it.

    Where its holder would wait for itself, it gets a `BusyThreadError`. It costs a tenth of a
    microsecond more than one of `threading`.
    """

    _not_pickled = (
        "what holds a lock, such as a memory, an embedder or a service of either, cannot be "
        "pickled or copied deeply; make another one where it is needed"
    )
    _take = _ReentrantLock.__enter__
    is_held_here = _ReentrantLock._is_owned  # noqa: SLF001 - its name in threading, and in C
    """Return whether this thread holds it."""

    # Not a method, which a KeyboardInterrupt could leave after it took the lock, and before `with`
    # would release it: the check comes before, and the taking is a function in C.
    @property
    def __enter__(self) -> Callable[[], bool]:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._is_owned():
            raise busy_thread()
        return self._take

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as those of threading
        """Take it, and return whether it was taken; its holder does not take it again."""
        if not self._is_owned():
            return super().acquire(blocking, timeout)
        if blocking:
            raise busy_thread()
        return False


_inner: "set[ref[InnerLock]]" = set()  # changed and copied in one step each


class InnerLock(Lock):
    """A lock under which no call begins: one made meanwhile comes from a handler."""

    def __init__(self) -> None:
        super().__init__()
        _inner.add(ref(self, _inner.discard))


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.settling = InnerLock()


OF_THREAD: Final = _OfThread()
"""Has a lock of this thread, held while it is in the midst of a block of `settling`."""


def settling() -> "InnerLock | nullcontext[None]":
    """Return a lock of this thread, held while it has a lock of a future, or of a library."""
    lock = OF_THREAD.settling
    return nullcontext() if lock.is_held_here() else lock  # a finalizer may be in such a midst


def check_no_lock_is_held() -> None:
    """Refuse a call in the midst of another one that holds a lock, before anything happens.

    Another thread may want the lock that the call would wait for, so none may wait meanwhile.

    Raises:
        BusyThreadError: If this thread holds an `InnerLock`.
    """
    for reference in _inner.copy():
        lock = reference()
        if lock is not None and lock.is_held_here():
            raise busy_thread()


def busy_thread() -> BusyThreadError:
    """Return the error of a call in the midst of another one of its thread."""
    return BusyThreadError(
        "this thread is in the midst of another call of a memory; a signal handler, a finalizer or "
        "a progress function uses the memory after that call, or in another thread"
    )


# Entered and left in C: a KeyboardInterrupt in `threading.Condition.__enter__` or `__exit__`, which
# are Python, leaves the lock locked forever, and other threads wait for it.
Condition: Final[Callable[..., threading.Condition]] = type(
    "Condition",
    (threading.Condition,),
    {name: property(attrgetter(f"_lock.{name}")) for name in ("__enter__", "__exit__")},
)
"""Makes a `threading.Condition` whose lock a KeyboardInterrupt cannot leave locked."""


class Event(threading.Event):
    """An event that a signal handler does not wait for in the midst of its thread's own use."""

    def __init__(self) -> None:
        super().__init__()
        self._cond = Condition(InnerLock())

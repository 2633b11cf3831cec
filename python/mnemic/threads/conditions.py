"""Conditions and events that threads can wait for, safe from Ctrl-C."""

import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from mnemic.threads.locks import InnerLock

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

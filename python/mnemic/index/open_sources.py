"""Sources that work in the background: they end before the interpreter does, and with a fork.

FAISS asks the interpreter now and then whether to go on. A thread that asks while the interpreter
is finalized is ended in the midst of a parallel region, and C++ then aborts the process.
"""

import atexit
import os
import weakref
from typing import Final, Protocol


class OpenSource(Protocol):
    """A source with a thread of its own."""

    def retire(self) -> None:
        """End all work, and propose nothing from now on."""
        ...

    def forget(self) -> None:
        """Let go of what another process works on; it is called in a forked child."""
        ...


_SOURCES: Final[dict[int, "weakref.ref[OpenSource]"]] = {}
"""By identity; a list of a dict's values is made in one step, that of a WeakSet is not."""


def register(source: OpenSource) -> None:
    """Have a source end its work before the interpreter does, and let go of it after a fork."""
    number = id(source)
    _SOURCES[number] = weakref.ref(source, lambda dead: _unregister(number, dead))


def _unregister(number: int, dead: "weakref.ref[OpenSource]") -> None:
    if _SOURCES.get(number) is dead:  # the next object may have the same identity
        del _SOURCES[number]


def _open_sources() -> list[OpenSource]:
    found = [reference() for reference in list(_SOURCES.values())]
    return [source for source in found if source is not None]


def _retire_all() -> None:
    for source in _open_sources():
        source.retire()


def _forget_all() -> None:
    for source in _open_sources():
        source.forget()


atexit.register(_retire_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

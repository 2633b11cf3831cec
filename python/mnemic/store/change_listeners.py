"""Listeners of the changes that this process commits, whichever of its stores commits them."""

import weakref
from collections.abc import Callable, Collection, Hashable
from typing import TypeAlias

from mnemic.threads.locks import InnerLock

ChangedUser: TypeAlias = tuple[str, str | None]
"""Agent and user of a changed entry; None stands for the entries without a user."""

ChangeListener: TypeAlias = Callable[[Collection[ChangedUser]], object]
"""Receives the users whose entries a commit changed. A method, which is held weakly."""


class ChangeListeners:
    """Calls listeners for each commit of a file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = InnerLock()
        self._methods: dict[Hashable, tuple[weakref.WeakMethod[ChangeListener], ...]] = {}

    def add(self, file: Hashable, listener: ChangeListener) -> None:
        """Call a method with every change of a file from now on, for as long as its object lives.

        Args:
            file: Names the file in this process.
            listener: The method.
        """
        method = weakref.WeakMethod(listener)
        with self._lock:
            for known, methods in list(self._methods.items()):
                alive = tuple(each for each in methods if each() is not None)
                if alive:
                    self._methods[known] = alive
                else:
                    del self._methods[known]
            self._methods[file] = (*self._methods.get(file, ()), method)

    def notify(self, file: Hashable, changed: Collection[ChangedUser]) -> None:
        """Call the listeners of a file."""
        for method in self._methods.get(file, ()):
            listener = method()
            if listener is not None:
                listener(changed)


COMMITTED = ChangeListeners()
"""The listeners of this process."""

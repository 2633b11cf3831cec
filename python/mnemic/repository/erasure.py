"""Erases the bytes of memories that a write has sealed, or deleted in favour of others."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from mnemic.errors import MnemicError
from mnemic.store import Store
from mnemic.threads.sync_bridge import arrived

Result = TypeVar("Result")


class Erasure(Generic[Result]):
    """The erasure after one write, which begins as soon as it is durable.

    It begins whatever becomes of the caller then: one that is cancelled does not leave plain bytes.

    Args:
        store: Erases them.
        written: The result of the write.
        is_due: Returns for the result whether the write left such bytes.
        is_due_soon: The same of bytes that nobody waits for; None is none.
    """

    def __init__(
        self,
        store: Store,
        written: Future[Result],
        is_due: Callable[[Result], bool],
        is_due_soon: Callable[[Result], bool] | None = None,
    ) -> None:
        self._store = store
        self._written = written
        self._is_due = is_due
        self._is_due_soon = is_due_soon
        self._erased: Future[bool | None] | None = None
        written.add_done_callback(self._begin)

    def _begin(self, written: Future[Result]) -> None:
        if written.cancelled() or written.exception() is not None:
            return
        result = written.result()
        with suppress(MnemicError):  # of a memory that was closed: the last one erases
            if self._is_due(result):
                self._erased = self._store.erase()
            elif self._is_due_soon is not None and self._is_due_soon(result):
                self._store.erase(soon=True)

    async def finish(self) -> None:
        """Wait for the erasure after a write that has succeeded, if there is one."""
        if self._is_due(self._written.result()):  # the callback may not have run yet
            await arrived(self._erased or self._store.erase())

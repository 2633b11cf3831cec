"""Erases the bytes of memories that a write has sealed, or deleted in favour of others."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from mnemic.errors import MnemicError
from mnemic.store import Store
from mnemic.threads.sync_bridge import arrived

Result = TypeVar("Result")


class Erasure:
    """The erasure after one write, which begins as soon as it is durable.

    It begins whatever becomes of the caller then: one that is cancelled does not leave plain bytes.

    Args:
        store: Erases them.
        is_due: Returns for the result of the write whether it left such bytes.
        is_due_soon: The same of bytes that nobody waits for; None is none.
    """

    def __init__(
        self,
        store: Store,
        is_due: Callable[[Any], bool],
        is_due_soon: Callable[[Any], bool] | None = None,
    ) -> None:
        self._store = store
        self._is_due = is_due
        self._is_due_soon = is_due_soon
        self._was_due = False
        self._erased: Future[bool | None] | None = None

    async def arrived(self, written: Future[Result]) -> Result:
        """Wait for the write; return its result."""
        written.add_done_callback(self._begin)
        result = await arrived(written)
        self._was_due = self._is_due(result)
        return result

    def _begin(self, written: Future[Any]) -> None:
        if written.cancelled() or written.exception() is not None:
            return
        result = written.result()
        with suppress(MnemicError):  # of a memory that was closed: the last one erases
            if self._is_due(result):
                self._erased = self._store.erase()
            elif self._is_due_soon is not None and self._is_due_soon(result):
                self._store.erase(soon=True)

    async def finish(self) -> None:
        """Wait for the erasure, if there is one."""
        if self._was_due:  # a waiting thread may go on before the callback has run
            await arrived(self._erased or self._store.erase())

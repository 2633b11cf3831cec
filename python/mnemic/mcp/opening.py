"""Opens the memory beside the server's start, so that the first answers need not wait for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from mnemic import AsyncScopedMemory, Memory, ScopedMemory


class OpenedMemory:
    """The memory of one user, opened in a thread from the moment this is made.

    Where opening fails, the next call tries again.

    Args:
        open_memory: Opens the memory of all users.
        user: Whose memories; None is those without a user.
    """

    def __init__(self, open_memory: Callable[[], Memory], user: str | None) -> None:
        self.user = user
        self._open = open_memory
        self._has_no_model = False
        self._thread = ThreadPoolExecutor(1)
        self._opened = self._begin()

    def wait(self) -> ScopedMemory:
        """Return the memories of the user with plain calls, in a thread that may wait for them."""
        return self._opened.result().sync

    def is_by_words(self, seconds: float) -> bool:
        """Return whether the memory is known to have no model, so that words alone are compared.

        Args:
            seconds: How long to wait until it is open.
        """
        wait([self._opened], seconds)
        return self._has_no_model

    async def memory(self) -> AsyncScopedMemory:
        """Return the memories of the user, once they are open."""
        if self._opened.done() and self._opened.exception() is not None:
            self._opened = self._begin()
        return await asyncio.shield(asyncio.wrap_future(self._opened))

    def _begin(self) -> "Future[AsyncScopedMemory]":
        return self._thread.submit(self._own)

    def _own(self) -> AsyncScopedMemory:
        memory = self._open().aio
        self._has_no_model = memory.embedder is None
        return memory if self.user is None else memory.scoped(user_id=self.user)

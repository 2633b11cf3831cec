"""Connections of a pool, lent to one thread at a time."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed

from mnemic.store.postgres.session import Connection
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.locks import InnerLock, settling

Result = TypeVar("Result")
PsycopgPool: TypeAlias = ConnectionPool[Connection]


class Pool:
    """Lends connections of a psycopg pool, and replaces one that an interrupt cut short.

    In the midst of psycopg's pool, a KeyboardInterrupt may lose a connection that the pool goes on
    counting, or have it wait for one that nobody opens; the pool cannot tell. Every later call
    would wait in vain.

    Args:
        new: Opens a psycopg pool.
    """

    def __init__(self, new: Callable[[], PsycopgPool]) -> None:
        self._new = new
        self._lock = InnerLock()
        self._is_closed = False
        self._pool: PsycopgPool | None = None
        self._cut_short: PsycopgPool | None = None

    @contextmanager
    def lease(self, seconds: float) -> Generator[Connection, None, None]:
        """Lend a connection; its transaction is undone after an error, and else committed.

        Args:
            seconds: Most seconds to wait for it.

        Raises:
            PoolTimeout: If none is free in time.
            PoolClosed: After `close`.
        """
        pool = connection = None
        try:
            try:
                pool, connection = self._taken(seconds)
                with connection:
                    yield connection
            finally:
                if pool is not None and connection is not None:
                    self._watched(pool, partial(pool.putconn, connection))
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            self._cut_short = pool or self._pool
            raise

    def check(self) -> None:
        """Drop connections that are lost, and open others."""
        pool = self._sound()
        self._watched(pool, pool.check)

    def close(self) -> None:
        """Close every connection; one that is lent is closed when it comes back."""
        self._is_closed = True
        with self._lock:
            pool = self._pool
        if pool is not None:
            pool.close()

    def _taken(self, seconds: float) -> tuple[PsycopgPool, Connection]:
        while True:
            pool = self._sound()
            try:
                return pool, self._watched(pool, partial(pool.getconn, seconds))
            except PoolClosed:
                if pool is self._pool and pool is not self._cut_short:
                    raise  # nobody replaces it: it was closed

    def _watched(self, pool: PsycopgPool, work: Callable[[], Result]) -> Result:
        """Work with a pool, whose locks a signal handler must not wait for."""
        try:
            with settling():
                return work()
        except psycopg.Error:
            raise
        except BaseException:  # which no pool raises by itself
            self._cut_short = pool
            raise

    def _sound(self) -> PsycopgPool:
        """Return a pool that nothing cut short."""
        pool = self._pool
        while pool is None or pool is self._cut_short:
            self._replace()
            pool = self._pool
        return pool

    def _replace(self) -> None:
        with self._lock:
            before = self._pool
            if before is not None and before is not self._cut_short:
                return  # another thread was faster
            if self._is_closed:
                raise PoolClosed("the pool is closed")
            self._pool = self._new()
        if before is not None:  # in a thread, for its own threads may wait for a server
            start_thread(thread_of("pool", before.close))

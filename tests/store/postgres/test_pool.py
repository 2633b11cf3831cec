"""Pools of connections that an interrupt cut short are replaced."""

import random
import signal
import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg_pool import ConnectionPool, PoolClosed

from mnemic.store.postgres.pool import Pool
from mnemic.store.postgres.session import Connection
from tests.support.tiers import seeds

WAIT = 3.0
ROUNDS = 200
LONGEST = 0.003
"""Seconds until Ctrl-C comes, at most: some ten calls."""


@pytest.fixture
def pools():
    """Return the pools of psycopg that were opened."""
    return []


@pytest.fixture
def pool(empty_database, pools):
    """Return a pool of one connection: after one is lost, nobody gets any."""

    def new():
        pools.append(
            ConnectionPool(
                empty_database, min_size=0, max_size=1, connection_class=Connection, open=True
            )
        )
        return pools[-1]

    opened = Pool(new)
    yield opened
    opened.close()


def answer(pool):
    with pool.lease(WAIT) as connection:
        return connection.execute("SELECT 1").fetchone()


def interrupt():
    raise KeyboardInterrupt


@contextmanager
def real_timer():
    """Let the signal of a timer be a Ctrl-C.

    A trace function is none: its errors leave locks and generators as no signal does.
    """
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def interrupted(pool):
    """Let Ctrl-C come in the midst of a pool's check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_maybe_grow_pool", interrupt)
        yield


@pytest.mark.parametrize("seed", seeds(1))
def test_after_interrupts_at_random_moments_connections_are_lent(pool, pools, seed):
    chosen = random.Random(seed)  # noqa: S311 - no secret
    interrupts = 0
    with real_timer():
        for _ in range(ROUNDS):
            with suppress(KeyboardInterrupt, RuntimeError):
                signal.setitimer(signal.ITIMER_REAL, chosen.uniform(1e-5, LONGEST))
                while True:
                    answer(pool)
            interrupts += 1
            assert answer(pool) == (1,), interrupts
    assert len(pools) > ROUNDS // 2


def test_who_waits_for_a_connection_of_a_pool_that_is_replaced_gets_one_of_the_next(pool, pools):
    answers = []
    with pool.lease(WAIT):
        waits = threading.Thread(target=lambda: answers.append(answer(pool)))
        waits.start()
        while not pools[0].get_stats().get("requests_waiting"):
            pass
        with pytest.raises(KeyboardInterrupt), interrupted(pools[0]):
            pool.check()
        assert answer(pool) == (1,)
        waits.join()
    assert answers == [(1,)]
    assert len(pools) == 2


def test_an_error_of_the_database_keeps_the_pool(pool, pools):
    with pytest.raises(psycopg.errors.DivisionByZero), pool.lease(WAIT) as connection:
        connection.execute("SELECT 1 / 0")
    assert answer(pool) == (1,)
    assert len(pools) == 1


def test_a_closed_pool_lends_nothing_even_after_an_interrupt(pool):
    with pytest.raises(KeyboardInterrupt), pool.lease(WAIT):
        raise KeyboardInterrupt
    pool.close()
    with pytest.raises(PoolClosed):
        answer(pool)

"""Conditions that are interrupted."""

import threading
from itertools import count

import pytest

from mnemic.threads.locks import Condition
from tests.support.interrupts import interrupted_at


def notified(condition):
    with condition:
        condition.notify_all()


@pytest.mark.parametrize("lock", [threading.Lock, threading.RLock])
def test_an_interrupt_at_any_moment_leaves_the_lock_to_other_threads(lock):
    for moment in count():
        condition = Condition(lock())
        has_ended = interrupted_at(moment, lambda condition=condition: notified(condition))
        thread = threading.Thread(target=notified, args=(condition,), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        if has_ended:
            break
    assert moment >= 4


def test_a_thread_waits_for_what_another_one_notifies_of():
    condition, done = Condition(), []

    def work():
        with condition:
            done.append(1)
            condition.notify_all()

    with condition:
        threading.Thread(target=work).start()
        assert condition.wait_for(lambda: done, 10)

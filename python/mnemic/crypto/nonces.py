"""Nonces of sealed fields: no two of one key are equal.

A nonce is 8 random bytes and a counter of 4. The counter is the process's: for 2**32 seals in a
row no nonce can come twice, whatever the random bytes are. Those are fresh for each nonce, and tell
apart processes, and copies of a process that go on from one counter: a fork, or a restored snapshot
of a machine. As the counter begins anywhere, n nonces of many processes collide with the
probability of random nonces, n² / 2**97: one in 2**33 for 2**32 memories of one agent.
"""

import itertools
import os
from collections.abc import Callable
from typing import Final, TypeAlias

Nonces: TypeAlias = Callable[[int], list[bytes]]
"""Returns so many new nonces."""

RANDOM_BYTES: Final = 8
COUNTER_BYTES: Final = 4

_MASK: Final = 2 ** (8 * COUNTER_BYTES) - 1

# One step of it is one call into C, which no thread interrupts; a lock would be held for ever in
# a process that is forked off while another thread has it.
_counter: Final = itertools.count(int.from_bytes(os.urandom(COUNTER_BYTES), "big"))


def new_nonces(count: int) -> list[bytes]:
    """Return new nonces, from any thread and any process."""
    random = os.urandom(RANDOM_BYTES * count)
    return [
        random[at : at + RANDOM_BYTES] + (next(_counter) & _MASK).to_bytes(COUNTER_BYTES, "big")
        for at in range(0, len(random), RANDOM_BYTES)
    ]

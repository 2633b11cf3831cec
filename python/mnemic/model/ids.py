"""Ids: a GUID names one agent in each of its many spellings; UUIDs of version 7 name memories."""

import os
import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from uuid import UUID

from mnemic.threads.locks import InnerLock

_BRACKETS = {"": "", "{": "}", "(": ")"}
_PARTS = "-?".join(f"([0-9a-f]{{{length}}})" for length in (8, 4, 4, 4, 12))
_GUID = rf"agent:(?:urn:uuid:)?([{{(]?){_PARTS}([)}}]?)"


def canonical(agent_id: str) -> str | None:
    """Return `agent:` and 32 lower-case hexadecimal digits; None if the id is not a GUID.

    Case, hyphens, braces, parentheses and `urn:uuid:` make no difference.
    """
    found = ":" in agent_id and re.fullmatch(_GUID, agent_id, re.IGNORECASE | re.ASCII)
    if not found:
        return None
    opening, *parts, closing = found.groups()
    return f"agent:{''.join(parts).lower()}" if _BRACKETS[opening] == closing else None


def is_same_agent(one: str, other: str) -> bool:
    """Return whether two ids name one agent."""
    return one == other or (canonical(one) is not None and canonical(one) == canonical(other))


def stored_spelling(agent_id: str, stored: Collection[str]) -> str:
    """Return the spelling under which an agent's memories are stored from now on.

    Files written when each spelling was an agent of its own keep the spellings: memories stored
    under the given spelling are found by it, and memories stored under another one by every
    spelling that is not stored itself.

    Args:
        agent_id: The caller's spelling.
        stored: Ids of all agents of a file.
    """
    wanted = canonical(agent_id)
    if wanted is None or agent_id in stored:
        return agent_id
    if wanted in stored:
        return wanted
    return min((each for each in stored if canonical(each) == wanted), default=wanted)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_COUNTER_BITS = 74
_COUNTER_END = 1 << _COUNTER_BITS
_LAST_MILLISECOND = (1 << 48) - 1
_LOW_BITS = 62


class UuidFactory:
    """Makes ids that sort by creation time, even within a millisecond.

    The 74 free bits hold a counter that starts at random and grows by random steps (RFC 9562,
    section 6.2, method 2). A clock that stands still or goes back does not break the order: the
    last time seen is kept. Thread-safe.

    Args:
        random_bytes: Source of randomness; `os.urandom` unless given.
    """

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._random_bytes = random_bytes
        self._lock = InnerLock()
        self._millisecond = -1
        self._counter = 0

    def __call__(self, now: datetime) -> UUID:
        """Return the next id for the time `now`, which must be aware."""
        millisecond = (now - _EPOCH) // _MILLISECOND
        with self._lock:
            if millisecond > self._millisecond:
                self._start(millisecond)
            else:
                self._step()
            time = min(max(self._millisecond, 0), _LAST_MILLISECOND)
            high, low = self._counter >> _LOW_BITS, self._counter & ((1 << _LOW_BITS) - 1)
        return UUID(int=time << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)

    def _start(self, millisecond: int) -> None:
        # The counter's top bit starts at zero, which leaves space for 2**41 steps.
        self._millisecond = millisecond
        random = int.from_bytes(self._random_bytes(10), "big")
        self._counter = random & (_COUNTER_END // 2 - 1)

    def _step(self) -> None:
        self._counter += 1 + int.from_bytes(self._random_bytes(4), "big")
        if self._counter >= _COUNTER_END:
            self._start(self._millisecond + 1)

"""Orders memories by score; chooses and orders them by score and by time at once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import inf, isnan
from operator import gt
from typing import Literal, TypeAlias, get_args

from msgspec.structs import replace

from mnemic._core import interleaved
from mnemic.errors import InvalidArgumentError
from mnemic.model.payload import PayloadMemory, payload_memories
from mnemic.model.ranges import Range, check_choice
from mnemic.model.timestamps import to_microseconds
from mnemic.reporting.description import described

InterleavingStrategy: TypeAlias = Literal["alternate", "score_first", "recency_first"]
"""The order of memories: best and newest in turns, or one of both lists before the other."""

_HALF = 0.5
_WHOLE = 1.0

_MAX_PLACES = 2**53
"""A larger limit means the same and does not fit the core."""

_LIMIT = Range(0, inf, is_whole=True)

RATIO = Range(0, 1, may_be_none=True)
"""Share of the places for the first list."""


def interleave(
    memories: Sequence[PayloadMemory],
    limit: int,
    *,
    strategy: InterleavingStrategy = "alternate",
    ratio: float | None = None,
) -> list[PayloadMemory]:
    """Choose memories by score and by time, and put them in the order of a prompt.

    Two lists hold all memories: one by score, then time, then id; one by time, newest first, then
    score, then id. "alternate" fills even places, from 0, from the list by score, and odd places
    from that by time. "score_first" fills its share of the limit by score and then the other places
    by time, "recency_first" the other way round. Each place takes the first of its list that is
    not chosen yet, so nothing is repeated.

    Args:
        memories: Any order. They are not changed.
        limit: Largest number of memories to return, at least 0.
        strategy: Which list fills which place.
        ratio: Share of the limit for the first list, from 0 to 1, half a place rounded up; by
            default 1 for "score_first" and "recency_first". "alternate" is always .5.

    Returns:
        Copies in order, with `provenance.position` from 0.

    Raises:
        InvalidArgumentError: If the limit is negative, the strategy unknown, the ratio out of range
            or not .5 for "alternate", or a score NaN.
    """
    memories = payload_memories(memories)
    check_choice("strategy", strategy, get_args(InterleavingStrategy))
    _LIMIT.checked("limit", limit)
    RATIO.checked("ratio", ratio)
    check_ratio("ratio", strategy, ratio)
    share = (_HALF if strategy == "alternate" else _WHOLE) if ratio is None else float(ratio)
    places = _places(memories, min(limit, _MAX_PLACES), strategy, share)
    return [_placed(memories[place], position) for position, place in enumerate(places)]


def _placed(memory: PayloadMemory, position: int) -> PayloadMemory:
    return replace(memory, provenance=replace(memory.provenance, position=position))


def _places(
    memories: Sequence[PayloadMemory], limit: int, strategy: InterleavingStrategy, share: float
) -> list[int]:
    scores = [memory.score for memory in memories]
    if any(map(isnan, scores)):
        place = [*map(isnan, scores)].index(True)
        raise InvalidArgumentError(f"memories[{place}].score must be a number, found NaN")
    ids = [memory.id for memory in memories]
    order = sorted(range(len(ids)), key=ids.__getitem__)  # a third of the time of a function
    times = [_microseconds(memories[place].timestamp) for place in order]
    chosen = interleaved([scores[place] for place in order], times, limit, strategy, share)
    return [order[place] for place in chosen]


def _microseconds(time: datetime) -> int:
    """Return a time; a naive one is taken as UTC, as in the prompt block."""
    return to_microseconds(time if time.tzinfo is not None else time.replace(tzinfo=UTC))


def places_by_score(memories: Sequence[PayloadMemory]) -> list[int]:
    """Return the places of memories by score, the highest first, then the newest, then by id.

    Raises:
        InvalidArgumentError: If a score is NaN.
    """
    scores = [memory.score for memory in memories]
    if len(scores) > 1 and all(gt(*pair) for pair in pairwise(scores)):
        return list(range(len(scores)))  # as a search returns them, mostly; never with NaN
    return _places(memories, len(scores), "score_first", _WHOLE)


def check_ratio(path: str, strategy: object, ratio: object) -> None:
    """Raise if a strategy does not go with a ratio."""
    if strategy == "alternate" and ratio not in (None, _HALF):
        raise InvalidArgumentError(
            f"{path} must be 0.5 or None with the strategy 'alternate', which gives each list "
            f"every second place, got {described(ratio)}; other ratios go with 'score_first' and "
            "'recency_first'"
        )

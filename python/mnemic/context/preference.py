"""The order in which memories are preferred to each other."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import isnan
from operator import gt

from mnemic.errors import InvalidArgumentError
from mnemic.model.payload import PayloadMemory


def places_by_id(memories: Sequence[PayloadMemory]) -> list[int]:
    """Return the places of memories by id.

    Raises:
        InvalidArgumentError: If a score is NaN, which has no place in an order.
    """
    scores = [memory.score for memory in memories]
    if any(map(isnan, scores)):
        place = [*map(isnan, scores)].index(True)
        raise InvalidArgumentError(f"memories[{place}].score must be a number, found NaN")
    ids = [memory.id for memory in memories]
    return sorted(range(len(ids)), key=ids.__getitem__)  # a third of the time of a function


def places_by_score(memories: Sequence[PayloadMemory]) -> list[int]:
    """Return the places of memories by score, the highest first, then the newest, then by id.

    Raises:
        InvalidArgumentError: If a score is NaN.
    """
    scores = [memory.score for memory in memories]
    if len(scores) > 1 and all(gt(*pair) for pair in pairwise(scores)):
        return list(range(len(scores)))  # as a search returns them, mostly; never with NaN
    places = places_by_id(memories)
    times = times_of(memories)
    places.sort(key=times.__getitem__, reverse=True)
    places.sort(key=scores.__getitem__, reverse=True)
    return places


def times_of(memories: Sequence[PayloadMemory]) -> list[datetime]:
    """Return the aware times of memories; naive ones are taken as UTC, as in the prompt block."""
    times = [memory.timestamp for memory in memories]
    return [time if time.tzinfo is not None else time.replace(tzinfo=UTC) for time in times]

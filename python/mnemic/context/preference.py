"""The order in which memories are preferred to each other."""

from collections.abc import Sequence
from math import isnan

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
    places = places_by_id(memories)
    times = [memory.timestamp for memory in memories]
    scores = [memory.score for memory in memories]
    places.sort(key=times.__getitem__, reverse=True)
    places.sort(key=scores.__getitem__, reverse=True)
    return places

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
    for place, memory in enumerate(memories):
        if isnan(memory.score):
            raise InvalidArgumentError(f"memories[{place}].score must be a number, found NaN")
    return sorted(range(len(memories)), key=lambda place: memories[place].id)


def places_by_score(memories: Sequence[PayloadMemory]) -> list[int]:
    """Return the places of memories by score, the highest first, then the newest, then by id.

    Raises:
        InvalidArgumentError: If a score is NaN.
    """
    places = places_by_id(memories)
    places.sort(key=lambda place: memories[place].timestamp, reverse=True)
    places.sort(key=lambda place: memories[place].score, reverse=True)
    return places

"""Leaves out memories whose text repeats that of a better one."""

from collections.abc import Sequence

from msgspec.structs import replace

from mnemic._core import duplicates
from mnemic.context.preference import places_by_score
from mnemic.errors import CountMismatchError
from mnemic.model.payload import PayloadMemory, payload_memories


def deduplicate(
    memories: Sequence[PayloadMemory],
    *,
    near: float | None = None,
    contents: Sequence[str] | None = None,
) -> list[PayloadMemory]:
    """Return the memories without those whose text repeats that of a better one.

    Texts repeat each other if they differ only in case, width, white space or the punctuation
    around them; two sessions' memories may repeat each other as those of one do. The best memory
    stays: the one with the higher score, then the newer, then the one with the smaller id. The ids
    of the others, the best first, are added to its `provenance.duplicate_ids`, with those that they
    stood for already.

    Args:
        memories: Any order, which the result keeps. They are not changed.
        near: From 0 to 1, such as .95. Texts that share so much of their trigrams, and all of their
            numbers, repeat each other too. None: exact duplicates alone.
        contents: The texts to compare, in the order of `memories`, where they are not the
            memories' own: the texts before redaction, for instance, so that two memories with
            different addresses do not become one.

    Raises:
        InvalidArgumentError: If something is no memory, `near` is out of range, or a score is NaN.
        CountMismatchError: If there are not as many contents as memories.
    """
    memories = payload_memories(memories)
    texts = [memory.content for memory in memories] if contents is None else contents
    if len(texts) != len(memories):
        raise CountMismatchError(f"{len(texts)} contents were given with {len(memories)} memories")
    order = places_by_score(memories)
    found = duplicates([texts[place] for place in order], near)
    if found == list(range(len(order))):
        return memories
    repeated: dict[int, list[str]] = {}
    for place, original in zip(order, (order[first] for first in found), strict=True):
        if place != original:
            memory = memories[place]
            ids = repeated.setdefault(original, [])
            ids += memory.id, *memory.provenance.duplicate_ids
    kept = {order[first] for first in found}
    return [
        _standing_for(memory, repeated.get(place))
        for place, memory in enumerate(memories)
        if place in kept
    ]


def _standing_for(memory: PayloadMemory, ids: list[str] | None) -> PayloadMemory:
    if ids is None:
        return memory
    before = memory.provenance.duplicate_ids
    provenance = replace(memory.provenance, duplicate_ids=(*before, *ids))
    return replace(memory, provenance=provenance)

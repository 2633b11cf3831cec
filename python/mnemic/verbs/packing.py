"""Packs the results of a search into the text of `Memory.context`."""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from mnemic.context import MemoryContext, PackingPlan, pack
from mnemic.context.prompt_block import NumberedLines
from mnemic.model import SearchHit, SearchResults
from mnemic.model.marks import SHOWN
from mnemic.model.payload import PayloadMemory
from mnemic.protocols import TokenCounter


def context_of(
    found: SearchResults,
    max_tokens: int,
    counter: TokenCounter | None,
    *,
    time_zone: str = "UTC",
    explain: bool,
    query: str | None = None,
) -> MemoryContext:
    """Return the text of hits: numbered lines in their order.

    Args:
        found: The hits.
        max_tokens: Maximum number of tokens of the text.
        counter: Token counter; an estimate by script unless given.
        time_zone: Name of the zone of the dates.
        explain: Whether the result holds the dropped hits.
        query: Text whose words say which sentences stay of a long content; None cuts none.
    """
    block = NumberedLines(time_zone=time_zone, by_another=found.by_another)
    plan = PackingPlan(
        query=query,
        cuts_last=query is not None,
        block=block,
        max_tokens=max_tokens,
        counter=counter,
    )
    memories = _memories(found.hits)
    packed = pack(memories, plan)
    hits = {memory.id: hit for memory, hit in zip(memories, found.hits, strict=True)}
    return MemoryContext(
        packed.text,
        [hits[memory.id] for memory in packed.kept],
        packed.tokens,
        dropped=packed.dropped,
        costs=packed.costs,
        others=[hits[memory.id] for memory in packed.dropped] if explain else (),
        **{name: getattr(found, name) for name in SHOWN},
    )


def _memories(hits: Sequence[SearchHit]) -> list[PayloadMemory]:
    """Return hits on their way, with its user in an id that memories of several users share."""
    memories = PayloadMemory.of([(hit.entry, hit.score) for hit in hits])
    numbers = Counter(memory.id for memory in memories)
    if len(numbers) == len(memories):
        return memories
    return [
        replace(memory, id=f"{memory.id} of {hit.entry.user_id!r}")
        if numbers[memory.id] > 1
        else memory
        for memory, hit in zip(memories, hits, strict=True)
    ]

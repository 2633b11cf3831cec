"""Packs the results of a search into the text of `Memory.context`."""

from collections import Counter
from collections.abc import Sequence

from msgspec import to_builtins

from mnemic.context import MemoryContext, PackingPlan, pack
from mnemic.context.prompt_block import NumberedLines
from mnemic.model import SearchHit, SearchResults
from mnemic.model.marks import SHOWN
from mnemic.model.payload import PayloadMemory, Provenance
from mnemic.protocols import TokenCounter

_LINES = NumberedLines()


def context_of(
    found: SearchResults, max_tokens: int, counter: TokenCounter | None, *, explain: bool
) -> MemoryContext:
    """Return the text of hits: numbered lines in their order, whole or not at all.

    Args:
        found: The hits.
        max_tokens: Maximum number of tokens of the text.
        counter: Token counter; an estimate by script unless given.
        explain: Whether the result holds the dropped hits.
    """
    plan = PackingPlan(
        strategy=None, cuts_last=False, block=_LINES, max_tokens=max_tokens, counter=counter
    )
    ids = _ids(found.hits)
    packed = pack(list(map(_memory, found.hits, ids)), plan)
    hits = dict(zip(ids, found.hits, strict=True))
    return MemoryContext(
        packed.text,
        [hits[memory.id] for memory in packed.kept],
        packed.tokens,
        dropped=packed.dropped,
        costs=packed.costs,
        others=[hits[memory.id] for memory in packed.dropped] if explain else (),
        **{name: getattr(found, name) for name in SHOWN},
    )


def _ids(hits: Sequence[SearchHit]) -> list[str]:
    """Return the id of each hit, with its user where memories of several users share it."""
    ids: list[str] = to_builtins([hit.entry.id for hit in hits])
    if len(set(ids)) == len(ids):
        return ids
    numbers = Counter(ids)
    return [
        f"{name} of {hit.entry.user_id!r}" if numbers[name] > 1 else name
        for name, hit in zip(ids, hits, strict=True)
    ]


def _memory(hit: SearchHit, identity: str) -> PayloadMemory:
    """Return the fields of a hit that its line is made of."""
    entry = hit.entry
    return PayloadMemory(
        id=identity,
        content=entry.content,
        timestamp=entry.created_at,
        score=hit.score,
        role=entry.role,
        speaker=entry.speaker,
        provenance=Provenance(original_length=len(entry.content)),
    )

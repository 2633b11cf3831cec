"""Packs the results of a search into the text of `Memory.context`."""

from mnemic.context import MemoryContext, Plan, pack
from mnemic.context.prompt_block import NumberedLines
from mnemic.model import SearchResults
from mnemic.model.payload import PayloadMemory
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
    plan = Plan(
        strategy=None, cuts_last=False, block=_LINES, max_tokens=max_tokens, counter=counter
    )
    memories = PayloadMemory.of([(hit.entry, hit.score) for hit in found])
    packed = pack(memories, plan)
    hits = {memory.id: hit for memory, hit in zip(memories, found, strict=True)}
    return MemoryContext(
        packed.text,
        [hits[memory.id] for memory in packed.kept],
        packed.tokens,
        dropped=packed.dropped,
        degraded=found.degraded,
        partial=found.partial,
        approximate=found.approximate,
        hint=found.hint,
        costs=packed.costs,
        others=[hits[memory.id] for memory in packed.dropped] if explain else (),
    )

"""A simple form of the pipeline, until that of `mnemic.context.packing` is there."""

from collections.abc import Sequence

import msgspec

from mnemic._core import fingerprint_digests
from mnemic.context.budget import spent
from mnemic.context.clipping import clip
from mnemic.context.interleaving import InterleavingStrategy
from mnemic.context.prompt_block import PromptBlock, PromptForm
from mnemic.context.redaction import Redaction, redact
from mnemic.model.payload import DroppedMemory, PayloadMemory, Step
from mnemic.protocols import TokenCounter
from mnemic.records import Record


class Plan(Record, frozen=True, kw_only=True):
    """The options of the steps."""

    min_score: float | None = None
    redaction: Redaction | None = None
    near: float | None = None
    limit: int = 8
    strategy: InterleavingStrategy | None = "alternate"
    ratio: float | None = None
    clip_sentences: int | None = None
    max_tokens: int = 1500
    counter: TokenCounter | None = None
    cuts_last: bool = True
    block: PromptForm = PromptBlock()


class Packed(Record, frozen=True, kw_only=True):
    """The memories of a block, and the others."""

    kept: tuple[PayloadMemory, ...]
    dropped: tuple[DroppedMemory, ...]
    text: str
    tokens: int
    applied: tuple[str, ...]


def pack(memories: Sequence[PayloadMemory], plan: Plan) -> Packed:  # noqa: C901 - it goes soon
    """Run all steps."""
    dropped: list[DroppedMemory] = []
    applied: list[str] = []

    def drop(step: Step, reason: str, memory: PayloadMemory) -> None:
        dropped.append(DroppedMemory(id=memory.id, step=step, reason=reason, score=memory.score))

    chosen = list(memories)
    if plan.min_score is not None:
        applied.append("score_threshold")
        for memory in chosen:
            if memory.score < plan.min_score:
                drop("threshold", "Its score is below the minimum.", memory)
        chosen = [memory for memory in chosen if memory.score >= plan.min_score]
    chosen.sort(key=lambda memory: (-memory.score, -memory.timestamp.timestamp(), memory.id))
    applied.append("deduplication")
    seen: dict[bytes, PayloadMemory] = {}
    digests = fingerprint_digests([memory.content for memory in chosen])
    for memory, digest in zip(chosen, digests, strict=True):
        if seen.setdefault(digest, memory) is not memory:
            drop("deduplicate", "A better memory has the same text.", memory)
    by_score = list(seen.values())
    by_time = sorted(by_score, key=lambda memory: memory.timestamp, reverse=True)
    applied.append("interleaving")
    order: list[PayloadMemory] = []
    while len(order) < min(plan.limit, len(by_score)):
        source = by_score if len(order) % 2 == 0 else by_time
        order.append(next(memory for memory in source if memory not in order))
    for memory in by_score:
        if memory not in order:
            drop("interleave", "Others took the places.", memory)
    if plan.redaction is not None and plan.redaction.enabled:
        applied.append("redaction")
        order = [
            msgspec.structs.replace(memory, content=redact(memory.content, plan.redaction))
            for memory in order
        ]
    if plan.clip_sentences is not None:
        applied.append("clipping")
        order = [
            msgspec.structs.replace(memory, content=clip(memory.content, plan.clip_sentences))
            for memory in order
        ]
    applied.append("token_budget")
    result = spent(order, plan.max_tokens, plan.block, plan.counter, cuts_last=plan.cuts_last)
    for refusal in result.refused:
        drop("budget", refusal.reason, refusal.memory)
    return Packed(
        kept=tuple(result.kept),
        dropped=tuple(dropped),
        text=result.text,
        tokens=result.tokens,
        applied=tuple(applied),
    )

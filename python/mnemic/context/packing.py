"""The one way from found memories to a prompt block: seven steps, each leaving out or changing."""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from mnemic._core import clip_sentences, clip_sentences_batch, duplicates
from mnemic.context.budget import (
    PackedBlock,
    PackingPlan,
    interleave,
    left_out,
    places_by_score,
    select_within_budget,
)
from mnemic.context.redaction import Redaction, redact_batch
from mnemic.errors import CountMismatchError, RedactionBudgetError
from mnemic.model import validation
from mnemic.model.payload import DroppedMemory, PayloadMemory, Step, payload_memories


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


def clip(text: str, max_sentences: int = 2) -> str:
    """Return a text up to the end of its first sentences.

    The result is the start of the text as it stands, with "…" in the place of its final full
    stop, or behind another mark; quotes and brackets that close behind the full stop stay. A text
    of no more sentences is returned itself. A line end ends a sentence too, unless a long line
    goes on in lower case.

    Args:
        text: Any text.
        max_sentences: At least 1.

    Raises:
        InvalidArgumentError: If `max_sentences` is less than 1, or `text` holds a lone surrogate.
    """
    validation.of_kind("text", str, "a str", text)
    return clip_sentences(text, validation.whole("max_sentences", max_sentences, minimum=1))


def pack(memories: Sequence[PayloadMemory], plan: PackingPlan) -> PackedBlock:
    """Return the prompt block of memories.

    The steps are: threshold, redaction, deduplication, interleaving, clipping, budget, form.
    Duplicates are found by the contents before redaction. The budget is spent by score, and the
    block is in the interleaved order. The same memories and plan give the same text.

    Args:
        memories: The found memories; they are not changed.
        plan: The options.

    Returns:
        The block. Each memory is either kept or dropped.

    Raises:
        InvalidArgumentError: If the counter's result is not an int, or is negative; if a text holds
            a lone surrogate.
    """
    validation.of_kind("plan", PackingPlan, "a PackingPlan", plan)
    packing = _Packing(payload_memories(memories), plan)
    packing.threshold()
    packing.redact_and_deduplicate()
    packing.interleave()
    packing.clip()
    return packing.within_budget()


class _Packing:
    """The memories that are left, and the reasons against the others."""

    def __init__(self, memories: list[PayloadMemory], plan: PackingPlan) -> None:
        self._plan = plan
        self._left = memories
        self._dropped: list[DroppedMemory] = []
        self._applied: list[str] = []

    def threshold(self) -> None:
        floor = self._plan.min_score
        if floor is not None and self._applies("score_threshold"):
            reason = f"Its score is below {floor:.2f}."
            kept = [memory for memory in self._left if memory.score >= floor]
            self._keep(kept, "threshold", reason)

    def redact_and_deduplicate(self) -> None:
        originals = [memory.content for memory in self._left]
        redaction = self._plan.redaction
        if redaction is not None and redaction.enabled and self._applies("redaction"):
            originals = self._redact(redaction)
        if self._applies("deduplication"):
            kept = deduplicate(self._left, near=self._plan.near, contents=originals)
            self._drop_duplicates(kept)

    def _redact(self, redaction: Redaction) -> list[str]:
        """Redact memories, and return the contents that those that are left had before."""
        pairs = list(zip(self._left, redacted(self._left, redaction), strict=True))
        for memory, made in pairs:
            if made is None:
                self._drop(memory, "redact", "Its redaction takes too long.")
        self._left = [made for _, made in pairs if made is not None]
        return [memory.content for memory, made in pairs if made is not None]

    def interleave(self) -> None:
        plan = self._plan
        if self._applies("interleaving"):
            places = len(self._left) if plan.limit is None else plan.limit
            kept = interleave(self._left, places, strategy=plan.strategy, ratio=plan.ratio)
            self._keep(kept, "interleave", f"The {places} places were taken by others.")

    def clip(self) -> None:
        sentences = self._plan.clip_sentences
        if sentences is not None and self._applies("clipping"):
            contents = [memory.content for memory in self._left]
            clipped = clip_sentences_batch(contents, sentences)
            self._left = [
                memory if text == memory.content else memory.with_content(text, was_clipped=True)
                for memory, text in zip(self._left, clipped, strict=True)
            ]

    def within_budget(self) -> PackedBlock:
        self._applies("token_budget")
        packed = select_within_budget(self._left, self._plan)
        return replace(
            packed,
            kept=tuple(map(_with_length, packed.kept)),
            dropped=(*self._dropped, *packed.dropped),
            applied=tuple(self._applied),
        )

    def _applies(self, name: str) -> bool:
        """Note the name of a step if any memory is left for it."""
        if self._left:
            self._applied.append(name)
        return bool(self._left)

    def _keep(self, kept: list[PayloadMemory], step: Step, reason: str) -> None:
        for memory in _without(self._left, kept):
            self._drop(memory, step, reason)
        self._left = kept

    def _drop_duplicates(self, kept: list[PayloadMemory]) -> None:
        better = {name: one.id for one in kept for name in one.provenance.duplicate_ids}
        for memory in _without(self._left, kept):
            name = better.get(memory.id, memory.id)
            self._drop(memory, "deduplicate", f"Its text repeats that of {name}.")
        self._left = kept

    def _drop(self, memory: PayloadMemory, step: Step, reason: str) -> None:
        self._dropped.append(left_out(memory, step, reason))


def _without(memories: list[PayloadMemory], kept: list[PayloadMemory]) -> list[PayloadMemory]:
    """Return the memories that are not kept, in their order; ids may come twice."""
    if len(kept) == len(memories):
        return []
    ids = Counter(memory.id for memory in kept)
    left = []
    for memory in memories:
        if ids[memory.id]:
            ids[memory.id] -= 1
        else:
            left.append(memory)
    return left


def _with_length(memory: PayloadMemory) -> PayloadMemory:
    """Return a memory with the length of its content if none is noted: no step has changed it."""
    if memory.provenance.original_length:
        return memory
    return memory.with_content(memory.content)


def redacted(memories: Sequence[PayloadMemory], redaction: Redaction) -> list[PayloadMemory | None]:
    """Return memories whose contents, speakers and roles are redacted.

    None stands for a memory that cannot be redacted within the budget of work.
    """
    texts = [text for memory in memories for text in (memory.content, memory.speaker, memory.role)]
    try:
        results = redact_batch([text or "" for text in texts], redaction)
    except RedactionBudgetError:
        if len(memories) == 1:
            return [None]
        return [made for memory in memories for made in redacted([memory], redaction)]
    each = zip(results[::3], results[1::3], results[2::3], strict=True)
    return [_redacted(memory, *made) for memory, made in zip(memories, each, strict=True)]


def _redacted(
    memory: PayloadMemory, content: tuple[str, int], speaker: tuple[str, int], role: tuple[str, int]
) -> PayloadMemory:
    if not (content[1] or speaker[1] or role[1]):
        return memory
    changed = memory.with_content(content[0], was_redacted=True)
    return replace(changed, speaker=speaker[0] or None, role=role[0] or None)

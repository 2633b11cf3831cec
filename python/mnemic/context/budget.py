"""The order of memories in a prompt block, and which of them fit into its tokens."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import inf, isnan
from operator import gt
from typing import ClassVar, Literal, TypeAlias, get_args

from msgspec.structs import replace

from mnemic._core import estimate_tokens, interleaved, passage, truncate, truncate_to_tokens
from mnemic.context.prompt_block import MAX_LATENCY, PromptBlock, PromptForm, joined
from mnemic.context.redaction import Redaction
from mnemic.context.tokens import count_of
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.payload import DroppedMemory, PayloadMemory, Step, payload_memories
from mnemic.model.timestamps import to_microseconds
from mnemic.model.validation import Range, check_choice
from mnemic.protocols import TokenCounter
from mnemic.records import Record, Redacted
from mnemic.reporting.description import described
from mnemic.reporting.near_names import checks_arguments

InterleavingStrategy: TypeAlias = Literal["alternate", "score_first", "recency_first"]
"""The order of memories: best and newest in turns, or one of both lists before the other."""

_HALF = 0.5
_ALL = 1.0

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
    share = (_HALF if strategy == "alternate" else _ALL) if ratio is None else float(ratio)
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
    return _places(memories, len(scores), "score_first", _ALL)


def check_ratio(path: str, strategy: object, ratio: object) -> None:
    """Raise if a strategy does not go with a ratio."""
    if strategy == "alternate" and ratio not in (None, _HALF):
        raise InvalidArgumentError(
            f"{path} must be 0.5 or None with the strategy 'alternate', which gives each list "
            f"every second place, got {described(ratio)}; other ratios go with 'score_first' and "
            "'recency_first'"
        )


MIN_CUT_TOKENS = 16
"""A content is cut only if at least this many tokens are left for it: fewer are a fragment."""

SHARES = 4
"""A memory takes one in so many of the tokens that are left, and what no later one needs."""

MIN_SHARE = 32
"""Tokens that any memory may take while they are left."""

MAX_PROBES = 8
"""Calls of a foreign counter for one cut; an estimate needs one or two."""

MAX_UNUSED = 2
"""Tokens that the search for a cut may leave unused, so that it ends early."""

CHARACTERS_PER_TOKEN = 4
"""First guess of the search; the next ones are by the counter's own results."""

MAX_PASSED_OVER = 64
"""Memories that do not fit before the search for smaller ones ends, by a foreign counter."""

MAX_FURTHER_CUTS = 4
"""Cuts of the last memory where a block takes more tokens than its lines."""

MAX_CHARACTERS_PER_TOKEN = 32
"""A longer line is first counted in part, so that a slow tokenizer need not read it whole."""

TOKENS_PER_LINE = 8
"""Tokens of a short fact with its mark: so many memories may be needed to fill a budget."""

MIN_CANDIDATES = 50
"""Memories for a small budget: long and equal ones leave it to others."""

_NOTHING = ("", "…")
_EMPTY = "It has no text."
_EXHAUSTED = "The budget was spent before it."
_WHOLE = "The whole block takes more tokens than its lines."


class PackedBlock(Redacted, frozen=True, kw_only=True):
    """A prompt block, and the way to it.

    Attributes:
        kept: The memories of the block, in its order.
        dropped: The others, by step.
        text: The block; "" without memories.
        tokens: Number of tokens of the text.
        costs: Tokens of the line of each kept memory.
        applied: Names of the steps that were applied to at least one memory, in their order:
            score_threshold, redaction, deduplication, interleaving, clipping, token_budget.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"text"})

    kept: tuple[PayloadMemory, ...]
    dropped: tuple[DroppedMemory, ...]
    text: str
    tokens: int
    costs: tuple[int, ...]
    applied: tuple[str, ...] = ()


class PackingPlan(Record, frozen=True, kw_only=True):
    """The options of all steps.

    Attributes:
        min_score: Memories with a lower score are left out; None is no floor.
        redaction: Patterns that are replaced in contents, speakers and roles; None is none.
        near: Similarity from which on two texts are duplicates, 0 to 1; None compares normal forms.
        limit: Maximum number of memories; None is as many as the tokens allow.
        strategy: Order by score, by time, or by turns of both.
        ratio: Share of the strategy's first list in the limit.
        query: Text by whose words the sentences are chosen that stay of a long content; None keeps
            the beginning of the last one alone.
        clip_sentences: Maximum number of sentences of a content; None clips nothing.
        max_tokens: Maximum number of tokens of the text.
        counter: Token counter; an estimate by script unless given.
        cuts_last: Whether the first memory that does not fit may be cut.
        block: Form of the text.
    """

    min_score: float | None = None
    redaction: Redaction | None = None
    near: float | None = None
    limit: int | None = None
    strategy: InterleavingStrategy = "score_first"
    ratio: float | None = None
    query: str | None = None
    clip_sentences: int | None = None
    max_tokens: int = 1500
    counter: TokenCounter | None = None
    cuts_last: bool = True
    block: PromptForm = PromptBlock()


def left_out(memory: PayloadMemory, step: Step, reason: str) -> DroppedMemory:
    """Return the record of a memory that a step leaves out."""
    return DroppedMemory(id=memory.id, step=step, reason=reason, score=memory.score)


def candidates_within(max_tokens: int) -> int:
    """Return the number of memories among which a budget finds enough to fill it."""
    return max(MIN_CANDIDATES, max_tokens // TOKENS_PER_LINE)


def passage_of(text: str, query: str, max_tokens: int) -> str:
    """Return the sentences of a text that share most with a query, and "…" for what is around."""
    start, end, _ = passage(text, query, max(1, max_tokens - estimate_tokens("……")))
    kept = text[start:end].strip()
    if text[:start].strip():
        kept = f"…{kept}"
    return f"{kept.removesuffix('.')}…" if text[end:].strip() else kept


@checks_arguments
def enforce_budget(
    memories: Sequence[PayloadMemory],
    max_tokens: int = 1500,
    *,
    counter: TokenCounter | None = None,
    block: PromptForm | None = None,
) -> list[PayloadMemory]:
    """Return the memories whose block takes at most a number of tokens.

    The budget holds for the whole rendered block, with header, headings and footer. It is spent by
    score, then newest, then smallest id. The first memory that does not fit is cut, the ellipsis
    within the budget, and is the last one; if fewer than 16 tokens are left for its content, it is
    passed over, and smaller ones take its place. With a counter of your own the search ends after
    64 that do not fit.

    Args:
        memories: In the order of the block.
        max_tokens: Maximum number of tokens, at least 1.
        counter: Token counter; an estimate by script unless given.
        block: Form of the block; `PromptBlock()` unless given.

    Returns:
        The memories that fit, in their order. The cut one is a new record.

    Raises:
        InvalidArgumentError: If the counter's result is not an int, or is negative.
    """
    form = PromptBlock() if block is None else validation.capable("block", block, "lines")
    budget = validation.whole("max_tokens", max_tokens, minimum=1, error=InvalidArgumentError)
    plan = PackingPlan(max_tokens=budget, counter=counter, block=form)
    return list(select_within_budget(payload_memories(memories), plan).kept)


def select_within_budget(memories: Sequence[PayloadMemory], plan: PackingPlan) -> PackedBlock:
    """Spend a plan's tokens by score, and render the block in the order of the memories."""
    selection = _Selection(memories, plan)
    places = places_by_score(memories)
    for begin in range(0, len(places), MAX_PASSED_OVER):
        some = places[begin : begin + MAX_PASSED_OVER]
        selection.select(some, [memories[place] for place in some])
    return selection.rendered(plan.max_tokens)


_Line: TypeAlias = tuple[PayloadMemory, str, int, PayloadMemory]
"""A memory, its line, the tokens of the line, and the memory before any cut."""


class _Selection:
    """Greedy selection by score: the remaining tokens, and the selected memories."""

    def __init__(self, memories: Sequence[PayloadMemory], plan: PackingPlan) -> None:
        self._form = plan.block
        self._count = count_of(plan.counter)
        self._is_estimate = self._count is estimate_tokens
        frame = self._form.header() + self._form.footer(len(memories), MAX_LATENCY)
        self._remaining = plan.max_tokens - (self._count(frame) if frame else 0)
        self._cuts_last = plan.cuts_last
        self._query = plan.query
        self._needed = sum(estimate_tokens(memory.content) for memory in memories)
        self._headings = {""}
        self._kept: dict[int, _Line] = {}
        self._dropped: list[DroppedMemory] = []
        self._misses_left = MAX_PASSED_OVER
        self._cuts_left = MAX_FURTHER_CUTS

    def select(self, places: Sequence[int], memories: Sequence[PayloadMemory]) -> None:
        """Select those of some memories that fit, best first."""
        if self._remaining < 1 or not self._misses_left:
            self._dropped += [left_out(memory, "budget", _EXHAUSTED) for memory in memories]
            return
        for place, memory, line in zip(places, memories, self._form.lines(memories), strict=True):
            if not line:
                self._drop(memory, _EMPTY)
            elif self._remaining < 1 or not self._misses_left:
                self._drop(memory, _EXHAUSTED)
            else:
                self._keep(place, memory, line)

    def _drop(self, memory: PayloadMemory, reason: str) -> None:
        self._dropped.append(left_out(memory, "budget", reason))

    def _keep(self, place: int, memory: PayloadMemory, line: str) -> None:
        """Keep a memory, whole or cut, if it fits."""
        heading, remaining = self._form.heading(memory), self._remaining
        if heading not in self._headings:
            remaining -= self._count(f"\n{heading}\n")
        number = len(self._kept) + 1
        text = f"{self._form.numbered(line, number)}\n"
        cost = self._count(text) if self._is_estimate else self._cost(text, remaining)
        share = remaining if self._query is None else self._share(memory, remaining)
        if cost <= share:
            self._kept[place] = memory, line, cost, memory
            self._remaining = remaining - cost
            self._headings.add(heading)
        elif self._cuts_last and (cut := self._cut(memory, share, number)) is not None:
            self._kept[place] = cut
            self._remaining = 0 if self._query is None else remaining - cut[2]
            self._headings.add(heading)
        else:
            self._misses_left -= not self._is_estimate
            reason = f"It takes more than the {max(remaining, 0)} tokens that were left."
            self._drop(memory, reason)

    def _share(self, memory: PayloadMemory, remaining: int) -> int:
        """Return the most tokens that a memory takes of those that are left for it and others."""
        self._needed -= estimate_tokens(memory.content)
        return min(remaining, max(MIN_SHARE, remaining // SHARES, remaining - self._needed))

    def _cost(self, text: str, remaining: int) -> int:
        """Return the tokens of a text, or those of its head if they are too many already."""
        length = remaining * MAX_CHARACTERS_PER_TOKEN
        if 0 < length < len(text) and (tokens := self._count(text[:length])) > remaining:
            return tokens
        return self._count(text)

    def _cut(self, memory: PayloadMemory, budget: int, number: int) -> _Line | None:
        """Return a memory with as much of its content as fits into a number of tokens.

        None if fewer than `MIN_CUT_TOKENS` are left for its content.
        """

        def measured(content: str) -> _Line:
            cut = memory.with_content(content, was_clipped=True)
            (line,) = self._form.lines([cut])
            cost = self._count(f"{self._form.numbered(line, number)}\n")
            return cut, line, cost, memory

        if budget < MIN_CUT_TOKENS:
            return None
        content_budget = budget - measured("…")[2]
        if content_budget < MIN_CUT_TOKENS:
            return None

        def cut(length: int) -> _Line | None:
            text = self._shortened(memory.content, length)
            return None if text in _NOTHING else measured(text)

        if self._is_estimate:
            return _by_estimate(cut, budget, content_budget)
        return _by_search(cut, len(memory.content), budget, content_budget)

    def _shortened(self, content: str, length: int) -> str:
        """Return a content cut to estimated tokens, or to characters for another counter."""
        if self._query is None:
            return (truncate_to_tokens if self._is_estimate else truncate)(content, length)
        tokens = length if self._is_estimate else length // CHARACTERS_PER_TOKEN
        return passage_of(content, self._query, tokens)

    def rendered(self, max_tokens: int) -> PackedBlock:
        """Render the block; while it takes more tokens than its lines, shorten it from the end."""
        while True:
            lines = [self._kept[place] for place in sorted(self._kept)]
            kept = tuple(line[0] for line in lines)
            text = joined(self._form, kept, [line[1] for line in lines])
            tokens = self._count(text) if text else 0
            if tokens <= max_tokens:
                break
            self._shorten(tokens - max_tokens)
        return PackedBlock(
            kept=kept,
            dropped=tuple(self._dropped),
            text=text,
            tokens=tokens,
            costs=tuple(line[2] for line in lines),
        )

    def _shorten(self, excess: int) -> None:
        """Cut the last memory more if it is a cut one; else, or after some cuts, leave it out."""
        place, (memory, _, cost, original) = self._kept.popitem()
        if memory is not original and self._cuts_left:
            self._cuts_left -= 1
            shorter = self._cut(original, cost - excess, len(self._kept) + 1)
            if shorter is not None:
                self._kept[place] = shorter
                return
        self._drop(original, _WHOLE)


_Cut: TypeAlias = Callable[[int], _Line | None]
"""A memory whose content is cut to a length; None if nothing is left of it."""


def _by_estimate(cut: _Cut, budget: int, content_budget: int) -> _Line | None:
    tokens = content_budget + estimate_tokens("…")
    for _ in range(MAX_PROBES):
        line = cut(tokens) if tokens > 0 else None
        if line is None:
            break
        if line[2] <= budget:
            return line
        tokens -= line[2] - budget  # neutralising has made it longer
    return None


def _by_search(cut: _Cut, length: int, budget: int, content_budget: int) -> _Line | None:
    """Search for the longest text that fits, in proportion to the tokens of the last one."""
    best, fits, misses = None, 0, length
    guess = content_budget * CHARACTERS_PER_TOKEN
    for _ in range(MAX_PROBES):
        if not fits < guess < misses:
            guess = (fits + misses) // 2
        if guess == fits:
            break
        line = cut(guess)
        left = 0 if line is None else budget - line[2]
        if left < 0:
            misses = guess
        else:
            best, fits = line or best, guess
        if line is not None and 0 <= left <= MAX_UNUSED:
            break
        guess = guess * content_budget // max(1, content_budget - left)
    return best

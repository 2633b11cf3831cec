"""The result of `Memory.context`: a text with the memories that it cites."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Self

from mnemic.model import MemoryEntry, SearchHit
from mnemic.model.marks import SHOWN, Marks
from mnemic.model.payload import DroppedMemory
from mnemic.model.table import context_table
from mnemic.reporting.habits import CONTEXT, AnswersHabits


class MemoryContext(str, AnswersHabits):  # noqa: SLOT000 - pickles have its parts from its dict
    """A text made of memories.

    Attributes:
        hits: The cited memories with their scores, in the order of their numbers.
        tokens: Number of tokens of the text.
        dropped: The memories that were found and left out, each with the step and the reason; with
            `explain=True` also those that are too long for what better ones leave of the text.
        degraded: Whether the embedder failed, so that the memories were found by keywords.
        degraded_reason: Why the embedder failed, without a word of a memory; else None.
        partial: Whether the timeout passed, so that better memories may be missing.
        approximate: Whether an approximate index chose the memories that were ranked: better ones
            may be missing.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
        hint: A sentence about the cause of an empty text, if one is likely; else None.
        by_another: Whether the query names one speaker, and the best memory is by another, as the
            text then says.
        memories: The entries of the hits.
    """

    _habits: ClassVar[Mapping[str, str]] = CONTEXT

    hits: tuple[SearchHit, ...]
    tokens: int
    dropped: tuple[DroppedMemory, ...]
    degraded: bool
    degraded_reason: str | None
    partial: bool
    approximate: bool
    stale_since: datetime | None
    hint: str | None
    by_another: bool
    _costs: tuple[int, ...]
    _others: tuple[SearchHit, ...]

    def __new__(
        cls,
        text: str = "",
        hits: Sequence[SearchHit] = (),
        tokens: int = 0,
        *,
        dropped: Sequence[DroppedMemory] = (),
        costs: Sequence[int] = (),
        others: Sequence[SearchHit] = (),
        **marks: Any,
    ) -> Self:
        """Return a text with its memories.

        Args:
            text: The text.
            hits: See `MemoryContext`.
            tokens: See `MemoryContext`.
            dropped: See `MemoryContext`.
            costs: Tokens of the line of each hit, for the table.
            others: The hits of dropped memories, for the table.
            **marks: The other attributes of `MemoryContext`, from `degraded` to `by_another`.
        """
        made = super().__new__(cls, text)
        made.hits = tuple(hits)
        made.tokens = tokens
        made.dropped = tuple(dropped)
        given = Marks(**marks)
        for name in SHOWN:
            setattr(made, name, getattr(given, name))
        made._costs = tuple(costs)
        made._others = tuple(others)
        return made

    @property
    def memories(self) -> tuple[MemoryEntry, ...]:
        """The entries of the hits."""
        return tuple(hit.entry for hit in self.hits)

    def table(self) -> str:
        """Return the cited and the dropped memories as a table of plain text, one line for each.

        Columns are the number, the score, the tokens of the line, and the content, cut; for a
        dropped memory the step and the reason. With `explain=True` there are the shares that add up
        to a score, the words matched, and the contents of dropped memories. Content and words of
        sensitive memories are hidden.
        """
        return context_table(self.hits, self._costs, self.dropped, self._others)

    def to_dict(self) -> dict[str, Any]:
        """Return text, memories, scores, dropped memories and marks as plain JSON types."""
        from mnemic.records.plain import plain  # noqa: PLC0415 - loaded where it is used

        return {
            "text": str(self),
            "memories": [entry.to_dict() for entry in self.memories],
            "scores": [hit.score for hit in self.hits],
            "tokens": self.tokens,
            "dropped": [memory.to_dict() for memory in self.dropped],
            **{name: plain(getattr(self, name)) for name in SHOWN},
        }

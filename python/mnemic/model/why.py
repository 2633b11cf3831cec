"""Reasons: the parts of a score, and the words, neighbour, date, role and speaker behind them."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from mnemic.model.redacted import Redacted
from mnemic.records.lines import HIDDEN, cut

_SMALLEST_PART = 0.0005
"""Shown as 0.001."""

_SHOWN_WORDS = 8
_WORDS_WIDTH = 120


class WordMatch(Redacted, frozen=True):
    """Words of a query and the words of a memory that they match.

    Attributes:
        query: As the query has them. Of scripts without spaces, a run of characters.
        memory: As the memory has them: another form of the word, a near spelling, or the same. If
            an earlier turn has them, those of the query.
        turn: How many turns before the memory: 0 is the memory itself, 1 and 2 are turns of its
            session whose words count for it.
        sensitive: Whether the memory is sensitive, so that `repr` hides the words.
    """

    query: str
    memory: str
    turn: int = 0
    sensitive: bool = False

    def _hidden_fields(self) -> frozenset[str]:
        return frozenset({"query", "memory"}) if self.sensitive else frozenset()


class Why(Redacted, frozen=True, kw_only=True):
    """The reasons for the score of a hit.

    Attributes:
        parts: Shares of the score by name. They add up to it, within 1e-9. Names are those of
            `components`, and `clamped`, which is what a score outside 0 to 1 is brought back by;
            those of `question`, `role` and `chunks` are subtracted, and so is a negative
            similarity.
        words: Words of the query that the memory has, or an earlier turn of its session whose words
            count for it; the weightiest first. Empty in a search by meaning alone.
        neighbour: Id of the turn of its session that raised the score most; None if none did. It is
            always within the scope and the filters of the call.
        date: First moment of the time that the query names and the memory is near to, and the first
            one after it; None if the query names none near it.
        role: The memory's side of a chat with an assistant, "user" or "assistant", if the query is
            about the other side; else None.
        speaker: The memory's speaker, if the query names that one; else None.
        sensitive: Whether the memory is sensitive, so that `repr` hides its words, role and
            speaker.
    """

    _sensitive_fields: ClassVar[frozenset[str]] = frozenset({"words", "speaker", "role"})

    parts: dict[str, float]
    words: tuple[WordMatch, ...] = ()
    neighbour: UUID | None = None
    date: tuple[datetime, datetime] | None = None
    role: str | None = None
    speaker: str | None = None
    sensitive: bool = False

    def _hidden_fields(self) -> frozenset[str]:
        return self._sensitive_fields if self.sensitive else frozenset()

    def __str__(self) -> str:
        """Return the parts that count and the matched words, which a sensitive memory hides."""
        shares = (f"{name} {part:+.3f}" for name, part in self.parts.items() if is_shown(part))
        return f"{', '.join(shares) or 'no part counts'}; words: {self._shown_words() or 'none'}"

    def _shown_words(self) -> str:
        if self.sensitive:
            return HIDDEN if self.words else ""
        words = (word.query for word in self.words[:_SHOWN_WORDS])
        return cut(", ".join(words), _WORDS_WIDTH)


def is_shown(part: float) -> bool:
    """Return whether a part of a score is not rounded to 0."""
    return abs(part) >= _SMALLEST_PART

"""Hit: a memory with its score, the reasons of it, and the passage that a query is about."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from mnemic._core import estimate_tokens, passage
from mnemic.model.entry import MemoryEntry, MemoryType
from mnemic.records import Redacted
from mnemic.records.lines import HIDDEN, cut, memory_line
from mnemic.reporting import habits
from mnemic.reporting.habits import AnswersHabits

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


LONG: Final = 256
"""Estimated tokens of a memory that is its own passage; the default embedder sees as many."""

MAX_TOKENS: Final = 100
"""Estimated tokens of a passage: three to five sentences."""

MOST_READ: Final = 1_000_000
"""Characters of the long memories of a result, each with the query, that are read for passages,
which takes .2 s."""

_READ = 10_000  # characters of a query; as a query may have


class Passage(Redacted, frozen=True):
    """Consecutive sentences of a long memory that share most with a query.

    Attributes:
        text: As the memory has it.
        span: Where it starts and ends, in characters of the content.
        words: The words of the query that it has, as the query writes them and in its order. None:
            it begins where the meaning is nearest, or else with the memory.
        sensitive: Whether the memory is sensitive, so that `repr` hides text and words.
    """

    text: str
    span: tuple[int, int]
    words: tuple[str, ...] = ()
    sensitive: bool = False

    def _hidden_fields(self) -> frozenset[str]:
        return frozenset({"text", "words"}) if self.sensitive else frozenset({"text"})


def is_long(content: str) -> bool:
    """Return whether a content is longer than its passages."""
    return len(content) > LONG // 2 and estimate_tokens(content) > LONG


def passage_of(entry: MemoryEntry, query: str, near: tuple[int, int] | None) -> Passage:
    """Return the passage of a long memory.

    Args:
        entry: The memory.
        query: What it was found by; the beginning is read.
        near: The part whose vector is nearest to the query's, in characters; None is not known.
    """
    start, end, words = passage(entry.content, query[:_READ], MAX_TOKENS, near)
    return Passage(entry.content[start:end], (start, end), tuple(words), entry.hides_content)


_OF_THE_ENTRY = {name: f"write hit.entry.{name}" for name in MemoryEntry.__struct_fields__}


class Hit(Redacted, AnswersHabits, frozen=True):
    """A memory with its score. Each kind of search has its own kind of hit, with more fields.

    Hits are hashable, by memory and score; `repr` is one line, `to_dict` and rich have all fields.

    Attributes:
        entry: The memory, without its embedding.
        score: From 0 to 1, higher is better; its meaning is that of the search.
    """

    _habits: ClassVar[Mapping[str, str]] = _OF_THE_ENTRY | habits.HIT

    entry: MemoryEntry
    score: float

    def __hash__(self) -> int:
        return hash((self.entry, self.score))

    if not TYPE_CHECKING:  # which would let items through

        def __getitem__(self, key: object) -> object:
            raise habits.item_of_record(self, key, "hit", self._habits)

    def __repr__(self) -> str:
        return memory_line(self, f"score={self.score:.3f}")

    def _repr_html_(self) -> str:
        """Return a table of the memory's fields for notebooks; as in `repr`, some are hidden."""
        from mnemic.records.display import entry_html  # noqa: PLC0415 - loaded where it is used

        return entry_html(f"{type(self).__name__}: score {self.score:.3f}", self.entry)

    @property
    def id(self) -> UUID:
        """The memory's id."""
        return self.entry.id

    @property
    def content(self) -> str:
        """The memory's text."""
        return self.entry.content

    @property
    def user_id(self) -> str | None:
        """The user whom the memory is about."""
        return self.entry.user_id

    @property
    def session_id(self) -> str | None:
        """The memory's session."""
        return self.entry.session_id

    @property
    def type(self) -> MemoryType:
        """The memory's type."""
        return self.entry.type

    @property
    def role(self) -> str | None:
        """Role of the memory's speaker, such as "user" or "assistant"."""
        return self.entry.role

    @property
    def speaker(self) -> str | None:
        """Name of the memory's speaker."""
        return self.entry.speaker

    @property
    def importance(self) -> float:
        """The memory's importance, from 0 to 1."""
        return self.entry.importance

    @property
    def source(self) -> str | None:
        """Where the memory came from, such as a file's name or a URL."""
        return self.entry.source

    @property
    def created_at(self) -> datetime:
        """The memory's time of creation."""
        return self.entry.created_at

    @property
    def tags(self) -> tuple[str, ...]:
        """The memory's tags."""
        return self.entry.tags

    @property
    def metadata(self) -> dict[str, Any]:
        """The memory's metadata."""
        return self.entry.metadata

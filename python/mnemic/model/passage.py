"""Passage: the sentences of a long memory that a query is about."""

from typing import Final

from mnemic._core import estimate_tokens, passage
from mnemic.model.entry import MemoryEntry
from mnemic.model.redacted import Redacted

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

"""Results of the finder, before they become those of a public verb, and reasons for scores."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from mnemic.index import Hops, LinkedRow, NativeIndex, NeighbourRow, RankedRow
from mnemic.model import LinkType, MemoryEntry, Scope, SearchHit, SearchResults, Why, WordMatch
from mnemic.model.hit import Passage
from mnemic.model.link import Direction
from mnemic.model.marks import UNMARKED, Marks
from mnemic.model.search import Search


class Follow(NamedTuple):
    """The links to follow from one memory.

    Attributes:
        kinds: Only links of these types; None follows all.
        direction: Which way.
        depth: Most links on a path, 1 to 3.
        limit: How many memories at most.
        deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.
    """

    kinds: Collection[LinkType] | None
    direction: Direction
    depth: int
    limit: int
    deadline: float | None = None


class Expansion(NamedTuple):
    """A request for the neighbours of found memories.

    Attributes:
        hops: The links to follow.
        starts: Returns the rows to start from, with their scores, of the hits of the search.
    """

    hops: Hops
    starts: Callable[[Sequence[RankedRow]], list[tuple[int, float]]]


class LinkedHits(NamedTuple):
    """The neighbours of a search's hits.

    Attributes:
        hits: Rows, best first, each with score, last link and the row before it.
        error: The error of following links; there are no neighbours then.
    """

    hits: list[NeighbourRow]
    error: Exception | None = None


class SearchOutcome(NamedTuple):
    """The memories that a search found.

    Attributes:
        hits: Rows, best first, with the parts of their scores.
        entries: The memories of these rows.
        total: The number of all matches; None unless the search asks for it.
        marks: What holds of all of them.
        share: Share of similarity in the matches; None without a query.
        reasons: The reasons for the score of each row, if requested.
        passages: The passages of the long memories, if requested.
        seq: Number of the store's last change that the index had.
        linked: The neighbours of the hits, if requested; their entries are among `entries`.
    """

    hits: list[RankedRow]
    entries: dict[int, MemoryEntry]
    total: int | None
    marks: Marks = UNMARKED
    share: float | None = None
    reasons: Mapping[int, Why] = MappingProxyType({})
    passages: Mapping[int, Passage] = MappingProxyType({})
    seq: int = -1
    linked: LinkedHits | None = None

    @property
    def memories(self) -> list[tuple[RankedRow, MemoryEntry]]:
        """The hits, each with its memory."""
        entries = self.entries
        return [(hit, entries[hit.row]) for hit in self.hits]

    @property
    def matches(self) -> int:
        """The number of all matches; that of the hits where these were not counted."""
        return len(self.hits) if self.total is None else self.total

    def marked(self, **marks: Any) -> "SearchOutcome":
        """Return them with other marks."""
        return self._replace(marks=self.marks._replace(**marks))

    def near_best(self, offset: int) -> "SearchOutcome":
        """Return the hits whose score is not far below the best one's, without the first ones."""
        floor = NEAR_BEST * self.hits[0].score if self.hits else 0.0
        near = [hit for hit in self.hits if hit.score >= floor]
        return self._replace(hits=near[offset:])

    def joined(self, others: "SearchOutcome") -> "SearchOutcome":
        """Return them and after them others, each memory once, as it is here."""
        known = {hit.row for hit in self.hits}
        return self._replace(
            hits=[*self.hits, *(hit for hit in others.hits if hit.row not in known)],
            entries={**others.entries, **self.entries},
            marks=self.marks.united(others.marks),
        )

    def results(self) -> SearchResults:
        """Return them as a result of the public verbs."""
        hits = tuple(
            SearchHit(
                self.entries[hit.row],
                hit.shown_score,
                hit.components,
                hit.similarity,
                self.reasons.get(hit.row),
                self.passages.get(hit.row),
            )
            for hit in self.hits
        )
        return SearchResults(hits, share=self.share, **self.marks.of(SearchResults))


NEAR_BEST = 0.3
"""Least share of the best score; docs/project/lab/quality.md has what others keep and leave out."""

Find: TypeAlias = Callable[[Scope, Search], SearchOutcome]
"""Finds memories of a scope, in the caller's thread."""

NOTHING = SearchOutcome([], {}, 0)
"""The answer of a search by a vector among memories without any."""

NOT_IN_TIME = SearchOutcome([], {}, None, Marks(partial=True))
"""The partial answer of a search that found nothing before its deadline."""


class LinkedOutcome(NamedTuple):
    """The memories that links lead to.

    Attributes:
        hits: Rows, the strongest path first.
        entries: The memories of these rows.
        total: Their number.
        marks: What holds of all of them.
    """

    hits: list[LinkedRow]
    entries: dict[int, MemoryEntry]
    total: int
    marks: Marks = UNMARKED


class NeighbourOutcome(NamedTuple):
    """The neighbours of found memories.

    Attributes:
        hits: Rows, best first, each with score, last link and the row before it.
        entries: The memories of these rows.
    """

    hits: list[NeighbourRow]
    entries: dict[int, MemoryEntry]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Tokens: TypeAlias = Sequence[tuple[str, str]]


def why_of(hit: RankedRow, entry: MemoryEntry, query: str | None, index: NativeIndex) -> Why | None:
    """Return the reasons for a hit's score; None if the index gave none.

    Args:
        hit: The ranked row.
        entry: Its memory.
        query: The query's text.
        index: Cuts texts into words as the ranking does.
    """
    if hit.reasons is None:
        return None
    parts, words, neighbour, date, role, speaker = hit.reasons
    beyond = hit.shown_score - hit.score
    if beyond:
        parts["clamped"] = parts.get("clamped", 0.0) + beyond
    return Why(
        parts=parts,
        words=_word_matches(words, entry, query or "", index),
        neighbour=None if neighbour is None else UUID(bytes=neighbour),
        date=None if date is None else (_time(date[0]), _time(date[1])),
        role=role,
        speaker=speaker,
        sensitive=entry.hides_content,
    )


def _time(microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # the end of the year 9999
        return datetime.max.replace(tzinfo=UTC)


def _word_matches(
    words: list[tuple[str, str, int]], entry: MemoryEntry, query: str, index: NativeIndex
) -> tuple[WordMatch, ...]:
    own = [(token, term) for token, term, turn in words if turn == 0]
    matches = _own_matches(own, entry, query, index)
    for turn in sorted({turn for _, _, turn in words if turn}):
        tokens = [token for token, _, at in words if at == turn]
        found = index.core.surface_forms(query, tokens)
        matches += [WordMatch(text, text, turn, entry.hides_content) for text, _ in found]
    return tuple(matches)


def _own_matches(
    own: _Tokens, entry: MemoryEntry, query: str, index: NativeIndex
) -> list[WordMatch]:
    """Return the words that the memory itself has, the weightiest first."""
    written = index.core.surface_forms(entry.content, [term for _, term in own])
    chosen = _covering(written)
    missing = set(range(len(own))).difference(*(places for _, places in chosen))
    chosen += [(own[at][1], [at]) for at in missing]
    chosen.sort(key=lambda one: min(one[1]))
    queried = index.core.surface_forms(query, [token for token, _ in own])
    return [
        WordMatch(_spelled(queried, places, own), text, 0, entry.hides_content)
        for text, places in chosen
    ]


def _covering(written: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
    """Return the longest stretches, without those whose tokens others have."""
    covered: set[int] = set()
    chosen = []
    for text, places in sorted(written, key=lambda one: -len(one[1])):
        if not covered.issuperset(places):
            covered.update(places)
            chosen.append((text, places))
    return chosen


def _spelled(queried: list[tuple[str, list[int]]], places: list[int], own: _Tokens) -> str:
    """Return how the query writes some tokens."""
    wanted = set(places)
    texts = [text for text, found in _covering(queried) if wanted.intersection(found)]
    return " ".join(texts) or own[places[0]][0]

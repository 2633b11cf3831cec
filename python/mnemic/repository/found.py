"""Results of the finder, before they become those of a public verb."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from mnemic.index import LinkedRow, NeighbourRow, RankedRow
from mnemic.model import MemoryEntry, SearchHit, SearchResults, Why
from mnemic.model.hops import Hops


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
        degraded: Whether the embedder failed, so that a hybrid search was answered by keywords.
        degraded_reason: Why the embedder failed; else None.
        partial: Whether the deadline passed, so that better hits may be missing.
        approximate: Whether an approximate index chose the memories that were ranked.
        share: Share of similarity in the matches; None without a query.
        reasons: The reasons for the score of each row, if requested.
        seq: Number of the store's last change that the index had.
        linked: The neighbours of the hits, if requested; their entries are among `entries`.
        stale_since: Since when changes may be missing, because the store cannot be read; else None.
        in_database: Whether the database selected the memories that were ranked.
    """

    hits: list[RankedRow]
    entries: dict[int, MemoryEntry]
    total: int | None
    degraded: bool = False
    degraded_reason: str | None = None
    partial: bool = False
    approximate: bool = False
    share: float | None = None
    reasons: Mapping[int, Why] = MappingProxyType({})
    seq: int = -1
    linked: LinkedHits | None = None
    stale_since: datetime | None = None
    in_database: bool = False

    def results(self) -> SearchResults:
        """Return them as a result of the public verbs."""
        hits = tuple(
            SearchHit(
                self.entries[hit.row],
                hit.shown_score,
                hit.components,
                hit.similarity,
                self.reasons.get(hit.row),
            )
            for hit in self.hits
        )
        return SearchResults(
            hits,
            degraded=self.degraded,
            degraded_reason=self.degraded_reason,
            partial=self.partial,
            approximate=self.approximate,
            share=self.share,
            stale_since=self.stale_since,
            searched_in="database" if self.in_database else "memory",
        )


NOTHING = SearchOutcome([], {}, 0)
"""The answer of a search by a vector among memories without any."""

NOT_IN_TIME = SearchOutcome([], {}, None, partial=True)
"""The partial answer of a search that found nothing before its deadline."""


class LinkedOutcome(NamedTuple):
    """The memories that links lead to.

    Attributes:
        hits: Rows, the strongest path first.
        entries: The memories of these rows.
        total: Their number.
    """

    hits: list[LinkedRow]
    entries: dict[int, MemoryEntry]
    total: int


class NeighbourOutcome(NamedTuple):
    """The neighbours of found memories.

    Attributes:
        hits: Rows, best first, each with score, last link and the row before it.
        entries: The memories of these rows.
    """

    hits: list[NeighbourRow]
    entries: dict[int, MemoryEntry]

"""The boost of a session: memories of the request's session have a higher score.

A boost lifts memories from further down, so a page of the best by plain scores is not enough. More
are ranked, until no memory further down can rise into the page. After `MAX_RANKED` memories the
best of the session join those ranked so far, with their scores among the session's own memories: a
score depends a little on the memories beside it, as docs/concepts/search.md describes.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from mnemic.index import RankedRow
from mnemic.model import MemoryEntry, Scope
from mnemic.model.search import Search
from mnemic.model.timestamps import to_microseconds
from mnemic.repository import SearchOutcome

Find = Callable[[Scope, Search], SearchOutcome]
"""Finds memories of a scope."""

MAX_RANKED = 256
"""Memories that are ranked at most before those of the session are ranked by themselves."""

DEEPER = 16
"""Factor of the memories that are ranked next."""


class ScoredEntry(NamedTuple):
    """A found memory with its final score."""

    entry: MemoryEntry
    score: float


class SessionBoost(NamedTuple):
    """The factor of a session's scores.

    Attributes:
        session_id: The session.
        factor: At least 1; 1 changes nothing.
    """

    session_id: str | None
    factor: float

    def found(self, find: Find, scope: Scope, search: Search) -> SearchOutcome:
        """Return enough memories for the best ones by their boosted scores to be among them."""
        deep = search
        while True:
            found = find(scope, deep)
            if self.factor == 1 or len(found.hits) < deep.limit or found.partial:
                return found
            if not self._can_rise(found, search.limit):
                return found
            if deep.limit >= MAX_RANKED:
                return self._with_session(found, find, scope, search)
            limit = min(MAX_RANKED, DEEPER * deep.limit)
            deep = msgspec.structs.replace(search, limit=limit)

    def candidates(self, found: SearchOutcome, limit: int) -> list[ScoredEntry]:
        """Return the best memories by their boosted scores.

        Order: score, then newest, then smallest id. Scores are from 0 to 1.
        """
        hits = found.hits
        if self.factor != 1:
            hits = sorted(hits, key=lambda hit: self._key(hit, found))
        return [
            ScoredEntry(found.entries[hit.row], min(1.0, max(0.0, self._score(hit, found))))
            for hit in hits[:limit]
        ]

    def _can_rise(self, found: SearchOutcome, limit: int) -> bool:
        """Return whether a memory after all that were found may be among the best ones.

        It would have at most the last one's score, and come after it in a tie.
        """
        last = found.hits[-1]
        if last.score <= 0:
            return False
        keys = sorted(self._key(hit, found) for hit in found.hits)
        highest = (-self.factor * last.score, *self._key(last, found)[1:])
        return highest < keys[limit - 1]

    def _with_session(
        self, found: SearchOutcome, find: Find, scope: Scope, search: Search
    ) -> SearchOutcome:
        narrowed = scope.narrowed(session_id=self.session_id)
        best = find(narrowed, msgspec.structs.replace(search, needs_evidence=False))
        if best.degraded != found.degraded:  # their scores cannot be compared
            return found
        known = {hit.row for hit in found.hits}
        hits = [*found.hits, *(hit for hit in best.hits if hit.row not in known)]
        return found._replace(
            hits=hits,
            entries={**best.entries, **found.entries},
            partial=best.partial,
            approximate=found.approximate or best.approximate,
            stale_since=found.stale_since or best.stale_since,
        )

    def _score(self, hit: RankedRow, found: SearchOutcome) -> float:
        is_of_session = found.entries[hit.row].session_id == self.session_id
        return hit.score * self.factor if is_of_session and hit.score > 0 else hit.score

    def _key(self, hit: RankedRow, found: SearchOutcome) -> tuple[float, int, bytes]:
        entry = found.entries[hit.row]
        return -self._score(hit, found), -to_microseconds(entry.created_at), entry.id.bytes

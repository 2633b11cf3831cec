"""The index of the core: exact, in memory, filtered before ranking."""

import threading
from collections.abc import Collection, Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from mnemic._core import Hits, Selection, VectorMap
from mnemic.index.base import Ranked
from mnemic.index.loading import Loader
from mnemic.model import RowBatch, RowFacts, Scope

MOST_SELECTIONS = 256  # one may take an eighth of a byte for each row of the agent
MOST_PENDING = 256  # rows; from here on taking them in together gains nothing more
MOST_EARLY = 256
MOST_EARLY_ROWS = 4096


class NativeIndex:
    """One agent's vectors in the core's `VectorMap`, and who may see which.

    Args:
        dim: Dimension of the vectors.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._vectors = VectorMap(dim, metric="cosine")
        self._lock = threading.Lock()
        self._seq: int | None = None
        self._facts: dict[int, RowFacts] = {}
        self._rows_of_user: dict[str | None, dict[int, RowFacts]] = {}
        self._selections: dict[Scope, Selection | None] = {}
        self._expiring: list[tuple[int, int]] = []  # a heap of times and rows
        self._expired_until = 0
        self._pending: list[RowBatch] = []
        self._pending_rows = 0
        self._early: dict[int, RowBatch] = {}

    @property
    def seq(self) -> int | None:
        """The change number it stands at; None before it was loaded."""
        return self._seq

    def __len__(self) -> int:
        return len(self._vectors) + self._pending_rows

    def loader(self) -> Loader:
        """Return what takes the vectors of a whole batch while they are read."""
        return Loader(self._dim)

    def apply(self, batch: RowBatch, loaded: VectorMap | None = None) -> bool:
        """Take in a batch of changes; return False if it cannot follow where the index stands.

        One that comes too early waits for those before it. Searches that run meanwhile see each row
        as it was or as it becomes.
        """
        with self._lock:
            if batch.since is None:
                self._replace(batch, loaded)
                self._seq = batch.seq
            elif self._seq is None or batch.since < self._seq:
                return False
            elif batch.since > self._seq:
                return self._wait_for_those_before(batch)
            else:
                self._append(batch)
            self._append_early()
            return True

    def is_ahead_of(self, now: int) -> bool:
        """Return whether rows were dropped as expired that have not: the clock went back."""
        return self._expired_until > now

    def search(
        self, query: NDArray[np.float32], scope: Scope, limit: int, now: int
    ) -> list[Ranked]:
        """Return the best rows of a scope that have not expired; see `Index.search`.

        The core's ties go to the smaller row. Where a tie reaches over the cut, all rows of that
        score are fetched, so that the newest of them stay.
        """
        if self._pending:
            with self._lock:
                self._drain()
        first = self._expiring[:1]  # at once: another thread may drop the last one meanwhile
        if first and first[0][0] <= now:
            self._expire(now)
        limit = min(limit, len(self._vectors))
        while limit > 0:
            hits = _hits(*self._selection(scope), query, limit)
            ranked = self._ordered(hits, scope)
            if len(ranked) == len(hits.ids):
                return ranked[:limit]
            # Otherwise rows came or went after the selection was made: rank them once more.
        return []

    def _replace(self, batch: RowBatch, loaded: VectorMap | None) -> None:
        # First what can fail: searches repeat themselves until rows and facts agree.
        if loaded is None:
            self._vectors.replace(_ids([facts.row for facts in batch.facts]), batch.vectors)
        else:
            self._vectors = loaded
        self._pending, self._pending_rows = [], 0
        self._facts = {facts.row: facts for facts in batch.facts}
        self._rows_of_user = {}
        self._expiring = []
        self._expired_until = 0
        for facts in batch.facts:
            self._rows_of_user.setdefault(facts.user_id, {})[facts.row] = facts
            self._note_expiry(facts)
        self._selections.clear()

    def _wait_for_those_before(self, batch: RowBatch) -> bool:
        if batch.since is None or len(self._early) == MOST_EARLY:
            return False
        rows = sum(len(early.facts) for early in self._early.values())
        if rows + len(batch.facts) > MOST_EARLY_ROWS:
            return False
        self._early[batch.since] = batch
        return True

    def _append_early(self) -> None:
        while self._early:
            since = min(self._early)
            if self._seq is None or since > self._seq:
                return
            batch = self._early.pop(since)
            if since == self._seq:
                self._append(batch)

    def _append(self, batch: RowBatch) -> None:
        """Keep a batch until rows are asked for: one by one they would cost writers more (C153)."""
        self._pending.append(batch)
        self._pending_rows += len(batch.facts)
        self._seq = batch.seq
        if self._pending_rows >= MOST_PENDING or len(self._pending) >= MOST_PENDING:
            self._drain()

    def _drain(self) -> None:
        if not self._are_new(self._pending):
            self._replay(self._pending)
        else:
            rows = [facts for batch in self._pending for facts in batch.facts]
            vectors = [batch.vectors for batch in self._pending if batch.facts]
            if rows:
                self._insert(rows, vectors[0] if len(vectors) == 1 else np.concatenate(vectors))
        self._pending, self._pending_rows = [], 0
        self._selections.clear()

    def _are_new(self, batches: list[RowBatch]) -> bool:
        """Return whether these bring new rows and nothing else, as most do."""
        rows = [facts.row for batch in batches for facts in batch.facts]
        return (
            not any(batch.gone for batch in batches)
            and len(set(rows)) == len(rows)
            and self._facts.keys().isdisjoint(rows)
        )

    def _replay(self, batches: list[RowBatch]) -> None:
        """Take in batches in which a row may come and go several times."""
        gone: set[int] = set()
        vectors: dict[int, tuple[RowFacts, NDArray[np.float32]]] = {}
        for batch in batches:
            for row in batch.gone:
                gone.add(row)
                vectors.pop(row, None)
            for facts, vector in zip(batch.facts, batch.vectors, strict=True):
                vectors[facts.row] = facts, vector
                gone.discard(facts.row)
        if gone:
            self._vectors.remove(_ids(gone))
        for row in gone:
            self._drop(row)
        if vectors:
            rows, stacked = zip(*vectors.values(), strict=True)
            self._insert(rows, np.stack(stacked))

    def _insert(self, rows: Sequence[RowFacts], vectors: NDArray[np.float32]) -> None:
        for facts in rows:
            known = self._drop(facts.row)
            self._facts[facts.row] = facts
            self._rows_of_user.setdefault(facts.user_id, {})[facts.row] = facts
            if known is None or known.expires_at != facts.expires_at:
                self._note_expiry(facts)
        self._vectors.upsert(_ids([facts.row for facts in rows]), vectors)

    def _note_expiry(self, facts: RowFacts) -> None:
        if facts.expires_at is not None:
            heappush(self._expiring, (facts.expires_at, facts.row))

    def _expire(self, now: int) -> None:
        with self._lock:
            gone: set[int] = set()
            while self._expiring and self._expiring[0][0] <= now:
                expires_at, row = heappop(self._expiring)
                self._expired_until = max(self._expired_until, expires_at)  # some come expired
                facts = self._facts.get(row)
                if facts is not None and facts.expires_at == expires_at:
                    gone.add(row)
            self._vectors.remove(_ids(gone))  # one by one they would take quadratic time
            for row in gone:
                self._drop(row)
            self._selections.clear()

    def _drop(self, row: int) -> RowFacts | None:
        facts = self._facts.pop(row, None)
        if facts is not None:
            del self._rows_of_user[facts.user_id][row]
        return facts

    def _selection(self, scope: Scope) -> tuple[VectorMap, Selection | None]:
        """Return the vectors, and the rows of a scope among them or None if it has all of them.

        What was selected is kept until rows change.
        """
        with self._lock:
            if scope not in self._selections:
                if len(self._selections) == MOST_SELECTIONS:
                    self._selections.clear()
                rows = self._rows_in(scope)
                has_all = len(rows) == len(self._facts)
                self._selections[scope] = None if has_all else self._vectors.select(_ids(rows))
            return self._vectors, self._selections[scope]

    def _rows_in(self, scope: Scope) -> Collection[int]:
        of_user = self._of_user(scope)
        if scope.project_id is None and scope.session_id is None:
            return of_user
        return [row for row, facts in of_user.items() if _is_part(facts, scope)]

    def _of_user(self, scope: Scope) -> dict[int, RowFacts]:
        return self._facts if scope.all_users else self._rows_of_user.get(scope.user_id, {})

    def _ordered(self, hits: Hits, scope: Scope) -> list[Ranked]:
        """Order those hits that are, by now, rows of the scope."""
        of_user, scores = self._of_user(scope), hits.scores.tolist()
        takes_all = scope.project_id is None and scope.session_id is None
        known = [
            (Ranked(row, facts.id, score), facts.created_at)
            for row, score in zip(hits.ids.tolist(), scores, strict=True)
            if (facts := of_user.get(row)) is not None and (takes_all or _is_part(facts, scope))
        ]
        if len(set(scores)) < len(scores):
            known.sort(key=_place)
        return [ranked for ranked, _ in known]


def _place(known: tuple[Ranked, int]) -> tuple[float, int, bytes]:
    (_, entry_id, score), created_at = known
    return -score, -created_at, entry_id


def _hits(
    vectors: VectorMap, selection: Selection | None, query: NDArray[np.float32], limit: int
) -> Hits:
    while True:
        hits = vectors.search(query, k=limit + 1, allow=selection)
        scores = hits.scores
        if len(scores) <= limit or scores[limit] != scores[limit - 1]:
            return hits
        floor = float(scores[limit - 1])
        everything = max(len(vectors), limit)
        tied = vectors.search(query, k=everything, allow=selection, min_score=floor)
        if len(tied.ids) >= limit:
            return tied
        # Otherwise some of the tied were removed meanwhile, and lower ones are to be found.


def _is_part(facts: RowFacts, scope: Scope) -> bool:
    """Return whether one of the user's rows is of the project and session that are named."""
    return scope.project_id in (None, facts.project_id) and scope.session_id in (
        None,
        facts.session_id,
    )


def _ids(rows: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(rows, dtype=np.int64, count=len(rows))

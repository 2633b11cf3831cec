"""What the index of active memories consists of, and how much an approximate one finds."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from mnemic.arrays import Float32Array, np
from mnemic.index import ListRequest, NativeIndex, RankInputs, SourceState
from mnemic.model import SEMANTIC, IndexAudit, IndexInfo
from mnemic.model.filter import All
from mnemic.model.search import Search
from mnemic.model.timestamps import to_microseconds
from mnemic.reporting.progress import Progress, Report, reporting
from mnemic.repository.parts import Part
from mnemic.store.operations import BuildVectorIndex, EntriesByRow, VectorsById
from mnemic.threads.sync_bridge import run_blocking

PAGE: Final = 65_536
"""Rows that are listed at once to draw some of them."""

SECONDS_BETWEEN_LOOKS: Final = 0.05

_EXACT: Final = SourceState("exact", proposes=False)


Result = TypeVar("Result")


class _Measurement(NamedTuple):
    """One query: the share that was found, and the seconds of both indexes."""

    recall: float
    source_seconds: float
    exact_seconds: float


class VectorIndexReader(Part):
    """Looks into the index of one agent's active memories."""

    async def create(self) -> bool:
        """Build the approximate index of the store; see `BuildVectorIndex`."""
        self._limits.require_storing()
        if not self._store.searches_vectors:
            return False
        return await run_blocking(
            lambda: self._store.write(BuildVectorIndex(self._agent_id)).result(), self._store
        )

    async def info(self) -> IndexInfo:
        """Return what the index consists of, with all changes of the store."""
        self._limits.require_storing()
        return await run_blocking(self._info, self._store)

    async def wait(self, seconds: float | None, progress: Progress | None) -> bool:
        """Wait until an approximate index has all vectors; return whether it has."""
        self._limits.require_storing()
        deadline = None if seconds is None else time.monotonic() + seconds
        with reporting(progress, "indexing") as report:
            return await run_blocking(lambda: self._wait(deadline, report))

    async def audit(self, sample: int, k: int, seed: int, progress: Progress | None) -> IndexAudit:
        """Compare the nearest of both indexes for a sample of stored vectors."""
        self._limits.require_storing()
        with reporting(progress, "audit") as report:
            return await run_blocking(lambda: self._audit(sample, k, seed, report), self._store)

    def _current(self) -> NativeIndex:
        self._indexes.active.catch_up()
        return self._indexes.active.index

    def _info(self) -> IndexInfo:
        index = self._current()
        state = _state_of(index)
        return IndexInfo(
            kind=state.kind,
            memories=len(index),
            indexed=state.indexed,
            waiting=state.waiting,
            removed=state.removed,
            proposes=state.proposes,
            nbytes=index.core.nbytes + (0 if index.source is None else index.source.nbytes),
        )

    def _wait(self, deadline: float | None, report: Report) -> bool:
        index, most = self._current(), 0
        while True:
            state = _state_of(index)
            most = max(most, state.waiting)
            report(most - state.waiting, most)
            is_late = deadline is not None and time.monotonic() >= deadline
            if not state.is_at_work or is_late:
                return not state.waiting
            time.sleep(SECONDS_BETWEEN_LOOKS)
            index = self._indexes.active.index  # it may have been reloaded

    def _audit(self, sample: int, k: int, seed: int, report: Report) -> IndexAudit:
        index = self._current()
        rows = self._drawn(index, sample, np.random.default_rng(seed))
        queries = self._vectors_of(rows)
        measured: list[_Measurement] = []
        for done, (row, vectors) in enumerate(queries.items(), 1):
            measured.append(self._measured(index, row, vectors, k))
            report(done, len(queries))
        state = _state_of(index)
        return IndexAudit(
            kind=state.kind,
            memories=len(index),
            sampled=len(measured),
            k=k,
            recall=float(np.mean([each.recall for each in measured])) if measured else 1.0,
            lowest_recall=min((each.recall for each in measured), default=1.0),
            source_seconds=float(np.median([each.source_seconds for each in measured] or [0.0])),
            exact_seconds=float(np.median([each.exact_seconds for each in measured] or [0.0])),
            waiting=state.waiting,
            removed=state.removed,
        )

    def _drawn(self, index: NativeIndex, number: int, draw: "np.random.Generator") -> list[int]:
        """Return some rows with a vector, each as likely as any other."""
        unembedded = set(index.summary().unembedded)
        size = len(index)
        wanted = min(size, number + len(unembedded))
        places = np.sort(draw.choice(size, wanted, replace=False)).tolist() if size else []
        rows = [row for row in self._rows_at(index, places) if row not in unembedded]
        return [rows[place] for place in draw.permutation(len(rows))[:number]]

    def _rows_at(self, index: NativeIndex, places: Sequence[int]) -> Iterator[int]:
        """Yield the rows at places of the list of all memories that are not expired."""
        now = to_microseconds(self._now())
        for first in range(0, places[-1] + 1 if places else 0, PAGE):
            inside = [place - first for place in places if first <= place < first + PAGE]
            page = ListRequest(
                scope=self._everyone, now=now, filters=All(()), offset=first, limit=PAGE
            )
            listed = index.listed(page) if inside else []
            yield from (listed[place][0] for place in inside if place < len(listed))

    def _vectors_of(self, rows: Sequence[int]) -> dict[int, Float32Array]:
        """Return the vectors of rows, each of shape (chunks, dim)."""
        model = self._models.now.stored_name
        if model is None:
            return {}
        entries = self._store.read(EntriesByRow(self._everyone, rows, now=self._now()))
        owned = {(entry.user_id, entry.id): row for row, entry in entries.items()}
        found = self._store.read(VectorsById(self._everyone.agent_id, owned.keys(), model))
        return {
            owned[name]: each.vectors for name, each in found.items() if each.vectors is not None
        }

    def _measured(
        self, index: NativeIndex, row: int, vectors: Float32Array, k: int
    ) -> _Measurement:
        """Compare both indexes for the vectors of a row, which itself does not count."""
        search = Search(text=None, ranking=SEMANTIC, limit=k + 1)
        inputs = RankInputs(self._everyone, to_microseconds(self._now()), vectors)
        exact_seconds, exact = _timed(lambda: index.rank(search, inputs))
        state = _state_of(index)
        if not state.proposes:
            return _Measurement(1.0, 0.0, exact_seconds)
        source_seconds, proposed = _timed(lambda: index.nearest(vectors, k + 1, None))
        rows = np.empty(0, np.int64) if proposed is None else proposed
        ranked = index.rank(search, inputs._replace(proposed=rows))
        found = set(rows.tolist())
        best = [hit.score for hit in exact.ranked if hit.row != row][:k]
        scores = [hit.score for hit in ranked.ranked if hit.row != row and hit.row in found]
        return _Measurement(_recall(best, scores), source_seconds, exact_seconds)


def _state_of(index: NativeIndex) -> SourceState:
    return index.source_state or _EXACT


def _recall(best: list[float], found: list[float]) -> float:
    """Return the share of the best scores that was found; of equal ones any counts."""
    if not best:
        return 1.0
    return min(1.0, sum(score >= best[-1] for score in found) / len(best))


def _timed(call: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result

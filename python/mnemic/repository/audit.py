"""Audit of memories: duplicates, stale ones, secrets in plain text, and other kinds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias, cast
from uuid import UUID

from mnemic._core import VectorMap, duplicates
from mnemic.arrays import Float32Array, np
from mnemic.context.redaction import Redaction, RedactionPattern, redact_batch
from mnemic.errors import DeadlineExceededError, RedactionBudgetError
from mnemic.model import MemoryAudit, MemoryEntry, MemoryStatus, Scope
from mnemic.model.deadline import check_deadline
from mnemic.model.results import AUDIT_KINDS, AuditFinding, AuditKind, AuditRequest
from mnemic.model.validation import MAX_DIMENSIONS
from mnemic.reporting.progress import Report, silent
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import ScopeStatistics, StoredEntries
from mnemic.store.row_codec import fingerprints
from mnemic.store.values import StoredEntry


class ScanResult(NamedTuple):
    """The patterns that match in a memory, and whether a text of it could not be scanned."""

    patterns: tuple[str, ...]
    is_unscanned: bool


_NOTHING = ScanResult((), is_unscanned=False)


class SecretScan:
    """Names the patterns that match in memories; matches themselves are not returned.

    Args:
        patterns: Names of known ones, regular expressions, or `RedactionPattern`s.

    Raises:
        InvalidArgumentError: If a pattern is invalid.
    """

    def __init__(self, patterns: Sequence[str | RedactionPattern]) -> None:
        self._all = Redaction(enabled=True, patterns=tuple(patterns))
        self._each = {
            _name(pattern): Redaction(enabled=True, patterns=(pattern,))
            for pattern in self._all.patterns
        }

    def scan(self, entries: Sequence[MemoryEntry]) -> list[ScanResult]:
        """Scan the content, the tags, the metadata, category and source of each memory."""
        if not self._each:
            return [_NOTHING] * len(entries)
        texts = [list(_texts_of(entry)) for entry in entries]
        try:
            found = redact_batch([text for of_one in texts for text in of_one], self._all)
        except RedactionBudgetError:
            return [self._scanned(of_one) for of_one in texts]
        counts = iter(found)
        suspects = [sum(next(counts)[1] for _ in of_one) > 0 for of_one in texts]
        return [
            self._scanned(of_one) if is_suspect else _NOTHING
            for of_one, is_suspect in zip(texts, suspects, strict=True)
        ]

    def _scanned(self, texts: Sequence[str]) -> ScanResult:
        matching: list[str] = []
        is_unscanned = False
        for name, redaction in self._each.items():
            try:
                if any(count for _, count in redact_batch(texts, redaction)):
                    matching.append(name)
            except RedactionBudgetError:
                is_unscanned = True
        return ScanResult(tuple(matching), is_unscanned)


def _name(pattern: str | RedactionPattern) -> str:
    return pattern.name if isinstance(pattern, RedactionPattern) else pattern


def _texts_of(entry: MemoryEntry) -> Iterator[str]:
    yield entry.content
    yield from entry.tags
    yield from _texts_in(entry.metadata)
    yield from (text for text in (entry.category, entry.source) if text is not None)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, keys included, and its numbers as they are written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


BLOCK: Final = 256
"""Vectors that are compared in one pass over those before them; more are hardly faster each."""


class StoredName(NamedTuple):
    """Row, id and user of a memory."""

    row: int
    id: UUID
    user_id: str | None


class NearDuplicate(NamedTuple):
    """A memory, the id of the earlier one that it repeats, and their cosine; None for texts."""

    name: StoredName
    repeats: UUID
    similarity: float | None


_Vectors: TypeAlias = Float32Array
_Match: TypeAlias = tuple[float, StoredName]


class NearDuplicates:
    """Finds the near duplicates of an agent's memories, never between two users.

    In the order they come, a memory is compared with the earlier ones of its user that repeat none
    themselves. It repeats the most similar of those with a similarity of at least `near`, of equal
    ones the earliest. The similarity of memories with a vector is the cosine, of those in as many
    chunks as each other the mean of the cosines of their chunks, in order. Memories without a
    vector are compared with each other by their texts, as by `mnemic._core.duplicates`.

    Args:
        near: Smallest similarity, 0 to 1.
        deadline: In seconds of `time.monotonic()`; None is no limit.
    """

    def __init__(self, near: float, deadline: float | None) -> None:
        self._near = near
        self._deadline = deadline
        self._by_vectors: dict[tuple[str | None, int], _VectorComparison] = {}
        self._by_texts: defaultdict[str | None, _TextComparison] = defaultdict(_TextComparison)

    def take(self, stored: StoredEntry) -> list[NearDuplicate]:
        """Take a memory in; return the duplicates that are known by now and were not before."""
        entry = stored.entry
        name, vector = StoredName(stored.row, entry.id, entry.user_id), _vector_of(stored)
        if vector is None:
            self._by_texts[entry.user_id].add(name, entry.content)
            return []
        compared = self._by_vectors.get((entry.user_id, vector.size))
        if compared is None:
            compared = _VectorComparison(vector.size, self._near)
            self._by_vectors[entry.user_id, vector.size] = compared
        compared.waiting.append((name, vector))
        if len(compared.waiting) < BLOCK:
            return []
        check_deadline(self._deadline)
        return compared.found()

    def rest(self) -> Iterator[NearDuplicate]:
        """Yield the duplicates that are not known yet, after the last memory."""
        while self._by_vectors:  # which frees the vectors of each user
            _, compared = self._by_vectors.popitem()
            waiting = len(compared.waiting)
            if waiting and waiting + len(compared.originals) > 1:
                check_deadline(self._deadline)
                yield from compared.found()
        while self._by_texts:
            _, texts = self._by_texts.popitem()
            check_deadline(self._deadline)
            yield from texts.found(self._near)


class _TextComparison:
    """Compares texts with each other."""

    def __init__(self) -> None:
        self._names: list[StoredName] = []
        self._texts: list[str] = []

    def add(self, name: StoredName, text: str) -> None:
        if text:
            self._names.append(name)
            self._texts.append(text)

    def found(self, near: float) -> Iterator[NearDuplicate]:
        for place, original in enumerate(duplicates(self._texts, near)):
            if place != original:
                yield NearDuplicate(self._names[place], self._names[original].id, None)


class _VectorComparison:
    """Compares vectors of one length with those before them that repeat none.

    Args:
        size: Their length.
        near: Smallest cosine.

    Attributes:
        originals: Those that repeat none, by row.
        waiting: Vectors that are to be compared.
    """

    def __init__(self, size: int, near: float) -> None:
        self._near = near
        self._size = size
        self.originals: dict[int, StoredName] = {}
        self._map: VectorMap | None = None
        self.waiting: list[tuple[StoredName, _Vectors]] = []

    def found(self) -> list[NearDuplicate]:
        """Compare the waiting vectors; return the duplicates among them, in their order."""
        waiting, self.waiting = self.waiting, []
        names = [name for name, _ in waiting]
        block = np.stack([vector for _, vector in waiting])
        before, within = self._nearest_before(block), self._within(block)
        found: list[NearDuplicate] = []
        fresh: dict[int, None] = {}
        for place, name in enumerate(names):
            inside = next((match for match in within[place] if match[1] in fresh), None)
            best = _better(before[place], inside and (inside[0], names[inside[1]]))
            if best is None:
                fresh[place] = None
            else:
                found.append(NearDuplicate(name, best[1].id, min(1.0, best[0])))
        self._keep([names[place] for place in fresh], block[list(fresh)])
        return found

    def _nearest_before(self, block: _Vectors) -> list[_Match | None]:
        """Return the most similar of the vectors compared before, for each of a block."""
        if self._map is None:
            return [None] * len(block)
        rows, similarities = self._map.search(block, k=1, min_score=self._near)
        pairs = zip(rows[:, 0].tolist(), similarities[:, 0].tolist(), strict=True)
        return [None if row < 0 else (cosine, self.originals[row]) for row, cosine in pairs]

    def _within(self, block: _Vectors) -> list[list[tuple[float, int]]]:
        """Return the similar places before each place of a block, the most similar first."""
        own = VectorMap.from_rows(np.arange(len(block)), block)
        limits, places, similarities = own.range_search(block, min_score=self._near)
        pairs = list(zip(similarities.tolist(), places.tolist(), strict=True))
        return [
            [match for match in pairs[limits[at] : limits[at + 1]] if match[1] < at]
            for at in range(len(block))
        ]

    def _keep(self, names: Sequence[StoredName], vectors: _Vectors) -> None:
        """Compare later vectors with these."""
        if self._map is None:
            self._map = VectorMap(self._size)
        self._map.upsert([name.row for name in names], vectors)
        self.originals.update((name.row, name) for name in names)


def _better(before: _Match | None, inside: _Match | None) -> _Match | None:
    """Return the better match; of equal ones the first, which is the earlier memory."""
    if before is None or inside is None:
        return before or inside
    return before if before[0] >= inside[0] else inside


def _vector_of(stored: StoredEntry) -> _Vectors | None:
    """Return the vector of a memory, the unit vectors of its chunks one after the other.

    None without one, and for chunks that are too long together.
    """
    first = stored.entry.embedding
    if first is None:
        return None
    chunks = np.stack([first, *stored.more])
    lengths = np.linalg.norm(chunks, axis=1, keepdims=True)
    if not lengths.all() or chunks.size > MAX_DIMENSIONS:
        return None
    return np.ravel(chunks / lengths).astype(np.float32)


BATCH: Final = 1000
"""Memories that are read at once."""


class Audit(Part):
    """One audit of the memories of a scope.

    Memories are read in batches, in the order they were stored, each as it is at that moment.
    Concurrent writes go on.

    Args:
        shared: What it shares with the other parts of the repository.
        scope: The scope.
        request: What is looked for.
        secrets: Scans for secrets.
    """

    def __init__(
        self, shared: Shared, scope: Scope, request: AuditRequest, secrets: SecretScan
    ) -> None:
        super().__init__(shared)
        self._scope = scope
        self._request = request
        self._secrets = secrets
        self._moment = self._now()
        self._model = shared.models.now.stored_name
        self._tally = _Tally(request.limit)
        self._originals: dict[tuple[str | None, bytes], StoredName] = {}
        self._near = (
            None
            if request.near is None
            else NearDuplicates(request.near, deadline=request.deadline)
        )

    def run(self, report: Report) -> MemoryAudit:
        """Read all memories and return the audit.

        Args:
            report: Gets the number of memories so far, and that before the audit.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        total = None
        if report is not silent:
            total = self._store.read(ScopeStatistics(self._scope, now=self._moment)).stored_entries
        try:
            for batch in self._batches():
                self._take(batch)
                done = self._tally.stored
                report(done, None if total is None else max(total, done))
            if self._near is not None:
                self._tally.add_near(self._near.rest())
            # Those included that cannot be read.
            wanted = ScopeStatistics(self._scope, now=self._moment)
            sealed = self._store.read(wanted, deadline=self._request.deadline).sealed_entries
        except DeadlineExceededError:
            raise DeadlineExceededError(
                "the audit was not done in time: its deadline passed; allow more time, narrow the "
                "scope, or look for no near duplicates with near=None"
            ) from None
        return self._tally.audit(sealed)

    def _batches(self) -> Iterator[list[StoredEntry]]:
        row = 0
        while batch := self._store.read(
            StoredEntries(
                self._scope, row, BATCH, now=self._moment, include_deleted=True, model=self._model
            ),
            deadline=self._request.deadline,
        ):
            yield batch
            check_deadline(self._request.deadline)
            row = batch[-1].row

    def _take(self, batch: Sequence[StoredEntry]) -> None:
        active = [stored for stored in batch if stored.entry.is_active(self._moment)]
        self._tally.stored += len(batch)
        self._tally.memories += len(active)
        for stored in batch:
            for kind in _states_of(stored.entry, self._moment):
                self._tally.add(kind, _name_of(stored))
        for stored in active:
            for kind in self._uses_of(stored.entry):
                self._tally.add(kind, _name_of(stored))
        self._take_long(active)
        self._take_secrets([stored for stored in batch if not stored.entry.is_encrypted])
        self._take_duplicates([stored for stored in active if stored.entry.content])

    def _uses_of(self, entry: MemoryEntry) -> Iterator[AuditKind]:
        """Yield the kinds of an active memory that follow from its accesses and its vector."""
        last = max(entry.created_at, entry.updated_at, entry.last_accessed_at or entry.created_at)
        if last < self._moment - self._request.stale_after:
            yield "stale"
        if not entry.access_count:
            yield "never_accessed"
        if entry.embedding is None:
            yield "unembedded"

    def _take_long(self, active: Sequence[StoredEntry]) -> None:
        contents, most = [stored.entry.content for stored in active], self._request.max_bytes
        embedder = self._models.embedder
        if most is not None:
            are_long = [len(content.encode()) > most for content in contents]
        elif embedder is None:
            return
        else:
            are_long = embedder.are_chunked(contents)
        for stored, is_long in zip(active, are_long, strict=True):
            if is_long:
                self._tally.add("oversized", _name_of(stored))

    def _take_secrets(self, plain: Sequence[StoredEntry]) -> None:
        scanned = self._secrets.scan([stored.entry for stored in plain])
        for stored, (patterns, is_unscanned) in zip(plain, scanned, strict=True):
            if patterns:
                self._tally.patterns.update(patterns)
                self._tally.add("secrets", _name_of(stored), patterns=patterns)
            if is_unscanned:
                self._tally.add("unscanned", _name_of(stored))

    def _take_duplicates(self, active: Sequence[StoredEntry]) -> None:
        digests = fingerprints([stored.entry.content for stored in active])
        for stored, digest in zip(active, digests, strict=True):
            name = _name_of(stored)
            original = self._originals.setdefault((name.user_id, digest), name)
            if original is not name:
                self._tally.add("exact_duplicates", name, repeats=original.id)
            elif self._near is not None:
                self._tally.add_near(self._near.take(stored))


class _Tally:
    """Counts of each kind, and the first findings of each.

    Args:
        limit: Maximum number of findings of each kind.
    """

    def __init__(self, limit: int) -> None:
        self.memories = self.stored = 0
        self._limit = limit
        self._counts = Counter[AuditKind]()
        self.patterns = Counter[str]()
        self._found: defaultdict[AuditKind, list[AuditFinding]] = defaultdict(list)
        self._near: list[NearDuplicate] = []

    def add(self, kind: AuditKind, name: StoredName, **details: Any) -> None:
        """Count a memory of a kind; they come in the order they were stored."""
        self._counts[kind] += 1
        if self._counts[kind] <= self._limit:
            self._found[kind].append(AuditFinding(id=name.id, user_id=name.user_id, **details))

    def add_near(self, found: Iterable[NearDuplicate]) -> None:
        """Count near duplicates, in any order."""
        for duplicate in found:
            self._counts["near_duplicates"] += 1
            if self._limit:
                self._near.append(duplicate)

    def audit(self, sealed: int) -> MemoryAudit:
        """Return the audit, with the number of sealed memories, of which some cannot be read."""
        self._counts["sealed"] = sealed
        for name, repeats, similarity in sorted(self._near)[: self._limit]:
            self._found["near_duplicates"].append(
                AuditFinding(
                    id=name.id, user_id=name.user_id, repeats=repeats, similarity=similarity
                )
            )
        return MemoryAudit(
            memories=self.memories,
            stored=self.stored,
            secrets_by_pattern=dict(sorted(self.patterns.items())),
            findings={kind: tuple(self._found[kind]) for kind in AUDIT_KINDS if self._found[kind]},
            **cast("dict[str, Any]", self._counts),
        )


def _name_of(stored: StoredEntry) -> StoredName:
    return StoredName(stored.row, stored.entry.id, stored.entry.user_id)


def _states_of(entry: MemoryEntry, now: datetime) -> Iterator[AuditKind]:
    """Yield the kinds of a memory in any state that follow from its fields alone."""
    if entry.is_encrypted:
        yield "sealed"
    if entry.forgotten_at is not None:
        return
    if entry.expires_at is not None and entry.expires_at <= now:
        yield "expired"
    elif entry.status is MemoryStatus.SUPERSEDED:
        yield "superseded"

"""Audit of memories: duplicates, stale ones, secrets in plain text, and other kinds."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, cast

from mnemic.errors import DeadlineExceededError
from mnemic.model import MemoryAudit, MemoryEntry, MemoryStatus, Scope
from mnemic.model.audit import AUDIT_KINDS, AuditFinding, AuditKind, AuditRequest
from mnemic.model.deadline import check_deadline
from mnemic.reporting.progress import Report
from mnemic.repository.near_duplicates import NearDuplicate, NearDuplicates, StoredName
from mnemic.repository.secret_scan import SecretScan
from mnemic.store import Store
from mnemic.store.fingerprints import fingerprints
from mnemic.store.values import StoredEntry

BATCH: Final = 1000
"""Memories that are read at once."""


class Audit:
    """One audit of the memories of a scope.

    Memories are read in batches, in the order they were stored, each as it is at that moment.
    Concurrent writes go on.

    Args:
        store: Has the memories.
        scope: The scope.
        request: What is looked for.
        secrets: Scans for secrets.
        model: Model of the vectors; None if there are none.
        are_long: Returns whether each text is longer than the embedder sees at once.
        now: The time.
    """

    def __init__(
        self,
        store: Store,
        scope: Scope,
        request: AuditRequest,
        *,
        secrets: SecretScan,
        model: str | None,
        are_long: Callable[[list[str]], list[bool]],
        now: datetime,
    ) -> None:
        self._store = store
        self._scope = scope
        self._request = request
        self._secrets = secrets
        self._model = model
        self._are_long = are_long
        self._now = now
        self._tally = _Tally(request.limit)
        self._originals: dict[tuple[str | None, bytes], StoredName] = {}
        self._near = (
            None
            if request.near is None
            else NearDuplicates(request.near, deadline=request.deadline)
        )

    def run(self, report: Report, total: int | None) -> MemoryAudit:
        """Read all memories and return the audit.

        Args:
            report: Gets the number of memories so far, and the total.
            total: Number of memories before the audit; None without a report.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        try:
            for batch in self._batches():
                self._take(batch)
                done = self._tally.stored
                report(done, None if total is None else max(total, done))
            if self._near is not None:
                self._tally.add_near(self._near.rest())
            self._tally.count_sealed(self._sealed())
        except DeadlineExceededError:
            raise DeadlineExceededError(
                "the audit was not done in time: its deadline passed; allow more time, narrow the "
                "scope, or look for no near duplicates with near=None"
            ) from None
        return self._tally.audit()

    def _sealed(self) -> int:
        """Return the number of sealed memories, those included that cannot be read."""
        deadline = self._request.deadline
        return self._store.stats(self._scope, now=self._now, deadline=deadline).sealed_entries

    def _batches(self) -> Iterator[list[StoredEntry]]:
        row = 0
        while batch := self._store.stored_after(
            self._scope,
            row,
            BATCH,
            now=self._now,
            include_deleted=True,
            model=self._model,
            deadline=self._request.deadline,
        ):
            yield batch
            check_deadline(self._request.deadline)
            row = batch[-1].row

    def _take(self, batch: Sequence[StoredEntry]) -> None:
        active = [stored for stored in batch if stored.entry.is_active(self._now)]
        self._tally.stored += len(batch)
        self._tally.memories += len(active)
        for stored in batch:
            for kind in _states_of(stored.entry, self._now):
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
        if last < self._now - self._request.stale_after:
            yield "stale"
        if not entry.access_count:
            yield "never_accessed"
        if entry.embedding is None:
            yield "unembedded"

    def _take_long(self, active: Sequence[StoredEntry]) -> None:
        contents, most = [stored.entry.content for stored in active], self._request.max_bytes
        if most is None:
            are_long = self._are_long(contents)
        else:
            are_long = [len(content.encode()) > most for content in contents]
        for stored, is_long in zip(active, are_long, strict=True):
            if is_long:
                self._tally.add("oversized", _name_of(stored))

    def _take_secrets(self, plain: Sequence[StoredEntry]) -> None:
        scanned = self._secrets.scan([stored.entry for stored in plain])
        for stored, (patterns, is_unscanned) in zip(plain, scanned, strict=True):
            if patterns:
                self._tally.add_secret(_name_of(stored), patterns)
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
        self._patterns = Counter[str]()
        self._found: defaultdict[AuditKind, list[AuditFinding]] = defaultdict(list)
        self._near: list[NearDuplicate] = []

    def add(self, kind: AuditKind, name: StoredName, **details: Any) -> None:
        """Count a memory of a kind; they come in the order they were stored."""
        self._counts[kind] += 1
        if self._counts[kind] <= self._limit:
            self._found[kind].append(AuditFinding(id=name.id, user_id=name.user_id, **details))

    def count_sealed(self, number: int) -> None:
        """Set the number of sealed memories, of which some cannot be read."""
        self._counts["sealed"] = number

    def add_secret(self, name: StoredName, patterns: tuple[str, ...]) -> None:
        """Count a memory in which patterns match."""
        self._patterns.update(patterns)
        self.add("secrets", name, patterns=patterns)

    def add_near(self, found: Iterable[NearDuplicate]) -> None:
        """Count near duplicates, in any order."""
        for duplicate in found:
            self._counts["near_duplicates"] += 1
            if self._limit:
                self._near.append(duplicate)

    def audit(self) -> MemoryAudit:
        """Return the audit."""
        for name, repeats, similarity in sorted(self._near)[: self._limit]:
            self._found["near_duplicates"].append(
                AuditFinding(
                    id=name.id, user_id=name.user_id, repeats=repeats, similarity=similarity
                )
            )
        return MemoryAudit(
            memories=self.memories,
            stored=self.stored,
            secrets_by_pattern=dict(sorted(self._patterns.items())),
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

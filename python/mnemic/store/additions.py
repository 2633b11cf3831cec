"""The part of the contract of stores that stores entries and their vectors."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Protocol

from mnemic.arrays import Float32Array
from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, OnConflict, OnDuplicate
from mnemic.model.new_entry import NewEntry
from mnemic.protocols import UserLimit
from mnemic.store.quota import NO_ENTRY_LIMITS, EntryLimits
from mnemic.store.values import WriteResult


class Additions(Protocol):
    """Writes of new entries, each in one transaction; see `Store` for the promises."""

    def add(
        self,
        agent_id: str,
        entries: Sequence[NewEntry],
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        is_import: bool = False,
    ) -> Future[WriteResult]:
        """Store entries of an agent, all or none, with their embeddings.

        An entry whose idempotency key was used before, in an earlier call or in this one, is not
        stored again. A superseded entry gets its status and a link in the same transaction. The
        quotas are checked inside the transaction, so that concurrent writers never exceed them.

        Args:
            agent_id: The agent.
            entries: Any number of entries.
            now: Entries expired by now are not duplicates; merged entries are updated now.
            quota: Maximum bytes of content of the agent.
            user_quota: Maximum bytes of content of each user, and of the entries without a user.
            entry_limits: Budgets of entries, and whether the write deletes entries to keep to all
                limits: see `eviction`.
            on_conflict: Treatment of an entry whose id the user already has, in any state and in
                any project and session. It comes after the idempotency key and before the text.
                "skip" leaves the stored entry as it is. "replace" stores the new one in its row,
                as it would be stored without the old one; but `created_at` stays, `version` grows
                by one, `updated_at` is now, the links that lead to the row stay, vectors stay if
                the content does and no others are given, and so does an idempotency key if no
                other is given. Entries that superseded the old one do so no more. Of an id that
                comes twice the last entry stays. Accesses that another opening has not written yet
                count for the new entry.
            on_duplicate: Treatment of an entry whose text the user already has.
            is_import: Allow a superseded entry to be missing.

        Raises:
            DuplicateEntryError: If an id is already stored for this agent and user, deleted or not,
                and `on_conflict` is "raise", or if a key was used for another content.
            EntryNotFoundError: If a superseded entry does not exist.
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would exceed a quota.
        """
        ...

    def need_vectors(
        self,
        agent_id: str,
        entries: Sequence[MemoryEntry],
        model: str,
        on_conflict: OnConflict,
    ) -> list[bool]:
        """Return for each entry whether an `add` of it needs its vectors, in the current state.

        With "replace" it needs none if its id is stored with the same content and vectors of the
        model; with "skip" none if its id is stored. The write decides again: an entry that needed
        them after all is stored without, as one is whose embedder failed.
        """
        ...

    def add_embeddings(
        self,
        agent_id: str,
        model: str,
        contents: Mapping[int, str],
        vectors: Sequence[Float32Array],
    ) -> Future[None]:
        """Store the vectors of the contents of rows.

        Rows that no longer exist, already have a vector, or have another content by now are
        skipped.

        Args:
            agent_id: The agent.
            model: Model of the vectors.
            contents: Embedded content of each row.
            vectors: For each content the vectors of its chunks, shape (chunks, dim).
        """
        ...

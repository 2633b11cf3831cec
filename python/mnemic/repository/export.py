"""Moves memories between a store and an export in batches, so that neither is held whole."""

import copy
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import ExportFormatError, InvalidArgumentError
from mnemic.model import ImportResult, MemoryEntry, Scope
from mnemic.model.new_entry import NewEntry, checked_record
from mnemic.model.scope import NO_USER
from mnemic.protocols import Source, Target
from mnemic.reporting.progress import Report
from mnemic.repository.export_format import LINKS_NAME_USERS, ExportedLink, ExportedMemory
from mnemic.repository.export_reader import ExportReader, read_export
from mnemic.repository.export_writer import write_export
from mnemic.store import Store
from mnemic.store.row_codec import check_size
from mnemic.store.values import StoredEntry, StoredLink
from mnemic.threads.sync_bridge import arrived, run_blocking

BATCH = 1000

SEALED = (
    "an export is plain text, and some of these memories are sealed where they are stored; "
    "export(..., unseal=True) writes them as plain text, and backup keeps them sealed"
)


class ExportSelection(NamedTuple):
    """The exported part of a store.

    Attributes:
        scope: Scope of the memories.
        now: Memories expired by now count as deleted.
        include_deleted: Whether to export deleted and expired memories.
        model: Model of the exported vectors, or None for none.
        unseal: Whether sealed memories may be written in plain text.
    """

    scope: Scope
    now: datetime
    include_deleted: bool
    model: str | None
    unseal: bool

    def after(self, store: Store, row: int, limit: int = BATCH) -> list[StoredEntry]:
        """Return the first memories of this part after a row, in the order of storing."""
        return store.stored_after(
            self.scope,
            row,
            limit,
            now=self.now,
            include_deleted=self.include_deleted,
            model=self.model,
        )


def export(
    store: Store,
    part: ExportSelection,
    target: Target,
    *,
    overwrite: bool,
    total: int | None,
    report: Report,
) -> int:
    """Write memories in the order they were stored, then the links between them.

    Args:
        store: The store.
        part: The exported part.
        target: A path or a file.
        overwrite: Whether to replace a file.
        total: Number of memories before the export, for reports; None without reports.
        report: Gets the numbers so far.

    Returns:
        Number of memories.

    Raises:
        InvalidArgumentError: If a memory is sealed, and sealed ones may not be written, or if all
            memories are of users and none is named; then the target is not touched.
    """
    batch = part.after(store, 0)
    if not batch and part.scope.user_id is None:
        everybody = msgspec.structs.replace(part.scope, all_users=True)
        if part._replace(scope=everybody).after(store, 0, 1):
            raise InvalidArgumentError(f"nothing was exported: {NO_USER}")
    with write_export(
        target, agent_id=part.scope.agent_id, exported_at=part.now, overwrite=overwrite
    ) as writer:
        while batch:
            for _, entry, key, more in batch:
                if entry.is_encrypted and not part.unseal:
                    raise InvalidArgumentError(SEALED)
                writer.write_memory(entry, key, more)
            written = writer.written.memories
            report(written, None if total is None else max(total, written))
            batch = part.after(store, batch[-1].row)
        links = store.links_within(part.scope, now=part.now, include_deleted=part.include_deleted)
        for link, user_id in links:
            writer.write_link(link, user_id)
        return writer.written.memories


class Importer:
    """Stores the memories of an export that a memory does not have.

    Args:
        store: The store.
        scope: Lines outside of it are refused.
        add: Stores new entries and returns their number.
        is_model: Whether vectors of a model and length may be stored; other memories are embedded
            again.
    """

    def __init__(
        self,
        store: Store,
        scope: Scope,
        add: Callable[[Sequence[NewEntry]], Awaitable[int]],
        is_model: Callable[[str | None, int], bool],
    ) -> None:
        self._store = store
        self._scope = scope
        self._add = add
        self._is_model = is_model
        self._users: dict[UUID, str | None] = {}

    async def read(self, source: Source, now: datetime, report: Report) -> ImportResult:
        """Check every line, then store in batches; existing memories are skipped.

        Raises:
            ExportFormatError: At the first invalid line; nothing is stored then.
            KeyUnavailableError: If a memory was sealed, and there is no key here; neither then.
        """
        with ExitStack() as stack:
            reader = await run_blocking(
                lambda: stack.enter_context(read_export(source)), self._store
            )
            total = await run_blocking(lambda: sum(1 for _ in self._memories(reader)), self._store)
            done = stored = 0
            memories = self._memories(reader)
            while batch := await run_blocking(lambda: list(islice(memories, BATCH)), self._store):
                stored += await self._store_batch(batch, now)
                done += len(batch)
                report(done, total)
            links = await self._store_links(reader)
            return ImportResult(stored=stored, skipped=done - stored, links=links)

    def _memories(self, reader: ExportReader) -> Iterator[NewEntry]:
        for line, record in reader:
            if isinstance(record, ExportedMemory):
                try:
                    own = self._own(record.entry)
                    check_size(own)  # which must not fail after others were stored
                    if own.is_encrypted:
                        self._store.marked(own)  # the same
                    if reader.version < LINKS_NAME_USERS:
                        self._users[own.id] = own.user_id
                    more = () if own.embedding is None else record.more
                    yield NewEntry(own, record.idempotency_key, more)
                except InvalidArgumentError as error:
                    raise ExportFormatError(line, str(error)) from error

    def _own(self, entry: MemoryEntry) -> MemoryEntry:
        """Return a memory as this agent's, without a vector of another model."""
        own = copy.copy(entry)
        force_setattr(own, "agent_id", self._scope.agent_id)
        if own.embedding is not None and not self._is_model(
            own.embedding_model, own.embedding.size
        ):
            force_setattr(own, "embedding", None)
        if own.embedding is None:
            force_setattr(own, "embedding_model", None)
        return checked_record(own, self._scope)

    async def _store_batch(self, batch: Sequence[NewEntry], now: datetime) -> int:
        fresh = {(new.entry.user_id, new.entry.id): new for new in batch}
        for user_id in {user_id for user_id, _ in fresh}:
            ids = [entry_id for owner, entry_id in fresh if owner == user_id]
            for known in await self._known(user_id, ids, now):
                del fresh[user_id, known]
        return await self._add(list(fresh.values())) if fresh else 0

    async def _known(
        self, user_id: str | None, ids: Sequence[UUID], now: datetime
    ) -> Collection[UUID]:
        """Return those of these ids that a user already has."""
        own = Scope(self._scope.agent_id, user_id)
        found = await run_blocking(
            lambda: self._store.get(own, ids, now=now, include_deleted=True), self._store
        )
        return found.keys()

    def _links(self, reader: ExportReader) -> Iterator[StoredLink]:
        """Yield the links with their users; before version 3 with the user of the source memory.

        Then ids were unique within the agent.
        """
        for _, record in reader:
            if isinstance(record, ExportedLink):
                link, user_id = record
                if reader.version < LINKS_NAME_USERS:
                    user_id = self._users.get(link.from_id)
                yield StoredLink(link, self._scope.user_id if user_id is None else user_id)

    async def _store_links(self, reader: ExportReader) -> int:
        links = self._links(reader)
        # As for memories: where no user is named, those of all users may come.
        scope = (
            self._scope if self._scope.user_id is not None else self._scope.narrowed(all_users=True)
        )
        stored = 0
        while batch := await run_blocking(lambda: list(islice(links, BATCH)), self._store):
            stored += await arrived(self._store.add_links(scope, batch))
        return stored

"""A storage of CrewAI's memory over mnemic."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any

from crewai.memory.storage import backend
from crewai.memory.storage.factory import set_memory_storage_factory
from crewai.memory.types import MemoryRecord, ScopeInfo

from crewai_mnemic import records as of
from mnemic import Memory, ScopedMemory
from mnemic.adapters import sync_method
from mnemic.errors import DimensionMismatchError, EmbeddingModelMismatchError

_PAGE = 1000
_MOST = 10_000  # scopes, or categories, below one scope that are named


class MnemicStorage:
    """CrewAI's storage in one file: each record is a memory of mnemic, with CrewAI's vector.

    A scope is a path: "/a" has "/a/b" in it, and not "/ab". All conditions of a call must hold.
    Scores are cosines, from 0 to 1; a record without a vector is not found by one. What is deleted
    is deleted from the file. Calls may come from several threads, and several storages of any
    processes may have a file open. Arguments are those of CrewAI's `StorageBackend`.

    Args:
        path: The file, which the first call opens; or ":memory:".
        user_id: The user whose records these are. No call sees those of another one.
        options: Those of `mnemic.Memory`. `embedding_model`, "crewai" unless given, is a name for
            CrewAI's embedder; vectors of two models share no file.

    Raises:
        EmbeddingDimensionMismatchError: If a vector has another length than those of the file. It
            is CrewAI's own; CrewAI 1.14 has none, and mnemic's error remains.
        mnemic.errors.MnemicError: If a record cannot be stored, or the file not be used.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, user_id: str | None = None, **options: Any
    ) -> None:
        own: dict[str, Any] = {"embedding_model": "crewai", "track_access": False}
        self._open = partial(Memory, path, "crewai", embedder=None, **own | options)
        self._user_id = user_id
        self._opening = Lock()
        self._opened: Memory | None = None

    @property
    def _memory(self) -> ScopedMemory:
        with self._opening:  # two of ":memory:" would be two memories
            self._opened = self._opened or self._open()
            return self._opened.scoped(user_id=self._user_id)

    def close(self) -> None:
        """Close the file; the next call opens it again, as CrewAI may save after the end."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Store records, all or none; one whose id is stored takes that one's place."""
        with _unfit_vectors():
            await self._memory.aio.add_many(map(of.entry_of, records), on_conflict="replace")

    def update(self, record: MemoryRecord) -> None:
        """Store a record in place of the one with its id, whose time of creation stays."""
        self.save([record])

    async def asearch(self, /, *args: Any, **named: Any) -> list[tuple[MemoryRecord, float]]:
        """Return the nearest records, without their vectors, each with its score, best first."""
        query = of.query_of(*args, **named)
        with _unfit_vectors():
            hits = await self._memory.aio.search(**query) if query else ()
        return [(of.record_of(hit.entry), hit.score) for hit in hits]

    async def adelete(self, /, *args: Any, **named: Any) -> int:
        """Delete the records that meet all conditions, all without any; return how many."""
        return int(await self._memory.aio.delete_many(**of.deletion_of(*args, **named)))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete the records of a scope; a file without any takes vectors of any length."""
        self.delete(scope_prefix)
        if of.path_of(scope_prefix) == "/":
            self._opened = None  # calls of other threads end with the one they have

    def touch_records(self, record_ids: list[str]) -> None:
        """Make now the last access of these records; CrewAI calls it after a recall."""
        self._memory.touch(map(of.entry_id, record_ids))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record with its vector, or None."""
        own = {"id": str(of.entry_id(record_id))}
        return next(map(of.record_of, self._memory.list(filters=own, embeddings=True)), None)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return records with their vectors, newest first."""
        window: dict[str, Any] = {"filters": of.filters_of(scope_prefix), "embeddings": True}
        end = offset + limit if offset >= 0 else offset
        pages = (
            self._memory.list(offset=at, limit=min(_PAGE, end - at), **window)
            for at in range(offset, end, _PAGE)
        )
        return [of.record_of(entry) for page in takewhile(len, pages) for entry in page]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return number, categories, first and last time and next scopes of a scope."""
        count = self.count(scope)
        return ScopeInfo(
            path=of.path_of(scope).rstrip("/") or "/",
            record_count=count,
            categories=list(self.list_categories(scope)),
            oldest_record=self._created(scope, max(count - 1, 0)),
            newest_record=self._created(scope, 0),
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes one level below a scope, in order."""
        return of.children_of(parent, self._counts("scope", parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the categories of a scope, in order, each with its number of records."""
        return self._counts("tags", scope_prefix)

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records of a scope and those below."""
        return self._memory.count(filters=of.filters_of(scope_prefix))

    save, search, delete = sync_method(asave), sync_method(asearch), sync_method(adelete)

    def _counts(self, field: str, scope: str | None) -> dict[str, int]:
        found = self._memory.distinct(field, filters=of.filters_of(scope), limit=_MOST)
        return {each.value: each.count for each in found}

    def _created(self, scope: str, offset: int) -> datetime | None:
        found = self._memory.list(limit=1, offset=offset, filters=of.filters_of(scope))
        return of.record_of(found[0]).created_at if found else None


def install(path: str | os.PathLike[str], **options: Any) -> None:
    """Make mnemic the storage of all memories that this process makes from now on.

    `set_memory_storage_factory(None)` of CrewAI undoes it. A storage that is given to a memory as
    an object stays, and so does "qdrant-edge".

    Args:
        path: The file of each memory that names no folder. One that does, as
            `Memory(storage="notes")`, has the file mnemic.db in its folder.
        options: Those of `MnemicStorage`.
    """

    def made(spec: str) -> MnemicStorage | None:
        if spec == "qdrant-edge":
            return None
        if spec == "lancedb":  # CrewAI's default
            return MnemicStorage(path, **options)
        Path(spec).mkdir(parents=True, exist_ok=True)
        return MnemicStorage(Path(spec, "mnemic.db"), **options)

    set_memory_storage_factory(made)


@contextmanager
def _unfit_vectors() -> Iterator[None]:
    """Raise CrewAI's error where vectors have another length than those of the file."""
    try:
        yield
    except (DimensionMismatchError, EmbeddingModelMismatchError) as error:
        unfit = getattr(backend, "EmbeddingDimensionMismatchError", None)
        if unfit is None or error.stored is None:
            raise
        raise unfit(error.stored, error.given) from error

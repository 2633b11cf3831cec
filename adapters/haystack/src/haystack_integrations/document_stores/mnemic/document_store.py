"""A document store over mnemic."""

from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.mnemic import documents as of

from mnemic import Memory, MemoryEntry, ScopedMemory
from mnemic.adapters import query_text, sync_method
from mnemic.errors import DuplicateEntryError

Filters = dict[str, Any] | None


class MnemicDocumentStore:
    """Documents in one file, found by their embeddings and words, exactly.

    A call that returns has written to disk, all of it or nothing; what is deleted is deleted from
    the file. Filters have Haystack's grammar, and the index decides them. Calls may come from
    several threads, and awaited ones block no event loop.

    Args:
        path: The file, or ":memory:".
        user_id: The user whose documents these are. No call sees those of another one.
        options: Those of `mnemic.Memory`, which `to_dict` returns as they are. `embedding_model`,
            "haystack" unless given, names the embeddings' model; two models share no file.

    Attributes:
        memory: The documents as mnemic's memories, for all other calls.
    """

    def __init__(self, path: str = ":memory:", user_id: str | None = None, **options: Any) -> None:
        own: dict[str, Any] = {"embedder": None, "embedding_model": "haystack"}
        self._given = {"path": str(path), "user_id": user_id, **options}
        self._opened = Memory(path, "haystack", **{"track_access": False, **own, **options})
        self.memory: ScopedMemory = self._opened.scoped(user_id=user_id)

    def to_dict(self) -> dict[str, Any]:
        """Return what the store was made with."""
        return default_to_dict(self, **self._given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Open a store that `to_dict` describes."""
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    async def count_documents_async(self) -> int:
        """Return the number of documents."""
        return await self.memory.aio.count()

    async def count_documents_by_filter_async(self, filters: Filters) -> int:
        """Return the number of documents that meet a filter."""
        return await self.memory.aio.count(filters=of.filters_of(filters))

    async def filter_documents_async(self, filters: Filters = None) -> list[Document]:
        """Return the documents that meet a filter, all without one, in the order of writing."""
        chosen: dict[str, Any] = {"filters": of.filters_of(filters), "embeddings": True}
        page = await self.memory.aio.list(limit=1000, **chosen)
        entries: list[MemoryEntry] = list(page)
        while page.cursor:
            page = await self.memory.aio.list(limit=1000, cursor=page.cursor, **chosen)
            entries += page
        return [of.document_of(entry) for entry in reversed(entries)]

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents, all or none, and return how many; the policy NONE is FAIL.

        Raises:
            DuplicateDocumentError: If an id is stored or comes twice, with the policy FAIL.
            ValueError: If what is given are no documents, or one cannot be stored.
        """
        if not isinstance(documents, list) or not all(isinstance(d, Document) for d in documents):
            raise ValueError("documents must be a list of haystack.Document")
        entries = [of.entry_of(document) for document in documents]
        if policy == DuplicatePolicy.SKIP:
            new = {entry.id for entry in entries}
            known = await self.memory.aio.get_many(new)
            await self.memory.aio.add_many(entries, on_conflict="skip")
            return len(new) - len(known)
        if policy == DuplicatePolicy.OVERWRITE:
            return len(await self.memory.aio.add_many(entries, on_conflict="replace"))
        try:
            return len(await self.memory.aio.add_many(entries))
        except DuplicateEntryError as error:
            raise DuplicateDocumentError(str(error)) from error

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Set keys of the metadata of all documents that meet a filter; return how many."""
        fields: dict[str, Any] = {"metadata": of.checked(meta)}
        fields["filters"] = of.filters_of(filters) or {}
        return int(await self.memory.aio.update_many(**fields))

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """Delete the documents with these ids; unknown ones are passed over."""
        await self.memory.aio.delete_many(map(of.entry_id, document_ids), permanent=True)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        """Delete the documents that meet a filter, all with an empty one; return how many."""
        chosen = of.filters_of(filters)
        return int(await self.memory.aio.delete_all(filters=chosen, permanent=True))

    async def delete_all_documents_async(self, recreate_index: object = None) -> None:
        """Delete all documents of the store's user; there is no index to make again."""
        del recreate_index
        await self.memory.aio.delete_all(permanent=True)

    async def count_unique_metadata_by_filter_async(
        self, filters: Filters, metadata_fields: list[str]
    ) -> dict[str, int]:
        """Return how many values each key has in the documents that meet a filter."""
        found = await self._in_memory(filters)
        return found.count_unique_metadata_by_filter({}, metadata_fields)

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        """Return each key of the metadata with its type: boolean, int, float or keyword."""
        return (await self._in_memory()).get_metadata_fields_info()

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        """Return the least and the greatest number or text of a key; None where both occur."""
        return (await self._in_memory()).get_metadata_field_min_max(metadata_field)

    async def get_metadata_field_unique_values_async(
        self, /, metadata_field: str, *args: Any, filters: Filters = None, **named: Any
    ) -> tuple[list[Any], int]:
        """Return a page of the values of a key, and how many there are.

        Further arguments are `search_term`, which they contain, `from_` and `size` of the page.
        """
        found = await self._in_memory(filters)
        return found.get_metadata_field_unique_values(metadata_field, *args, **named)

    async def retrieval_async(self, /, query: str | None = None, **search: Any) -> list[Document]:
        """Return the best documents, without their embeddings: by words, by meaning, or both.

        Args:
            query: The words; without any, scores are the cosines with `vector`.
            search: As `memory.search`, but with `filters` of Haystack's grammar.
        """
        search["filters"] = of.filters_of(search.get("filters"))
        asked = query_text(query or "")
        if not asked and search.get("vector") is None:
            return []
        search["search_type"] = "hybrid" if asked else "semantic"
        hits = await self.memory.aio.search(asked or None, **search)
        return [of.document_of(hit.entry, hit.score if asked else hit.similarity) for hit in hits]

    async def _in_memory(self, filters: Filters = None) -> InMemoryDocumentStore:
        """Return the metadata in Haystack's store in memory, which has what is asked of them."""
        store = InMemoryDocumentStore(shared=False)
        hits = await self.memory.aio.recent(filters=of.filters_of(filters), limit=2**31)
        metas = [of.document_of(hit.entry).meta for hit in reversed(hits)]
        store.write_documents([Document(id=str(at), meta=meta) for at, meta in enumerate(metas)])
        return store

    count_documents = sync_method(count_documents_async)
    count_documents_by_filter = sync_method(count_documents_by_filter_async)
    filter_documents = sync_method(filter_documents_async)
    write_documents = sync_method(write_documents_async)
    update_by_filter = sync_method(update_by_filter_async)
    delete_documents = sync_method(delete_documents_async)
    delete_by_filter = sync_method(delete_by_filter_async)
    delete_all_documents = sync_method(delete_all_documents_async)
    count_unique_metadata_by_filter = sync_method(count_unique_metadata_by_filter_async)
    get_metadata_fields_info = sync_method(get_metadata_fields_info_async)
    get_metadata_field_min_max = sync_method(get_metadata_field_min_max_async)
    get_metadata_field_unique_values = sync_method(get_metadata_field_unique_values_async)
    retrieval = sync_method(retrieval_async)

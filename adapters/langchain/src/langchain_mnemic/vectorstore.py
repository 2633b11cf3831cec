"""A vector store over mnemic."""

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from langchain_mnemic.documents import document_of, entry_id, entry_of
from mnemic import Memory, MemoryEntry, ScopedMemory
from mnemic.adapters import runs_sync, sync_method

Path = str | os.PathLike[str]
User = str | None
Vector = list[float]
Documents = list[Document]
Scored = list[tuple[Document, float]]


class MnemicVectorStore(VectorStore):
    """Documents in one file, found by their vectors, exactly.

    A call that returns has written to disk; a document whose id is stored takes that one's place;
    what is deleted is deleted from the file. Scores are cosines. `filter`, of every search, has
    conditions on the metadata, `{"page": {"gte": 3}, "lang": "en"}`, or is a `MemoryFilter`. Calls
    may come from several threads, and awaited ones block no event loop.

    Args:
        embedding: Embeds documents and queries.
        path: The file, or ":memory:".
        user_id: The user whose documents these are. No call sees those of another one.
        options: Those of `mnemic.Memory`, of which `embedding_model` names the model of an
            embedding that has no `model` or `model_name`.

    Attributes:
        memory: The documents as mnemic's memories, for `MnemicRetriever` and all other calls.
    """

    def __init__(
        self,
        embedding: Embeddings,
        path: Path = ":memory:",
        *,
        user_id: User = None,
        **options: Any,
    ) -> None:
        own: dict[str, Any] = {"track_access": False}
        self._embedding = embedding
        self._opened = Memory(path, "langchain", embedder=embedding, **own | options)
        self.memory: ScopedMemory = self._opened.scoped(user_id=user_id)

    def scoped(self, user_id: str) -> Self:
        """Return the store of a user's documents in the same open file."""
        store = copy.copy(self)
        store.memory = self.memory.scoped(user_id=user_id)
        return store

    def close(self) -> None:
        """Close the file, for all users."""
        self._opened.close()

    @property
    def embeddings(self) -> Embeddings:
        """What embeds documents and queries."""
        return self._embedding

    @classmethod
    def from_texts(
        cls, texts: list[str], embedding: Embeddings, metadatas: Any = None, **named: Any
    ) -> Self:
        """Make a store with these texts; `ids` beside what the class takes are theirs."""
        ids = named.pop("ids", None)
        store = cls(embedding, **named)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    async def aadd_texts(
        self, /, texts: Iterable[str], metadatas: Any = None, **named: Any
    ) -> list[str]:
        """Store texts, all or none, and return their `ids`; a text without one gets one."""
        entries = _entries(list(texts), metadatas, named.get("ids"))
        contents, own = [entry.content for entry in entries], self._embedding
        plain = runs_sync()
        vectors = own.embed_documents(contents) if plain else await own.aembed_documents(contents)
        await self.memory.aio.add_many(entries, embeddings=vectors, on_conflict="replace")
        return [entry.message_id or "" for entry in entries]

    async def adelete(self, /, ids: Sequence[str] | None = None, **_: Any) -> bool:
        """Delete the documents with these ids, or all without any named; true also for none."""
        await self.memory.aio.delete_many(**_deletion(ids))
        return True

    async def aget_by_ids(self, ids: Sequence[str], /) -> Documents:
        """Return the documents with these ids in their order, without unknown ones."""
        return [document_of(entry) for entry in await self.memory.aio.get_many(map(entry_id, ids))]

    async def asimilarity_search_with_score_by_vector(
        self, /, embedding: Vector, k: int = 4, **named: Any
    ) -> Scored:
        """Return the `k` nearest documents that meet `filter`, with their cosines, best first."""
        hits = await self.memory.aio.search(**_query(embedding, k, **named))
        return [(document_of(hit.entry), hit.similarity or 0.0) for hit in hits]

    async def asimilarity_search_with_score(
        self, /, query: str, *args: Any, **named: Any
    ) -> Scored:
        """As `similarity_search_with_score_by_vector`, for a text."""
        vector = await self._vector(query)
        return await self.asimilarity_search_with_score_by_vector(vector, *args, **named)

    async def asimilarity_search(self, /, query: str, k: int = 4, **named: Any) -> Documents:
        """Return the `k` nearest documents that meet `filter`, best first."""
        return _without_scores(await self.asimilarity_search_with_score(query, k, **named))

    async def asimilarity_search_by_vector(self, /, *args: Any, **named: Any) -> Documents:
        """As `similarity_search`, for a vector, `embedding`."""
        return _without_scores(await self.asimilarity_search_with_score_by_vector(*args, **named))

    async def amax_marginal_relevance_search_by_vector(
        self,
        /,
        embedding: Vector,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **named: Any,
    ) -> Documents:
        """Return `k` of the `fetch_k` nearest documents that are near and unlike each other."""
        hits = await self.memory.aio.search(**_query(embedding, fetch_k, **named))
        found = await self.memory.aio.get_many([hit.id for hit in hits], embeddings=True)
        return _diverse(embedding, found, k, lambda_mult)

    async def amax_marginal_relevance_search(
        self, /, query: str, *args: Any, **named: Any
    ) -> Documents:
        """As `max_marginal_relevance_search_by_vector`, for a text."""
        vector = await self._vector(query)
        return await self.amax_marginal_relevance_search_by_vector(vector, *args, **named)

    add_texts = sync_method(aadd_texts)
    delete = sync_method(adelete)
    get_by_ids = sync_method(aget_by_ids)
    similarity_search_with_score_by_vector = sync_method(asimilarity_search_with_score_by_vector)
    similarity_search_with_score = sync_method(asimilarity_search_with_score)
    similarity_search = sync_method(asimilarity_search)
    similarity_search_by_vector = sync_method(asimilarity_search_by_vector)
    max_marginal_relevance_search_by_vector = sync_method(amax_marginal_relevance_search_by_vector)
    max_marginal_relevance_search = sync_method(amax_marginal_relevance_search)

    async def _vector(self, query: str) -> Vector:
        own = self._embedding
        return own.embed_query(query) if runs_sync() else await own.aembed_query(query)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: min(max(cosine, 0.0), 1.0)


def _entries(texts: list[str], metadatas: Any, ids: Any) -> list[MemoryEntry]:
    given = zip(texts, metadatas or [{}] * len(texts), ids or [None] * len(texts), strict=True)
    return [entry_of(*document) for document in given]


def _query(vector: Vector, k: int, **named: Any) -> dict[str, Any]:
    filters = named.get("filter")
    if isinstance(filters, Mapping):
        filters = {"metadata": dict(filters)}
    return {"vector": vector, "search_type": "semantic", "limit": k, "filters": filters}


def _deletion(ids: Sequence[str] | None) -> dict[str, Any]:
    every = {"id": {"exists": True}}
    chosen = {"filters": every} if ids is None else {"ids": map(entry_id, ids)}
    return {"permanent": True, **chosen}


def _without_scores(scored: Scored) -> Documents:
    return [document for document, _ in scored]


def _diverse(query: Vector, found: list[MemoryEntry], k: int, lambda_mult: float) -> Documents:
    vectors: Any = [np.atleast_2d(np.asarray(entry.embedding))[0] for entry in found]
    chosen = maximal_marginal_relevance(np.asarray(query), vectors, lambda_mult, k)
    return [document_of(found[at]) for at in chosen]

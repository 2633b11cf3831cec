"""A vector store over mnemic."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.mnemic import nodes as of

from mnemic import Memory, MemoryEntry, ScopedMemory, SearchHit
from mnemic.adapters import sync_method

Ids = list[str] | None
Filters = MetadataFilters | None
_ALL = 2**31  # more than any file has


class MnemicVectorStore(BasePydanticVectorStore):
    """Nodes in one file, found by their embeddings and words, exactly.

    A call that returns has written to disk, all of it or nothing; a node whose id is stored takes
    that one's place; what is deleted is deleted from the file. The index decides filters. Calls
    may come from several threads, and awaited ones block no event loop.

    Attributes:
        path: The file, or ":memory:".
        user_id: The user whose nodes these are. No call sees those of another one.
        embedding_model: Name of the model of the embeddings; those of two share no file.
        options: Further ones of `mnemic.Memory`.
    """

    stores_text: bool = True
    path: str = ":memory:"
    user_id: str | None = None
    embedding_model: str = "llama-index"
    options: dict[str, Any] = Field(default_factory=dict)
    _opened: Memory = PrivateAttr()
    _memory: ScopedMemory = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the file."""
        super().model_post_init(context)
        own: dict[str, Any] = {"embedder": None, "embedding_model": self.embedding_model}
        own["track_access"] = False
        self._opened = Memory(self.path, "llama-index", **own | self.options)
        self._memory = self._opened.scoped(user_id=self.user_id)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex writes it down."""
        return "MnemicVectorStore"

    @property
    def client(self) -> ScopedMemory:
        """The nodes as mnemic's memories, for all other calls."""
        return self._memory

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    async def async_add(self, /, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Store nodes with their embeddings, all or none, and return their ids."""
        await self._memory.aio.add_many(map(of.entry_of, nodes), on_conflict="replace")
        return [node.node_id for node in nodes]

    async def adelete(self, /, ref_doc_id: str, **_: Any) -> None:
        """Delete the nodes of a document."""
        filters = of.chosen(None, None, [ref_doc_id])
        await self._memory.aio.delete_all(filters=filters, permanent=True)

    async def adelete_nodes(
        self, /, node_ids: Ids = None, filters: Filters = None, **_: Any
    ) -> None:
        """Delete the nodes that have one of these ids and meet the filters; all without both."""
        given = of.chosen(filters, node_ids, None)
        await self._memory.aio.delete_all(filters=given, permanent=True)

    async def aclear(self) -> None:
        """Delete all nodes of the store's user."""
        await self.adelete_nodes()

    async def aget_nodes(self, node_ids: Ids = None, filters: Filters = None) -> list[BaseNode]:
        """Return the nodes that have one of these ids and meet the filters, as first stored."""
        given = of.chosen(filters, node_ids, None)
        hits = await self._memory.aio.recent(filters=given, limit=_ALL)
        return [of.node_of(hit.entry) for hit in reversed(hits)]

    async def aquery(self, /, query: VectorStoreQuery, **named: Any) -> VectorStoreQueryResult:
        """Return the best nodes: by cosine, by words, by both, or near and unlike each other.

        Args:
            query: Its `mode` is default, mmr, sparse or text_search, hybrid or semantic_hybrid;
                its `alpha` the share of the cosine in the last two.
            named: `mmr_threshold`, and `mmr_prefetch_k`, the nodes among which mmr chooses, four
                times as many as it returns unless given.
        """
        given = of.search_of(query, **named)
        hits = await self._memory.aio.search(**given) if given else ()
        if query.mode != VectorStoreQueryMode.MMR:
            return _result(query, hits)
        found = await self._memory.aio.get_many([hit.id for hit in hits], embeddings=True)
        return _diverse(query, found, **named)

    add = sync_method(async_add)
    delete = sync_method(adelete)
    delete_nodes = sync_method(adelete_nodes)
    clear = sync_method(aclear)
    get_nodes = sync_method(aget_nodes)
    query = sync_method(aquery)


def _result(query: VectorStoreQuery, hits: Sequence[SearchHit]) -> VectorStoreQueryResult:
    nodes = [of.node_of(hit.entry) for hit in hits]
    is_semantic = query.mode == VectorStoreQueryMode.DEFAULT
    scores = [(hit.similarity or 0.0) if is_semantic else hit.score for hit in hits]
    return VectorStoreQueryResult(nodes, scores, [node.node_id for node in nodes])


def _diverse(
    query: VectorStoreQuery, found: list[MemoryEntry], **named: Any
) -> VectorStoreQueryResult:
    threshold = named.get("mmr_threshold")
    scores, places = get_top_k_mmr_embeddings(
        query.query_embedding or [],
        [np.atleast_2d(np.asarray(entry.embedding))[0] for entry in found],
        similarity_top_k=query.similarity_top_k,
        mmr_threshold=query.mmr_threshold if threshold is None else threshold,
    )
    nodes = [of.node_of(found[place]) for place in places]
    return VectorStoreQueryResult(nodes, scores, [node.node_id for node in nodes])

"""Retrievers of Haystack over a document store of mnemic."""

from typing import Any

from haystack import component
from haystack.dataclasses import Document
from haystack.document_stores.types import FilterPolicy, apply_filter_policy
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore

from mnemic.adapters import sync_method

__all__ = ["MnemicEmbeddingRetriever", "MnemicHybridRetriever"]

Filters = dict[str, Any] | None
Found = dict[str, list[Document]]


class _Retriever:
    def __init__(
        self,
        document_store: MnemicDocumentStore,
        filters: Filters = None,
        top_k: int = 10,
        filter_policy: str = "replace",
    ) -> None:
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = FilterPolicy(filter_policy).value

    async def _found(self, filters: Filters, top_k: int | None, **search: Any) -> Found:
        policy = FilterPolicy(self.filter_policy)
        search["filters"] = apply_filter_policy(policy, self.filters, filters)
        search["limit"] = self.top_k if top_k is None else top_k
        return {"documents": await self.document_store.retrieval_async(**search)}


@component
class MnemicEmbeddingRetriever(_Retriever):
    """Finds the documents whose embeddings are nearest; their scores are the cosines.

    Args:
        document_store: The store.
        filters: Which documents are found, unless a call has filters.
        top_k: The number of documents, unless a call has one.
        filter_policy: "replace", or "merge" for the filters of a call together with these.
    """

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query_embedding: list[float], filters: Filters = None, top_k: int | None = None
    ) -> Found:
        """Return the nearest documents, best first."""
        return await self._found(filters, top_k, vector=query_embedding)

    run = sync_method(run_async)


@component
class MnemicHybridRetriever(_Retriever):
    """Finds documents by words and meaning together; without an embedding by words alone.

    Args:
        document_store: The store.
        filters: Which documents are found, unless a call has filters.
        top_k: The number of documents, unless a call has one.
        filter_policy: "replace", or "merge" for the filters of a call together with these.
    """

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: Filters = None,
        top_k: int | None = None,
    ) -> Found:
        """Return the best documents, best first."""
        return await self._found(filters, top_k, query=query, vector=query_embedding)

    run = sync_method(run_async)

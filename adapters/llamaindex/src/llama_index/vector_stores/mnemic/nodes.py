"""Nodes as memories, and LlamaIndex's queries and filters as mnemic's."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from mnemic import MemoryEntry, Ranking
from mnemic.adapters import named_id, query_text

_IDS = UUID("2f1b8f0c-2f8e-5d0b-8d2e-6b1e4f7a9c35")
_LIMITS = {
    "default": "similarity_top_k",
    "mmr": "similarity_top_k",
    "sparse": "sparse_top_k",
    "text_search": "sparse_top_k",
    "hybrid": "hybrid_top_k",
    "semantic_hybrid": "hybrid_top_k",
}
_OPERATORS = {
    "==": "eq",
    "!=": "ne",
    ">": "gt",
    "<": "lt",
    ">=": "gte",
    "<=": "lte",
    "in": "in",
    "nin": "nin",
    "any": "any",
    "all": "all",
    "contains": "contains",
    "text_match_insensitive": "contains",
}


def entry_id(node_id: str) -> UUID:
    """Return the id of a node's memory; LlamaIndex's ids are any texts."""
    return named_id(_IDS, node_id)


def entry_of(node: BaseNode) -> MemoryEntry:
    """Return a node as a new memory, its text as the content, and all else as the metadata."""
    text = node.get_content()
    has_text = bool(text.strip())
    made: Callable[..., MemoryEntry] = MemoryEntry.empty
    if has_text:
        made = partial(MemoryEntry, text)
    metadata = node_to_metadata_dict(node, remove_text=has_text)
    return made(id=entry_id(node.node_id), metadata=metadata, embedding=node.get_embedding())


def node_of(entry: MemoryEntry) -> BaseNode:
    """Return a memory as a node, without its embedding."""
    return metadata_dict_to_node(entry.metadata, entry.content or None)


def chosen(
    filters: MetadataFilters | None, node_ids: Sequence[str] | None, doc_ids: Sequence[str] | None
) -> dict[str, Any]:
    """Return mnemic's filter of the nodes that meet filters and have one of these ids."""
    tests = [_tree(filters)] if filters else []
    if node_ids is not None:
        tests.append({"id": {"in": [str(entry_id(each)) for each in node_ids]}})
    if doc_ids is not None:
        tests.append({"metadata": {"doc_id": {"in": list(doc_ids)}}})
    return {"AND": tests}


def search_of(query: VectorStoreQuery, **named: Any) -> dict[str, Any]:
    """Return the arguments of mnemic's search for a query; none where it asks nothing."""
    mode = query.mode.value
    filters = chosen(query.filters, query.node_ids or None, query.doc_ids or None)
    given: dict[str, Any] = {"filters": filters}
    if mode not in _LIMITS:
        raise ValueError(f"found mode {mode!r}; one of {', '.join(_LIMITS)} is allowed")
    given["limit"] = getattr(query, _LIMITS[mode]) or query.similarity_top_k
    if mode == "mmr":
        given["limit"] = named.get("mmr_prefetch_k") or 4 * query.similarity_top_k
    if mode in {"default", "mmr"}:
        return given | {"vector": query.query_embedding, "search_type": "semantic"}
    given["query"] = query_text(query.query_str or "") or None
    if mode in {"sparse", "text_search"} or query.alpha == 0:
        return given | {"search_type": "keyword"} if given["query"] else {}
    share = None if query.alpha is None else Ranking(similarity=query.alpha)
    return given | {"vector": query.query_embedding, "ranking": share}


def _tree(filters: MetadataFilters) -> dict[str, Any]:
    tests = [
        _tree(each) if isinstance(each, MetadataFilters) else _test(each)
        for each in filters.filters
    ]
    if not tests or filters.condition in {None, FilterCondition.AND}:
        return {"AND": tests}
    any_of = {"OR": tests}
    return any_of if filters.condition == FilterCondition.OR else {"NOT": any_of}


def _test(given: MetadataFilter) -> dict[str, Any]:
    key = f"\\{given.key}"  # the backslash makes a key of any text
    if given.operator == FilterOperator.IS_EMPTY:
        return {"NOT": {"metadata": {key: {"nin": [None, "", []]}}}}
    if given.operator.value not in _OPERATORS:
        raise ValueError(f"found operator {given.operator.value!r}; use text_match_insensitive")
    return {"metadata": {key: {_OPERATORS[given.operator.value]: given.value}}}

"""A LangGraph store over a memory: an item is a memory, its namespace the memory's category."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from langgraph.store import base

from mnemic import Memory, MemoryEntry, as_embedder

_KEYS = UUID("6f9619ff-8b86-5d01-b42d-00cf4fc964ff")


class MnemicStore(base.BaseStore):
    """Items in one file; the key of an item is the id of its memory.

    Args:
        path: The file, or ":memory:".
        index: Embeddings, their dimensions and the fields to embed; None finds by filters alone.
    """

    supports_ttl = True

    def __init__(
        self, path: str | os.PathLike[str] = ":memory:", *, index: base.IndexConfig | None = None
    ) -> None:
        self.index_config = index
        self.embeddings = None if index is None else base.ensure_embeddings(index["embed"])
        embedder = index and as_embedder(
            self.embeddings, model="langgraph", dimensions=index["dims"]
        )
        self._memory = Memory(path, agent_id="langgraph", embedder=embedder)

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Answer the reads, then apply the last put of each key."""
        given = list(ops)
        items = self._get([op for op in given if isinstance(op, base.GetOp)])
        results = [self._read(op, items) for op in given]
        puts = {(op.namespace, op.key): op for op in given if isinstance(op, base.PutOp)}
        self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """As `batch`, in one thread for the whole batch."""
        return await asyncio.to_thread(self.batch, ops)

    def _read(self, op: base.Op, items: dict[tuple[Any, str], base.Item]) -> base.Result:
        if isinstance(op, base.GetOp):
            return items.get((op.namespace, op.key))
        if isinstance(op, base.SearchOp):
            return self._search(op)
        return self._namespaces(op) if isinstance(op, base.ListNamespacesOp) else None

    def _get(self, ops: Sequence[base.GetOp]) -> dict[tuple[Any, str], base.Item]:
        refreshes = {_id(op): op.refresh_ttl for op in ops}
        found = self._memory.get_many(list(refreshes)) if refreshes else []
        for entry in found:
            if refreshes[entry.id] and (minutes := entry.metadata["ttl"]) is not None:
                self._memory.touch([entry.id], expires_at=_expiry(minutes))
        items = (base.Item(**_item(entry)) for entry in found)
        return {(item.namespace, item.key): item for item in items}

    def _put(self, ops: Sequence[base.PutOp]) -> None:
        deleted = [_id(op) for op in ops if op.value is None]
        if deleted:
            self._memory.delete_many(ids=deleted, permanent=True)
        stored = [self._new(op) for op in ops if op.value is not None]
        if stored:
            self._memory.add_many(stored, on_conflict="replace")

    def _new(self, op: base.PutOp) -> dict[str, Any]:
        texts: list[str] = []
        if self.index_config is not None and op.index is not False:
            paths = op.index or self.index_config.get("fields") or ["$"]
            texts = [text for path in paths for text in base.get_text_at_path(op.value, path)]
        return {
            "id": _id(op),
            "content": "\n".join(texts),
            "embed": texts,
            "category": ".".join((*op.namespace, "")),
            "metadata": {"key": op.key, "value": op.value, "ttl": op.ttl},
            "expires_at": None if op.ttl is None else _expiry(op.ttl),
        }

    def _search(self, op: base.SearchOp) -> list[base.SearchItem]:
        filters: dict[str, Any] = {"metadata": {"value": op.filter}} if op.filter else {}
        if op.namespace_prefix:
            filters["category"] = {"prefix": ".".join((*op.namespace_prefix, ""))}
        window: dict[str, Any] = {"filters": filters, "limit": op.limit, "offset": op.offset}
        if not op.query or self.embeddings is None:
            return [base.SearchItem(**_item(entry)) for entry in self._memory.list(**window)]
        hits = self._memory.search(op.query, search_type="semantic", **window)
        return [base.SearchItem(**_item(hit.entry), score=hit.similarity) for hit in hits]

    def _namespaces(self, op: base.ListNamespacesOp) -> list[tuple[str, ...]]:
        known = (tuple(each.value.split(".")[:-1]) for each in self._memory.distinct("category"))
        fitting = {
            namespace[: op.max_depth]
            for namespace in known
            if all(_matches(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(fitting)[op.offset : op.offset + op.limit]


def _id(op: base.GetOp | base.PutOp) -> UUID:
    return uuid5(_KEYS, "\0".join((*op.namespace, op.key)))


def _expiry(minutes: float) -> datetime:
    return datetime.now(UTC) + timedelta(minutes=minutes)


def _item(entry: MemoryEntry) -> dict[str, Any]:
    return {
        "namespace": tuple((entry.category or "").split(".")[:-1]),
        "key": entry.metadata["key"],
        "value": entry.metadata["value"],
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    }


def _matches(condition: base.MatchCondition, namespace: tuple[str, ...]) -> bool:
    path, is_prefix = condition.path, condition.match_type == "prefix"
    part = namespace[: len(path)] if is_prefix else namespace[-len(path) :]
    return len(part) == len(path) and all(map(lambda a, b: b in ("*", a), part, path))

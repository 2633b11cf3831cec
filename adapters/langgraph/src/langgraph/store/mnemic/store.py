"""LangGraph's stores over mnemic: one called plainly or awaited, and one for an event loop."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from functools import lru_cache, reduce
from threading import Event, Thread
from typing import Any, Self, TypeAlias
from urllib.parse import quote, unquote
from uuid import UUID

import orjson
from langgraph.store import base
from langgraph.store.base.batch import AsyncBatchedBaseStore

from mnemic import AsyncMemory, Memory, MemoryEntry, as_embedder
from mnemic.adapters import named_id, query_text, sync_method
from mnemic.errors import FilterError

Index: TypeAlias = base.IndexConfig | None
Ttl: TypeAlias = base.TTLConfig | None

_KEYS = UUID("6f9619ff-8b86-5d01-b42d-00cf4fc964ff")
_DEEPEST = 64  # levels of a filter, as of what is stored
_BEYOND = 10**309  # larger than any float, and than any int that a memory holds


class MnemicStore(base.BaseStore):
    """A store in one file, in memory, or in PostgreSQL: durable, exact, for many processes.

    A batch answers its reads by the state before its writes, and writes all or nothing; of several
    puts of one key the last counts. An expired item is never returned, swept or not. All methods
    may be called from several threads, and awaited in any event loop.

    Args:
        path: A file, made if there is none; ":memory:"; or a PostgreSQL URL.
        index: Embeddings, their dimensions and the fields to embed; None finds by filters alone.
        ttl: Times to live, in minutes; `omit_expired` is always true.
        options: Those of `mnemic.Memory`, such as `agent_id`: stores of two share nothing.

    Attributes:
        memory: The memory, for its own calls, such as `backup`.
    """

    supports_ttl = True

    def __init__(
        self, path: str = ":memory:", *, index: Index = None, ttl: Ttl = None, **options: Any
    ) -> None:
        self.index_config, self.ttl_config = index, ttl
        self.embeddings = base.ensure_embeddings(index.get("embed")) if index else None
        self._fields = (index.get("fields") or ["$"]) if index else []
        self._stopping, self._sweeper = Event(), Future[None]()
        self._sweeper.set_result(None)
        own: dict[str, Any] = {"agent_id": "langgraph", "embedder": None, "track_access": False}
        if index:
            # A coroutine function has no plain form.
            embed: Any = getattr(self.embeddings, "afunc", self.embeddings)
            own["embedder"] = as_embedder(embed, model="langgraph", dimensions=index.get("dims"))
        self.memory = Memory(path, **{**own, **options})

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> AbstractContextManager[Self]:
        """Open a store, which `with` closes in the end; for the arguments see the class."""
        return closing(cls(conn_string, **options))

    def setup(self) -> None:
        """Do nothing: an open store has its tables."""

    def close(self) -> None:
        """Stop the sweeper, finish writing and release the file."""
        self.stop_ttl_sweeper()
        self.memory.close()

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Execute operations; see the class. `batch` does it without an event loop.

        Raises:
            InvalidNamespaceError: If a label is no text, is empty or has a period.
            TypeError: If a value cannot be JSON.
        """
        return await _Batch(list(ops), self.memory.aio, self._fields).results()

    batch = sync_method(abatch)

    def sweep_ttl(self) -> int:
        """Delete expired items permanently, and return their number."""
        return int(self.memory.purge(expired=True, all_users=True))

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep in a thread every few minutes, unless it does so; nothing without times to live.

        Returns:
            A future that is done once the sweeper has stopped; cancelling it stops the sweeper.
        """
        if self._sweeper.done() and self.ttl_config:
            minutes = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or 5
            self._stopping, self._sweeper = stopping, sweeper = Event(), Future[None]()
            sweeper.add_done_callback(lambda _: stopping.set())
            Thread(target=self._sweep, args=(stopping, sweeper, minutes * 60), daemon=True).start()
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper, and return whether it has stopped, within some seconds if given."""
        self._stopping.set()
        return not wait([self._sweeper], timeout).not_done

    def _sweep(self, stopping: Event, sweeper: Future[None], seconds: float) -> None:
        while not stopping.wait(seconds):
            try:
                self.sweep_ttl()
            except Exception:
                logging.getLogger(__name__).exception("expired items wait for the next sweep")
        if sweeper.set_running_or_notify_cancel():
            sweeper.set_result(None)


class AsyncMnemicStore(AsyncBatchedBaseStore):
    """A `MnemicStore` for one event loop: what is called in one turn of it is one batch.

    The plain methods serve other threads, and raise `asyncio.InvalidStateError` in that of the
    event loop.

    Args:
        store: The store, which `from_conn_string` opens and closes.
    """

    supports_ttl = True

    def __init__(self, store: MnemicStore) -> None:
        super().__init__()
        self.store, self.ttl_config = store, store.ttl_config
        self.index_config, self.embeddings = store.index_config, store.embeddings

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str, **options: Any) -> AsyncIterator[Self]:
        """Open a store, which `async with` closes in the end; arguments as of `MnemicStore`."""
        store = await asyncio.to_thread(MnemicStore, conn_string, **options)
        try:
            yield cls(store)
        finally:
            await asyncio.to_thread(store.close)

    async def setup(self) -> None:
        """Do nothing: an open store has its tables."""

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Execute operations as `MnemicStore.batch` does."""
        return await self.store.abatch(ops)

    async def sweep_ttl(self) -> int:
        """Delete expired items permanently, and return their number."""
        return int(await self.store.memory.aio.purge(expired=True, all_users=True))

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Any:
        """Sweep as `MnemicStore.start_ttl_sweeper` does; return an `asyncio.Future`."""
        return asyncio.wrap_future(self.store.start_ttl_sweeper(sweep_interval_minutes))

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as there
        """Stop the sweeper as `MnemicStore.stop_ttl_sweeper` does."""
        return await asyncio.to_thread(self.store.stop_ttl_sweeper, timeout)


class _Batch:
    """Operations that are executed together."""

    def __init__(self, ops: list[base.Op], memory: AsyncMemory, fields: list[str]) -> None:
        self._ops, self._memory, self._fields = ops, memory, fields
        self._read: dict[float, set[UUID]] = {}  # ids by the minutes that they live on

    async def results(self) -> list[base.Result]:
        for op in self._ops:
            base.validate_op_namespace(op)
        puts = {id_of(*op[:2]): op for op in self._ops if isinstance(op, base.PutOp)}
        gone = [key for key, op in puts.items() if op.value is None]
        new = [memory_of(op, key, self._fields) for key, op in puts.items() if op.value is not None]
        ids = {id_of(*op[:2]) for op in self._ops if isinstance(op, base.GetOp)}
        entries = await self._call("get_many", ids=ids) if ids else ()
        known = {entry.id: entry for entry in entries}
        results = [await self._answer(op, known) for op in self._ops]
        for minutes, read in self._read.items():
            await self._call("touch", ids=read, expires_at=expiry(minutes))
        if puts:
            await self._call("add_many", memories=new, instead_of=gone, on_conflict="replace")
        return results

    async def _call(self, verb: str, **named: Any) -> Any:
        return await getattr(self._memory, verb)(**named, all_users=True)

    async def _answer(self, op: base.Op, known: Mapping[UUID, MemoryEntry]) -> base.Result:
        if isinstance(op, base.GetOp):
            entry = known.get(id_of(*op[:2]))
            return None if entry is None else base.Item(**self._shown(entry, op))
        if isinstance(op, base.SearchOp):
            return await self._search(op)
        return await self._namespaces(op) if isinstance(op, base.ListNamespacesOp) else None

    async def _search(self, op: base.SearchOp) -> list[base.SearchItem]:
        filters: dict[str, Any] = {"AND": list(filters_of(op.filter or {}))}
        if op.namespace_prefix:
            filters["category"] = {"prefix": text_of(op.namespace_prefix)}
        if not self._fields or not (asked := query_text(op.query or "")):
            entries = await self._pages("list", op.offset, op.limit, 1_000, filters=filters)
            return [base.SearchItem(**self._shown(entry, op)) for entry in entries]
        meaning: dict[str, Any] = {"search_type": "semantic", "query": asked}
        hits = await self._pages("search", op.offset, op.limit, 1_000, filters=filters, **meaning)
        return [base.SearchItem(**self._shown(hit.entry, op), score=hit.similarity) for hit in hits]

    async def _namespaces(self, op: base.ListNamespacesOp) -> list[tuple[str, ...]]:
        wanted = op.match_conditions or ()
        plain = [one for one in wanted if one.match_type == "prefix" and "*" not in one.path][:1]
        others = [one for one in wanted if one not in plain]
        prefix = text_of(label for one in plain for label in one.path)
        found = await self._pages("distinct", 0, 10**9, 10_000, field="category", prefix=prefix)
        known = map(namespace_of, (each.value for each in found))
        fitting = {one[: op.max_depth] for one in known if all(matches(c, one) for c in others)}
        return sorted(fitting)[op.offset : op.offset + op.limit]

    async def _pages(self, verb: str, offset: int, most: int, size: int, **named: Any) -> list[Any]:
        """Return what calls of so much each find together."""
        found: list[Any] = []
        for at in range(0, most, size):
            page = await self._call(verb, offset=offset + at, limit=min(size, most - at), **named)
            found += page
            if len(page) < size:
                break
        return found

    def _shown(self, entry: MemoryEntry, op: base.GetOp | base.SearchOp) -> dict[str, Any]:
        minutes = entry.metadata["ttl"]
        if op.refresh_ttl and minutes is not None:
            self._read.setdefault(minutes, set()).add(entry.id)
        own = {"key": entry.metadata["key"], "value": entry.metadata["value"]}
        times = {"created_at": entry.created_at, "updated_at": entry.updated_at}
        return {"namespace": namespace_of(entry.category), **own, **times}


def text_of(namespace: Iterable[str]) -> str:
    """Return a namespace as a text; it begins with that of another exactly if it is in that one."""
    return "".join(quote(label, safe="", errors="surrogatepass") + "/" for label in namespace)


@lru_cache(4096)  # a list of namespaces takes half the time
def namespace_of(text: str | None) -> tuple[str, ...]:
    """Return the namespace of a text."""
    return tuple(unquote(each, errors="surrogatepass") for each in (text or "").split("/")[:-1])


@lru_cache(4096)  # each is needed two or three times
def id_of(namespace: tuple[str, ...], key: str) -> UUID:
    """Return the id of the memory of an item, which namespace and key determine."""
    return named_id(_KEYS, f"{text_of(namespace)}\0{key}")


def expiry(minutes: float) -> datetime:
    """Return the time in so many minutes."""
    # The longest is nineteen centuries: times end with the year 9999.
    return datetime.now(UTC) + timedelta(minutes=min(max(minutes, 0.0), 1e9))


def memory_of(op: base.PutOp, id_: UUID, fields: Sequence[str]) -> dict[str, Any]:
    """Return the memory of an item, whose value is kept as JSON has it.

    Args:
        op: The operation that stores it.
        id_: Its id.
        fields: The paths to embed where the operation names none; none at all embeds nothing.

    Raises:
        TypeError: If the value cannot be JSON.
    """
    value, namespace = orjson.loads(orjson.dumps(dict(op.value or {}))), text_of(op.namespace)
    paths = fields if op.index is None or not fields else op.index or ()
    texts = [text for path in paths for text in base.get_text_at_path(value, path) if text.strip()]
    owner = {"id": id_, "user_id": namespace, "category": namespace}
    content = {"content": "\n".join(texts), "embed": texts}
    metadata = {"key": op.key, "value": value, "ttl": op.ttl}
    expires_at = None if op.ttl is None else expiry(op.ttl)
    return {**owner, **content, "metadata": metadata, "expires_at": expires_at}


def filters_of(wanted: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Yield the filters of memories that must all hold, for a filter of values.

    A dict without operators holds of one that has more keys. A name with dots is a key; in a value
    that lacks this key it leads through dicts, as in LangGraph's SqliteStore.
    """
    if len(path) > _DEEPEST:
        raise FilterError(f"a filter must not be nested deeper than {_DEEPEST} levels")
    for name, given in wanted.items():
        if isinstance(given, Mapping) and not any(str(key).startswith("$") for key in given):
            yield from filters_of(given, (*path, str(name)))
        else:
            tests = given if isinstance(given, Mapping) else {"$eq": given}
            yield _filter_at([*path, str(name)], dict(_test(*each) for each in tests.items()))


def _filter_at(path: list[str], tests: dict[str, Any]) -> dict[str, Any]:
    own, deeper = _nested(path, tests), _nested(".".join(path).split("."), tests)
    has_key, lacks_key = (_nested(path, {"exists": exists}) for exists in (True, False))
    either = {"OR": [{"AND": [has_key, own]}, {"AND": [lacks_key, deeper]}]}
    return own if own == deeper else either


def _nested(path: Sequence[str], tests: dict[str, Any]) -> dict[str, Any]:
    # After a backslash it is a key, also where an operator has its name.
    below = reduce(lambda inner, key: {f"\\{key}": inner}, reversed(path), tests)
    return {"metadata": {"value": below}}


def _test(operator: str, operand: object) -> tuple[str, object]:
    """Return a test; mnemic refuses NaN and infinities, which compare as they do in Python."""
    if isinstance(operand, float) and math.isnan(operand):
        return ("nin" if operator == "$ne" else "in"), []
    return operator, max(-_BEYOND, min(operand, _BEYOND)) if isinstance(operand, float) else operand


def matches(condition: base.MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace begins, or ends, with labels or wildcards."""
    path, step = condition.path, 1 if condition.match_type == "prefix" else -1
    pairs = zip(path[::step], namespace[::step], strict=False)
    return len(path) <= len(namespace) and all(wanted in ("*", label) for wanted, label in pairs)

"""The ten calls as programs write them: mypy and basedpyright read this file (`make types`).

They report an ignored error that is none, so that each line with one is an error to both.
"""

# pyright: reportUnknownLambdaType=false

import asyncio
import io
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import assert_type
from uuid import UUID

import numpy as np
import pytest

from mnemic import (
    AddedMemories,
    AsyncMemory,
    AsyncScopedMemory,
    DeleteResult,
    ImportResult,
    Memory,
    MemoryContext,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryPage,
    MemoryType,
    Ranking,
    ScopedMemory,
    SearchHit,
    SearchResults,
    VectorMap,
    Weights,
    as_embedder,
)
from mnemic.errors import MnemicError

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def of_texts(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def of_any_texts(texts: Sequence[str], scale: float = 1.0) -> np.ndarray:
    return np.full((len(texts), 2), scale, np.float32)


def of_a_text(text: str) -> tuple[float, float]:
    return (float(len(text)), 1.0)


async def awaited(texts: list[str]) -> list[list[float]]:
    return of_texts(texts)


class Encoder:
    def encode(self, texts: list[str]) -> np.ndarray:
        return of_any_texts(texts)


class Documents:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return of_texts(texts)

    def embed_query(self, text: str) -> list[float]:
        return of_texts([text])[0]


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(MnemicError):
        call()


def test_the_ten_calls() -> None:
    with Memory(":memory:", embedder=of_texts, embedding_model="lengths") as memory:
        ann = memory.scoped(user_id="ann", project_id="trip")
        assert_type(ann, ScopedMemory)
        entry = ann.add(
            "Ann likes tea",
            tags=["drinks"],
            type="preference",
            importance=1,
            metadata={"cups": [1, 2]},
            created_at=date(2026, 5, 4),
        )
        assert_type(entry, MemoryEntry)
        ann.add(MemoryEntry("Ann likes milk", tags=("drinks",), created_at=NOON))
        many = ann.add_many(["Ann has a dog", {"content": "Ann has a cat", "importance": 0.7}])
        assert_type(many, AddedMemories)
        found = ann.search("tea", filters={"type": "preference", "importance": {"gte": 0.5}})
        assert_type(found, SearchResults)
        assert_type(found[0], SearchHit)
        assert_type(found[0].id, UUID)
        assert_type(found[0].score, float)
        context = ann.context("tea", max_tokens=100)
        assert_type(context, MemoryContext)
        assert "tea" in f"{context}"
        assert_type(ann.get(entry.id), MemoryEntry)
        page = ann.list(limit=2)
        assert_type(page, MemoryPage)
        assert_type(page[0], MemoryEntry)
        assert_type(ann.update(str(entry.id), add_tags=["hot"], status="archived"), MemoryEntry)
        assert_type(ann.delete(many[0].id), DeleteResult)
        file = io.StringIO()
        ann.export(file)
        assert_type(ann.delete_all(), DeleteResult)
        with Memory(":memory:", embedder=None) as other:
            assert_type(other.import_(io.StringIO(file.getvalue())), ImportResult)


def test_the_ten_calls_awaited() -> None:
    async def scenario() -> None:
        async with AsyncMemory(":memory:", embedder=awaited, embedding_model="lengths") as memory:
            ann = memory.scoped(user_id="ann")
            assert_type(ann, AsyncScopedMemory)
            entry = await ann.add("Ann likes tea")
            assert_type(entry, MemoryEntry)
            assert_type(await ann.add_many(["a", "b"]), AddedMemories)
            assert_type(await ann.search("tea"), SearchResults)
            assert_type(await ann.context("tea"), MemoryContext)
            assert_type(await ann.get(entry.id), MemoryEntry)
            assert_type(await ann.list(), MemoryPage)
            assert_type(await ann.update(entry.id, content="Ann likes milk"), MemoryEntry)
            assert_type(await ann.delete(entry.id), DeleteResult)
            file = io.StringIO()
            await ann.export(file)
            assert_type(await ann.delete_all(), DeleteResult)
            assert_type(await memory.import_(io.StringIO(file.getvalue())), ImportResult)

    asyncio.run(scenario())


def test_vectors_are_arrays_and_lists_of_numbers() -> None:
    with Memory(":memory:", embedder=None, embedding_model="own") as memory:
        memory.add(MemoryEntry("a", embedding=[1, 0.5]))
        memory.add(MemoryEntry("b", embedding=np.ones(2, np.float32)))
        memory.add_many(["c", "d"], embeddings=np.ones((2, 2)))
        memory.add_many(["e", "f"], embeddings=[[1, 0], [0.5, 1]])
        memory.add_many(["g", "h"], embeddings=[(1, 0), None])
        for hits in (
            memory.search(vector=[1, 0]),
            memory.search(vector=(1.0, 0.5)),
            memory.search(vector=[[1, 0], [0.5, 1]]),
            memory.search(vector=list(np.ones(2, np.float32))),
            memory.search(vector=[np.ones(2), np.ones(2)]),
        ):
            assert len(hits) == 7
    vectors = VectorMap(2)
    vectors.upsert([1, 2], [[1, 0], [0.5, 1]])
    assert vectors.search([1, 0], k=1).ids.tolist() == [1]


def test_records_take_what_calls_take() -> None:
    wanted = MemoryFilter(types=["fact"], tags=["a"], created_after="2026-01-01")
    assert wanted.types == (MemoryType.FACT,)
    change = MemoryEntryUpdate(type="preference", add_tags=["a"], expires_at=date(2030, 1, 1))
    assert change.type is MemoryType.PREFERENCE
    weights = {"relevance": 1, "recency": 0.5}
    with Memory(":memory:", embedder=of_texts, embedding_model="lengths") as memory:
        memory.search("tea", filters=wanted, ranking=weights, until=date(2027, 1, 1))
        memory.search("tea", ranking=Weights(relevance=1), min_score="auto")
        memory.search("tea", ranking=Ranking(min_similarity=0.2))


def test_embedders_are_functions_and_objects() -> None:
    for made in (
        as_embedder(of_texts, model="m"),
        as_embedder(of_any_texts, model="m"),
        as_embedder(of_a_text, model="m"),
        as_embedder(awaited, model="m"),
        as_embedder(lambda texts: of_any_texts(texts, 2.0), model="m"),
        as_embedder(Encoder(), model="m"),
        as_embedder(Documents(), model="m"),
    ):
        assert made.model == "m"


def test_arguments_of_wrong_types_are_errors() -> None:
    with Memory(":memory:", embedder=None, embedding_model="own") as memory:
        refused(lambda: Memory(":memory:", user_id="ann"))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.scoped(agent_id="aide"))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.add(5))  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.add("a", project_id="trip"))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.add("a", check="all"))  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
        refused(lambda: memory.add(MemoryEntry("a", tag="b")))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.add_many([5]))  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.add_many(["a"], embeddings="text"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.search("a", 3))  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.search("a", top_k=3))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.search("a", search_type="fuzzy"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.search(vector="text"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.search(filters="type = fact"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.context("a", max_tokens="many"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.get(7))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.list(limit="2"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.update("00000000-0000-0000-0000-000000000007", tags=["a"]))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.delete(None))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: memory.delete_all(user="ann"))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.export(encrypt=True))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        refused(lambda: memory.import_(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: MemoryEntryUpdate(add_tags=5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        refused(lambda: as_embedder(Encoder, model="m"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_call_that_is_not_awaited_has_no_hits() -> None:
    async def scenario() -> None:
        async with AsyncMemory(":memory:", embedder=None) as memory:
            found = memory.search("tea")
            with pytest.raises(TypeError):
                found[0]  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
            assert len(await found) == 0

    asyncio.run(scenario())

"""What the framework's own suites leave open: order, batches, filters, values, limits."""

import asyncio
import math
import threading
from datetime import UTC, datetime
from uuid import UUID

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.mnemic import AsyncMnemicStore, MnemicStore

from mnemic.errors import EmbeddingError

HERE = ("memories", "ann")


def keys(items):
    return [item.key for item in items]


def test_reads_see_the_state_before_the_writes_of_their_batch(store):
    store.put(HERE, "a", {"text": "old"})
    got, _, found, listed = store.batch(
        [
            GetOp(HERE, "a"),
            PutOp(HERE, "a", {"text": "new"}),
            SearchOp(HERE),
            ListNamespacesOp(),
        ]
    )
    assert got.value == found[0].value == {"text": "old"}
    assert listed == [HERE]
    assert store.get(HERE, "a").value == {"text": "new"}


def test_of_several_puts_of_a_key_the_last_counts(store):
    store.put(HERE, "b", {"text": "b"})
    store.batch(
        [
            *(PutOp(HERE, "a", {"n": n}) for n in range(3)),
            PutOp(HERE, "b", {"n": 0}),
            PutOp(HERE, "b", None),
            PutOp(HERE, "c", None),
            PutOp(HERE, "c", {"n": 4}),
        ]
    )
    assert {item.key: item.value for item in store.search(HERE)} == {"a": {"n": 2}, "c": {"n": 4}}


def test_a_batch_whose_embeddings_fail_changes_nothing():
    def embed(texts):
        if any("new" in text for text in texts):
            raise RuntimeError("no model today")
        return [[1.0, 0.0] for _ in texts]

    index = {"dims": 2, "embed": embed, "fields": ["text"]}
    with MnemicStore.from_conn_string(":memory:", index=index) as store:
        store.put(HERE, "gone", {"text": "kept"})
        with pytest.raises(EmbeddingError, match="the embedder 'langgraph' failed"):
            store.batch([PutOp(HERE, "gone", None), PutOp(HERE, "a", {"text": "new"})])
        assert keys(store.search(HERE)) == ["gone"]


@pytest.mark.parametrize("bad", [{1, 2}, object(), 2**70, {1: "a"}, b"bytes", "\ud800"])
def test_what_cannot_be_json_is_a_type_error_as_in_the_other_stores(store, bad):
    with pytest.raises(TypeError):
        store.batch([PutOp(HERE, "a", {"n": 1}), PutOp(HERE, "b", {"n": bad})])
    assert store.search(()) == []


@pytest.mark.parametrize("bad", [2**60, "nul\0", [[[[]]]] * 2])
def test_other_refusals_are_value_errors(store, bad):
    value = bad
    for _ in range(70 if isinstance(bad, list) else 0):
        value = [value]
    with pytest.raises(ValueError, match="metadata"):
        store.put(HERE, "a", {"n": value})


def test_values_are_kept_as_json_has_them(store):
    moment = datetime(2026, 11, 29, tzinfo=UTC)
    given = {"at": moment, "id": UUID(int=1), "pair": (1, 2.5), "none": None, "nan": math.nan}
    store.put(HERE, "a", given)
    assert store.get(HERE, "a").value == {
        "at": "2026-11-29T00:00:00+00:00",
        "id": "00000000-0000-0000-0000-000000000001",
        "pair": [1, 2.5],
        "none": None,
        "nan": None,
    }
    store.get(HERE, "a").value["pair"].append(3)
    assert store.get(HERE, "a").value["pair"] == [1, 2.5]


VALUES = [
    {"n": 1, "text": "one", "user": {"name": "ann", "age": 30}, "in": 5, "a.b": 1},
    {"n": 2.5, "text": "two", "user": {"name": "bob", "in": 5}, "a": {"b": 1}},
    {"n": -3, "text": "three", "tags": ["x", "y"], "none": None, "a.b": None, "a": {"b": 2}},
    {"text": "four", "list": [{"n": 1}], "on": True},
]
FILTERS = [
    {"n": 1},
    {"n": {"$gt": 0}, "text": "two"},
    {"n": {"$gte": 1, "$lt": 2.5}},
    {"n": {"$lte": -3}},
    {"n": {"$ne": 1}},
    {"n": {"$eq": 2.5}},
    {"tags": ["x", "y"]},
    {"tags": ["y", "x"]},
    {"user": {"name": "ann"}},
    {"user": {"in": 5}},
    {"in": 5},
    {"none": None},
    {"missing": None},
    {"missing": {"$ne": 1}},
    {"text": "four"},
    {"on": True},
    {"list": [{"n": 1}]},
    {"n": {"$eq": math.nan}},
    {"n": {"$ne": math.inf}},
    {"n": {"$eq": -math.inf}},
]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_filters_find_what_the_store_in_memory_finds(store, wanted):
    reference = InMemoryStore()
    for one in (store, reference):
        for at, value in enumerate(VALUES):
            if "n" in value or not any(isinstance(v, dict) for v in wanted.values()):
                one.put(HERE, str(at), value)
    expected = sorted(keys(reference.search(HERE, filter=wanted)))
    assert sorted(keys(store.search(HERE, filter=wanted))) == expected
    assert sorted(keys(store.search(HERE, filter=wanted, query="one"))) == expected


def test_what_a_value_lacks_is_unequal_and_in_no_order(store):
    for at, value in enumerate(VALUES):
        store.put(HERE, str(at), value)
    assert keys(store.search(HERE, filter={"user": {"age": {"$gt": 20}, "name": "ann"}})) == ["0"]
    assert keys(store.search(HERE, filter={"user": {"age": {"$ne": 30}}})) == ["3", "2", "1"]


def test_a_name_with_dots_is_a_key_and_else_a_path(store):
    for at, value in enumerate(VALUES):
        store.put(HERE, str(at), value)
    assert sorted(keys(store.search(HERE, filter={"a.b": 1}))) == ["0", "1"]
    assert keys(store.search(HERE, filter={"a.b": 2})) == ["2"]
    assert sorted(keys(store.search(HERE, filter={"a.b": {"$ne": 1}}))) == ["2", "3"]
    assert keys(store.search(HERE, filter={"user.name": "bob"})) == ["1"]


@pytest.mark.parametrize("wanted", [{"n": {"$like": 1}}, {"n": {"$gt": 1, "foo": 2}}])
def test_an_unknown_operator_is_a_value_error(store, wanted):
    with pytest.raises(ValueError, match=r"operator"):
        store.search(HERE, filter=wanted)


@pytest.mark.parametrize("name", ["x') = '1' OR '1'='1", "a b", "$.n", "", "'", "\\", "metadata"])
def test_any_name_can_be_filtered_by(store, name):
    store.put(HERE, "a", {"n": 1})
    assert store.search(HERE, filter={name: 1}) == []
    store.put(HERE, "b", {name: 1})
    assert keys(store.search(HERE, filter={name: 1})) == ["b"]


LABELS = [
    "a",
    "a/",
    "a/b",
    "%2F",
    "%",
    "a%2Fb",
    "é",
    "日本",
    "*",
    "?",
    "\n",
    " ",
    "\x7f",
    '"',
    "\\",
]


def test_labels_are_kept_apart_exactly(store):
    namespaces = {(one, other) for one in LABELS for other in LABELS} | {(one,) for one in LABELS}
    store.batch([PutOp(namespace, "k", {"of": list(namespace)}) for namespace in namespaces])
    for label in LABELS:
        found = store.search((label,), limit=1000)
        assert {item.namespace for item in found} == {n for n in namespaces if n[0] == label}
        assert all(item.value["of"] == list(item.namespace) for item in found)
        assert store.get((label,), "k").value == {"of": [label]}
    assert set(store.list_namespaces(limit=1000)) == namespaces


def test_no_key_of_one_namespace_is_a_key_of_another(store):
    store.put(("a",), "b/c", {"n": 1})
    store.put(("a", "b"), "c", {"n": 2})
    store.put(("a",), "b\tc", {"n": 3})
    assert [store.get(("a",), "b/c").value, store.get(("a", "b"), "c").value] == [
        {"n": 1},
        {"n": 2},
    ]
    store.delete(("a",), "b/c")
    assert store.get(("a", "b"), "c").value == {"n": 2}


@pytest.mark.parametrize("namespace", [("a.b",), ("", "a"), (1,)])
def test_labels_of_every_operation_are_checked(store, namespace):
    condition = MatchCondition("suffix", namespace)
    for op in (
        GetOp(namespace, "k"),
        PutOp(namespace, "k", {}),
        PutOp(namespace, "k", None),
        SearchOp(namespace),
        ListNamespacesOp((condition,)),
    ):
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(HERE, "k", {}), op])
    assert store.list_namespaces() == []


def test_more_items_and_namespaces_than_one_call_of_the_memory_returns_are_found():
    with MnemicStore.from_conn_string(":memory:") as store:
        puts = [PutOp(("n", f"{n:05d}"), "k", {"n": n}) for n in range(10_050)]
        store.batch(puts)
        assert len(store.list_namespaces(limit=20_000)) == 10_050
        assert store.list_namespaces(limit=2, offset=10_048) == [("n", "10048"), ("n", "10049")]
        found = store.search((), limit=2_500, offset=8_000)
        assert len(found) == len({item.key + item.namespace[1] for item in found}) == 2_050
        assert store.search((), limit=0) == []


def test_items_are_listed_newest_first_and_keep_their_time_of_creation(store):
    for n in range(3):
        store.put(HERE, str(n), {"n": n})
    before = store.get(HERE, "0")
    store.put(HERE, "0", {"n": 9})
    after = store.get(HERE, "0")
    assert keys(store.search(HERE)) == ["2", "1", "0"]
    assert after.created_at == before.created_at < after.updated_at


def test_blank_and_long_queries_and_texts_are_no_errors(store):
    store.put(HERE, "blank", {"text": "  \n"})
    store.put(HERE, "a", {"text": "abc"})
    assert len(store.search(HERE, query=" \t")) == 2
    assert keys(store.search(HERE, query="abc" * 9_000)) == ["a", "blank"]
    assert store.search(HERE, query="abc")[0].score == pytest.approx(1)


def test_several_texts_of_an_item_are_found_each(store):
    store.put(HERE, "a", {"parts": [{"t": "xxx"}, {"t": "qqq"}]}, index=["parts[*].t"])
    store.put(HERE, "b", {"text": "qx"})
    store.put(HERE, "c", {"text": "xxx"}, index=False)
    for query in ("xxx", "qqq"):
        found = store.search(HERE, query=query)
        assert keys(found) == ["a", "b", "c"]
        assert found[0].score == pytest.approx(1, abs=1e-4)
        assert found[2].score is None


def test_coroutine_functions_embed_for_both_interfaces():
    async def embed(texts):
        await asyncio.sleep(0)
        return [[float(len(text)), 1.0] for text in texts]

    index = {"dims": 2, "embed": embed, "fields": ["text"]}
    with MnemicStore.from_conn_string(":memory:", index=index) as store:
        store.put(HERE, "a", {"text": "abc"})
        assert store.search(HERE, query="xyz")[0].score == pytest.approx(1)

        async def search():
            return await store.asearch(HERE, query="xyz")

        assert asyncio.run(search())[0].score == pytest.approx(1)


def test_plain_and_awaited_calls_share_one_store(tmp_path, index):
    async def run():
        async with AsyncMnemicStore.from_conn_string(str(tmp_path / "a.db"), index=index) as store:
            await store.aput(HERE, "a", {"text": "abc"})
            assert store.store.get(HERE, "a").value == {"text": "abc"}
            got = await asyncio.gather(*(store.aget(HERE, "a") for _ in range(50)))
            assert {item.value["text"] for item in got} == {"abc"}
            assert (await store.asearch(HERE, query="abc"))[0].key == "a"
            assert await asyncio.to_thread(store.get, HERE, "a") == got[0]

    asyncio.run(run())


def test_awaited_calls_take_no_thread_each(tmp_path):
    async def run():
        async with AsyncMnemicStore.from_conn_string(str(tmp_path / "a.db")) as store:
            await store.aput(HERE, "a", {"n": 1})
            before = threading.active_count()
            seen = []

            async def one(n):
                await store.store.aput(HERE, str(n), {"n": n})
                seen.append(threading.active_count())
                await store.store.aget(HERE, str(n))

            await asyncio.gather(*(one(n) for n in range(200)))
            assert max(seen) - before < 16

    asyncio.run(run())

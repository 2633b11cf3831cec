"""Records, scopes and conditions of the storage, and CrewAI's memory over it."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from unittest.mock import MagicMock

import pytest
from crewai.memory.storage import backend
from crewai.memory.storage.factory import resolve_memory_storage, set_memory_storage_factory
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from crewai_mnemic import MnemicStorage, install

import mnemic
from mnemic.errors import DimensionMismatchError, EmbeddingModelMismatchError, InvalidEntryError

NORTH, EAST = [1.0, 0.0], [0.0, 1.0]
UNFIT = getattr(
    backend,
    "EmbeddingDimensionMismatchError",  # CrewAI 1.14 has none
    (DimensionMismatchError, EmbeddingModelMismatchError),
)


@pytest.fixture
def storage(tmp_path):
    made = MnemicStorage(tmp_path / "memories.db")
    yield made
    made.close()


def record(content="tea", scope="/", **fields):
    return MemoryRecord(**{"content": content, "scope": scope, "embedding": NORTH} | fields)


def day(*parts):
    return datetime(*parts)  # noqa: DTZ001 - CrewAI's times have no zone


def contents(records):
    return sorted(each.content for each in records)


def found(storage, *args, **named):
    return contents(each for each, _ in storage.search(*args, **named))


def test_it_is_a_storage_of_crewai(storage):
    assert isinstance(storage, backend.StorageBackend)


def test_a_scope_has_what_is_below_it_and_no_other_that_begins_like_it(storage):
    storage.save(
        [record(scope.strip("/"), scope, categories=[scope]) for scope in ("/a", "/a/b", "/ab")]
    )
    assert found(storage, NORTH, scope_prefix="/a") == ["a", "a/b"]
    assert contents(storage.list_records("/a")) == ["a", "a/b"]
    assert storage.count("/a/") == 2
    assert storage.list_categories("/a") == {"/a": 1, "/a/b": 1}
    assert storage.list_scopes("/") == ["/a", "/ab"]
    info = storage.get_scope_info("/a")
    assert (info.path, info.record_count, info.child_scopes) == ("/a", 2, ["/a/b"])
    storage.reset("/a")
    assert contents(storage.list_records()) == ["ab"]


def test_deleting_a_scope_leaves_what_is_above_it(storage):
    storage.save([record("root", "/"), record("inner", "/a/b")])
    assert storage.delete(scope_prefix="/a") == 1
    assert contents(storage.list_records()) == ["root"]


def test_every_field_of_a_record_comes_back(storage):
    given = record(
        "The key is under the mat",
        "/home",
        id="o'brien: 1",
        categories=["secret", "home"],
        metadata={"a.b": {"in": [1, None, 2.5]}, "": "x", "$eq": True},
        importance=0.9,
        created_at=day(2026, 1, 2, 3, 4, 5, 6),
        last_accessed=day(2026, 2, 3),
        source="alice",
        private=True,
        embedding=[3.0, 4.0],
    )
    storage.save([given])
    assert storage.get_record("o'brien: 1") == given
    assert storage.list_records() == [given]
    [(hit, score)] = storage.search([6.0, 8.0])
    assert hit == given.model_copy(update={"embedding": None})
    assert score == pytest.approx(1)


def test_a_private_record_is_hidden_where_mnemic_shows_memories(storage, tmp_path):
    storage.save([record("The key is under the mat", private=True)])
    storage.close()
    with mnemic.Memory(
        tmp_path / "memories.db", "crewai", embedder=None, embedding_model="crewai"
    ) as memory:
        assert "mat" not in repr(memory.list()[0])


def test_a_time_with_a_zone_comes_back_in_utc_without_one(storage):
    storage.save([record(created_at=datetime(2026, 1, 1, tzinfo=UTC))])
    assert storage.list_records()[0].created_at == day(2026, 1, 1)
    assert storage.delete(older_than=day(2026, 1, 1)) == 0
    assert storage.delete(older_than=day(2026, 1, 1, 0, 0, 1)) == 1


def test_all_conditions_of_a_deletion_must_hold(storage):
    storage.save([record("one", "/a", id="1"), record("two", "/b", id="2", metadata={"n": 1})])
    assert storage.delete(scope_prefix="/a", record_ids=["2"]) == 0
    assert storage.delete(metadata_filter={"n": 1}, record_ids=["1"]) == 0
    assert storage.delete(categories=["none"], record_ids=["1"]) == 0
    assert storage.delete(record_ids=[]) == 0
    assert storage.delete(scope_prefix="/b", record_ids=["1", "2"], metadata_filter={"n": 1}) == 1
    assert storage.delete() == 1


def test_metadata_is_compared_by_value_whatever_the_key(storage):
    metadata = {"a.b": 1, "$gt": {"in": 5}, "list": [1, 2], "none": None}
    storage.save([record("yes", metadata=metadata), record("no", metadata={"a.b": 2})])
    for key, value in metadata.items():
        if key != "none":
            assert found(storage, NORTH, metadata_filter={key: value}) == ["yes"]
    assert found(storage, NORTH, metadata_filter={"none": None}) == ["no", "yes"]


def test_categories_limit_and_least_score_bound_a_search(storage):
    near, far = record("near", categories=["x", "y"]), record("far", embedding=EAST)
    storage.save([near, far])
    assert found(storage, NORTH, categories=["y", "z"]) == ["near"]
    assert found(storage, NORTH, limit=1) == ["near"]
    assert found(storage, NORTH, min_score=0.5) == ["near"]
    assert [score for _, score in storage.search([-1.0, 0.0])] == [0.0, 0.0]
    assert storage.search(NORTH, limit=0) == []
    assert storage.search([0.0, 0.0]) == []


def test_a_record_without_a_direction_is_kept_and_not_found_by_a_vector(storage):
    storage.save([record("none", embedding=None), record("zeros", embedding=[0.0, 0.0])])
    assert storage.search(NORTH) == []
    assert contents(storage.list_records()) == ["none", "zeros"]


def test_an_update_without_a_vector_keeps_that_of_the_same_text(storage):
    old = record(id="1")
    storage.save([old])
    storage.update(old.model_copy(update={"embedding": None, "importance": 1.0}))
    assert storage.get_record("1") == old.model_copy(update={"importance": 1.0})
    storage.update(record("coffee", id="1", embedding=EAST))
    assert found(storage, EAST, min_score=0.9) == ["coffee"]
    assert storage.count() == 1


def test_what_cannot_be_stored_leaves_what_was(storage):
    storage.save([record(id="1")])
    with pytest.raises(TypeError, match="not JSON serializable"):
        storage.save([record("new"), record("bad", metadata={"a": {1}})])
    with pytest.raises(InvalidEntryError):
        storage.save([record("new"), record("bad", scope="/a\nb")])
    assert contents(storage.list_records()) == ["tea"]


def test_a_vector_of_another_length_is_refused_by_crewais_error(storage):
    storage.save([record()])
    for call in (
        lambda: storage.save([record(embedding=[1.0, 2.0, 3.0])]),
        lambda: storage.search([1.0, 2.0, 3.0]),
        lambda: asyncio.run(storage.asave([record(embedding=[1.0])])),
        lambda: asyncio.run(storage.asearch([1.0])),
    ):
        with pytest.raises(UNFIT):
            call()
    with pytest.raises(UNFIT):
        MnemicStorage(":memory:").save([record(), record(embedding=[1.0])])
    storage.reset()
    storage.save([record(embedding=[1.0, 2.0, 3.0])])
    assert found(storage, [1.0, 2.0, 3.0]) == ["tea"]


def test_touching_renews_the_last_access(storage):
    storage.save([record(id="1", last_accessed=day(2020, 1, 1))])
    storage.touch_records(["1", "unknown"])
    assert storage.get_record("1").last_accessed > day(2026, 1, 1)


def test_lists_are_newest_first_and_longer_than_a_page(storage):
    start = day(2026, 1, 1)
    storage.save([record(str(at), created_at=start + timedelta(seconds=at)) for at in range(2100)])
    listed = [int(each.content) for each in storage.list_records(limit=5000, offset=50)]
    assert listed == list(range(2049, -1, -1))
    info = storage.get_scope_info("/")
    assert info.oldest_record == start
    assert info.newest_record == start + timedelta(seconds=2099)


def test_what_a_caller_changes_in_a_record_changes_no_other(storage):
    storage.save([record(metadata={"a": {"b": 1}})])
    storage.search(NORTH)[0][0].metadata["a"]["b"] = 2
    assert storage.search(NORTH)[0][0].metadata == {"a": {"b": 1}}


def test_first_calls_of_many_threads_share_one_memory():
    for _ in range(20):
        storage, ready = MnemicStorage(":memory:"), threading.Barrier(4)

        def save(name, storage=storage, ready=ready):
            ready.wait()
            storage.save([record(name)])

        threads = [threading.Thread(target=save, args=(str(at),)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert contents(storage.list_records()) == ["0", "1", "2", "3"]


def test_awaited_calls_do_what_plain_ones_do(storage):
    async def steps():
        await asyncio.gather(*(storage.asave([record(str(at), id=str(at))]) for at in range(50)))
        hits = await storage.asearch(NORTH, scope_prefix="/", limit=100)
        return contents(each for each, _ in hits), await storage.adelete(record_ids=["1", "2"])

    listed, deleted = asyncio.run(steps())
    assert listed == sorted(map(str, range(50)))
    assert (deleted, storage.count()) == (2, 48)


def test_a_closed_storage_takes_a_late_save(storage):
    storage.save([record("early")])
    storage.close()
    storage.save([record("late")])
    assert contents(storage.list_records()) == ["early", "late"]


def test_a_search_ends_while_another_thread_resets_everything(storage):
    storage.save([record(str(at)) for at in range(200)])
    errors = []

    def search():
        try:
            for _ in range(100):
                storage.search(NORTH)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the failure
            errors.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        storage.reset()
        storage.save([record()])
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.fixture
def _no_factory():
    yield
    set_memory_storage_factory(None)


@pytest.mark.usefixtures("_no_factory")
def test_installed_it_is_the_storage_of_every_memory(tmp_path):
    install(tmp_path / "crew.db", user_id="alice")
    default, named = resolve_memory_storage("lancedb"), resolve_memory_storage(str(tmp_path / "n"))
    assert resolve_memory_storage("qdrant-edge") is None
    default.save([record("default")])
    named.save([record("named")])
    assert contents(MnemicStorage(tmp_path / "crew.db", user_id="alice").list_records()) == [
        "default"
    ]
    assert MnemicStorage(tmp_path / "crew.db").list_records() == []
    assert (tmp_path / "n" / "mnemic.db").is_file()


def memory_of(storage):
    """CrewAI's memory, which needs no model where all fields of a memory are given."""
    texts = {"tea": NORTH, "rain": EAST}
    return Memory(
        storage=storage,
        llm=MagicMock(),
        embedder=lambda given: [texts.get(text.split()[0], [1.0, 1.0]) for text in given],
    )


def test_a_recall_weighs_likeness_importance_and_age(storage):
    old = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=365)
    storage.save(
        [
            record("tea old", created_at=old),
            record("tea important", importance=1.0),
            record("tea plain", importance=0.0),
        ]
    )
    memory = memory_of(storage)
    recalled = memory.recall("tea", depth="shallow")
    assert [match.record.content for match in recalled] == [
        "tea important",
        "tea plain",
        "tea old",
    ]
    assert recalled[0].score == pytest.approx(0.5 + 0.3 + 0.2, abs=0.01)
    assert all(each.last_accessed > old for each in storage.list_records())
    memory.close()


def test_a_private_memory_is_recalled_for_its_source_alone(storage):
    memory = memory_of(storage)
    fields = {"scope": "/x", "categories": ["c"], "importance": 0.5}
    memory.remember("tea with alice", source="alice", private=True, **fields)
    memory.remember("rain for all", **fields)

    def recalled(**who):
        return contents(each.record for each in memory.recall("tea", depth="shallow", **who))

    assert recalled() == ["rain for all"]
    assert recalled(source="bob") == ["rain for all"]
    assert recalled(source="alice") == ["rain for all", "tea with alice"]
    memory.close()


def test_metadata_comes_back_as_json_has_it(storage):
    storage.save([record(metadata={"pair": (1, 2)})])
    assert storage.list_records()[0].metadata == {"pair": [1, 2]}

"""Texts, ids, scopes and metadata of any kind: stored with the rest of their batch, or refused."""

import hostile
import pytest
from crewai.memory.types import MemoryRecord
from crewai_mnemic import MnemicStorage

NORTH = [1.0, 0.0]


@pytest.fixture
def storage():
    opened = MnemicStorage(":memory:")
    yield opened
    opened.close()


def record(name, **fields):
    return MemoryRecord(**{"id": name, "content": "tea", "embedding": NORTH} | fields)


def save(storage, name="middle", **fields):
    """Save one of three records, of which all are stored or none."""
    with hostile.refusals(TypeError, ValueError) as refused:
        storage.save([record("first"), record(name, **fields), record("last")])
    assert storage.count() == (0 if refused else 3)
    return refused


@hostile.texts
def test_a_text(storage, text):
    if not save(storage, content=text):
        assert storage.get_record("middle").content == text


@hostile.metadatas
def test_metadata(storage, metadata):
    try:
        record("middle", metadata=metadata)
    except ValueError:  # of pydantic
        return
    save(storage, metadata=metadata)
    with hostile.refusals():
        storage.search(NORTH, metadata_filter=metadata)


@hostile.names
@pytest.mark.parametrize("field", ["name", "scope", "source", "categories"])
def test_a_name(storage, field, name):
    refused = save(storage, **{field: [name] if field == "categories" else name})
    if field == "name":
        assert (storage.get_record(name) is None) == bool(refused)
        storage.touch_records([name])
        assert storage.delete(record_ids=[name]) == (0 if refused else 1)
    for call in (storage.list_records, storage.list_categories, storage.get_scope_info):
        with hostile.refusals():
            call(name)
    with hostile.refusals():
        storage.search(NORTH, scope_prefix=name, categories=[name])


@hostile.names
def test_a_user(name):
    with hostile.refusals() as refused:
        MnemicStorage(":memory:", user_id=name).save([record("only")])
    assert not refused or name != hostile.NAMES["quotes"]


@pytest.mark.parametrize(
    "vector", [[float("nan"), 1.0], [float("inf"), 0.0], [1e300, 0.0], [0.0] * 2, [1.0] * 40_000]
)
def test_a_vector(storage, vector):
    save(storage, embedding=vector)
    with hostile.refusals(ValueError):
        storage.search(vector)

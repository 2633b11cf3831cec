import copy
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import msgspec
import numpy as np
import pytest

from mnemic.errors import InvalidEntryError
from mnemic.model import MemoryEntry, MemoryStatus, MemoryType
from tests.support.clock import NOON

ID = UUID("01890000-0000-7000-8000-000000000001")


def entry(**fields):
    return MemoryEntry(
        **{"id": ID, "agent_id": "a", "content": "Lives in Oslo", "created_at": NOON, **fields}
    )


# MemoryEntry


def test_an_entry_with_the_required_fields_alone_has_the_documented_defaults():
    made = entry()
    assert made.importance == 0.5
    assert made.type is MemoryType.FACT
    assert made.type_name == "str"
    assert made.status is MemoryStatus.ACTIVE
    assert made.updated_at == made.created_at
    assert (made.tags, made.metadata, made.access_count, made.version) == ((), {}, 0, 1)
    assert not made.is_forgotten


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": ""}, "content cannot be empty"),
        ({"content": " \n\t"}, "content cannot be empty"),
        ({"content": None}, "content must be a str, got NoneType"),
        ({"content": "a\0b"}, "NUL character at index 1"),
        ({"content": "a\ud800b"}, "lone surrogate at index 1"),
        ({"content": "x" * (10 * 1024 * 1024 + 1)}, "larger than 10 MB"),
        ({"content": "é" * (5 * 1024 * 1024 + 1)}, "larger than 10 MB"),
        ({"agent_id": None}, "agent_id must be a str"),
        ({"agent_id": "a\n"}, "agent_id holds a control character"),
        ({"user_id": ""}, "user_id cannot be empty; leave it out"),
        ({"user_id": "a\nb"}, "user_id holds a control character"),
        ({"session_id": 7}, "session_id must be a str, got int"),
        ({"importance": 1.01}, "importance must be from 0 to 1"),
        ({"importance": -0.01}, "importance must be from 0 to 1"),
        ({"importance": float("nan")}, "importance must be from 0 to 1, got nan"),
        ({"importance": True}, "importance must be a number, got bool"),
        ({"importance": "high"}, "importance must be a number, got str"),
        ({"tags": "preference"}, "tags must be a list of str"),
        ({"tags": ["a\x07"]}, "a tag holds a control character"),
        ({"tags": ["a\x9b"]}, "a tag holds a control character"),
        ({"tags": [""]}, "a tag cannot be empty$"),
        ({"tags": [1]}, "a tag must be a str, got int"),
        ({"metadata": [1]}, "metadata must be a dict"),
        ({"metadata": {"n": 2**53 + 1}}, r"metadata\['n'\] is beyond ±2\*\*53"),
        ({"metadata": {"n": float("inf")}}, "only finite numbers"),
        ({"metadata": {"a": [{"b": {1, 2}}]}}, r"metadata\['a'\]\[0\]\['b'\] is a set"),
        ({"metadata": {1: "x"}}, "a key of metadata must be a str, got int"),
        ({"metadata": {"a": "\udfff"}}, "lone surrogate"),
        ({"created_at": "yesterday"}, "created_at is not an ISO 8601 time: 'yesterday'"),
        ({"created_at": 1_700_000_000}, "created_at must be a datetime, got int"),
        ({"created_at": None}, "leave agent_id out of a new one"),
        ({"id": None}, "leave agent_id out of a new one"),
        ({"created_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-2)))}, "years 1 to"),
        ({"position": -1}, "position must be at least 0"),
        ({"position": 2**63}, "position must be at least 0, and at most"),
        ({"position": 1.0}, "position must be an int, got float"),
        ({"version": 0}, "version must be at least 1"),
        ({"type": "opinion"}, "type 'opinion' is unknown; it is one of fact, event"),
        ({"type": 7}, "type 7 is unknown"),
        ({"status": 3}, "status 3 is unknown; it is one of active"),
        ({"type_name": "x" * 501}, "longer than 500"),
        ({"id": "not-a-uuid"}, "id is not a UUID: 'not-a-uuid'"),
        ({"id": 5}, "id must be a UUID or its text, got int"),
        ({"sensitive": "yes"}, "sensitive must be True or False"),
        ({"embedding": [1.0, float("nan")]}, "embedding holds NaN"),
        ({"embedding": [[[1.0]]]}, r"must have the shape \(d,\), or \(m, d\) .*, got \(1, 1, 1\)"),
        ({"embedding": []}, r"must have the shape .*, got \(0,\)"),
        ({"embedding": [[]]}, r"must have the shape .*, got \(1, 0\)"),
        ({"embedding": 1.0}, r"must have the shape .*, got \(\)"),
        ({"embedding": [[1.0]] * 257}, "embedding has 257 vectors; at most 256 fit"),
        ({"embedding": [[1.0], [2.0, 3.0]]}, "embedding must be an array or a list of numbers"),
        ({"embedding": [True, False]}, "embedding must be an array or a list of numbers"),
        ({"embedding": ["1", "2"]}, "embedding must be an array or a list of numbers"),
        ({"embedding": [1e39]}, "a number beyond 32 bits"),
        ({"embedding": "far"}, "embedding must be an array or a list of numbers, got a str"),
    ],
)
def test_a_field_out_of_range_is_refused_with_its_name_and_value(fields, message):
    with pytest.raises(InvalidEntryError, match=message):
        entry(**fields)


class GpuTensor:
    """What a tensor in the memory of a GPU does when numpy reads it."""

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def cpu(self):
        return self


@pytest.mark.parametrize("given", [GpuTensor(), [GpuTensor(), GpuTensor()]])
def test_a_tensor_that_numpy_cannot_read_is_refused_with_how_to_give_it(given):
    with pytest.raises(InvalidEntryError, match=r"tensor\.detach\(\)\.cpu\(\)\.float\(\)$"):
        entry(embedding=given)


def test_content_of_exactly_ten_megabytes_is_accepted():
    assert len(entry(content="x" * (10 * 1024 * 1024)).content) == 10 * 1024 * 1024


def test_metadata_deeper_than_64_levels_is_refused_and_64_are_not():
    def nested(levels):
        value = {}
        for _ in range(levels - 1):
            value = {"in": value}
        return value

    assert entry(metadata=nested(64)).metadata == nested(64)
    for value in (nested(65), {"a": _nested_list(70)}):
        with pytest.raises(InvalidEntryError, match="nested deeper than 64"):
            entry(metadata=value)


def _nested_list(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def test_times_become_utc_and_naive_ones_are_taken_to_be_utc():
    east = timezone(timedelta(hours=2))
    assert entry(created_at=datetime(2026, 5, 1, 14, tzinfo=east)).created_at == NOON
    naive = entry(created_at=datetime(2026, 5, 1, 12)).created_at  # noqa: DTZ001
    assert naive == NOON
    assert naive.tzinfo is UTC


def test_names_and_numbers_of_types_are_accepted():
    assert entry(type="Preference").type is MemoryType.PREFERENCE
    assert entry(type=4).type is MemoryType.CORRECTION
    assert entry(status="superseded").status is MemoryStatus.SUPERSEDED


def test_types_map_to_the_other_generations_names():
    assert MemoryType.CONVERSATION.kind == "EPISODIC"
    assert MemoryType.INSIGHT.kind == "SEMANTIC"
    assert MemoryType.PROCEDURAL.kind == "PROCEDURAL"
    assert MemoryType.CONVERSATION.payload_type == "message"
    assert MemoryType.EVENT.payload_type == "summary"
    assert MemoryType.PREFERENCE.payload_type == "fact"


def test_an_entry_cannot_be_changed_not_even_through_what_it_was_made_from():
    tags, metadata = ["a"], {"list": [1]}
    vector = np.ones(3, dtype=np.float32)
    made = entry(tags=tags, metadata=metadata, embedding=vector)
    tags.append("b")
    metadata["list"].append(2)
    vector[0] = 9
    assert made.tags == ("a",)
    assert made.metadata == {"list": [1]}
    assert made.embedding.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        made.embedding[0] = 2
    with pytest.raises(AttributeError):
        made.content = "else"


def test_the_embedding_is_outside_equality_hash_and_repr():
    bare, full = entry(), entry().with_embedding(np.ones(3), "m")
    assert bare == full
    assert hash(bare) == hash(full)
    assert "embedding" not in repr(full)
    assert full.embedding_model == "m"
    assert bare.embedding is None


def test_entries_that_differ_in_any_other_field_are_not_equal():
    assert entry() != entry(content="Lives in Bergen")
    assert entry() != entry(metadata={"a": 1})
    assert entry() != "Lives in Oslo"


def test_a_sensitive_entry_hides_content_tags_and_metadata_in_its_repr():
    shown = repr(entry(sensitive=True, tags=["health"], metadata={"pin": 1234}))
    assert "Oslo" not in shown
    assert "health" not in shown
    assert "1234" not in shown
    assert "<hidden>" in shown


def test_replacing_a_field_checks_it_again():
    with pytest.raises(InvalidEntryError, match="importance"):
        msgspec.structs.replace(entry(), importance=2)
    assert copy.deepcopy(entry()) == entry()

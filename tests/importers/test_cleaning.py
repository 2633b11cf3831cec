"""What of a source becomes a field, and what metadata."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from mnemic import MemoryType
from mnemic.importers.cleaning import REPAIRED, TOO_LARGE
from tests.importers.sources import one

ID = "0b1f6f3e-8a51-4c57-9f53-1d2f4f9b2a10"


def test_usual_names_become_fields_and_the_rest_metadata(bring, lines):
    row = {
        "memory": "Ana moved to Oslo",
        "id": ID,
        "user": "ana",
        "timestamp": 1_778_000_000,
        "labels": ["home"],
        "type": "Event",
        "importance": 0.9,
        "thread_id": "t-1",
        "score": 0.5,
        "metadata": {"sure": True},
    }
    _, stored = bring("jsonl", lines(row))
    entry = one(stored)
    assert (entry.content, entry.id, entry.user_id) == ("Ana moved to Oslo", UUID(ID), "ana")
    assert entry.created_at == datetime.fromtimestamp(1_778_000_000, UTC)
    assert (entry.tags, entry.type, entry.importance) == (("home",), MemoryType.EVENT, 0.9)
    assert (entry.session_id, entry.source) == ("t-1", "jsonl")
    assert entry.metadata == {"score": 0.5, "sure": True}


def test_what_cannot_be_a_field_stays_metadata(bring, lines):
    row = {"text": "x", "type": "note", "importance": 9, "tags": 3, "date": "soon", "position": -1}
    _, stored = bring("jsonl", lines(row))
    assert one(stored).metadata == {name: each for name, each in row.items() if name != "text"}


def test_text_and_user_may_stand_in_other_fields(bring, lines):
    row = {"words": {"en": "Rain"}, "who": [{"name": "ben"}], "user": "someone"}
    _, stored = bring("jsonl", lines(row), text_field="words.en", user_field="who.0.name")
    assert one(stored).user_id == "ben"
    assert one(stored).content == "Rain"


def test_an_empty_user_field_ignores_the_users_of_the_source(bring, lines):
    _, stored = bring("jsonl", lines({"text": "x", "user_id": "default"}), "ana", user_field="")
    assert (one(stored).user_id, one(stored).metadata) == ("ana", {"user_id": "default"})


def test_nul_and_half_characters_are_replaced_and_counted(bring, lines):
    report, stored = bring(
        "jsonl", lines({"text": "a\0b\ud800c", "note": "\ud83d\ude00", "x": "\0"})
    )
    assert one(stored).content == "a\ufffdb\ufffdc"
    assert one(stored).metadata == {"note": "😀", "x": "\ufffd"}
    assert report.lost[REPAIRED] == 2


def test_metadata_is_bounded_in_depth_and_number(bring, lines):
    deep = {"x": 1}
    for _ in range(200):
        deep = {"x": deep}
    wide = list(range(20_000))
    huge = 2**200
    report, stored = bring("jsonl", lines({"text": "x", "deep": deep, "wide": wide, "huge": huge}))
    assert report.lost[TOO_LARGE] >= 1
    metadata = one(stored).metadata
    assert metadata["wide"][:3] == [0, 1, 2]
    assert len(metadata["wide"]) < 20_000


TIMES = [
    *("0000-01-01", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "10000-01-01", "NaN", ""),
    *(-1e300, 1e300, float("inf"), 253402300800, -62135596801, 10**400, True, []),
]


@pytest.mark.parametrize("name", ["created_at", "updated_at", "expires_at"])
@pytest.mark.parametrize("time", TIMES)
def test_times_of_any_kind_are_times_or_none(bring, lines, name, time):
    assert bring("jsonl", lines({"text": "x", name: time}))[0].new == 1


def test_names_of_fields_may_be_of_any_length(check, lines):
    source = lines({"text": "x", "user": [1]})
    assert check("jsonl", source, user_field="." * 100_000).users == {"": 1}
    assert check("jsonl", source, user_field="user." + "9" * 5000).users == {"": 1}
    assert check("jsonl", source, user_field="user.0").users == {"1": 1}

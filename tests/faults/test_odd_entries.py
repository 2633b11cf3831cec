"""Odd memories through both doors: kept as they are, or refused with a clear error."""

import pytest

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.memory import Memory
from mnemic.model import MemoryEntry, MemoryEntryUpdate
from mnemic.threads.sync_bridge import run_sync
from tests.faults.workload import entry_of
from tests.support.embedders import WordEmbedder

KEY = "12345678-1234-4234-8234-123456789abc"
MOST = 10 * 1024 * 1024


@pytest.fixture(params=["plain", "asynchronous"])
def door(request, tmp_path):
    """Return functions that store, change, and reopen and read, through one of the doors."""
    path, is_plain = tmp_path / "a.db", request.param == "plain"
    memory = Memory(path, embedder=WordEmbedder())
    long_term = AsyncLongTermMemory(path, embedder=WordEmbedder())

    def store(**fields):
        if is_plain:
            return memory.add(**fields, id=KEY)
        base = entry_of(KEY, "base")
        given = {"id": KEY, "agent_id": "default", "created_at": base.created_at, **fields}
        return run_sync(long_term.store(MemoryEntry(**given)))

    def update(**fields):
        if is_plain:
            return memory.update(KEY, **fields)
        return run_sync(long_term.update(KEY, MemoryEntryUpdate(**fields)))

    def read():
        with Memory(path, embedder=WordEmbedder()) as again:
            entry = again.get(KEY)
            hits = again.search(entry.content[:1000], limit=5)
            assert entry in [hit.entry for hit in hits]
            return entry

    yield type("Door", (), {"store": store, "update": update, "read": read, "count": memory.count})
    memory.close()
    run_sync(long_term.close())


def nested(levels, kind):
    value = "leaf"
    for _ in range(levels):
        value = {"a": value} if kind == "dict" else [value]
    return value if kind == "dict" else {"a": value}


@pytest.mark.parametrize(
    "content",
    [
        "x" * MOST,
        "é" * (MOST // 2),
        "a\tb\r\nc\x01\x1f\x7f\x85\u2028\u202e",
        "e\u0301 \u00e9 \ufb01 \ufeff",
        "\U0001f9e0 \U0010ffff \ufffe",
        " leading and trailing \n",
        "'; DROP TABLE agent_memory_entries; --",
        "?" * 500,
        "x",
    ],
    ids=range(9),
)
def test_any_text_is_kept_as_it_is(door, content):
    door.store(content=content)
    assert door.read().content == content
    door.update(content=f"{content[:-1]}y")
    assert door.read().content == f"{content[:-1]}y"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x" * (MOST + 1), "larger than 10 MB"),
        ("é" * (MOST // 2) + "x", "larger than 10 MB"),
        ("", "cannot be empty"),
        (" \t\n\u2003\u3000", "cannot be empty"),
        ("half \ud800 a pair", "lone surrogate at index 5"),
        ("\udfff", "lone surrogate at index 0"),
        ("nul \0 here", "NUL character at index 4"),
        (b"bytes", "must be a str"),
        (None, "must be a str"),
        (5, "must be a str"),
    ],
    ids=range(10),
)
def test_what_is_no_text_is_refused_and_changes_nothing(door, content, message):
    with pytest.raises(InvalidEntryError, match=message):
        door.store(content=content)
    assert door.count() == 0
    door.store(content="before")
    if content is not None:
        with pytest.raises(InvalidArgumentError, match=message):
            door.update(content=content)
    assert door.read().content == "before"


def test_a_thousand_tags_are_kept_in_order(door):
    tags = tuple(f"tag {number} é" for number in range(1000))
    door.store(content="tagged", tags=tags)
    assert door.read().tags == tags
    door.update(add_tags=["one more"], remove_tags=["tag 0 é"])
    assert door.read().tags == (*tags[1:], "one more")


@pytest.mark.parametrize("tag", ["", "a\0b", "a\nb", "\ud800", 5, None])
def test_a_tag_that_is_no_name_is_refused(door, tag):
    with pytest.raises(InvalidEntryError):
        door.store(content="tagged", tags=[tag])
    assert door.count() == 0


@pytest.mark.parametrize("kind", ["dict", "list"])
def test_deep_metadata_is_kept_or_refused_at_a_stated_depth(door, kind):
    deepest = nested(63, kind)
    door.store(content="deep", metadata=deepest)
    assert door.read().metadata == deepest
    for levels in (65, 1000, 100_000):
        with pytest.raises(InvalidArgumentError, match="nested deeper than 64 levels"):
            door.update(metadata=nested(levels, kind))
    assert door.read().metadata == deepest


@pytest.mark.parametrize("levels", [65, 1000, 100_000])
def test_metadata_nested_too_deep_is_refused_when_storing(door, levels):
    with pytest.raises(InvalidEntryError, match="nested deeper than 64 levels"):
        door.store(content="deep", metadata=nested(levels, "dict"))
    assert door.count() == 0


def test_metadata_that_holds_itself_is_refused(door):
    metadata = {}
    metadata["self"] = metadata
    with pytest.raises(InvalidEntryError, match="nested deeper than 64 levels"):
        door.store(content="round", metadata=metadata)
    assert door.count() == 0


def test_large_metadata_is_kept(door):
    metadata = {
        f"key {number} é": {"text": "long " * 50, "list": [number, 0.1, None, True, "\u2028"]}
        for number in range(5000)
    }
    door.store(content="large", metadata=metadata)
    assert door.read().metadata == metadata


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53 + 1, "a\0b", "\ud800", b"x", {1: 2}, {"\ud800": 1}]
)
def test_metadata_that_json_cannot_hold_is_refused(door, value):
    with pytest.raises(InvalidEntryError, match="metadata"):
        door.store(content="odd", metadata={"key": value})
    assert door.count() == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user_id", ""),
        ("user_id", "a\0b"),
        ("project_id", "\ud800"),
        ("session_id", "line\nbreak"),
        ("role", 5),
        ("category", ""),
        ("source", "a\nb.md"),
    ],
)
def test_a_name_that_is_none_is_refused_with_the_name_of_its_field(door, field, value):
    with pytest.raises(InvalidArgumentError, match=field):
        door.store(content="odd", **{field: value})
    assert door.count() == 0

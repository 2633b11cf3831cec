"""What every store promises to whoever follows its changes."""

import time
from functools import partial

import msgspec
import numpy as np
import pytest

from mnemic.errors import EmbeddingModelMismatchError
from mnemic.model import MemoryEntryUpdate, MemoryType, Scope
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import (
    Add,
    AddEmbeddings,
    ChangedRows,
    RowsSince,
    SoftDelete,
    Update,
)
from tests.store.contract import (
    EVERYONE,
    Taken,
    added,
    changed,
    embedded,
    embedded_numbers,
    exported,
    living_numbers,
    record_of,
    records_of,
    rows_of,
    rows_since,
    seq_of,
    shown,
    state_of,
    vectors_in,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only


def changed_rows_since(store, seq, agent="a"):
    touched = store.read(ChangedRows(agent, seq))
    number_of = {row: number for number, row in rows_of(store, agent).items()}
    # What was deleted is known by its row, which is its number in these tests.
    return None if touched is None else sorted(number_of.get(row, row) for row in touched)


def given_vectors(store, contents, vectors, agent="a", model="m"):
    """Give the entries of these numbers the vectors of these contents."""
    rows = rows_of(store)
    given = {rows.get(number, 999): content for number, content in contents.items()}
    parts = [np.array([vector], dtype=np.float32) for vector in vectors]
    store.write(AddEmbeddings(agent, model, given, parts)).result()


@pytest.mark.parametrize("way", ["add", "update"])
def test_a_content_that_is_back_with_other_vectors_is_read_with_them(store, way):
    """An index that saw nothing between keeps vectors of the same content otherwise."""
    added(store, "a", [embedded(1)])
    rows_since(store, None)
    seq, first = store.position("a").seq, embedded(1)
    for content, vector in (("Another one", [1, 1]), (first.content, [0, 1])):
        own = np.array([vector], dtype=np.float32)
        new = msgspec.structs.replace(first, content=content, embedding=own[0])
        if way == "add":
            store.write(Add("a", [NewEntry(new)], now=NOON, on_conflict="replace")).result()
        else:
            given = {"now": NOON, "replace_vectors": True}
            change = MemoryEntryUpdate(content=content)
            applied = partial(MemoryEntryUpdate.applied_to, change, now=NOON)
            wanted = Update(Scope("a"), only(1), change=applied, embedded=("m", own), **given)
            store.write(wanted).result()
    batch = store.read(RowsSince("a", ("m", 2), seq))
    assert vectors_in(batch) == [[0, 1]]
    assert batch.removed == [rows_of(store)[1]]
    assert store.verify().ok


FULL = {
    "type": MemoryType.PREFERENCE,
    "importance": 0.75,
    "user_id": "u",
    "project_id": "p",
    "session_id": "s",
    "expires_at": NOON + HOUR,
    "updated_at": NOON + HOUR / 2,
    "last_accessed_at": NOON + HOUR / 4,
    "access_count": 3,
    "role": "user",
    "speaker": "Alice",
    "message_id": "m1",
    "position": 7,
    "category": "taste",
    "source": "notes/taste.md",
    "sensitive": True,
    "tags": ["one", "two"],
    "metadata": {"key": [1, None, "é"]},
}


def test_records_are_rows_with_the_columns_of_their_entries(store):
    first = [embedded(1, (1, 2), **FULL), embedded(2), numbered(3)]
    batch = added(store, "a", first).batch
    rows = rows_of(store)
    wanted = [record_of(rows[made.id.int], store.marked(made)) for made in first]
    for found in (batch, rows_since(store, None), rows_since(store, 0)):
        assert sorted(records_of(found)) == wanted
        assert shown(found)[3] == {rows[1]: (1, 2), rows[2]: (1, 0)}
        assert found.vectors.dtype == np.float32
    changed(store, 3, importance=0.25, content="new", metadata={"k": "v"}, add_tags=["t"])
    stored = {row: kept for row, kept, *_ in exported(store)}
    assert stored[rows[3]].content == "new"
    assert records_of(rows_since(store, 3)) == [record_of(rows[3], stored[rows[3]])]


def test_without_a_model_records_come_without_vectors(store):
    added(store, "a", [embedded(1), numbered(2)])
    for since in (None, 0):
        batch = rows_since(store, since, model=None)
        assert living_numbers(batch) == {1, 2}
        assert batch.embedded == []
        assert batch.vectors is None
    taken = Taken()
    assert rows_since(store, None, model=None, sink=taken).records == []
    assert (len(taken.records), taken.vectors) == (1, [])


def test_everything_may_be_taken_in_parts(store):
    added(store, "a", [embedded(at, (at, 1)) for at in range(5)])
    added(store, "b", [embedded(at, (at, 2), agent_id="b") for at in range(5)])
    added(store, "a", [numbered(9)])
    taken = Taken()
    batch = rows_since(store, None, sink=taken)
    assert (batch.since, batch.seq, batch.records, batch.removed) == (None, 6, [], [])
    assert (batch.embedded, batch.vectors) == ([], None)
    assert taken.order == sorted(taken.order)  # all records come before the first vector
    records = [record for part in taken.records for record in part]
    assert records == rows_since(store, None).records
    rows = np.concatenate([rows for rows, _ in taken.vectors])
    vectors = np.concatenate([part for _, part in taken.vectors])
    assert (rows.dtype, vectors.dtype) == (np.int64, np.float32)
    number_of = {row: number for number, row in rows_of(store).items()}
    assert [number_of[record[0]] for record in records] == [0, 1, 2, 3, 4, 9]
    by_number = {number_of[row]: tuple(vector) for row, vector in zip(rows, vectors, strict=True)}
    assert by_number == {at: (at, 1) for at in range(5)}


def test_what_follows_a_change_is_not_taken_in_parts(store):
    added(store, "a", [embedded(1)])
    added(store, "a", [embedded(2, (3, 4))])
    taken = Taken()
    batch = rows_since(store, 1, sink=taken)
    assert taken.order == []
    assert living_numbers(batch) == {2}
    assert batch.vectors.tolist() == [[3, 4]]


@pytest.mark.usefixtures("few_changes_are_kept")
def test_a_reader_behind_the_kept_changes_gets_everything(store):
    for at in range(20):
        added(store, "a", [embedded(at)])
    assert rows_since(store, 11).since is None
    assert embedded_numbers(rows_since(store, 11)) == set(range(20))
    assert changed_rows_since(store, 11) is None
    assert rows_since(store, 12).since == 12
    assert embedded_numbers(rows_since(store, 12)) == set(range(12, 20))
    assert changed_rows_since(store, 12) == list(range(12, 20))


@pytest.mark.usefixtures("few_changes_are_kept")
def test_changes_of_one_agent_push_out_none_of_another(store):
    added(store, "b", [embedded(1, agent_id="b")])
    for at in range(20):
        added(store, "a", [embedded(at)])
    assert changed_rows_since(store, 0, "b") == [1]
    assert rows_since(store, 0, "b").since == 0


def test_a_reader_ahead_of_all_changes_gets_everything(store):
    added(store, "a", [embedded(1)])
    assert changed_rows_since(store, 2) is None
    batch = rows_since(store, 2)
    assert (batch.since, batch.seq) == (None, 1)
    assert embedded_numbers(batch) == {1}


def test_one_call_brings_vectors_of_one_model(store):
    with pytest.raises(EmbeddingModelMismatchError, match="several models"):
        added(store, "a", [embedded(3), embedded(4, model="n")])
    assert seq_of(store) == 0


@pytest.mark.parametrize(("model", "dim"), [("n", 2), ("m", 3)])
def test_vectors_of_another_model_are_neither_given_nor_taken(store, model, dim):
    added(store, "a", [embedded(1), numbered(2)])
    before = state_of(store)
    for since in (None, 0):
        with pytest.raises(EmbeddingModelMismatchError, match="'a' has vectors of 'm' with 2"):
            rows_since(store, since, model=(model, dim))
    with pytest.raises(EmbeddingModelMismatchError):
        given_vectors(store, {2: "memory 2"}, [[1] * dim], model=model)
    assert state_of(store) == before


def test_one_who_follows_sees_the_writes_of_another_opening(stores):
    writer, reader = stores
    added(writer, "a", [embedded(1), embedded(2)])
    seq = rows_since(reader, None).seq
    added(writer, "a", [embedded(3)])
    writer.write(SoftDelete(EVERYONE, only(1), NOON)).result()
    batch = rows_since(reader, seq)
    assert (embedded_numbers(batch), batch.removed) == ({3}, [rows_of(reader)[1]])


@pytest.mark.parametrize("since", [None, 10**9])
def test_a_full_load_takes_longer_than_its_deadline(store, since):
    class Slow(Taken):
        def add_records(self, records):
            time.sleep(0.4)
            super().add_records(records)

    added(store, "a", [embedded(1), embedded(2)])
    taken = Slow()
    store.read(RowsSince("a", None, since, taken), deadline=time.monotonic() + 0.3)
    assert sum(map(len, taken.records)) == 2

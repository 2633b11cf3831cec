"""Shadow vectors in a file: damage, repair, erasure, and a kill in the midst of storing them."""

import os
import random
import signal
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from mnemic.errors import StoreCorruptError
from mnemic.model import Scope
from mnemic.model.filter import Criteria
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import (
    Add,
    AddShadowVectors,
    Delete,
    DropShadowVectors,
    EntriesByRow,
    Purge,
    RowsToEmbed,
    SoftDelete,
    SwitchModel,
    Update,
)
from mnemic.store.sqlite.shadow_vectors import SUM_BYTES, are_sound
from mnemic.store.sqlite.store import SqliteStore
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid
from tests.support.paths import FIXTURES
from tests.support.processes import ENVIRONMENT
from tests.support.sealing import run

pytestmark = pytest.mark.requirement("R339", "C115")

EVERYONE = Scope("a", all_users=True)


def vectors_of(number, chunks=1):
    """Return vectors whose bytes are found nowhere else."""
    chosen = np.random.default_rng(number + 1000)
    return chosen.standard_normal((chunks, 48)).astype(np.float32)


def filled(path, count=3):
    """Return a store of so many entries with shadow vectors; their rows are their numbers."""
    store = SqliteStore(path)
    entries = [numbered(number) for number in range(1, count + 1)]
    store.write(Add("a", [NewEntry(entry) for entry in entries], now=NOON)).result()
    for number, entry in enumerate(entries, start=1):
        keep(store, number, entry)
    return store


def keep(store, number, entry, model="other"):
    given = {number: vectors_of(number, 1 + number % 2)}
    return store.write(AddShadowVectors("a", model, {number: entry}, given)).result()


def held(store, model="other"):
    """Return the sound vectors of a model by row, as a change of the model reads them."""
    name, found = f"\x1f{model}", {}
    sql = (
        "SELECT entry_row, embedding FROM agent_memory_embeddings WHERE model = ? "
        "ORDER BY entry_row, part"
    )
    for row, blob in run(store.path, sql, name):
        found.setdefault(row, []).append(blob)
    return {
        row: np.stack([np.frombuffer(blob[:-SUM_BYTES], "<f4") for blob in blobs])
        for row, blobs in found.items()
        if are_sound(name, {row: blobs}) and len(blobs[0]) == 4 * 48 + SUM_BYTES
    }


DAMAGE = [
    "UPDATE agent_memory_embeddings SET embedding = zeroblob(200) WHERE entry_row = 2",
    "UPDATE agent_memory_embeddings SET embedding = zeroblob(7) WHERE entry_row = 2",
    "UPDATE agent_memory_embeddings SET embedding = x'' WHERE entry_row = 2",
    (
        "UPDATE agent_memory_embeddings SET embedding = (SELECT embedding FROM "
        "agent_memory_embeddings WHERE entry_row = 4) WHERE entry_row = 2"
    ),
    "DELETE FROM agent_memory_embeddings WHERE entry_row = 3 AND part = 1",
    "DELETE FROM agent_memory_embeddings WHERE entry_row = 3 AND part = 0",
    "UPDATE agent_memory_embeddings SET part = 1 - part + 10 WHERE entry_row = 3",
    "UPDATE agent_memory_embeddings SET model = char(31) || 'third' WHERE entry_row = 2",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_vectors_are_missing_found_by_verify_and_dropped_by_repair(tmp_path, damage):
    path = tmp_path / "a.db"
    filled(path, 4).close()
    run(path, damage)
    damaged = 2 if "entry_row = 2" in damage else 3
    store = SqliteStore(path)
    try:
        model = "third" if "third" in damage else "other"
        found = held(store, model)
        assert damaged not in found
        for row, vectors in found.items():
            np.testing.assert_array_equal(vectors, vectors_of(row, 1 + row % 2))
        if model == "other" and set(store.read(RowsToEmbed("a", ("other", 48), 0, 9))) == set():
            with pytest.raises(StoreCorruptError, match="repair"):
                store.write(SwitchModel("a", ("other", 48))).result()
        (problem,) = store.verify().problems
        assert (problem.row, problem.id) == (damaged, uid(damaged))
        store.verify(repair=True)
        assert store.verify().ok
        assert set(held(store)) == {1, 2, 3, 4} - {damaged}
    finally:
        store.close()


@pytest.mark.parametrize("bit", range(0, 200 * 8, 37))
def test_any_changed_bit_shows(tmp_path, bit):
    path = tmp_path / "a.db"
    filled(path, 2).close()
    (blob,) = run(path, "SELECT embedding FROM agent_memory_embeddings WHERE entry_row = 2")[0]
    changed = bytearray(blob)
    changed[bit // 8] ^= 1 << bit % 8
    sql = "UPDATE agent_memory_embeddings SET embedding = ? WHERE entry_row = 2"
    run(path, sql, bytes(changed))
    store = SqliteStore(path)
    try:
        assert set(held(store)) == {1}
        assert [problem.row for problem in store.verify().problems] == [2]
    finally:
        store.close()


def test_a_damaged_vector_is_replaced_by_the_next_one(tmp_path):
    path = tmp_path / "a.db"
    store = filled(path)
    run(path, "UPDATE agent_memory_embeddings SET embedding = zeroblob(200)")
    assert held(store) == {}
    keep(store, 2, numbered(2))
    np.testing.assert_array_equal(held(store)[2], vectors_of(2))
    store.close()


@pytest.mark.parametrize("version", [1, 5])
def test_memories_of_an_earlier_version_with_them_get_the_sums_of_their_own_alone(
    tmp_path, version
):
    path = tmp_path / "a.db"
    path.write_bytes((FIXTURES / f"store_v{version}.db").read_bytes())
    store = SqliteStore(path)
    try:
        for agent_id, row in run(path, "SELECT agent_id, row FROM agent_memory_entries"):
            scope = Scope(agent_id, all_users=True)
            entry = store.read(EntriesByRow(scope, [row], now=NOON, include_deleted=True))[row]
            given = {row: vectors_of(row)}
            store.write(AddShadowVectors(agent_id, "other", {row: entry}, given)).result()
        assert store.verify(repair=True).ok
        report = store.verify()
        assert report.ok
        assert report.without_sums == 0
    finally:
        store.close()


# Erasure


def left(folder, numbers):
    """Return those numbers whose vectors are in any file of a folder, whole or in part."""
    data = b"".join(path.read_bytes() for path in folder.iterdir())
    return [number for number in numbers if any(part in data for part in parts_of(number))]


def parts_of(number):
    blobs = [vector.tobytes() for vector in vectors_of(number, 1 + number % 2)]
    return [blob[at : at + 24] for blob in blobs for at in range(0, len(blob) - 24, 24)]


@pytest.mark.parametrize("way", ["delete", "delete_all", "purge", "update", "replace"])
def test_nothing_of_the_vectors_of_what_is_deleted_or_changed_is_left(tmp_path, way):
    store = filled(tmp_path / "a.db", 60)
    gone = range(10, 30)
    assert left(tmp_path, range(1, 61)) == list(range(1, 61))
    for number in gone:
        if way == "delete":
            store.write(Delete(EVERYONE, only(number))).result()
        elif way == "delete_all":
            store.write(Delete(EVERYONE, Criteria([uid(number)]))).result()
        elif way == "purge":
            store.write(SoftDelete(EVERYONE, only(number), NOON)).result()
        elif way == "update":
            store.write(Update(EVERYONE, only(number), change=with_new_content, now=NOON)).result()
        else:
            new = NewEntry(numbered(number, content="new"))
            store.write(Add("a", [new], now=NOON, on_conflict="replace")).result()
    if way == "purge":
        store.write(Purge(EVERYONE, NOON.replace(year=2100))).result()
    assert store.erase().result()
    assert left(tmp_path, gone) == []
    assert left(tmp_path, range(1, 61)) == [*range(1, 10), *range(30, 61)]
    assert store.verify().ok
    store.close()


def with_new_content(entry):
    return msgspec.structs.replace(entry, content="new")


def test_nothing_of_dropped_vectors_is_left_once_the_file_is_erased(tmp_path):
    store = filled(tmp_path / "a.db", 40)
    store.write(DropShadowVectors("a", "other")).result()
    assert store.erase().result()
    assert left(tmp_path, range(1, 41)) == []
    store.close()


# A kill

KILLED = """
import sys
from mnemic.store.operations import AddShadowVectors, DropShadowVectors, EntriesByRow
from mnemic.store.sqlite.store import SqliteStore
from tests.store.sqlite.test_shadow_vectors import NOON, EVERYONE, numbered, vectors_of

store = SqliteStore(sys.argv[1])
entries = store.read(EntriesByRow(EVERYONE, range(1, 41), NOON))
for turn in range(1_000_000):
    for begin in range(1, 41, 10):
        some = {row: entries[row] for row in range(begin, begin + 10)}
        vectors = {row: vectors_of(row, 2) for row in some}
        store.write(AddShadowVectors("a", f"m{turn % 3}", some, vectors)).result()
        print("stored", flush=True)
    store.write(DropShadowVectors("a", f"m{(turn + 1) % 3}")).result()
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_leaves_the_vectors_of_each_write_whole(tmp_path, seed):
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    entries = [NewEntry(numbered(number)) for number in range(1, 41)]
    store.write(Add("a", entries, now=NOON)).result()
    store.close()
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        for _ in range(random.Random(seed).randint(1, 40)):  # noqa: S311 - a fixed choice
            assert child.stdout.readline() == b"stored\n"
        os.kill(child.pid, signal.SIGKILL)
    store = SqliteStore(path)
    try:
        assert store.verify().ok
        for model in ("m0", "m1", "m2"):
            found = held(store, model)
            assert len(found) == 40 - len(store.read(RowsToEmbed("a", (model, 48), 0, 99)))
            assert len(found) % 10 == 0
            for row, vectors in found.items():
                np.testing.assert_array_equal(vectors, vectors_of(row, 2))
    finally:
        store.close()

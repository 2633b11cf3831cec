"""Damage of every kind at every page: right answers or a typed error that says what to do.

What no error can tell: a file cut to nothing, and commits missing from the end of the log, which
look like commits that were never made. test_silent_damage.py changes bytes at random.
"""

import math
import os
import random
from contextlib import closing

import apsw
import numpy as np
import pytest

from mnemic.errors import MnemicError
from mnemic.memory import Memory
from tests.faults.damage import USER, make, outcome, tally, with_log
from tests.support.embedders import WordEmbedder

PAGE = 4096
SEED = 20260501
ADVICE = "damaged; keep it, and restore a backup"
ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make(tmp_path_factory.mktemp("whole") / "a.db")


@pytest.fixture
def choose():
    return random.Random(SEED)  # noqa: S311 - not a secret


def replaced(data, at, piece):
    return data[:at] + piece + data[at + len(piece) :]


def pages(data):
    assert len(data) % PAGE == 0
    return range(0, len(data), PAGE)


def test_a_page_of_zeros_is_harmless_or_refused(tmp_path, whole):
    data, ids, expected = whole
    damaged = (replaced(data, at, bytes(PAGE)) for at in pages(data))
    outcomes = tally(tmp_path / "a.db", damaged, ids, expected)
    assert outcomes.keys() <= {"right", "refused"}
    assert outcomes["refused"] > 20


def test_a_page_of_rubbish_is_harmless_or_refused(tmp_path, whole, choose):
    data, ids, expected = whole
    damaged = (replaced(data, at, choose.randbytes(PAGE)) for at in pages(data))
    outcomes = tally(tmp_path / "a.db", damaged, ids, expected)
    assert outcomes.keys() <= {"right", "refused"}
    assert outcomes["refused"] > 20


def test_a_lost_sector_is_harmless_or_refused(tmp_path, whole, choose):
    data, ids, expected = whole
    starts = [at for at in range(0, len(data), 512) if ROUNDS or choose.random() < 0.15]
    damaged = (replaced(data, at, bytes(512)) for at in starts)
    outcomes = tally(tmp_path / "a.db", damaged, ids, expected)
    wrong = sum(outcomes.values()) - outcomes["right"] - outcomes["refused"]
    assert wrong <= 0.1 * sum(outcomes.values()), outcomes  # vectors of zeros, lost index pages
    assert outcomes["refused"] > 10


def test_a_file_cut_anywhere_is_refused(tmp_path, whole, choose):
    data, ids, expected = whole
    # SQLite takes a single byte for nothing, and fills a page that was cut off with zeros, which
    # may be the last part of a vector.
    sizes = [2, 99, 100, 511, 512, *pages(data)[1:]]
    sizes += [choose.randrange(2, len(data) - PAGE) for _ in range(20 + 10 * ROUNDS)]
    outcomes = tally(tmp_path / "a.db", (data[:size] for size in sizes), ids, expected)
    assert outcomes == {"refused": len(sizes)}


def test_changed_bytes_give_answers_or_a_typed_error_and_nothing_else(tmp_path, whole, choose):
    data, ids, expected = whole
    places = [(at, choose.randrange(PAGE)) for at in pages(data) for _ in range(1 + ROUNDS)]
    # The header of the file, and of each page, is what SQLite trusts most.
    places += [(0, at) for at in range(0, 110, 1 if ROUNDS else 5)]
    places += [(at, choose.randrange(12)) for at in pages(data)]
    damaged = (replaced(data, at + offset, choose.randbytes(1)) for at, offset in places)
    outcomes = tally(tmp_path / "a.db", damaged, ids, expected)
    assert {outcome for outcome in outcomes if not outcome.startswith("wrong ")} == {
        "right",
        "refused",
    }
    assert outcomes["refused"] > 10


def test_a_file_that_is_not_damaged_gives_the_right_answers(tmp_path, whole):
    data, ids, expected = whole
    assert tally(tmp_path / "a.db", [data], ids, expected) == {"right": 1}
    changed = data.replace(b"fact1 ", b"fact9 ")
    assert changed != data
    assert tally(tmp_path / "a.db", [changed], ids, expected) == {"refused": 1}


@pytest.mark.parametrize("how", ["rubbish", "zeros", "cut", "bit"])
def test_a_damaged_log_gives_the_memories_before_the_damage_and_no_half_ones(tmp_path, choose, how):
    data, log, ids = with_log(tmp_path / "made.db")
    path, seen = tmp_path / "a.db", set()
    for _ in range(12 + ROUNDS):
        at = choose.randrange(len(log))
        damaged = {
            "rubbish": replaced(log, at, choose.randbytes(min(5000, len(log) - at))),
            "zeros": replaced(log, at, bytes(min(5000, len(log) - at))),
            "cut": log[:at],
            "bit": replaced(log, at, bytes([log[at] ^ 1 << choose.randrange(8)])),
        }[how]
        path.write_bytes(data)
        path.with_name("a.db-wal").write_bytes(damaged)
        with Memory(path, embedder=WordEmbedder()) as memory:
            hits = memory.search("fact", user_id=USER, limit=100)
            found = {hit.id for hit in hits}
            assert found == set(ids[: len(found)])
            assert {hit.content for hit in hits} == {f"fact{n} " * 90 for n in range(len(found))}
            memory.add("written afterwards", user_id=USER)
            assert memory.count(user_id=USER) == len(found) + 1
        seen.add(len(found))
        path.unlink()
    assert len(seen) > 4


def test_the_log_of_another_file_is_passed_over(tmp_path, whole):
    data, ids, expected = whole
    _, log, _ = with_log(tmp_path / "other.db")
    path = tmp_path / "a.db"
    path.write_bytes(data)
    path.with_name("a.db-wal").write_bytes(replaced(log, 16, b"not its salt, at"))
    assert outcome(path, ids, expected) == "right"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("memory_type", 99),
        ("created_at", 2**62),
        ("created_at", -(2**62)),
        ("tags", "not json"),
        ("tags", "5"),
        ("metadata", "[1"),
        ("content", "cut off \0\0\0"),
        ("content", b"\xff\xfe"),
        ("supersedes", b"short"),
        ("importance", math.inf),
        ("importance", -0.5),
        ("access_count", -1),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_a_value_that_cannot_have_been_stored_is_reported_as_damage(
    tmp_path, column, value, is_open
):
    path = tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        added = memory.add("a memory", tags=["t"])
        with closing(apsw.Connection(str(path))) as connection:  # that no trigger watches
            cast = "CAST(? AS TEXT)" if column == "content" else "?"
            sql = f"UPDATE agent_memory_entries SET {column} = {cast}"  # noqa: S608 - constants
            connection.execute(sql, (value,))
        for call in (lambda: memory.search("memory"), lambda: memory.get(added.id)):
            if is_open:
                with pytest.raises(MnemicError, match=ADVICE):
                    call()
    if not is_open:
        with pytest.raises(MnemicError, match=ADVICE):
            opened_and_searched(path)


@pytest.mark.parametrize(("column", "value"), [("id", b"short"), ("memory_type", -1)])
@pytest.mark.parametrize("embedder", [None, WordEmbedder()])
def test_a_value_that_no_index_can_take_is_reported_as_damage(tmp_path, column, value, embedder):
    path = tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.add("a memory")
        with memory._repository._store._connections._held() as connection:
            sql = f"UPDATE agent_memory_entries SET {column} = ?"  # noqa: S608 - constants
            connection.execute(sql, (value,))
    with pytest.raises(MnemicError, match=ADVICE):
        opened_and_searched(path, embedder)


def test_a_vector_with_a_component_that_is_no_number_is_reported_as_damage(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.add_many(["a memory", "another"])
        with memory._repository._store._connections._held() as connection:
            sql = "UPDATE agent_memory_embeddings SET embedding = ? WHERE entry_row = 2"
            connection.execute(sql, (np.full(64, np.nan, dtype="<f4").tobytes(),))
    with pytest.raises(MnemicError, match=ADVICE):
        opened_and_searched(path)


def opened_and_searched(path, embedder=WordEmbedder()):  # noqa: B008 - it only counts texts
    with Memory(path, embedder=embedder) as memory:
        return memory.search("a memory")

"""The notes, checks and figures of the HyDE engine's benchmarks; nothing is timed here."""

import asyncio
import importlib

import numpy as np
import pytest

from benches import hyde
from mnemic import LinkType

ROWS = 200


@pytest.fixture
def stopwatch():
    return hyde.Stopwatch()


@pytest.fixture
def memory(path, stopwatch):
    with hyde.filled(path, ROWS, 2, "clustered", stopwatch) as filled:
        yield filled


def test_each_note_is_linked_to_two_earlier_ones_of_its_user(memory):
    view = memory.scoped(user_id="user 1")
    notes = {one.id: int(one.content.rsplit(" ", 1)[1]) for one in view.list(limit=ROWS)}
    assert sorted(notes.values()) == list(range(1, ROWS, 2))
    last = max(notes, key=notes.__getitem__)
    links = view.links(last, direction="out")
    assert sorted(notes[link.to_id] for link in links) == [ROWS - 7, ROWS - 3]
    assert {link.type for link in links} == {LinkType.RELATED}


def test_a_turn_has_found_and_linked_memories_of_its_user_at_both_doors(memory, stopwatch):
    engine = hyde.engine_of(memory, stopwatch)

    async def turn():
        return await hyde.timed_turn(engine, stopwatch, "a turn")

    with engine.sync as plain:
        assert plain.ready(60)
        seconds, memories = asyncio.run(turn())
        assert seconds > 0
        _, plain_memories = hyde.timed_plain_turn(plain, stopwatch, "another turn")
    for found in (memories, plain_memories):
        assert {one.memory.user_id for one in hyde.checked(found, ROWS // 2)} == {hyde.USER}
    assert stopwatch.seconds > 0


def test_a_turn_without_links_is_no_turn_to_be_timed(memory, stopwatch):
    with hyde.engine_of(memory, stopwatch, retrieval_hop_depth=0).sync as engine:
        assert engine.ready(60)
        with pytest.raises(AssertionError):
            hyde.checked(engine.retrieve("a turn", hyde.WINDOW), ROWS // 2)


def test_each_turn_has_hypotheses_and_vectors_of_its_own(stopwatch):
    model = hyde.Model(stopwatch)
    first, second = (asyncio.run(model.complete("", system="a system")) for _ in range(2))
    texts = first.split("\n")
    assert len(texts) == hyde.HYPOTHESES
    assert not set(texts) & set(second.split("\n"))
    vectors = hyde.Vectors(ROWS, "clustered", stopwatch)
    assert len(np.unique(vectors.embed(texts), axis=0)) == hyde.HYPOTHESES
    assert (vectors.embed(["The note, number 7"])[0] == vectors.rows[7]).all()


def test_a_stopwatch_counts_the_calls_alone(stopwatch, monkeypatch):
    times = iter([1.0, 3.0, 10.0, 14.0])
    monkeypatch.setattr(hyde.clock, "now", lambda: next(times))
    for _ in range(2):
        with stopwatch.running():
            pass
    assert stopwatch.seconds == 6.0


def test_a_start_reads_the_stored_vectors(path, monkeypatch):
    monkeypatch.setattr(hyde, "BUILT", ROWS)
    monkeypatch.setattr(hyde, "rows_of", lambda _kind, count: hyde_rows(count))
    monkeypatch.setattr(hyde, "queries_of", lambda _kind, rows, _count: rows[:10])
    hyde.filled(path, ROWS).close()
    vectors = hyde.Vectors(ROWS)
    assert hyde.opened(path, vectors) > 0
    assert len(hyde.built_anew(path, vectors)) == 5


def hyde_rows(count):
    rows = np.random.default_rng(1).standard_normal((count, 8), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_turns_end_at_their_deadline_though_the_embedder_hangs(memory, stopwatch, monkeypatch):
    monkeypatch.setattr(hyde, "TIMEOUT", 0.05)
    monkeypatch.setattr(hyde, "HANGING_TURNS", 2)
    embedder = hyde.Hanging(memory.embedder)
    late = hyde.lateness(memory, embedder, hyde.Model(stopwatch))
    assert len(late) == 2
    assert min(late) > -0.05


@pytest.mark.parametrize("name", ["benches.suite.test_hyde", "benches.asv.hyde"])
def test_the_rows_of_the_suites_can_be_loaded(name):
    pytest.importorskip("pytest_benchmark")
    importlib.import_module(name)


def test_turns_at_once_have_hypotheses_each_and_calls_of_one_turn_share_them(memory, stopwatch):
    model = hyde.Model(stopwatch)

    async def run():
        async with hyde.engine_of(memory, stopwatch, model) as engine:
            _, turns = await hyde.at_once(engine, ["one", "two", "two"])
            return turns

    one, two, again = asyncio.run(run())
    assert hyde.checked(one, ROWS // 2)
    assert two == again
    assert model.calls == 2

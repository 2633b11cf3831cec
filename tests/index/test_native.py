"""Promises of the index by itself; the store behind it checks users and agents once more."""

import threading

import pytest

from mnemic.errors import StoreCorruptError
from mnemic.index import NativeIndex
from mnemic.index.native import MAX_DEFERRED, MAX_PENDING
from mnemic.model import KEYWORD, Ranking, Scope, Weights
from mnemic.model.ranking import MOST_IMPORTANT
from tests.support.rows import NOW, batch, rank, record, rows_found, wanted
from tests.support.threads import run_together

AGENT = Scope("a")
BY_WORDS = {"query": None, "ranking": KEYWORD}
EVERYTHING = Ranking(similarity=0.5, weights=Weights(relevance=0.5, importance=0.5))


def index(*records, **options):
    made = NativeIndex(2)
    assert made.apply(batch(records, **options))
    return made


def similarities(of, scope=AGENT):
    """Return the similarity of each row that has a vector to the first axis."""
    found = rank(of, wanted(scope)).ranked
    return {ranked.row: ranked.components["similarity"] for ranked in found}


def importances(of):
    found = rank(of, wanted(AGENT, query=None, ranking=MOST_IMPORTANT)).ranked
    return {ranked.row: ranked.components["importance"] for ranked in found}


# What is ranked


def test_a_search_leaves_out_what_has_expired_at_its_own_time():
    made = index(record(1, expires_at=100), record(2, expires_at=50), record(3))
    assert len(made) == 3
    for now, rows in [(49, [1, 2, 3]), (50, [1, 3]), (99, [1, 3]), (100, [3]), (70, [1, 3])]:
        assert rows_found(made, AGENT, now=now) == rows
    assert len(made) == 3


# What follows


def test_a_batch_from_before_is_refused_and_changes_nothing():
    made = index(record(1))
    assert not made.apply(batch([record(9)], since=0, seq=5))
    assert made.seq == 1
    assert rows_found(made, AGENT) == [1]


def test_an_index_that_was_not_loaded_refuses_changes():
    made = NativeIndex(2)
    assert not made.apply(batch([record(1)], since=0, seq=1))
    assert (made.seq, len(made)) == (None, 0)


def test_batches_that_waited_are_dropped_when_the_store_was_read_beyond_them():
    made = index(record(1))
    assert made.apply(batch([record(9)], since=3, seq=4))
    assert made.apply(batch([record(2), record(9)], since=1, seq=5))
    assert made.apply(batch(since=5, seq=6, removed=[9]))
    assert (made.seq, rows_found(made, AGENT)) == (6, [1, 2])
    assert made.apply(batch([record(4)], since=8, seq=9))
    assert made.apply(batch([record(5)], seq=20))
    assert (made.seq, rows_found(made, AGENT)) == (20, [5])


def test_no_more_than_so_many_batches_wait():
    made = index(record(1))
    assert all(
        made.apply(batch(since=since, seq=since + 1)) for since in range(2, 2 + MAX_DEFERRED)
    )
    assert not made.apply(batch(since=1000, seq=1001))


def test_what_comes_and_goes_between_two_searches_is_taken_in_as_it_ended():
    made = index(record(1, "alice"), record(2))
    made.apply(batch([record(3), record(4)], since=1, seq=2))
    made.apply(batch(since=2, seq=3, removed=[3, 2]))
    made.apply(batch([record(4, "alice"), record(2)], since=3, seq=4))
    assert rows_found(made, AGENT) == [2]
    assert rows_found(made, Scope("a", "alice")) == [1, 4]
    many = [record(row) for row in range(10, 10 + 2 * MAX_PENDING)]
    for at, one in enumerate(many):
        made.apply(batch([one], since=4 + at, seq=5 + at))
    assert len(made) == 3 + len(many)
    assert len(rows_found(made, AGENT, 1000)) == 1 + len(many)


def test_a_whole_batch_replaces_everything():
    made = index(record(1), record(2))
    assert made.apply(batch([record(3)], since=1, seq=2))
    assert made.apply(batch([record(7)], seq=9))
    assert made.seq == 9
    assert rows_found(made, AGENT) == [7]
    assert NativeIndex(2).seq is None


# Vectors and contents


@pytest.mark.parametrize("is_searched_between", [False, True])
def test_of_changes_between_two_searches_a_vector_stays_while_the_content_does(is_searched_between):
    made = index(record(1, content="a cat"), vectors={1: (1, 0)})
    steps = [("a dog", {1: (0, 1)}, [1]), ("a dog", {}, [1]), ("a cat", {}, []), ("a cat", {}, [])]
    for seq, (content, vectors, embedded) in enumerate(steps, start=2):
        changed = record(1, content=content, importance=seq / 10)
        assert made.apply(batch([changed], since=seq - 1, seq=seq, vectors=vectors))
        if is_searched_between:
            assert list(similarities(made)) == embedded
    assert similarities(made) == {}
    assert made.summary().unembedded == [1]
    assert importances(made) == {1: 0.5}


@pytest.mark.parametrize("is_searched_between", [False, True])
def test_a_row_that_goes_and_comes_in_one_batch_keeps_nothing(is_searched_between):
    made = index(record(1), record(2), vectors={1: (1, 0), 2: (1, 0)})
    made.change_accesses([(1, NOW, 3), (2, NOW, 3)], adds=True)
    for seq, vectors in ((2, {1: (1, 0)}), (3, {1: (0, 1)})):
        changed = batch([record(1)], since=seq - 1, seq=seq, removed=[1], vectors=vectors)
        assert made.apply(changed)
        if is_searched_between:
            assert similarities(made)[1] == vectors[1][0]
    assert similarities(made) == {1: 0.0, 2: 1.0}
    assert made.core.accesses([1, 2]) == [(None, 0), (NOW, 3)]


def test_an_index_without_vectors_lacks_none_and_finds_by_words():
    made = NativeIndex(None)
    assert made.apply(batch([record(1, content="a cat"), record(2)], vectors={}))
    assert made.apply(batch([record(3, content="two cats")], since=1, seq=2, vectors={}))
    assert made.summary().unembedded == []
    assert sorted(rows_found(made, AGENT, text="cat", **BY_WORDS)) == [1, 3]


def test_vectors_given_to_an_index_without_vectors_are_passed_over():
    made = NativeIndex(None)
    assert made.apply(batch(vectors={}))
    assert made.apply(batch([record(1, content="a cat")], since=1, seq=2, vectors={1: (1, 0)}))
    assert rows_found(made, AGENT, text="cat", **BY_WORDS) == [1]


# Threads


def test_searches_see_each_row_as_it_was_or_as_it_becomes():
    """Row 1 is a cat of little importance near the query, or an important dog across from it."""
    states = [
        (record(1, content="a cat", importance=0.25), (1.0, 0.0)),
        (record(1, content="a dog", importance=0.75), (0.0, 1.0)),
    ]
    others = [record(row, content="a bird") for row in range(2, 50)]
    near = {1: states[0][1]}
    made = index(states[0][0], *others, vectors=dict.fromkeys(range(2, 50), (0.5, 0.5)) | near)
    seen, is_done = [], threading.Event()

    def search():
        everything = wanted(AGENT, text="cat", ranking=EVERYTHING)
        while not is_done.is_set():
            found = {ranked.row: ranked.components for ranked in rank(made, everything).ranked}
            assert found.keys() >= {1, *range(3, 50)}
            parts = found[1]
            seen.append((parts["similarity"], parts["keyword"] > 0, parts["importance"]))

    def change():
        try:
            for seq in range(1, 601):
                changed, vector = states[seq % 2]
                second = {"removed": [2]} if seq % 2 else {}
                came = [changed] if seq % 2 else [changed, others[0]]
                made.apply(batch(came, since=seq, seq=seq + 1, vectors={1: vector}, **second))
        finally:
            is_done.set()

    run_together(change, *[search] * 4)
    assert set(seen) <= {(1.0, True, 0.25), (0.0, False, 0.75)}
    assert similarities(made)[1] == 1.0
    assert len(made) == 49


# Accesses


def static_scores(of):
    """Return the access component of each row."""
    ranking = Ranking(weights=Weights(relevance=0, access=1))
    found = rank(of, wanted(AGENT, query=None, ranking=ranking)).ranked
    return {ranked.row: ranked.components["access"] for ranked in found}


def test_accesses_are_noted_of_rows_that_wait_too_and_move_no_number():
    made = index(record(1, access_count=9), record(2))
    assert made.apply(batch([record(3)], since=1, seq=2))
    made.change_accesses([(1, 5, 99), (3, None, 999), (4, 5, 7)], adds=False)
    assert static_scores(made) == pytest.approx({1: 2 / 3, 2: 0, 3: 1})
    assert (made.seq, len(made)) == (2, 3)


def test_accesses_never_become_fewer_for_those_counted_here_may_not_be_stored_yet():
    made = index(record(1, access_count=9), record(2))
    made.change_accesses([(1, 7, 90), (2, 3, 9), (4, 5, 7)], adds=True)
    assert made.core.accesses([2, 1, 4]) == [(3, 9), (7, 99), None]
    assert static_scores(made) == pytest.approx({1: 2 / 3, 2: 1 / 3})
    made.change_accesses([(1, 9, 5), (2, 1, 10)], adds=False)
    assert made.core.accesses([1, 2]) == [(9, 99), (3, 10)]
    changes = [record(1, access_count=9), record(2, content="other", access_count=9)]
    assert made.apply(batch(changes, since=1, seq=2))
    assert made.core.accesses([1, 2]) == [(9, 99), (3, 10)]
    assert made.apply(batch([record(1, access_count=100)], since=2, seq=3))
    assert made.core.accesses([1]) == [(9, 100)]


def test_accesses_of_thousands_are_noted_and_leave_everything_else_as_it_was():
    rows = [record(row, content=f"memory {row % 7}", importance=row % 5 / 5) for row in range(2000)]
    made = index(*rows)
    everything = wanted(AGENT, 2000, text="memory 3", ranking=EVERYTHING)
    before = rank(made, everything).ranked
    made.change_accesses([(row, row, 9) for row in range(0, 2000, 3)], adds=False)
    after = [(row, 9) if row % 3 == 0 else (None, 0) for row, *_ in before]
    ranked = rank(made, everything).ranked
    assert ranked == [
        hit._replace(last_accessed_at=last, access_count=count)
        for hit, (last, count) in zip(before, after, strict=True)
    ]
    ranking = Ranking(weights=Weights(relevance=0, access=1))
    found = rank(made, wanted(AGENT, 2000, query=None, ranking=ranking)).ranked
    assert {ranked.row for ranked in found if ranked.score > 0} == set(range(0, 2000, 3))


def test_accesses_that_cannot_have_been_stored_are_damage_and_change_nothing():
    made = index(record(1, access_count=9), record(2))
    for damaged in ([(2, 5, 99), (1, 5, -1)], [(2, 5, 99), (1, 2**70, 1)], [(2, "x", 99)]):
        with pytest.raises(StoreCorruptError, match="damaged"):
            made.change_accesses(damaged, adds=False)
    assert static_scores(made) == pytest.approx({1: 1 / 3, 2: 0})

"""What the index promises by itself: the store behind it checks the walls a second time."""

import numpy as np
import pytest

from mnemic.index import NativeIndex
from mnemic.index.native import MOST_EARLY, MOST_PENDING, MOST_SELECTIONS
from mnemic.model import RowBatch, RowFacts, Scope

NOW = 1_000_000
QUERY = np.array([1, 0], dtype=np.float32)


def facts(row, user=None, project=None, session=None, created_at=0):
    return RowFacts(row, user, project, session, created_at, row.to_bytes(16, "big"))


def batch(rows, *, since=None, seq=1, gone=(), vectors=None):
    if vectors is None:
        vectors = [(1.0, row.row / 100) for row in rows]
    array = np.array(vectors, dtype=np.float32).reshape(len(rows), 2)
    return RowBatch(since, seq, list(rows), array, list(gone), [])


def index(*rows):
    made = NativeIndex(2)
    assert made.apply(batch(rows))
    return made


def rows_found(of, scope, limit=100):
    return [ranked.row for ranked in of.search(QUERY, scope, limit, NOW)]


@pytest.mark.parametrize(
    ("scope", "rows"),
    [
        (Scope("a"), [1]),
        (Scope("a", "alice"), [2, 3, 4]),
        (Scope("a", "bob"), [5]),
        (Scope("a", "carol"), []),
        (Scope("a", "alice", "p"), [3, 4]),
        (Scope("a", "alice", None, "s"), [4]),
        (Scope("a", "bob", "p", "s"), []),
        (Scope("a", None, "p"), []),
    ],
)
def test_only_the_rows_of_the_scope_are_ranked(scope, rows):
    made = index(
        facts(1),
        facts(2, "alice"),
        facts(3, "alice", "p"),
        facts(4, "alice", "p", "s"),
        facts(5, "bob"),
    )
    assert rows_found(made, scope) == rows
    assert rows_found(made, scope, 1) == rows[:1]


def test_a_scope_that_was_searched_before_sees_what_came_and_went():
    made = index(facts(1, "alice"), facts(2, "bob"), facts(3, "alice"))
    alice = Scope("a", "alice")
    assert rows_found(made, alice) == [1, 3]
    assert made.apply(batch([facts(4, "alice")], since=1, seq=3, gone=[1]))
    assert rows_found(made, alice) == [3, 4]
    assert len(made) == 3


def test_a_row_that_changes_its_user_changes_sides():
    made = index(facts(1, "alice"), facts(2, "bob"))
    assert made.apply(batch([facts(1, "bob")], since=1, seq=2))
    assert rows_found(made, Scope("a", "alice")) == []
    assert rows_found(made, Scope("a", "bob")) == [1, 2]


def test_a_batch_from_before_is_refused_and_changes_nothing():
    made = index(facts(1))
    assert not made.apply(batch([facts(9)], since=0, seq=5))
    assert made.seq == 1
    assert rows_found(made, Scope("a")) == [1]


def test_batches_that_come_too_early_wait_for_those_before():
    made = index(facts(1))
    assert made.apply(batch([facts(9)], since=3, seq=4))
    assert made.apply(batch([facts(8)], since=2, seq=3))
    assert (made.seq, rows_found(made, Scope("a"))) == (1, [1])
    assert made.apply(batch([facts(7)], since=1, seq=2))
    assert (made.seq, rows_found(made, Scope("a"))) == (4, [1, 7, 8, 9])


def test_batches_that_waited_are_dropped_when_the_store_was_read_beyond_them():
    made = index(facts(1))
    assert made.apply(batch([facts(9)], since=3, seq=4))
    assert made.apply(batch([facts(2), facts(9)], since=1, seq=5))
    assert made.apply(batch([], since=5, seq=6, gone=[9]))
    assert (made.seq, rows_found(made, Scope("a"))) == (6, [1, 2])
    assert made.apply(batch([facts(4)], since=8, seq=9))
    assert made.apply(batch([facts(5)], seq=20))
    assert (made.seq, rows_found(made, Scope("a"))) == (20, [5])


def test_no_more_than_so_many_batches_wait():
    made = index(facts(1))
    assert all(
        made.apply(batch([], since=since, seq=since + 1)) for since in range(2, 2 + MOST_EARLY)
    )
    assert not made.apply(batch([], since=1000, seq=1001))


def test_what_comes_and_goes_between_two_searches_is_taken_in_as_it_ended():
    made = index(facts(1, "alice"), facts(2))
    made.apply(batch([facts(3), facts(4)], since=1, seq=2))
    made.apply(batch([], since=2, seq=3, gone=[3, 2]))
    made.apply(batch([facts(4, "alice"), facts(2)], since=3, seq=4))
    assert rows_found(made, Scope("a")) == [2]
    assert rows_found(made, Scope("a", "alice")) == [1, 4]
    many = [facts(row) for row in range(10, 10 + 2 * MOST_PENDING)]
    for at, one in enumerate(many):
        made.apply(batch([one], since=4 + at, seq=5 + at))
    assert len(made) == 3 + len(many)
    assert len(rows_found(made, Scope("a"), 1000)) == 1 + len(many)


def test_a_whole_batch_replaces_everything():
    made = index(facts(1), facts(2))
    assert made.apply(batch([facts(7)], seq=9))
    assert made.seq == 9
    assert rows_found(made, Scope("a")) == [7]
    assert NativeIndex(2).seq is None


def test_ties_over_the_cut_go_to_the_newest_and_then_to_the_smallest_id():
    rows = [facts(row, created_at=time) for row, time in enumerate((5, 9, 1, 9, 7), start=1)]
    made = NativeIndex(2)
    made.apply(batch(rows, vectors=[(1.0, 0.0)] * 5))
    order = [2, 4, 5, 1, 3]
    for limit in range(1, 7):
        assert rows_found(made, Scope("a"), limit) == order[:limit]


def test_rows_of_others_that_come_between_selecting_and_ranking_stay_outside():
    made = index(facts(2, "alice"))
    select, batches = made._selection, [batch([facts(1, "bob")], since=1, seq=2)]

    def overtaken(scope):
        selection = select(scope)
        while batches:
            assert made.apply(batches.pop())
        return selection

    made._selection = overtaken
    assert rows_found(made, Scope("a", "alice")) == [2]
    assert not batches


def test_tied_rows_that_go_while_the_tie_is_looked_at_are_replaced_by_lower_ones():
    made = NativeIndex(2)
    vectors = [(1.0, 0.0)] * 5 + [(0.5, 0.5)] * 3
    assert made.apply(batch([facts(row) for row in range(1, 9)], vectors=vectors))

    class Overtaken:
        def __init__(self, of):
            self.of, self.batches = of, [batch([], since=1, seq=2, gone=[1, 2, 3, 4])]

        def __getattr__(self, name):
            return getattr(self.of, name)

        def __len__(self):
            return len(self.of)

        def search(self, *arguments, **options):
            hits = self.of.search(*arguments, **options)
            while self.batches:
                made.apply(self.batches.pop())
                with made._lock:  # as the search of another thread does
                    made._drain()
            return hits

    made._vectors = Overtaken(made._vectors)
    assert rows_found(made, Scope("a"), 3) == [5, 6, 7]


def test_many_scopes_do_not_keep_many_selections():
    made = index(*(facts(row, f"user{row}") for row in range(1, MOST_SELECTIONS + 50)))
    for row in range(1, MOST_SELECTIONS + 50):
        assert rows_found(made, Scope("a", f"user{row}")) == [row]
    assert len(made._selections) <= MOST_SELECTIONS

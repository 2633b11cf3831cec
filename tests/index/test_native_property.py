"""An index that follows changes answers as one that is loaded with what they lead to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.index import NativeIndex
from mnemic.model import KEYWORD, KeywordFields, Ranking, Scope, SessionTerms, Weights
from mnemic.model.ranking import MOST_IMPORTANT, NEWEST
from tests.support.rows import batch, rank, record, wanted
from tests.support.tiers import examples

CONTENTS = ["tea", "green tea", "tea for two", "where is the ferry?", "a ferry", "two ferries", "…"]
VECTORS = [(1, 0), (0, 1), (0.6, 0.8), (0.6, -0.8), (0.28, 0.96)]
EVERYBODY = Scope("a", all_users=True)
SCOPES = [EVERYBODY, Scope("a"), Scope("a", "alice"), Scope("a", "alice", None, "s")]
FUSED = Ranking(
    similarity=0.4,
    keywords=KeywordFields(words=0.7),
    session=SessionTerms(previous=0.3, next=0.2, answer=0.4, second_neighbour=0.1, question=0.05),
    weights=Weights(relevance=0.8, importance=0.2),
)

rows = st.integers(1, 12)
facts = st.fixed_dictionaries(
    {
        "importance": st.sampled_from([0.0, 0.5, 1.0]),
        "user": st.sampled_from([None, "alice", "bob"]),
        "session": st.sampled_from([None, "s"]),
        "position": st.sampled_from([None, 1, 2, 3]),
        "created_at": st.integers(0, 3),
        "expires_at": st.sampled_from([None, 1, 2_000_000]),
    }
)
changes = st.one_of(
    st.tuples(st.just("write"), rows, facts, st.sampled_from(CONTENTS), st.booleans()),
    st.tuples(st.just("change"), rows, facts),
    st.tuples(st.just("embed"), rows),
    st.tuples(st.just("remove"), rows),
    st.tuples(st.just("search")),
)


def vector_of(content):
    return VECTORS[len(content) % len(VECTORS)]


class Twin:
    """What a store holds: each row's facts, content and vector; and what each change touches."""

    def __init__(self):
        self.rows = {}
        self.written = 0

    def change(self, kind, row, *given):
        """Apply one change; return whether it touched the row."""
        if kind == "write":
            self.write(row, *given)
            return True
        if row not in self.rows:
            return False
        facts, content, vector = self.rows[row]
        if kind == "remove":
            del self.rows[row]
        elif kind == "change":
            self.rows[row] = (given[0], content, vector)
        elif vector is None:
            self.rows[row] = (facts, content, vector_of(content))
        return True

    def write(self, row, facts, content, has_vector):
        """Give a row a content; one without a vector is always a new one, as it loses the old."""
        self.written += 1
        content = content if has_vector else f"{content} {self.written}"
        known = self.rows.get(row)
        if known is not None and known[1] == content:
            self.rows[row] = (facts, *known[1:])
        else:
            self.rows[row] = (facts, content, vector_of(content) if has_vector else None)

    def batch(self, touched, **numbers):
        """Return what a store would say of these rows."""
        living = [row for row in touched if row in self.rows]
        records = [self.record(row) for row in living]
        embedded = {row: self.rows[row][2] for row in living if self.rows[row][2] is not None}
        removed = [row for row in touched if row not in self.rows]
        return batch(records, vectors=embedded, removed=removed, **numbers)

    def record(self, row):
        facts, content, _ = self.rows[row]
        return record(row, content=content, **facts)


def answers(index):
    """Return all that a few searches say, to the last bit."""
    asked = []
    for scope in SCOPES:
        text = {"text": "where is the ferry with tea for two"}
        asked += [
            wanted(scope),
            wanted(scope, **text, query=None, ranking=KEYWORD),
            wanted(scope, **text, ranking=FUSED, limit=3),
            wanted(scope, **text, ranking=FUSED, with_total=True),
            wanted(scope, query=None, ranking=MOST_IMPORTANT),
            wanted(scope, query=None, ranking=NEWEST),
        ]
    return [rank(index, one) for one in asked], index.summary().unembedded, len(index)


@pytest.mark.requirement("C182")
@examples(100)
@given(st.lists(st.lists(changes, min_size=1, max_size=4), max_size=25), st.randoms())
def test_following_changes_leads_to_the_answers_of_loading_what_they_lead_to(steps, order):
    twin, followed = Twin(), NativeIndex(2)
    assert followed.apply(batch(seq=0))
    seq, early = 0, []
    for step in steps:
        touched = [change[1] for change in step if change[0] != "search" and twin.change(*change)]
        if touched:
            early.append(twin.batch(dict.fromkeys(touched), since=seq, seq=seq + len(touched)))
            seq += len(touched)
        if ("search",) in step or len(early) > 4:
            order.shuffle(early)  # those that come too early wait
            assert all(followed.apply(one) for one in early)
            early = []
            answers(followed)
    assert all(followed.apply(one) for one in early)
    loaded = NativeIndex(2)
    assert loaded.apply(twin.batch(sorted(twin.rows), seq=seq))
    assert followed.seq == loaded.seq == seq
    assert answers(followed) == answers(loaded)


@examples(50)
@given(st.dictionaries(rows, st.tuples(facts, st.sampled_from(CONTENTS), st.booleans())))
def test_similarities_are_cosines_and_their_order_is_exact(written):
    twin, index = Twin(), NativeIndex(2)
    for row, given_fields in written.items():
        twin.write(row, *given_fields)
    given_rows = twin.rows
    assert index.apply(twin.batch(given_rows))
    ranked = rank(index, wanted(EVERYBODY, query=(3, 4))).ranked
    unit = np.array([0.6, 0.8])
    living = {
        row: float(np.dot(vector, unit) / np.linalg.norm(vector))
        for row, (facts, _, vector) in given_rows.items()
        if vector is not None and facts["expires_at"] != 1
    }
    assert {hit.row for hit in ranked} == living.keys()
    for hit in ranked:
        assert abs(hit.score - living[hit.row]) < 1e-6
    keys = [(-hit.score, -given_rows[hit.row][0]["created_at"], hit.id) for hit in ranked]
    assert keys == sorted(keys)

"""The best of any rows are those of the naive twin, and a smaller limit gives the head."""

from random import Random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mnemic.index import RankRequest
from mnemic.model import (
    KeywordFields,
    Ranking,
    Recency,
    RecencyCurve,
    Salience,
    Scope,
    SessionTerms,
    Weights,
    parse_filter,
)
from mnemic.store.sqlite.row_codec import to_microseconds
from tests.support.clock import DAY, EPOCH, MICROSECOND
from tests.support.entries import numbered
from tests.support.ranking_index import DIM, index_of
from tests.support.ranking_twin import RankingTwin, Row

PROFILE = settings(max_examples=150, deadline=None, derandomize=True)
NOW = EPOCH + 400 * DAY
WORTH = ("recency", "importance", "access", "salience")
WORDS = ("tea", "milk", "red", "sofa", "quay", "noon", "lamp", "fish")
TOLERANCE = 2e-6
"""Keyword matches are float32; a score has a handful of roundings of them."""


def any_facts(random):
    """Return the fields of a memory and its vectors."""
    vectors = [(1, 0, 0), (0, 1, 0), (0.6, 0.8, 0), (-1, 0.5, 0.1), (0, 0, 0), None]
    if random.random() < 0.3:
        vectors = [tuple(random.gauss(0, 1) for _ in range(DIM))]
    words = random.choices(WORDS, k=random.randint(1, 5))
    fields = {
        "content": " ".join(words) + ("?" if random.random() < 0.3 else "."),
        "user_id": random.choice([None, "alice", "alice"]),
        "session_id": random.choice([None, "s", "s", "t"]),
        "position": random.choice([None, 1, 2, 3, 4]),
        "speaker": random.choice([None, "Boris", "Clara"]),
        "created_at": NOW - random.choice([0, 1, 30, 399, -1]) * DAY,
        "last_accessed_at": random.choice([None, NOW, NOW - 7 * DAY]),
        "access_count": random.choice([0, 0, 1, 99, 5000]),
        "expires_at": random.choice([None] * 6 + [NOW, NOW + MICROSECOND]),
        "importance": random.choice([0.0, 0.5, 0.5, 1.0, random.random()]),
    }
    vector = random.choice(vectors)
    return fields, () if vector is None else (vector,)


def rows_of(seed, count):
    """Return rows that are the same in every run, some of them alike but for their number."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    facts = []
    for _ in range(count):
        drawn = any_facts(random)
        facts.append(random.choice(facts) if facts and random.random() < 0.2 else drawn)
    return [
        Row(number, numbered(number, **fields), vectors)
        for number, (fields, vectors) in enumerate(facts, 1)
    ]


shares = st.sampled_from([0.0, 0.0, 0.1, 0.3, 0.5, 1.0]) | st.floats(0, 1)
sessions = st.one_of(
    st.just(SessionTerms()),
    # The twin has no types of answers; test_ranking_property.py draws isolated turns.
    st.builds(SessionTerms, *[shares] * len(SessionTerms.__struct_fields__[:-2])),
)
weights = st.one_of(
    st.just(Weights()),
    st.builds(Weights, st.sampled_from([0.3, 1.0]), *[shares] * 5),
    st.builds(Weights, st.just(0.0), st.just(0.2), *[shares] * 4),
)
rankings = st.builds(
    Ranking,
    similarity=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    keywords=st.just(KeywordFields()),
    session=sessions,
    weights=weights,
    recency=st.builds(
        Recency, st.sampled_from(RecencyCurve), st.sampled_from([1, 7.0, 365, 1e-3, 1e6])
    ),
    salience=st.builds(Salience, shares, shares, shares),
)
vectors = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=DIM, max_size=DIM)
texts = st.builds(
    lambda words, date, name: " ".join([*words, *date, *name]),
    st.lists(st.sampled_from((*WORDS, "nowhere")), min_size=1, max_size=4),
    st.sampled_from([[], [], ["4 January 1971"], ["2 January 1970"]]),
    st.sampled_from([[], [], ["Boris"], ["Clara"]]),
)
filters = st.sampled_from(
    [
        *[None] * 6,
        {"importance": {"gte": 0.5}},
        {"speaker": "Boris"},
        {"session_id": {"ne": "s"}},
        {"OR": []},
    ]
)
scopes = st.sampled_from(
    [
        *[Scope("a", all_users=True)] * 3,
        Scope("a", "alice"),
        Scope("a"),
        Scope("a", "alice", None, "s"),
    ]
)
floors = st.sampled_from([*[None] * 9, 0.0, 0.2137, 0.6173])


@st.composite
def questions(draw):
    """Return what is wanted of an index, and the filter it was made of."""
    ranking = draw(rankings)
    # Something must weigh something.
    is_worth_anything = any(getattr(ranking.weights, name) > 0 for name in WORTH)
    text = draw(st.none() | texts | texts | texts) if is_worth_anything else draw(texts)
    where, scope = draw(filters), draw(scopes)
    excluded = draw(st.just(()) | st.frozensets(st.integers(1, 20), max_size=10))
    several = st.lists(vectors, min_size=1, max_size=3)
    queries = draw(st.none() | several | several | several) if text else None
    context = draw(st.none() | vectors)
    wanted = RankRequest(
        scope=scope,
        now=to_microseconds(NOW),
        limit=draw(st.sampled_from([0, 1, 3, 3, 10, 10, 40, 1000])),
        ranking=ranking,
        text=text,
        vectors=None if queries is None else np.array(queries, dtype=np.float32),
        context=None if context is None else np.array(context, dtype=np.float32),
        filters=parse_filter(where),
        exclude=[UUID(int=number).bytes for number in excluded],
        min_similarity=draw(floors),
        min_score=draw(floors),
        with_total=draw(st.booleans()),
    )
    return wanted, where


@PROFILE
@given(seed=st.integers(0, 50), count=st.sampled_from([0, 1, 5, 30, 80, 80]), question=questions())
def test_every_ranking_is_that_of_the_twin(seed, count, question):
    wanted, where = question
    rows = rows_of(seed, count)
    answer = index_of(rows).rank(wanted)
    expected = RankingTwin(rows).rank(wanted, where)
    event("nothing" if not expected else "cut" if len(expected) > wanted.limit else "all")
    assert answer.total == (len(expected) if wanted.with_total else None)
    assert len(answer.ranked) == min(wanted.limit, len(expected))
    scores = {line.row: line.score for line in expected}
    for hit in answer.ranked:
        assert abs(hit.score - scores.pop(hit.row)) <= TOLERANCE
    if answer.ranked and scores:
        assert max(scores.values()) <= answer.ranked[-1].score + TOLERANCE
    newest = {row.number: NOW - row.entry.created_at for row in rows}
    keys = [(-hit.score, newest[hit.row], hit.id) for hit in answer.ranked]
    assert keys == sorted(keys)


@pytest.mark.requirement("C193")
@PROFILE
@given(seed=st.integers(0, 5), question=questions(), limits=st.lists(st.integers(0, 600)))
def test_a_smaller_limit_gives_the_head_to_the_last_bit(seed, question, limits):
    wanted, _ = question
    index = large_index(seed)
    replaced = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    everything = index.rank(RankRequest(**{**replaced, "limit": 1000})).ranked
    event("nothing" if not everything else "something")
    for limit in (*limits, wanted.limit):
        found = index.rank(RankRequest(**{**replaced, "limit": limit})).ranked
        assert found == everything[:limit]


_LARGE = {}


def large_index(seed):
    """Return an index of 600 rows, most of which tie with others."""
    if seed not in _LARGE:
        _LARGE[seed] = index_of(rows_of(seed + 1000, 600))
    return _LARGE[seed]

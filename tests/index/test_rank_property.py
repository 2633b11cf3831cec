"""Any ranking of any rows is that of the naive twin, and a smaller limit gives its head."""

from random import Random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mnemic._core import date_ranges
from mnemic.index import NativeIndex, RankRequest
from mnemic.model import (
    KeywordFields,
    Ranking,
    Recency,
    RecencyCurve,
    RowBatch,
    Salience,
    Scope,
    SessionTerms,
    Weights,
    parse_filter,
)
from tests.support.rank_twin import Asked, Row, Twin
from tests.support.rows import moment, record

PROFILE = settings(max_examples=150, deadline=None, derandomize=True)
DIM = 3
DAY = 86_400_000_000
NOW = 400 * DAY
WORTH = ("recency", "importance", "access", "salience")
WORDS = ("tea", "milk", "red", "sofa", "quay", "noon", "lamp", "fish")
TOLERANCE = 2e-6
"""Keyword matches are float32; a score has a handful of roundings of them."""


def any_row(random, number):
    vectors = [(1, 0, 0), (0, 1, 0), (0.6, 0.8, 0), (-1, 0.5, 0.1), (0, 0, 0), None]
    if random.random() < 0.3:
        vectors = [tuple(random.gauss(0, 1) for _ in range(DIM))]
    return Row(
        number=number,
        words=tuple(random.choices(WORDS, k=random.randint(1, 5))),
        asks=random.random() < 0.3,
        user=random.choice([None, "alice", "alice"]),
        session=random.choice([None, "s", "s", "t"]),
        position=random.choice([None, 1, 2, 3, 4]),
        speaker=random.choice([None, "Boris", "Clara"]),
        created_at=random.choice([NOW, NOW - DAY, NOW - 30 * DAY, NOW - 399 * DAY, NOW + DAY]),
        last_accessed_at=random.choice([None, NOW, NOW - 7 * DAY]),
        access_count=random.choice([0, 0, 1, 99, 5000]),
        expires_at=random.choice([None] * 6 + [NOW, NOW + 1]),
        importance=random.choice([0.0, 0.5, 0.5, 1.0, random.random()]),
        vector=random.choice(vectors),
    )


def rows_of(seed, count):
    """Return rows that are the same in every run, some of them alike but for their number."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    rows = []
    for number in range(1, count + 1):
        row = any_row(random, number)
        if rows and random.random() < 0.2:
            row = Row(**{**vars(random.choice(rows)), "number": number})
        rows.append(row)
    return rows


def index_of(rows):
    records = [
        record(
            row.number,
            row.user,
            None,
            row.session,
            content=" ".join(row.words) + ("?" if row.asks else "."),
            position=row.position,
            speaker=row.speaker,
            created_at=row.created_at,
            last_accessed_at=None if row.last_accessed_at is None else moment(row.last_accessed_at),
            access_count=row.access_count,
            expires_at=row.expires_at,
            importance=row.importance,
        )
        for row in rows
    ]
    embedded = [row for row in rows if row.vector is not None]
    vectors = np.array([row.vector for row in embedded], dtype=np.float32).reshape(-1, DIM)
    numbers = np.array([row.number for row in embedded], dtype=np.int64)
    made = NativeIndex(DIM)
    assert made.apply(RowBatch(None, 1, records, numbers, vectors, []))
    return made


shares = st.sampled_from([0.0, 0.0, 0.1, 0.3, 0.5, 1.0]) | st.floats(0, 1)
sessions = st.one_of(
    st.just(SessionTerms()),
    # Kinds of answers and memories that stand alone are the business of the other twin and of Rust.
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
        *[(None, lambda _: True)] * 6,
        ({"importance": {"gte": 0.5}}, lambda row: row.importance >= 0.5),
        ({"speaker": "Boris"}, lambda row: row.speaker == "Boris"),
        ({"session_id": {"ne": "s"}}, lambda row: row.session != "s"),
        ({"OR": []}, lambda _: False),
    ]
)
scopes = st.sampled_from(
    [
        *[(Scope("a", all_users=True), lambda _: True)] * 3,
        (Scope("a", "alice"), lambda row: row.user == "alice"),
        (Scope("a"), lambda row: row.user is None),
        (Scope("a", "alice", None, "s"), lambda row: (row.user, row.session) == ("alice", "s")),
    ]
)
floors = st.sampled_from([*[None] * 9, 0.0, 0.2137, 0.6173])


def words_of(text):
    return tuple(text.lower().split())


@st.composite
def questions(draw):
    """Return what is wanted of an index, and the same in the words of the twin."""
    ranking = draw(rankings)
    # Something must weigh something.
    is_worth_anything = any(getattr(ranking.weights, name) > 0 for name in WORTH)
    text = draw(st.none() | texts | texts | texts) if is_worth_anything else draw(texts)
    (where, passes), (scope, is_inside) = draw(filters), draw(scopes)
    excluded = draw(st.just(()) | st.frozensets(st.integers(1, 20), max_size=10))
    several = st.lists(vectors, min_size=1, max_size=3)
    queries = draw(st.none() | several | several | several) if text else None
    context = draw(st.none() | vectors)
    wanted = RankRequest(
        scope=scope,
        now=NOW,
        limit=draw(st.sampled_from([0, 1, 3, 3, 10, 10, 40, 1000])),
        ranking=ranking,
        text=text,
        vectors=None if queries is None else np.array(queries, dtype=np.float32),
        context=None if context is None else np.array(context, dtype=np.float32),
        where=parse_filter(where),
        exclude=[UUID(int=number).bytes for number in excluded],
        min_similarity=draw(floors),
        min_score=draw(floors),
        with_total=draw(st.booleans()),
    )
    dates = date_ranges(text or "", NOW)
    asked = Asked(
        ranking=ranking,
        now=NOW,
        words=None if text is None else words_of(text),
        date=dates[0] if dates else None,
        named=next((name for name in ("Boris", "Clara") if name in (text or "")), None),
        vectors=queries,
        context=None if context is None else [context],
        in_play=lambda row: passes(row) and is_inside(row) and row.number not in excluded,
        in_wall=lambda row: scope.all_users or row.user == scope.user_id,
        min_similarity=wanted.min_similarity,
        min_score=wanted.min_score,
    )
    return wanted, asked


@PROFILE
@given(seed=st.integers(0, 50), count=st.sampled_from([0, 1, 5, 30, 80, 80]), question=questions())
def test_every_ranking_is_that_of_the_twin(seed, count, question):
    wanted, asked = question
    rows = rows_of(seed, count)
    answer = index_of(rows).rank(wanted)
    expected = Twin(rows).ranked(asked)
    event("nothing" if not expected else "cut" if len(expected) > wanted.limit else "all")
    assert answer.total == (len(expected) if wanted.with_total else None)
    assert len(answer.ranked) == min(wanted.limit, len(expected))
    scores = {one.row.number: one.score for one in expected}
    for hit in answer.ranked:
        assert abs(hit.score - scores.pop(hit.row)) <= TOLERANCE
    if answer.ranked and scores:
        assert max(scores.values()) <= answer.ranked[-1].score + TOLERANCE
    times = {row.number: row.created_at for row in rows}
    keys = [(-hit.score, -times[hit.row], hit.id) for hit in answer.ranked]
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

"""The best of any rows are those of the naive twin, and a smaller limit gives the head."""

from random import Random

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from mnemic.model import (
    AdaptiveShare,
    KeywordFields,
    Ranking,
    Recency,
    RecencyCurve,
    Salience,
    Scope,
    SessionTerms,
    Weights,
)
from mnemic.model.filter import parse_filter
from mnemic.model.timestamps import to_microseconds
from tests.support.clock import DAY, EPOCH, MICROSECOND
from tests.support.entries import numbered, uid
from tests.support.ranking_index import DIM, index_of
from tests.support.ranking_twin import RankingTwin, Row
from tests.support.rows import Question, rank
from tests.support.tiers import examples

PROFILE = examples(150)
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


def shares(chance, count):
    """Return shares of which a third is 0, so that parts are met alone."""
    return [chance.choice([0.0, 0.0, 0.1, 0.3, 0.5, 1.0, chance.random()]) for _ in range(count)]


def any_ranking(chance):
    # The twin has no types of answers; test_ranking_property.py draws isolated turns.
    names = sorted(set(SessionTerms.__struct_fields__) - {"answer_type", "isolated"})
    terms = dict(zip(names, shares(chance, len(names)), strict=True))
    weights = [
        Weights(),
        Weights(chance.choice([0.3, 1.0]), *shares(chance, 5)),
        Weights(0.0, 0.2, *shares(chance, 4)),
    ]
    days = chance.choice([1, 7.0, 365, 1e-3, 1e6])
    return Ranking(
        similarity=chance.choice([0.0, 0.25, 0.5, 1.0, AdaptiveShare(0.1, 0.9, 4.0)]),
        keywords=KeywordFields(),
        session=chance.choice([SessionTerms(), SessionTerms(**terms), SessionTerms(**terms)]),
        weights=chance.choice(weights),
        recency=Recency(chance.choice(list(RecencyCurve)), days),
        salience=Salience(*shares(chance, 3)),
    )


def any_text(chance):
    words = chance.choices((*WORDS, "nowhere"), k=chance.randint(1, 4))
    date = chance.choice([[], [], ["4 January 1971"], ["2 January 1970"], ["3 January"]])
    return " ".join([*words, *date, *chance.choice([[], [], ["Boris"], ["Clara"]])])


def any_vectors(chance, count):
    drawn = [[chance.choice([-1.0, 0.0, 0.5, 1.0]) for _ in range(DIM)] for _ in range(count)]
    return np.array(drawn, dtype=np.float32)


FILTERS = (
    *[None] * 6,
    {"importance": {"gte": 0.5}},
    {"speaker": "Boris"},
    {"session_id": {"ne": "s"}},
    {"OR": []},
)
SCOPES = (
    *[Scope("a", all_users=True)] * 3,
    *(Scope("a", "alice"), Scope("a"), Scope("a", "alice", None, "s")),
)
FLOORS = (*[None] * 9, 0.0, 0.2137, 0.6173)


def question_of(seed):
    """Return a request at random, and the filter it was made of."""
    chance = Random(seed)  # noqa: S311 - repeatable, not secret
    ranking, where = any_ranking(chance), chance.choice(FILTERS)
    # Something must weigh something.
    is_worth_anything = any(getattr(ranking.weights, name) > 0 for name in WORTH)
    text = None if is_worth_anything and chance.random() < 0.2 else any_text(chance)
    excluded = chance.choice([[], chance.sample(range(1, 21), chance.randint(0, 10))])
    has_vectors = text is not None and chance.random() < 0.75
    wanted = Question(
        scope=chance.choice(SCOPES),
        now=to_microseconds(NOW),
        limit=chance.choice([0, 1, 3, 3, 10, 10, 40, 1000]),
        ranking=ranking,
        text=text,
        vectors=any_vectors(chance, chance.randint(1, 3)) if has_vectors else None,
        context=any_vectors(chance, 1)[0] if chance.random() < 0.5 else None,
        filters=parse_filter(where),
        exclude=[uid(number).bytes for number in excluded],
        min_similarity=chance.choice(FLOORS),
        min_score=chance.choice(FLOORS),
        with_total=chance.random() < 0.5,
    )
    return wanted, where


questions = st.builds(question_of, st.integers(0, 2**40))


@PROFILE
@given(seed=st.integers(0, 50), count=st.sampled_from([0, 1, 5, 30, 80, 80]), question=questions)
@example(seed=0, count=5, question=question_of(229))  # a floor of the similarity without a query
def test_every_ranking_is_that_of_the_twin(seed, count, question):
    wanted, where = question
    rows = rows_of(seed, count)
    answer = rank(index_of(rows), wanted)
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
@given(seed=st.integers(0, 5), question=questions, limits=st.lists(st.integers(0, 600)))
def test_a_smaller_limit_gives_the_head_to_the_last_bit(seed, question, limits):
    wanted, _ = question
    index = large_index(seed)
    replaced = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    everything = rank(index, Question(**{**replaced, "limit": 1000})).ranked
    event("nothing" if not everything else "something")
    for limit in (*limits, wanted.limit):
        found = rank(index, Question(**{**replaced, "limit": limit})).ranked
        assert found == everything[:limit]


_LARGE = {}


def large_index(seed):
    """Return an index of 600 rows, most of which tie with others."""
    if seed not in _LARGE:
        _LARGE[seed] = index_of(rows_of(seed + 1000, 600))
    return _LARGE[seed]

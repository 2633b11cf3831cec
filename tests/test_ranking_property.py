"""Any ranking of any rows: the core gives the rows of the naive twin, in order, with its scores."""

from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from ranking_twin import RankingTwin, Row, unit

from mnemic.index import NativeIndex, Wanted
from mnemic.model import (
    HYBRID,
    KEYWORD,
    MOST_IMPORTANT,
    NEWEST,
    RECALL,
    SEMANTIC,
    WEIGHTED_RELEVANCE,
    KeywordFields,
    MemoryEntry,
    Ranking,
    Recency,
    RecencyCurve,
    RowBatch,
    Salience,
    Scope,
    SessionTerms,
    Weights,
)
from mnemic.model.filter import parse_filter
from mnemic.store.records import to_microseconds, to_row

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)
NOW = to_microseconds(NOON)
DIM = 3
EVERYTHING = 1000
CLOSE = 1e-6
SAME = 1e-9
PROFILE = settings(deadline=None, derandomize=True)

# Few values, so that rows tie. No word here is changed by the English stemmer.

WORDS = ("tea", "cup", "red", "boat", "teacup", "boatman", "lamp", "noon", "the", "of", "with")
CONTENTS = (
    *("tea", "cup", "red tea", "tea cup", "cup tea", "the tea of noon", "tea tea tea", "…"),
    *("red boat with the lamp", "boatman", "teacup", "the red teacup of the boatman", "the", "lamp"),
    *("tea cup?", "Ada: red boat", "Ada: tea?", "Bob: cup", "Bob: is it noon? tea", "lamp? ", "?"),
    *("Ada: the lamp of the boat", "Bob: tea cup tea cup red", "Cleo: noon", "Ada: Bob: tea"),
)
QUERIES = st.lists(st.sampled_from((*WORDS, "zebra")), max_size=6).map(" ".join)
ENDINGS = st.sampled_from(("", "", "", "", "?", " Ada", " Bob", " Ada Bob", " Cleo"))
DATES = st.sampled_from(("", "", "", "", " yesterday", " 2026-05-01", " 2026-02-01 and 2026-04-20"))
TEXTS = st.builds("{}{}{}".format, QUERIES, ENDINGS, DATES)

VECTORS = (
    *((1, 0, 0), (0, 1, 0), (-1, 0, 0), (0.6, 0.8, 0), (0.6, -0.8, 0), (6, -8, 0), (1, 1, 1)),
    *((0.28, 0.96, 0.5), (0, 0, -2), (3, 2, 1), (0, 0, 0)),
)
PARTS = ((), (), *((one,) for one in VECTORS), (VECTORS[0], VECTORS[1]), (VECTORS[2], VECTORS[9]))
USERS = (None, "alice", "bob")
EXPIRIES = (None, None, None, None, NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=1))
AGES = (0, 0, 1, 1, 2.5, 7, 40, 69, 71, 300, 400, -3)  # days

facts = st.fixed_dictionaries(
    {
        "content": st.sampled_from(CONTENTS),
        "user_id": st.sampled_from(USERS),
        "project_id": st.sampled_from((None, "p")),
        "session_id": st.sampled_from((None, "s", "s", "t")),
        "position": st.sampled_from((None, 1, 2, 3, 4, 5, 6)),
        "created_at": st.sampled_from([NOON - timedelta(days=days) for days in AGES]),
        "last_accessed_at": st.sampled_from((None, NOON, NOON - timedelta(days=5))),
        "expires_at": st.sampled_from(EXPIRIES),
        "access_count": st.sampled_from((0, 0, 1, 9, 100, 5000)),
        "importance": st.sampled_from((0.0, 0.25, 0.5, 1.0)),
        "speaker": st.sampled_from((None, None, None, "Ada", "Bob")),
        "tags": st.sampled_from(((), (), ("home",), ("home", "work"))),
    }
)
parts = st.sampled_from(PARTS)


def made(number, given_facts, vectors=()):
    """Return a row whose id is not in the order of its number."""
    entry = MemoryEntry(id=UUID(int=number * 37 % 1009), agent_id="a", **given_facts)
    return Row(number, entry, vectors)


written = st.tuples(facts, parts)
populations = st.lists(written, max_size=60).map(
    lambda all_written: [made(number, *one) for number, one in enumerate(all_written, 1)]
)


# Rankings: many shares are 0, so that parts are met alone.

shares = st.sampled_from((0.0, 0.0, 0.0, 0.1, 0.3, 0.5, 0.85, 1.0))
word_shares = st.sampled_from((1.0, 1.0, 0.7, 0.0))
keyword_fields = st.builds(
    KeywordFields,
    words=word_shares,
    grams=shares,
    pairs=shares,
    previous=shares,
    second=shares,
    stop_words=st.sampled_from((1.0, 0.25, 0.0)),
    sharpness=st.sampled_from((1.0, 1.0, 1.5, 0.5)),
)
session_terms = st.builds(
    SessionTerms,
    previous=shares,
    next=shares,
    answer=shares,
    second=shares,
    question=shares,
    date=shares,
    speaker=shares,
)
weights = st.tuples(st.sampled_from((1.0, 0.6, 0.0)), *[shares] * 5).filter(any)
recencies = st.builds(
    Recency, st.sampled_from(RecencyCurve), st.sampled_from((365.0, 7.0, 30.0, 0.5))
)
rankings = st.builds(
    Ranking,
    similarity=st.sampled_from((1.0, 0.6, 0.25, 0.25, 0.0)),
    keywords=keyword_fields,
    session=session_terms,
    weights=weights.map(lambda given_weights: Weights(*given_weights)) | st.just(Weights()),
    recency=recencies,
    salience=st.builds(Salience, shares, shares, shares),
)
PRESETS = tuple(
    msgspec.structs.replace(preset, leaves_names_out=False)
    for preset in (HYBRID, KEYWORD, SEMANTIC, NEWEST, MOST_IMPORTANT, WEIGHTED_RELEVANCE, RECALL)
)

EVERYBODY = Scope("a", all_users=True)
SCOPES = (
    *(EVERYBODY, EVERYBODY, EVERYBODY, Scope("a"), Scope("a", "alice"), Scope("a", "bob", "p")),
    *(Scope("a", "alice", None, "s"), Scope("a", None, "p", "t")),
    *(Scope("a", None, "p", all_users=True), Scope("a", None, None, "s", all_users=True)),
)
FILTERS = (
    *(None, None, None, {"importance": {"gte": 0.5}}, {"tags": {"any": ["home"]}}),
    *({"NOT": {"tags": {"contains": "work"}}}, {"speaker": "Ada"}),
    {"OR": [{"created_at": {"gte": NOON - timedelta(days=7)}}, {"content": {"contains": "?"}}]},
)
vectors = st.lists(st.sampled_from(VECTORS), min_size=1, max_size=2)


@st.composite
def questions(draw, ranking_strategy):
    """Return what is wanted, without a limit, and the filter it was made of."""
    ranking = draw(ranking_strategy)
    text = draw(st.none() | TEXTS | TEXTS | TEXTS)
    has_near = ranking.similarity > 0 and draw(st.sampled_from((True, True, True, False)))
    where = draw(st.sampled_from(FILTERS))
    context = draw(st.none() | st.sampled_from(VECTORS))
    excluded = draw(st.sampled_from(((), (), (3,), (1, 2, 5, 8))))
    return where, Wanted(
        scope=draw(st.sampled_from(SCOPES)),
        now=NOW,
        limit=EVERYTHING,
        ranking=ranking,
        text=text,
        vectors=np.array(draw(vectors), np.float32) if has_near else None,
        context=None if context is None else np.array(context, np.float32),
        where=None if where is None else parse_filter(where),
        exclude=[made(number, {"content": "x", "created_at": NOON}).entry.id.bytes for number in excluded],
        min_similarity=draw(st.sampled_from((None, None, None, None, 0.0, 0.123, 0.456))),
        min_score=draw(st.sampled_from((None, None, None, None, 0.01234, 0.31415))),
        with_total=True,
    )


def index_of(rows, numbers=None):
    """Return an index with these rows, in this order."""
    index = NativeIndex(DIM)
    assert index.apply(batch(rows))
    return index


def batch(rows, *, since=None, seq=1, gone=()):
    pairs = [(row.number, vector) for row in rows for vector in row.vectors]
    embedded = np.array([number for number, _ in pairs], np.int64)
    values = np.array([vector for _, vector in pairs], np.float32).reshape(len(pairs), DIM)
    records = [(row.number, *to_row(row.entry)) for row in rows]
    return RowBatch(since, seq, records, embedded, values, list(gone))


def floors_are_clear(lines, wanted):
    """Return whether no row is so near to a floor that rounding decides."""
    near = [abs(line.components.get("similarity", 9) - (wanted.min_similarity or 9)) for line in lines]
    worth = [abs(line.score - (wanted.min_score or 9)) for line in lines]
    return min([*near, *worth], default=1) > CLOSE


def check(index, twin, wanted, where):
    """Compare an index with the twin; return what the index found."""
    floorless = msgspec.structs.replace(wanted, min_similarity=None, min_score=None)
    assume(floors_are_clear(twin.rank(floorless, where), wanted))
    expected = {line.row: line for line in twin.rank(wanted, where)}
    answer = index.rank(wanted)
    assert {hit.row for hit in answer.ranked} == expected.keys()
    assert answer.total == len(answer.ranked) == len(expected)
    for hit in answer.ranked:
        line = expected[hit.row]
        assert hit.id == twin.rows[hit.row].entry.id.bytes
        assert hit.score == pytest.approx(line.score, rel=0, abs=CLOSE)
        assert hit.components == pytest.approx(line.components, rel=0, abs=CLOSE)
    check_order(answer.ranked, twin, [expected[hit.row].score for hit in answer.ranked])
    return answer.ranked


def check_order(found, twin, scores):
    """Check that the order is total by what was answered, and the twin's but for rounding."""
    created = {number: row.entry.created_at.timestamp() for number, row in twin.rows.items()}
    keys = [(-hit.score, -created[hit.row], hit.id) for hit in found]
    assert keys == sorted(keys)
    least = np.minimum.accumulate(np.array([np.inf, *scores]))[:-1]
    assert (np.array(scores) <= least + SAME).all()


@settings(PROFILE, max_examples=150)
@given(populations, questions(rankings))
def test_any_ranking_is_that_of_the_twin(rows, question):
    where, wanted = question
    found = check(index_of(rows), RankingTwin(rows), wanted, where)
    event(f"found {min(len(found), 3)}, near {wanted.vectors is not None}")


@settings(PROFILE, max_examples=150)
@given(populations, questions(st.sampled_from(PRESETS)))
def test_every_preset_ranks_as_the_twin(rows, question):
    where, wanted = question
    check(index_of(rows), RankingTwin(rows), wanted, where)

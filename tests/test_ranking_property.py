"""Any ranking of any rows: the core gives the rows of the naive twin, in order, with its scores."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from ranking_twin import RankingTwin, Row

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

WORDS = ("tea", "cup", "red", "boat", "teacup", "boatman", "lamp", "the", "zebra")
PHRASES = (
    *("red tea", "tea cup", "tea of noon", "cup tea", "the lamp of the boat", "with the lamp"),
    *("red boat", "tea zebra cup", "the", "of the"),
)
CONTENTS = (
    *("tea", "cup", "red tea", "tea cup", "cup tea", "the tea of noon", "tea tea tea", "…"),
    *("red boat with the lamp", "boatman", "teacup", "the red teacup of the boatman", "the"),
    *("tea cup?", "Ada: red boat", "Ada: tea?", "Bob: cup", "Bob: is it noon? tea", "lamp? ", "?"),
    *("Ada: the lamp of the boat", "Bob: tea cup tea cup red", "Cleo: noon", "Ada: Bob: tea"),
)
QUERIES = st.lists(st.sampled_from(WORDS + PHRASES), max_size=4).map(" ".join)
ENDINGS = st.sampled_from(("", "", "", "", "?", " Ada", " Bob", " Ada Bob", " Cleo"))
DATES = st.sampled_from(("", "", "", "", " yesterday", " 2026-05-01", " 2026-02-01 and 2026-04-20"))
TEXTS = st.builds("{}{}{}".format, QUERIES, ENDINGS, DATES)

VECTORS = (
    *((1, 0, 0), (0, 1, 0), (-1, 0, 0), (0.6, 0.8, 0), (0.6, -0.8, 0), (6, -8, 0), (1, 1, 1)),
    *((0.28, 0.96, 0.5), (0, 0, -2), (3, 2, 1), (0, 0, 0)),
)
PARTS = (
    (),
    (),
    (),
    *((one,) for one in VECTORS),
    (VECTORS[0], VECTORS[1]),
    (VECTORS[2], VECTORS[9]),
)
USERS = (None, "alice", "bob")
EXPIRIES = (
    *(None, None, None, None, None),
    *(NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=1)),
)
AGES = (0, 0, 1, 1, 2.5, 7, 40, 69, 71, 300, 400, -3)  # days

VALUES = {
    "content": CONTENTS,
    "user_id": USERS,
    "project_id": (None, "p"),
    "session_id": (None, "s", "s", "t"),
    "position": (None, 1, 2, 3, 4, 5, 6),
    "created_at": [NOON - timedelta(days=days) for days in AGES],
    "last_accessed_at": (None, NOON, NOON - timedelta(days=5)),
    "expires_at": EXPIRIES,
    "access_count": (0, 0, 1, 9, 100, 5000),
    "importance": (0.0, 0.25, 0.5, 1.0),
    "speaker": (None, None, None, "Ada", "Bob"),
    "tags": ((), (), ("home",), ("home", "work")),
}
"""What each field of a row is one of."""

facts = st.fixed_dictionaries({name: st.sampled_from(each) for name, each in VALUES.items()})
parts = st.sampled_from(PARTS)


def id_of(number):
    """Return an id that is not in the order of the numbers."""
    return UUID(int=number * 37 % 1009)


def made(number, given_facts, vectors=()):
    return Row(number, MemoryEntry(id=id_of(number), agent_id="a", **given_facts), vectors)


written = st.tuples(facts, parts)


def rows_of(all_written):
    return [made(number, *one) for number, one in enumerate(all_written, 1)]


populations = st.lists(written, max_size=60).map(rows_of)


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
vectors = st.lists(st.sampled_from(VECTORS[:-1]), min_size=1, max_size=2) | st.just([VECTORS[-1]])


@st.composite
def questions(draw, ranking_strategy):
    """Return what is wanted, without a limit, and the filter it was made of."""
    ranking = draw(ranking_strategy)
    text = draw(TEXTS) if draw(st.integers(0, 9)) else None
    has_near = ranking.similarity > 0 and draw(st.sampled_from((True, True, True, False)))
    where = draw(st.sampled_from(FILTERS))
    context = draw(st.sampled_from((None, *VECTORS[3:])))
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
        exclude=[id_of(number).bytes for number in excluded],
        min_similarity=draw(st.sampled_from((None, None, None, None, 0.0, 0.123, 0.456))),
        min_score=draw(st.sampled_from((None, None, None, None, 0.01234, 0.31415))),
        with_total=True,
    )


def index_of(rows):
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
    near = [
        abs(line.components.get("similarity", 9) - (wanted.min_similarity or 9)) for line in lines
    ]
    worth = [abs(line.score - (wanted.min_score or 9)) for line in lines]
    return min([*near, *worth], default=1) > CLOSE


def check(index, twin, wanted, where):
    """Compare an index with the twin; return what the index found."""
    if wanted.min_similarity is not None or wanted.min_score is not None:
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


def bytes_of(ranked):
    """Return an answer so that two are equal only to the last bit."""
    return repr([(hit.id, hit.score, sorted(hit.components.items())) for hit in ranked])


@settings(PROFILE, max_examples=150)
@given(populations, questions(rankings))
def test_any_ranking_is_that_of_the_twin(rows, question):
    where, wanted = question
    found = check(index_of(rows), RankingTwin(rows), wanted, where)
    event(f"found {min(len(found), 3)}")


@settings(PROFILE, max_examples=80)
@given(populations, questions(st.sampled_from(PRESETS)))
def test_every_preset_ranks_as_the_twin_does(rows, question):
    where, wanted = question
    check(index_of(rows), RankingTwin(rows), wanted, where)


@settings(PROFILE, max_examples=60)
@given(
    st.lists(st.tuples(written, st.none() | written), max_size=25),
    st.lists(written, max_size=5),
    questions(rankings),
)
def test_rows_that_change_or_go_are_ranked_as_what_is_left(histories, gone, question):
    where, wanted = question
    rows = rows_of([last for last, _ in histories])
    firsts = {
        row.number: made(row.number, *first)
        for row, (_, first) in zip(rows, histories, strict=True)
        if first is not None and first[0]["content"] != row.entry.content
    }
    removed = [made(number, *one) for number, one in enumerate(gone, len(rows) + 1)]
    index = index_of([*(firsts.get(row.number, row) for row in rows), *removed])
    before = [*(firsts.get(row.number, row) for row in rows), *removed]
    check(index, RankingTwin(before), wanted, where)
    changed = [row for row in rows if row.number in firsts]
    numbers = [row.number for row in removed]
    assert index.apply(batch(changed, since=1, seq=2, gone=numbers))
    check(index, RankingTwin(rows), wanted, where)


@settings(PROFILE, max_examples=60)
@given(populations, questions(st.sampled_from(PRESETS) | rankings), st.integers(0, 30))
def test_the_answer_of_any_limit_is_the_head_of_that_of_one_more(rows, question, limit):
    _, wanted = question
    index = index_of(rows)
    everything = index.rank(wanted)
    for most in (0, 1, limit, limit + 1, len(everything.ranked)):
        head = index.rank(msgspec.structs.replace(wanted, limit=most))
        assert bytes_of(head.ranked) == bytes_of(everything.ranked[:most])
        assert head.total == everything.total
    uncounted = index.rank(msgspec.structs.replace(wanted, limit=limit, with_total=False))
    assert bytes_of(uncounted.ranked) == bytes_of(everything.ranked[:limit])
    assert uncounted.total is None


@settings(PROFILE, max_examples=40)
@given(populations, questions(rankings), st.randoms())
def test_the_order_in_which_rows_came_changes_nothing_but_the_order_of_turns(
    rows, question, chance
):
    _, wanted = question
    shuffled = chance.sample(rows, len(rows))
    turns = iter([row for row in rows if row.entry.session_id is not None])
    moved = [row if row.entry.session_id is None else next(turns) for row in shuffled]
    renumbered = [row._replace(number=number) for number, row in enumerate(moved, 1)]
    index = index_of(renumbered[::2])
    index.rank(wanted)
    assert index.apply(batch(renumbered[1::2], since=1, seq=2))
    assert bytes_of(index.rank(wanted).ranked) == bytes_of(index_of(rows).rank(wanted).ranked)


def many_rows(seed, count):
    """Return rows of the same values as those of `populations`."""
    chance = Random(seed)  # noqa: S311 - data for a test
    return [
        made(number, {name: chance.choice(values) for name, values in VALUES.items()}, parts)
        for number, parts in enumerate(chance.choices(PARTS, k=count), 1)
    ]


@settings(PROFILE, max_examples=15)
@given(st.integers(0, 2**32), st.integers(300, 400), questions(st.sampled_from(PRESETS) | rankings))
def test_hundreds_of_rows_are_ranked_as_by_the_twin(seed, count, question):
    where, wanted = question
    rows = many_rows(seed, count)
    index = index_of(rows)
    found = check(index, RankingTwin(rows), wanted, where)
    for limit in (1, 10, 100):
        head = index.rank(msgspec.structs.replace(wanted, limit=limit)).ranked
        assert bytes_of(head) == bytes_of(found[:limit])


FUSED = Ranking(
    similarity=0.4,
    keywords=KeywordFields(words=0.7, grams=0.2, pairs=0.1, previous=0.8, second=0.5),
    session=SessionTerms(0.3, 0.4, 0.5, 0.2, 0.05, 0.2, 0.03),
    weights=Weights(0.6, 0.2, 0.1, 0.1, 0.2, 0.3),
)
FUSED_WANTED = Wanted(
    scope=EVERYBODY,
    now=NOW,
    limit=EVERYTHING,
    ranking=FUSED,
    text="the red boat of Ada yesterday",
    vectors=np.array(VECTORS[3:5], np.float32),
    context=np.array(VECTORS[6], np.float32),
    with_total=True,
)


def test_threads_that_rank_together_answer_as_one_alone_to_the_last_bit():
    rows = many_rows(1, 400)
    index = index_of(rows)
    alone = bytes_of(check(index, RankingTwin(rows), FUSED_WANTED, None))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: index.rank(FUSED_WANTED), range(40)))
    assert {bytes_of(answer.ranked) for answer in answers} == {alone}


def test_rows_that_are_alike_score_alike_and_come_newest_first_then_by_id():
    contents = [
        {"content": "red tea", "created_at": NOON - timedelta(days=at % 3)} for at in range(30)
    ]
    rows = rows_of([(one, ((3, 2, 1),)) for one in contents])
    plain = Ranking(
        similarity=0.4, keywords=FUSED.keywords, weights=Weights(0.6, 0, 0.1, 0.1, 0, 0.3)
    )
    found = index_of(rows).rank(msgspec.structs.replace(FUSED_WANTED, ranking=plain)).ranked
    assert len({hit.score for hit in found}) == 1
    assert len(found) == 30
    expected = sorted(rows, key=lambda row: (NOON - row.entry.created_at, row.entry.id.bytes))
    assert [hit.row for hit in found] == [row.number for row in expected]


@pytest.mark.parametrize(("count", "share"), [(999, 0.2), (1000, 0.2), (1000, 0.5), (1000, 1.0)])
def test_frequent_words_are_passed_over_from_a_thousand_rows_on(count, share):
    contents = ["red tea", "tea", "cup of tea", "lamp", "tea boat"]  # four in five have tea
    rows = rows_of([({"content": one, "created_at": NOON}, ()) for one in contents * 200][:count])
    ranking = Ranking(similarity=0.0, keywords=KeywordFields(common=share))
    wanted = Wanted(
        scope=EVERYBODY, now=NOW, limit=EVERYTHING, ranking=ranking, text="red tea", with_total=True
    )
    found = check(index_of(rows), RankingTwin(rows), wanted, None)
    assert len(found) == (count + 4) // 5 if count == 1000 and share < 0.8 else count * 4 // 5


def test_what_matches_is_counted_though_one_of_several_queries_is_nothing():
    row = made(1, {"content": "tea", "created_at": NOON}, ((1, 0, 0),))
    queries = np.array([(1, 0, 0), (0, 0, 0)], np.float32)
    ranking = Ranking(weights=Weights(relevance=0.0, importance=1.0))
    wanted = Wanted(
        scope=EVERYBODY, now=NOW, limit=1, ranking=ranking, vectors=queries, with_total=True
    )
    answer = index_of([row]).rank(wanted)
    assert [hit.row for hit in answer.ranked] == [1]
    assert answer.total == 1

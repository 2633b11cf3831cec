"""Any ranking of any rows: the core gives the rows of the naive twin, in order, with its scores."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from mnemic.model import (
    HYBRID,
    KEYWORD,
    SEMANTIC,
    AdaptiveShare,
    KeywordFields,
    MemoryEntry,
    Ranking,
    Recency,
    RecencyCurve,
    Salience,
    Scope,
    SessionTerms,
    Weights,
)
from mnemic.model.filter import parse_filter
from mnemic.model.ranking import MOST_IMPORTANT, NEWEST
from mnemic.model.search import CosineScale
from mnemic.model.timestamps import to_microseconds
from tests.support.ranking_index import batch, index_of
from tests.support.ranking_twin import RankingTwin, Row
from tests.support.rankings import RECALL, WEIGHTED_RELEVANCE
from tests.support.rows import Question, rank
from tests.support.tiers import examples

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)
NOW = to_microseconds(NOON)
EVERYTHING = 1000
CLOSE = 1e-6
SAME = float(np.finfo(np.float32).eps)  # similarities are rounded to it

# Few values, so that rows tie. No word here is changed by the English stemmer.

WORDS = ("tea", "cup", "red", "boat", "teacup", "boatman", "lamp", "the", "zebra", "вода")
PHRASES = (
    *("red tea", "tea cup", "tea of noon", "cup tea", "the lamp of the boat", "with the lamp"),
    *("red boat", "tea zebra cup", "the", "of the"),
    *("红茶杯", "我的红茶", "tea 红茶", "我的", "红灯 cup"),
)
CONTENTS = (
    *("tea", "cup", "red tea", "tea cup", "cup tea", "the tea of noon", "tea tea tea", "…"),
    *("red boat with the lamp", "boatman", "teacup", "the red teacup of the boatman", "the"),
    *("tea cup?", "Ada: red boat", "Ada: tea?", "Bob: cup", "Bob: is it noon? tea", "lamp? ", "?"),
    *("user: tea cup?", "bot: red boat", "user: the lamp", "bot: " + "red boat " * 60),
    *("红茶", "我的红茶杯", "茶杯和灯, tea", "我的 tea 红茶红茶"),
    *("Ada: the lamp of the boat", "Bob: tea cup tea cup red", "Cleo: noon", "Ada: Bob: tea"),
    *("вода", "Ada: вода tea вода вода", "cup вода tea", "вода?", ""),
    *("zebra lamp " * 255 + "red tea cup of Ada" + " zebra" * 20, "tea " + "noon cup " * 270),
)
ENDINGS = ("", "", "", "", "?", " Ada", " Bob", " Ada Bob", " Cleo", " bot said", " bot said")
DATES = (
    *("", "", "", "", " yesterday", " 2026-05-01", " 2026-02-01 and 2026-04-20"),
    *(" 24 April", " April 25", " March 30", " now", " now", " yesterday, now"),
)

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
    "role": (None, None, "user", "assistant", "tool"),
    "tags": ((), (), ("home",), ("home", "work")),
}
"""What each field of a row is one of."""


def id_of(number):
    """Return an id that is not in the order of the numbers."""
    return UUID(int=number * 37 % 1009)


def made(number, given_facts, vectors=()):
    make = MemoryEntry if given_facts["content"] else MemoryEntry.empty
    return Row(number, make(id=id_of(number), agent_id="a", **given_facts), vectors)


def rows_of(seed, count):
    """Return random rows; those of a smaller count are the first of them."""
    chance = Random(seed)  # noqa: S311 - data for a test
    values = VALUES if chance.random() < 0.8 else VALUES | {"session_id": (None,)}
    return [
        made(number, picked(chance, values), chance.choice(PARTS)) for number in range(1, count + 1)
    ]


def picked(chance, values):
    return {name: chance.choice(each) for name, each in values.items()}


# Rankings: many shares are 0, so that parts are met alone.

SHARES = (0.0, 0.0, 0.0, 0.1, 0.3, 0.5, 0.85, 1.0)
OF_KEYWORDS = {
    "words": (1.0, 1.0, 0.7, 0.0),
    **dict.fromkeys(("char_ngrams", "bigrams", "previous", "second"), SHARES),
    "stop_words": (1.0, 0.25, 0.0),
    "exponent": (1.0, 1.0, 1.5, 0.5),
    "unspaced_exponent": (None, None, 1.0, 2.0),
    "k1": (0.9, 0.9, 0.0, 2.0, 10.0),
    "b": (0.4, None, 0.0, 0.75, 1.0),
}
ADAPTIVE = (AdaptiveShare(0.1, 0.8, 3.0), AdaptiveShare(0.6, 0.0, 5.0), AdaptiveShare())
OF_RECENCY = {"curve": tuple(RecencyCurve), "days": (365.0, 7.0, 30.0, 0.5)}


def any_ranking(chance):
    weights = picked(chance, dict.fromkeys(Weights.__struct_fields__, SHARES))
    is_plain = chance.random() < 0.4 or not any(weights.values())
    return Ranking(
        similarity=chance.choice((1.0, 0.6, 0.25, 0.25, 0.0, *ADAPTIVE)),
        covered_only=chance.choice((False, True)),
        chunk_penalty=chance.choice((0.0, 0.04, 0.5)),
        strip_speaker_names=chance.choice((False, True)),
        max_speaker_share=chance.choice((0.0, 0.2, 0.4, 1.0)),
        full_words=chance.choice((0, 0, 1, 2, 5, 9)),
        keywords=KeywordFields(**picked(chance, OF_KEYWORDS)),
        session=SessionTerms(**picked(chance, dict.fromkeys(TERMS, SHARES))),
        weights=Weights() if is_plain else Weights(**weights),
        recency=Recency(**picked(chance, OF_RECENCY)),
        salience=Salience(
            **picked(chance, dict.fromkeys(("recency", "frequency", "importance"), SHARES))
        ),
    )


TERMS = (
    "previous",
    "next",
    "answer",
    "second_neighbour",
    "question",
    "date",
    "speaker",
    "isolated",
    "date_inside",
    "min_lift",
    "role",
)
# The twin knows neither kinds of answers nor spellings.
PRESETS = tuple(
    msgspec.structs.replace(
        preset,
        session=msgspec.structs.replace(preset.session, answer_type=0.0),
        keywords=msgspec.structs.replace(preset.keywords, fuzziness=0.0),
    )
    for preset in (HYBRID, KEYWORD, SEMANTIC, NEWEST, MOST_IMPORTANT, WEIGHTED_RELEVANCE, RECALL)
)

EVERYBODY = Scope("a", all_users=True)
SCOPES = (
    *([EVERYBODY] * 8),
    *(Scope("a"), Scope("a", "alice"), Scope("a", "bob", "p")),
    *(Scope("a", "alice", None, "s"), Scope("a", None, "p", "t")),
    *(Scope("a", None, "p", all_users=True), Scope("a", None, None, "s", all_users=True)),
)
FILTERS = (
    *([None] * 8),
    *({"importance": {"gte": 0.5}}, {"tags": {"any": ["home"]}}),
    *({"NOT": {"tags": {"contains": "work"}}}, {"speaker": "Ada"}),
    {"OR": [{"created_at": {"gte": NOON - timedelta(days=7)}}, {"content": {"contains": "?"}}]},
)
QUERY_VECTORS = [[one] for one in VECTORS] + [VECTORS[3:5], VECTORS[6:9], [VECTORS[1], VECTORS[2]]]
QUESTIONS = {
    "scope": SCOPES,
    "exclude": ((), (), (), (3,), (1, 2, 5, 8)),
    "scale": (None, None, CosineScale(0.7, 0.03, 0.6, 0.5), CosineScale(-0.1, 0.2, -0.2, -0.3)),
    "min_similarity": (*[None] * 9, -0.123, 0.123, 0.456),
    "min_score": (*[None] * 9, 0.01234, 0.1357, 0.31415),
}


def question_of(ranking, seed):
    """Return what is wanted at random, without a limit, and the filter it was made of."""
    chance = Random(seed)  # noqa: S311 - data for a test
    options = picked(chance, QUESTIONS)
    options["exclude"] = [id_of(number).bytes for number in options["exclude"]]
    where = chance.choice(FILTERS)
    if ranking.similarity and chance.random() < 0.8:
        options["vectors"] = np.array(chance.choice(QUERY_VECTORS), np.float32)
    if chance.random() < 0.5:
        options["context"] = np.array(chance.choice(VECTORS), np.float32)
    if chance.random() < 0.9:
        phrases = chance.choices(WORDS + PHRASES, k=chance.randint(0, 4))
        options["text"] = " ".join(phrases) + chance.choice(ENDINGS) + chance.choice(DATES)
    condition = None if where is None else parse_filter(where)
    return where, Question(
        now=NOW, limit=EVERYTHING, ranking=ranking, filters=condition, with_total=True, **options
    )


seeds = st.integers(0, 2**40)
populations = st.builds(rows_of, seeds, st.integers(0, 60))
any_rankings = st.builds(any_ranking, st.builds(Random, seeds))
presets = st.sampled_from(PRESETS)


def questions(rankings):
    return st.builds(question_of, rankings, seeds)


def floors_are_clear(lines, wanted):
    """Return whether no row is so near to a floor that rounding decides."""
    cosines = [line.near for line in lines if line.near is not None]
    near = [abs(cosine - (wanted.min_similarity or 9)) for cosine in cosines]
    worth = [abs(line.score - (wanted.min_score or 9)) for line in lines]
    return min([*near, *worth], default=1) > CLOSE


def check(index, twin, wanted, where):
    """Compare an index with the twin; return what the index found."""
    if wanted.min_similarity is not None or wanted.min_score is not None:
        floorless = msgspec.structs.replace(wanted, min_similarity=None, min_score=None)
        assume(floors_are_clear(twin.rank(floorless, where), wanted))
    expected = {line.row: line for line in twin.rank(wanted, where)}
    answer = rank(index, wanted)
    assert {hit.row for hit in answer.ranked} == expected.keys()
    assert answer.total == len(answer.ranked) == len(expected)
    for hit in answer.ranked:
        line = expected[hit.row]
        assert hit.id == twin.rows[hit.row].entry.id.bytes
        assert abs(hit.score - line.score) <= CLOSE
        assert (hit.similarity is None) == (line.near is None)
        assert line.near is None or abs(hit.similarity - line.near) <= CLOSE
        optional = {"neighbours"}  # may be shown where there is nothing to lift by
        assert hit.components.keys() - optional == line.components.keys() - optional
        for name, part in hit.components.items():
            assert abs(part - line.components.get(name, 0)) <= CLOSE, name
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


@examples(150)
@given(populations, questions(any_rankings))
def test_any_ranking_is_that_of_the_twin(rows, question):
    where, wanted = question
    found = check(index_of(rows), RankingTwin(rows), wanted, where)
    event(f"found {min(len(found), 3)}")


def divided(lines, wanted, best):
    """Return the scores by row where matches are divided by one."""
    weights = wanted.ranking.weights
    others = weights.recency + weights.importance + weights.access + weights.salience
    others += 0 if wanted.context is None else weights.context
    if not others:
        return {line.row: line.score / best for line in lines}
    share = weights.relevance / (weights.relevance + others)
    return {
        line.row: line.score + share * line.components["relevance"] * (1 / best - 1)
        for line in lines
    }


@examples(150)
@given(populations, questions(any_rankings), st.sampled_from([0.0, 0.5, 2.0]))
def test_matches_are_divided_by_the_best_before_anything_else_is_added(rows, question, given_best):
    where, wanted = question
    wanted = msgspec.structs.replace(wanted, min_score=None, min_similarity=None)
    lines = RankingTwin(rows).rank(wanted, where)
    assume(wanted.text is not None and wanted.ranking.weights.relevance)
    best = given_best or max((line.components["relevance"] for line in lines), default=0)
    assume(best > 0.01)
    expected = divided(lines, wanted, best)
    wanted = msgspec.structs.replace(wanted, best_match=given_best)
    found = rank(index_of(rows), wanted).ranked
    assert {hit.row for hit in found} == expected.keys()
    for hit in found:
        assert abs(hit.score - expected[hit.row]) <= CLOSE / best
    check_order(found, RankingTwin(rows), [expected[hit.row] for hit in found])
    few = rank(index_of(rows), msgspec.structs.replace(wanted, limit=3, with_total=False)).ranked
    assert bytes_of(few) == bytes_of(found[:3])


@pytest.mark.requirement("C017", "C139")
@examples(80)
@given(populations, questions(presets))
def test_every_preset_ranks_as_the_twin_does(rows, question):
    where, wanted = question
    check(index_of(rows), RankingTwin(rows), wanted, where)


@examples(60)
@given(populations, seeds, questions(any_rankings))
def test_rows_that_change_or_go_are_ranked_as_what_is_left(rows, seed, question):
    where, wanted = question
    chance = Random(seed)  # noqa: S311 - data for a test
    earlier = rows_of(seed, len(rows) + 5)
    changed = [
        row
        for row, one in zip(rows, earlier, strict=False)
        if one.entry.content != row.entry.content and chance.random() < 0.5
    ]  # a row of the same content would keep its vectors
    numbers = {row.number for row in changed}
    before = [earlier[row.number - 1] if row.number in numbers else row for row in rows]
    removed = earlier[len(rows) :]
    index = index_of(before + removed)
    check(index, RankingTwin(before + removed), wanted, where)
    assert index.apply(batch(changed, since=1, seq=2, removed=[row.number for row in removed]))
    for row in changed:  # accesses never become fewer
        known, given = earlier[row.number - 1].entry, row.entry
        times = [time for time in (known.last_accessed_at, given.last_accessed_at) if time]
        count = max(known.access_count, given.access_count)
        given.record_accesses(max(times, default=None), count)
    check(index, RankingTwin(rows), wanted, where)


@pytest.mark.requirement("C155")
@examples(60)
@given(populations, questions(presets | any_rankings), st.integers(0, 30))
def test_the_answer_of_any_limit_is_the_head_of_that_of_one_more(rows, question, limit):
    _, wanted = question
    index = index_of(rows)
    everything = rank(index, wanted)
    for most in (0, 1, limit, limit + 1, len(everything.ranked)):
        head = rank(index, msgspec.structs.replace(wanted, limit=most))
        assert bytes_of(head.ranked) == bytes_of(everything.ranked[:most])
        assert head.total == everything.total
    uncounted = rank(index, msgspec.structs.replace(wanted, limit=limit, with_total=False))
    assert bytes_of(uncounted.ranked) == bytes_of(everything.ranked[:limit])
    assert uncounted.total is None


@examples(40)
@given(populations, questions(any_rankings), st.randoms())
def test_the_order_in_which_rows_came_changes_nothing_but_the_order_of_turns(
    rows, question, chance
):
    _, wanted = question
    shuffled = chance.sample(rows, len(rows))
    turns = iter([row for row in rows if row.entry.session_id is not None])
    moved = [row if row.entry.session_id is None else next(turns) for row in shuffled]
    renumbered = [row._replace(number=number) for number, row in enumerate(moved, 1)]
    index = index_of(renumbered[::2])
    rank(index, wanted)
    assert index.apply(batch(renumbered[1::2], since=1, seq=2))
    assert bytes_of(rank(index, wanted).ranked) == bytes_of(rank(index_of(rows), wanted).ranked)


@examples(15)
@given(st.integers(0, 2**32), st.integers(300, 400), questions(presets | any_rankings))
def test_hundreds_of_rows_are_ranked_as_by_the_twin(seed, count, question):
    where, wanted = question
    rows = rows_of(seed, count)
    index = index_of(rows)
    found = check(index, RankingTwin(rows), wanted, where)
    for limit in (1, 10, 100):
        head = rank(index, msgspec.structs.replace(wanted, limit=limit)).ranked
        assert bytes_of(head) == bytes_of(found[:limit])


FUSED = Ranking(
    similarity=0.4,
    keywords=KeywordFields(words=0.7, char_ngrams=0.2, bigrams=0.1, previous=0.8, second=0.5),
    session=SessionTerms(0.3, 0.4, 0.5, 0.2, 0.05, 0.2, 0.03),
    weights=Weights(0.6, 0.2, 0.1, 0.1, 0.2, 0.3),
)
FUSED_WANTED = Question(
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
    rows = rows_of(1, 400)
    index = index_of(rows)
    alone = bytes_of(check(index, RankingTwin(rows), FUSED_WANTED, None))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: rank(index, FUSED_WANTED), range(40)))
    assert {bytes_of(answer.ranked) for answer in answers} == {alone}


def test_rows_that_are_alike_score_alike_and_come_newest_first_then_by_id():
    contents = [
        {"content": "red tea", "created_at": NOON - timedelta(days=at % 3)} for at in range(30)
    ]
    rows = [made(number, one, ((3, 2, 1),)) for number, one in enumerate(contents, 1)]
    plain = Ranking(
        similarity=0.4, keywords=FUSED.keywords, weights=Weights(0.6, 0, 0.1, 0.1, 0, 0.3)
    )
    found = rank(index_of(rows), msgspec.structs.replace(FUSED_WANTED, ranking=plain)).ranked
    assert len({hit.score for hit in found}) == 1
    assert len(found) == 30
    expected = sorted(rows, key=lambda row: (NOON - row.entry.created_at, row.entry.id.bytes))
    assert [hit.row for hit in found] == [row.number for row in expected]


@pytest.mark.parametrize(("count", "share"), [(125, 0.2), (300, 0.2), (300, 1.0)])
def test_words_that_more_than_a_hundred_rows_have_may_be_passed_over(count, share):
    contents = ["red tea", "tea", "cup of tea", "lamp", "tea boat"]  # four in five have tea
    rows = [
        made(number, {"content": contents[number % 5], "created_at": NOON})
        for number in range(1, count + 1)
    ]
    ranking = Ranking(similarity=0.0, keywords=KeywordFields(max_df=share))
    wanted = Question(
        scope=EVERYBODY, now=NOW, limit=EVERYTHING, ranking=ranking, text="red tea", with_total=True
    )
    found = check(index_of(rows), RankingTwin(rows), wanted, None)
    assert len(found) == (60 if (count, share) == (300, 0.2) else count * 4 // 5)


def test_what_matches_is_counted_though_one_of_several_queries_is_nothing():
    row = made(1, {"content": "tea", "created_at": NOON}, ((1, 0, 0),))
    queries = np.array([(1, 0, 0), (0, 0, 0)], np.float32)
    ranking = Ranking(weights=Weights(relevance=0.0, importance=1.0))
    wanted = Question(
        scope=EVERYBODY, now=NOW, limit=1, ranking=ranking, vectors=queries, with_total=True
    )
    answer = rank(index_of([row]), wanted)
    assert [hit.row for hit in answer.ranked] == [1]
    assert answer.total == 1

"""Rankings by proposals: each hit scores as in the ranking of all, whatever a source proposes."""

import logging
from random import Random
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mnemic.errors import ArrayTypeError
from mnemic.index import NativeIndex
from mnemic.model import (
    HYBRID,
    SEMANTIC,
    AdaptiveShare,
    KeywordFields,
    Ranking,
    Recency,
    RecencyCurve,
    Scope,
    SessionTerms,
    Weights,
)
from mnemic.model.filter import parse_filter
from mnemic.model.ranking import Order
from mnemic.model.timestamps import to_microseconds
from mnemic.repository.proposals import MAX_REQUESTS, MIN_PROPOSALS, WIDENING, rank
from tests.support.candidate_sources import FailingSource, Made, RandomSource, RecordingSource
from tests.support.clock import DAY, NOON
from tests.support.entries import numbered
from tests.support.exact_source import ExactSource
from tests.support.ranking_index import DIM, batch
from tests.support.ranking_twin import Row
from tests.support.rows import Question, record
from tests.support.rows import batch as batch_of_records
from tests.support.rows import rank as exactly
from tests.support.rows import wanted as asked
from tests.support.tiers import examples

NOW = to_microseconds(NOON)
EVERYTHING = 1000
WORDS = ("tea", "milk", "red", "sofa", "quay", "noon", "lamp", "fish")
VECTORS = ((1, 0, 0), (0, 1, 0), (0.6, 0.8, 0), (-1, 0.5, 0.1), (0, 0, 0), (1, 1, 1))
PARTS = ((), *((one,) for one in VECTORS), (VECTORS[0], VECTORS[3]), (VECTORS[1], VECTORS[5]))
SHARES = (0.0, 0.0, 0.2, 0.5)
EVERYBODY = Scope("a", all_users=True)
SCOPES = (EVERYBODY, EVERYBODY, Scope("a"), Scope("a", "alice"), Scope("a", "bob", None, "s"))
FILTERS = (None, None, None, {"importance": {"gte": 0.5}}, {"content": {"contains": "tea"}})


def any_row(chance, number):
    fields = {
        "content": " ".join(chance.choices(WORDS, k=chance.randint(1, 4))) + chance.choice(" ?"),
        "user_id": chance.choice([None, "alice", "bob"]),
        "session_id": chance.choice([None, "s", "s", "t"]),
        "position": chance.choice([None, 1, 2, 3, 4]),
        "speaker": chance.choice([None, None, "Ada", "Bob"]),
        "created_at": NOON - chance.choice([0, 1, 7, 40, 400]) * DAY,
        "importance": chance.choice([0.0, 0.5, 1.0]),
        "access_count": chance.choice([0, 1, 99]),
        "expires_at": chance.choice([None, None, None, NOON, NOON + DAY]),
    }
    parts = tuple(tuple(chance.gauss(0, 1) for _ in range(DIM)) for _ in range(1))
    vectors = parts if chance.random() < 0.3 else chance.choice(PARTS)
    return Row(number, numbered(number * 37 % 1009, **fields), vectors)


def rows_of(seed, count):
    chance = Random(seed)  # noqa: S311 - data for a test
    return [any_row(chance, number) for number in range(1, count + 1)]


def any_ranking(chance):
    if chance.random() < 0.3:
        return chance.choice([SEMANTIC, HYBRID])
    weights = [chance.choice(SHARES) for _ in Weights.__struct_fields__]
    return Ranking(
        similarity=chance.choice([1.0, 0.6, 0.25, AdaptiveShare(0.1, 0.8, 3.0)]),
        keywords=KeywordFields(
            char_ngrams=chance.choice(SHARES),
            bigrams=chance.choice(SHARES),
            previous=chance.choice(SHARES),
            second=chance.choice(SHARES),
            exponent=chance.choice([1.0, 1.5]),
        ),
        session=SessionTerms(*(chance.choice(SHARES) for _ in SessionTerms.__struct_fields__)),
        strip_speaker_names=chance.random() < 0.5,
        max_speaker_share=chance.choice([0.0, 0.4]),
        weights=Weights() if chance.random() < 0.5 else Weights(1.0, *weights[1:]),
        recency=Recency(chance.choice(list(RecencyCurve)), 30.0),
    )


def any_question(seed):
    chance = Random(seed)  # noqa: S311 - data for a test
    where = chance.choice(FILTERS)
    words = chance.choices(WORDS, k=chance.randint(0, 4))
    ending = chance.choice(["", "?", " Ada", " yesterday", " 2026-04-24"])
    context = [chance.choice(VECTORS)] if chance.random() < 0.3 else None
    return Question(
        scope=chance.choice(SCOPES),
        now=NOW,
        limit=EVERYTHING,
        ranking=any_ranking(chance),
        text=None if chance.random() < 0.1 else " ".join(words) + ending,
        vectors=np.array(chance.sample(VECTORS, chance.randint(1, 2)), np.float32),
        context=None if context is None else np.array(context, np.float32),
        filters=None if where is None else parse_filter(where),
        exclude=[chance.choice([UUID(int=37), UUID(int=74)]).bytes] * chance.randint(0, 1),
        min_similarity=chance.choice([None, None, None, 0.3]),
        min_score=chance.choice([None, None, None, 0.2]),
        min_salience=chance.choice([None, None, None, 0.2]),
    )


def index_of(rows, make_source=None):
    index = NativeIndex(DIM, make_source)
    assert index.apply(batch(rows))
    return index


def by_source(index, question, limit, exact_limit=0):
    inputs = question.inputs._replace(limit=limit)
    return rank(index, question.search, inputs, exact_limit)


def bytes_of(ranked):
    """Return hits so that two are equal only to the last bit."""
    return [
        (hit.row, hit.id, repr(hit.score), repr(sorted(hit.components.items()))) for hit in ranked
    ]


seeds = st.integers(0, 2**40)
questions = st.builds(any_question, seeds)
populations = st.builds(rows_of, seeds, st.integers(0, 60))
many = st.builds(rows_of, seeds, st.integers(300, 400))


@examples(200)
@given(populations, questions, st.integers(1, 30))
def test_a_source_that_proposes_all_rows_changes_nothing(rows, question, limit):
    exact = exactly(index_of(rows), question).ranked
    page = by_source(index_of(rows, ExactSource), question, limit)
    assert bytes_of(page.ranked) == bytes_of(exact[:limit])
    assert not exactly(index_of(rows, ExactSource), question).approximate


@examples(300)
@given(populations | many, questions, seeds, st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.data())
def test_whatever_is_proposed_hits_score_as_in_the_ranking_of_all(
    rows, question, seed, share, data
):
    removed = data.draw(st.lists(st.sampled_from(rows), max_size=5)) if rows else []
    index = index_of(rows, lambda dim: RandomSource(dim, seed, share))
    assert index.apply(batch([], since=1, seq=2, removed=[row.number for row in removed]))
    exact = bytes_of(exactly(index, question).ranked)
    for limit in (1, 5, 40, EVERYTHING):
        page = by_source(index, question, limit)
        found = bytes_of(page.ranked)
        assert len(found) == min(limit, len(exact)), "min(limit, matches) hits"
        assert [hit for hit in exact if hit in found] == found, "scores, parts and order"
        assert page.approximate or found == exact[:limit]
        event(f"approximate: {page.approximate}")


@examples(100)
@given(populations | many, questions, st.lists(st.integers(-9, 500), max_size=60))
def test_proposed_matches_are_found_however_far_down_they_are(rows, question, proposed):
    index = index_of(rows)
    inputs = question.inputs._replace(proposed=np.array(proposed, np.int64))
    exact = bytes_of(exactly(index, question).ranked)
    found = bytes_of(index.rank(question.search, inputs).ranked)
    assert [hit for hit in exact if hit in found] == found
    assert {hit[0] for hit in found} >= {hit[0] for hit in exact} & set(proposed)


@examples(60)
@given(populations, populations, questions, st.integers(1, 10), seeds)
def test_what_other_users_store_changes_neither_hits_nor_scores(
    rows, others, question, limit, seed
):
    """The exact source and the core hold all users' rows; a user's answer depends on none but his.

    Rows of others come after, so that the numbers of the user's rows stay.
    """
    own = [row for row in rows if row.entry.user_id == "alice"]
    foreign = [
        row._replace(number=row.number + 100, entry=msgspec.structs.replace(row.entry, user_id="b"))
        for row in others
    ]
    question = msgspec.structs.replace(question, scope=Scope("a", "alice"))
    alone, among = index_of(own, ExactSource), index_of(own + foreign, ExactSource)
    pages = [by_source(each, question, limit) for each in (alone, among)]
    assert bytes_of(pages[0].ranked) == bytes_of(pages[1].ranked)
    assert pages[0].approximate == pages[1].approximate
    # A source that proposes anything may change which rows are found, but no score.
    chosen = index_of(own + foreign, lambda dim: RandomSource(dim, seed))
    exact = bytes_of(exactly(alone, question).ranked)
    assert set(bytes_of(by_source(chosen, question, limit).ranked)) <= set(exact)


# What proposals mean for the parts of an answer


def vectors_of(count):
    return {row: (1.0, row / 100) for row in range(1, count + 1)}


def native(count, make_source=None, **fields):
    index = NativeIndex(2, make_source)
    records = [record(row, **fields) for row in range(1, count + 1)]
    assert index.apply(batch_of_records(records, vectors=vectors_of(count)))
    return index


def proposing(index, rows, **options):
    question = asked(EVERYBODY, **options)
    return index.rank(question.search, question.inputs._replace(proposed=np.array(rows, np.int64)))


def test_only_proposed_rows_are_ranked_by_similarity():
    page = proposing(native(9), [7, 3, 5])
    assert [hit.row for hit in page.ranked] == [3, 5, 7]
    assert page.approximate
    assert not proposing(native(3), [3, 1, 2]).approximate
    assert proposing(native(9), []).ranked == []


def test_the_best_keyword_matches_are_considered_too():
    index = NativeIndex(2)
    contents = {1: "tea", 2: "milk", 3: "tea and milk", 4: "fish"}
    records = [record(row, content=content) for row, content in contents.items()]
    assert index.apply(batch_of_records(records, vectors=vectors_of(4)))
    by_words = Ranking(similarity=0.5)
    assert {hit.row for hit in proposing(index, [4], text="tea", ranking=by_words).ranked} == {
        *(1, 3, 4)
    }


def test_neighbours_of_what_is_considered_are_considered_too():
    session = SessionTerms(previous=0.5, second_neighbour=0.2)
    ranking = Ranking(session=session)
    index = native(9, session="s")
    found = proposing(index, [5], text="?", ranking=ranking).ranked
    assert sorted(hit.row for hit in found) == [3, 4, 5, 6, 7]
    exact = {
        hit.row: hit for hit in exactly(index, asked(EVERYBODY, text="?", ranking=ranking)).ranked
    }
    assert bytes_of(found) == bytes_of([exact[hit.row] for hit in found])


def test_a_total_counts_the_matches_considered():
    index = native(9)
    assert proposing(index, [7, 3, 5, 5, 99], with_total=True).total == 3
    assert proposing(index, [7, 3, 5], with_total=True, min_similarity=0.9985).total == 2
    assert proposing(index, [], with_total=True).total == 0


def test_a_relative_search_divides_by_the_best_match_considered():
    index = native(9)
    question = {"best_match": 0.0, "text": "?"}
    best, *_ = proposing(index, [7, 5], **question).ranked
    assert (best.row, best.score) == (5, 1.0)
    given_best = proposing(index, [7, 5], best_match=2.0, text="?").ranked
    exact = exactly(index, asked(EVERYBODY, best_match=2.0, text="?")).ranked
    assert set(bytes_of(given_best)) <= set(bytes_of(exact))


@pytest.mark.parametrize("order", list(Order))
def test_an_order_in_place_of_the_score_ignores_proposals(order):
    page = proposing(native(5), [2], order=order, limit=3)
    exact = exactly(native(5), asked(EVERYBODY, 3, order=order))
    assert bytes_of(page.ranked) == bytes_of(exact.ranked)
    assert len(page.ranked) == 3
    assert not page.approximate


def test_a_million_hostile_proposals_do_no_harm():
    index = native(9)
    hostile = np.concatenate([np.arange(-500_000, 500_000), np.full(1000, 3)])
    page = proposing(index, hostile)
    assert bytes_of(page.ranked) == bytes_of(exactly(index, asked(EVERYBODY)).ranked)
    assert not page.approximate


def test_proposals_that_are_no_numbers_are_refused():
    index, question = native(3), asked(EVERYBODY)
    inputs = question.inputs._replace(proposed=np.array(["1"]))
    with pytest.raises(ArrayTypeError):
        index.rank(question.search, inputs)


# The rows of a selection


def selected(index, few=0, scope=EVERYBODY, **options):
    question = asked(scope, **options)
    return index.selected(question.search, question.inputs, few)


def test_selected_rows_are_those_of_the_scope_the_time_the_filters_and_the_exclusions():
    index = NativeIndex(2)
    records = [
        *(record(1, "alice"), record(2, "bob"), record(3, "alice", expires_at=NOW)),
        *(record(4, "alice", importance=0.1), record(5, "alice"), record(90, "alice")),
    ]
    assert index.apply(batch_of_records(records))
    options = {
        "filters": parse_filter({"importance": {"gte": 0.5}}),
        "exclude": [UUID(int=5).bytes],
        "now": NOW,
    }
    found = selected(index, scope=Scope("a", "alice"), **options)
    assert found.size == 2
    assert found.rows.to_rows().tolist() == [1, 90]
    alices = selected(index, scope=Scope("a", "alice"))
    assert (alices.size, alices.rows.rows) == (5, None)
    assert alices.rows.to_rows().tolist() == [1, 3, 4, 5, 90]


# Which searches a source is asked for


def requests_of(count=300, limit=10, exact_limit=0, **options):
    made = Made(RecordingSource)
    index = native(count, made)
    question = asked(EVERYBODY, limit, **options)
    page = rank(index, question.search, question.inputs, exact_limit)
    exact = exactly(index, question)
    assert bytes_of(page.ranked) == bytes_of(exact.ranked)
    assert page.total == exact.total
    return [(queries, k) for queries, k, _ in made.last.requests]


def test_a_source_is_asked_for_some_more_rows_than_are_wanted():
    assert requests_of() == [(1, MIN_PROPOSALS)]
    assert requests_of(limit=20) == [(1, 80)]
    assert requests_of(count=20) == [(1, 20)]


def test_a_source_is_asked_for_what_is_near_the_context_too():
    context = np.array([(0, 1)], np.float32)
    question = asked(EVERYBODY, 10, ranking=Ranking(weights=Weights(context=1.0)), context=context)
    made = Made(RecordingSource)
    index = native(300, made)
    page = rank(index, question.search, question.inputs, 0)
    assert [k for _, k, _ in made.last.requests] == [MIN_PROPOSALS] * 2
    assert set(bytes_of(page.ranked)) <= set(
        bytes_of(exactly(index, msgspec.structs.replace(question, limit=300)).ranked)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"exact_limit": 300},
        {"with_total": True},
        {"order": Order.NEWEST},
        {"query": None, "text": "memory", "ranking": Ranking(similarity=0.0)},
        {"limit": 0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_searches_are_exact(options):
    assert requests_of(**options) == []


def test_more_is_requested_until_enough_pass_a_floor():
    made = Made(RecordingSource)
    index = NativeIndex(2, made)
    records = [record(row, importance=float(row > 280)) for row in range(1, 301)]
    assert index.apply(batch_of_records(records, vectors=vectors_of(300)))
    question = asked(EVERYBODY, 5, min_salience=0.3, now=to_microseconds(NOON))
    page = rank(index, question.search, question.inputs, 0)
    assert [hit.row for hit in page.ranked] == [281, 282, 283, 284, 285]
    asked_for = [k for _, k, _ in made.last.requests]
    assert asked_for == [MIN_PROPOSALS, MIN_PROPOSALS * WIDENING, 300][: len(asked_for)]
    assert len(asked_for) == MAX_REQUESTS


def test_if_too_few_pass_all_memories_are_ranked():
    made = Made(RandomSource, share=0.0)
    index = native(2000, made)
    question = asked(EVERYBODY, 10)
    page = rank(index, question.search, question.inputs, 0)
    assert not page.approximate
    assert bytes_of(page.ranked) == bytes_of(exactly(index, question).ranked)


# Sources that fail


@pytest.mark.parametrize(
    "answer",
    [
        None,
        lambda _: None,
        lambda _: "rows",
        lambda found: found[:-1],
        lambda found: found.astype(np.float64),
        lambda found: found.reshape(2, -1),
        lambda _: [object()],
    ],
)
def test_a_source_that_fails_costs_no_answer(answer, caplog):
    made = Made(FailingSource)
    index = native(300, made)
    made.last.answer = answer
    question = asked(EVERYBODY, 10)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            page = rank(index, question.search, question.inputs, 0)
            assert bytes_of(page.ranked) == bytes_of(exactly(index, question).ranked)
            assert not page.approximate
    assert len(made.last.requests) == 3
    assert "secret" not in caplog.text
    assert caplog.text.count("cannot answer: ValueError") == int(answer is None)


def test_a_source_that_cannot_apply_a_change_is_not_used_until_the_next_full_load(caplog):
    made = Made(FailingSource)
    index = native(300, made)
    made.last.answer = lambda found: found
    question = asked(EVERYBODY, 10)
    assert index.has_source
    assert rank(index, question.search, question.inputs, 0).approximate
    made.last.fails_to_add = True
    assert index.apply(batch_of_records([record(301)], since=1, seq=2))
    page = rank(index, question.search, question.inputs, 0)
    assert not index.has_source
    assert not page.approximate
    assert "secret" not in caplog.text
    assert index.apply(batch_of_records([record(row) for row in range(1, 200)], seq=3))
    made.last.answer = lambda found: found
    assert index.has_source
    assert rank(index, question.search, question.inputs, 0).approximate


# Rows come to a source with the rows of the index


def held_by(source, count=400):
    return sorted(source.nearest(np.array([(1, 0)], np.float32), count, None).tolist())


def test_a_source_gets_the_changes_of_its_index():
    made = Made(ExactSource)
    index = native(5, made)
    assert index.apply(batch_of_records([record(9)], since=1, seq=2, removed=[2, 3]))
    assert len(index) == 4  # reading applies what is pending
    assert held_by(made.last) == [1, 4, 5, 9]
    assert len(made.sources) == 1, "an index without rows has none"


def test_a_source_gets_the_rows_of_a_full_load_in_batches():
    made = Made(ExactSource)
    index = NativeIndex(2, made)
    whole = batch_of_records([record(row) for row in range(1, 8)])
    with index.loader() as loader:
        loader.add_records(whole.records[:4])
        loader.add_vectors(np.array(whole.embedded[:4]), whole.vectors[:4])
        rest = batch_of_records([record(row) for row in range(5, 8)], seq=4)
        assert index.apply(rest, loader)
    assert held_by(made.last) == [1, 2, 3, 4, 5, 6, 7]
    question = asked(EVERYBODY)
    assert bytes_of(rank(index, question.search, question.inputs, 0).ranked) == bytes_of(
        exactly(index, question).ranked
    )


def test_an_index_that_is_replaced_gets_the_source_of_the_fresh_one():
    made = Made(ExactSource)
    index, fresh = native(5, made), NativeIndex(2, made)
    assert fresh.apply(batch_of_records([record(7), record(8)], seq=2))
    assert index.replace_with(fresh)
    assert index.nearest(np.array([(1, 0)], np.float32), 9, None).tolist() == [7, 8]
    assert index.apply(batch_of_records([record(9)], since=2, seq=3))
    assert len(index) == 3
    assert held_by(made.last) == [7, 8, 9]


def test_an_index_without_vectors_has_no_source():
    index = NativeIndex(None, ExactSource)
    assert index.apply(batch_of_records([record(1)]))
    assert not index.has_source
    assert index.nearest(np.array([(1, 0)], np.float32), 1, None) is None

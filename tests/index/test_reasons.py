"""The reasons for a score add up to it, and pages of a ranking join to the whole of it."""

import math
from random import Random

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.index.test_ranking_property import (
    CLOSE,
    any_ranking,
    any_rankings,
    bytes_of,
    populations,
    presets,
    question_of,
    questions,
    rows_of,
    seeds,
)
from tests.support.ranking_index import index_of
from tests.support.ranking_twin import RankingTwin, words_of
from tests.support.rows import rank
from tests.support.tiers import examples

SAME = 1e-9
OF_MATCH = ("chunks", "neighbours", "question", "role", "date", "speaker", "answer_type")
STATIC = ("recency", "importance", "access", "salience")


def explained(rows, question):
    """Return the twin's lines by row, and the hits with their reasons."""
    where, wanted = question
    wanted = msgspec.structs.replace(wanted, with_reasons=True, min_score=None, min_similarity=None)
    lines = {line.row: line for line in RankingTwin(rows).rank(wanted, where)}
    return lines, rank(index_of(rows), wanted).ranked


def shares_of_match(parts):
    return sum(parts.get(name, 0.0) for name in ("similarity", "keyword", *OF_MATCH))


@examples(200)
@given(populations, questions(any_rankings | presets))
@pytest.mark.requirement("R012")
def test_the_parts_of_any_score_add_up_to_it(rows, question):
    for hit in explained(rows, question)[1]:
        parts = hit.reasons[0]
        assert math.fsum(parts.values()) == pytest.approx(hit.score, abs=SAME)


@examples(150)
@given(populations, questions(any_rankings | presets))
def test_each_part_is_its_component_by_its_weight(rows, question):
    weights = question[1].ranking.weights
    lines, hits = explained(rows, question)
    for hit in hits:
        parts, components, line = hit.reasons[0], hit.components, lines[hit.row]
        share = components.get("share", 1.0)
        of_match = {name: components.get(name, 0.0) for name in OF_MATCH}
        of_match["similarity"] = share * line.placed
        of_match["keyword"] = (1 - share) * components.get("keyword", 0.0)
        whole = sum(of_match.values())
        unit = shares_of_match(parts) / whole if abs(whole) > CLOSE else None
        for name, value in of_match.items():
            if unit is not None and weights.relevance:
                assert parts.get(name, 0.0) == pytest.approx(unit * value, abs=CLOSE)
        ratios = {
            name: parts[name] / (components[name] * getattr(weights, name))
            for name in STATIC
            if components.get(name, 0) > CLOSE
        }
        assert max(ratios.values(), default=0) == pytest.approx(min(ratios.values(), default=0))
        if "clamped" in parts:  # nothing but a negative match beside other parts
            assert shares_of_match(parts) == pytest.approx(-parts["clamped"], abs=SAME)
            assert parts["clamped"] > 0


@examples(200)
@given(populations, questions(any_rankings | presets))
def test_the_neighbour_is_the_one_in_play_that_lifts_most(rows, question):
    where, wanted = question
    hits = explained(rows, question)[1]
    twin = RankingTwin(rows)
    in_play = {
        line.row
        for line in twin.rank(
            msgspec.structs.replace(wanted, min_score=None, min_similarity=None), where
        )
    }
    ids = {row.entry.id.bytes: row.number for row in rows}
    for hit in hits:
        if (neighbour := hit.reasons[2]) is None:
            continue
        number = ids[neighbour]
        near = [twin.neighbours[hit.row][side] for side in (0, 1)]
        second = [twin.neighbours[one][side] for side, one in enumerate(near) if one is not None]
        assert number in {*near, *second}
        assert twin.rows[number].entry.user_id == twin.rows[hit.row].entry.user_id
        assert wanted.scope.has(twin.rows[number].entry)
        assert hit.components["neighbours"] > 0
        assert number in in_play


@examples(150)
@given(populations, questions(any_rankings | presets))
@example(rows_of(1, 36), question_of(any_ranking(Random(41)), 41))  # noqa: S311 - n-grams of an earlier turn
@example(rows_of(1, 45), question_of(any_ranking(Random(644)), 596))  # noqa: S311 - only the second turn before
def test_words_are_those_of_the_query_and_of_the_memory(rows, question):
    hits = explained(rows, question)[1]
    twin = RankingTwin(rows)
    for hit in hits:
        own = set(words_of(twin.rows[hit.row].entry.content))
        asked = set(words_of(question[1].text or ""))
        for token, term, turn in hit.reasons[1]:
            assert token in asked
            assert 0 <= turn <= 2
            assert turn or term in own
        fields = question[1].ranking.keywords
        if not fields.words and not fields.char_ngrams:
            assert not hit.reasons[1]
        elif fields.words and not fields.bigrams and not fields.exponent > 1:
            assert bool(hit.reasons[1]) >= (hit.components.get("keyword", 0.0) > CLOSE)


@examples(120)
@given(populations, questions(any_rankings | presets), st.sampled_from([1, 3, 10]), seeds)
def test_pages_join_to_the_whole_answer(rows, question, size, seed):
    _, wanted = question
    index = index_of(rows)
    whole = rank(index, wanted)
    pages = [
        rank(
            index,
            msgspec.structs.replace(
                wanted, limit=size, offset=offset, with_total=bool((seed + offset) % 2)
            ),
        )
        for offset in range(0, len(whole.ranked) + size, size)
    ]
    joined = [hit for page in pages for hit in page.ranked]
    assert bytes_of(joined) == bytes_of(whole.ranked)
    assert not pages[-1].ranked
    assert {page.total for page in pages} <= {None, whole.total}

"""Evidence: nothing is found where neither the best cosine nor the best keyword match is enough.

A memory of the time, of the speaker or of the role that a query asks for is enough by itself.
"""

import math

import msgspec
from hypothesis import assume, event, given
from hypothesis import strategies as st

from mnemic.model.search import EvidenceFloor
from tests.index.test_ranking_property import PRESETS, populations, questions
from tests.support.ranking_index import index_of
from tests.support.ranking_twin import RankingTwin, is_stop_word, words_of
from tests.support.rows import rank
from tests.support.tiers import examples

CLOSE = 1e-4
MANY = 100
ENOUGH = 0.2


def best_of(rows, where, wanted):
    """Return the best cosine, and the best keyword match before its power."""
    floorless = msgspec.structs.replace(wanted, min_score=None, min_similarity=None)
    lines = RankingTwin(rows).rank(floorless, where)
    exponent = wanted.ranking.keywords.exponent
    words = [line.components.get("keyword", 0.0) ** (1 / exponent) for line in lines]
    cosines = [line.near for line in lines if line.near is not None]
    return max(cosines, default=-math.inf), max(words, default=0.0)


def margin_of(rows, where, wanted, count):
    """Return by how much the evidence is above its floor, by the documented rule."""
    cosine, keyword = best_of(rows, where, wanted)
    has_words = "keyword" in names_of(wanted)
    is_plain = has_words and any(map(is_stop_word, words_of(wanted.text or "")))
    floor = wanted.evidence.similarity
    if wanted.vectors is None:
        return keyword - 0.03
    if floor is None:
        return math.inf
    is_known = is_plain or (has_words and RankingTwin(rows).knows_words(wanted))
    assume(abs(keyword - ENOUGH) > CLOSE)
    if keyword > ENOUGH:
        return math.inf
    counted = keyword if is_known else 0.0
    scale = wanted.scale if wanted.evidence.is_learned else None
    if scale is not None and is_known:
        limit = scale.lower_limit
        assume(abs(cosine - limit) > CLOSE)
        if max(cosine, 0) < limit:
            return math.inf
    elif scale is not None and has_words:
        floor += 0.25 * (1 - floor)
    fewer = (0.2 if is_plain else 0.1) * max(0.0, math.log(MANY / max(1, count)))
    needed = floor - (1 - floor) * (3.2 * counted + fewer)
    return math.inf if needed <= -CLOSE else cosine - needed


def names_of(wanted):
    return {"keyword"} if wanted.ranking.has_keywords and wanted.text is not None else set()


SIMPLE = [
    msgspec.structs.replace(
        preset,
        strip_speaker_names=False,
        keywords=msgspec.structs.replace(preset.keywords, unspaced_exponent=None),
    )
    for preset in PRESETS
    if preset.weights.relevance
]
floors = st.sampled_from([None, -0.2, 0.1, 0.25, 0.4, 0.6, 0.9])


@examples(300)
@given(populations, questions(st.sampled_from(SIMPLE)), floors, st.booleans())
def test_nothing_is_found_just_where_the_evidence_is_below_its_floor(
    rows, question, similarity, is_learned
):
    where, wanted = question
    assume(wanted.text is not None)
    wanted = msgspec.structs.replace(
        wanted, evidence=EvidenceFloor(similarity, is_learned), min_score=None, min_similarity=None
    )
    free = rank(index_of(rows), msgspec.structs.replace(wanted, evidence=None))
    count = rank(
        index_of(rows), msgspec.structs.replace(wanted, text=None, vectors=None, evidence=None)
    ).total
    is_asked_for = RankingTwin(rows).has_asked_for(wanted, where)
    margin = math.inf if is_asked_for else margin_of(rows, where, wanted, count)
    assume(abs(margin) > CLOSE)
    found = rank(index_of(rows), wanted)
    event(f"enough: {margin > 0}, asked for: {is_asked_for}")
    if margin > 0:
        assert found.ranked == free.ranked
        assert found.total == free.total
    else:
        assert (found.ranked, found.total) == ([], 0)
        assert found.weak or not free.ranked
        few = rank(index_of(rows), msgspec.structs.replace(wanted, limit=1, with_total=False))
        assert not few.ranked

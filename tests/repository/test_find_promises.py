"""Searches at the edges of their documentation."""

import math
import time

import msgspec
import numpy as np
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError
from mnemic.index import NativeIndex
from mnemic.model import KEYWORD, KeywordFields, Ranking, Recency, Scope, Weights
from mnemic.model.ranking import MOST_IMPORTANT
from tests.support.embedders import WordEmbedder
from tests.support.rows import batch, rank, record, wanted

AGENT = Scope("a")


@pytest.mark.parametrize("count", [999, 1000])
def test_a_word_that_every_memory_has_finds_them_by_keyword_however_many_there_are(count):
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([f"ferry {number}" for number in range(count)])
        assert len(memory.search("ferry", limit=5)) == 5


def test_what_others_write_does_not_keep_a_user_from_finding_by_keyword():
    with Memory(":memory:", embedder=None) as memory:
        memory.add("the ferry leaves at noon", user_id="alice")
        memory.add_many([f"ferry {number}" for number in range(1000)], user_id="bob")
        assert len(memory.search("ferry", user_id="alice")) == 1


class SignedEmbedder(WordEmbedder):
    """Gives "no" the opposite of what it gives everything else."""

    def embed(self, texts):
        vectors = super().embed(["tea"] * len(texts))
        vectors[[text == "no" for text in texts]] *= -1
        return vectors


@pytest.mark.requirement("C057", "C073", "C156")
@pytest.mark.parametrize("weights", [None, {"relevance": 0.6, "recency": 0.2}])
def test_a_negative_cosine_counts_as_nothing_in_scores_and_parts(weights):
    with Memory(":memory:", embedder=SignedEmbedder()) as memory:
        memory.add_many(["no", "yes"])
        found = memory.search("tea", search_type="semantic", ranking=weights, explain=True)
        assert [hit.content for hit in found] == ["yes", "no"]
        for hit in found:
            taken = hit.components.pop("question", 0)
            assert -1 <= taken <= 0
            assert all(0 <= part <= 1 for part in hit.components.values())
        assert all(0 <= hit.score <= 1 for hit in found)


@pytest.mark.requirement("C015")
@pytest.mark.parametrize("floor", ["min_score", "min_similarity"])
def test_a_floor_that_is_no_number_is_refused(floor):
    made = NativeIndex(2)
    assert made.apply(batch([record(1), record(2)]))
    with pytest.raises(InvalidArgumentError, match=floor):
        rank(made, wanted(AGENT, **{floor: math.nan}))


@pytest.mark.requirement("C015")
@pytest.mark.parametrize(
    ("name", "given"),
    [("k1", -0.1), ("k1", 10.1), ("k1", math.nan), ("b", -0.1), ("b", 1.1), ("exponent", 0)],
)
def test_a_constant_of_the_keyword_match_is_within_its_range(name, given):
    with pytest.raises(InvalidArgumentError, match=f"^{name} must be a number from 0"):
        KeywordFields(**{name: given})


@pytest.mark.requirement("C015")
@pytest.mark.parametrize("make", [lambda: Recency(days=True), lambda: KeywordFields(exponent=True)])
def test_a_truth_value_is_no_number_of_a_ranking(make):
    with pytest.raises(InvalidArgumentError, match="must be a"):
        make()


@pytest.mark.requirement("C106", "C193")
@pytest.mark.parametrize(
    "ranking",
    [MOST_IMPORTANT, Ranking(similarity=0.25, weights=Weights(relevance=0.0, importance=1.0))],
)
def test_a_query_vector_of_zeros_beside_another_hides_no_memory(ranking):
    made = NativeIndex(2)
    records = [record(row, importance=row / 100) for row in range(1, 101)]
    assert made.apply(batch(records, vectors=dict.fromkeys(range(1, 101), (1.0, 0.0))))
    queries = np.array([(1, 0), (0, 0)], dtype=np.float32)
    asked = msgspec.structs.replace(wanted(AGENT, 3, ranking=ranking, text="x"), vectors=queries)
    assert [hit.row for hit in rank(made, asked).ranked] == [100, 99, 98]


def test_a_long_query_by_keyword_takes_time_in_proportion_to_its_length():
    made = NativeIndex(None)
    assert made.apply(batch([record(1, content="tea")], vectors={}))

    def seconds(words):
        text = " ".join(f"{number:06d}" for number in range(words))
        begun = time.process_time()
        rank(made, wanted(AGENT, query=None, text=text, ranking=KEYWORD))
        return time.process_time() - begun

    short, long = (min(seconds(words) for _ in range(3)) for words in (6_000, 24_000))
    assert long < 8 * short

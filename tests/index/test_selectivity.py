"""Filters that let few, many or all through: always as many hits as there are, and the best."""

from functools import cache

import numpy as np
import pytest

from mnemic.index import NativeIndex
from mnemic.model import SEMANTIC, Ranking, Scope
from mnemic.model.filter import parse_filter
from mnemic.model.ranking import BY_SEARCH_TYPE
from mnemic.model.rows import RowBatch
from tests.support.rows import Question, rank, record

ROWS = 20_000
DIM = 32
AGENT = Scope("a")
NOW = 0
COUNTS = (0, 1, 2, 20, 200, 2_000, 10_000, ROWS)
"""How many rows a filter lets through: from 0.01 % to all."""

LIMITS = (1, 10, 100)
VOCABULARY = [f"w{number}x" for number in range(300)]
QUERY = "w3x w17x w170x w3x"
FILTERS = {
    "metadata": lambda count: {"metadata.n": {"lt": count}},
    "tags": lambda count: {"tags": {"contains": f"first {count}"}},
    "importance": lambda count: {"importance": {"lt": count / ROWS}},
    "not": lambda count: {"NOT": {"metadata.n": {"gte": count}}},
    "mixed": lambda count: {
        "OR": [
            {"AND": [{"metadata.n": {"lt": count}}, {"tags": {"any": [f"first {count}"]}}]},
            {"metadata.missing": 1},
        ]
    },
}


class Rows:
    """Rows with numbers from 0 in an order of their own, by which filters select them."""

    def __init__(self):
        random = np.random.default_rng(5)
        self.numbers = random.permutation(ROWS)
        vectors = random.standard_normal((ROWS, DIM)).astype(np.float32)
        self.units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float64)
        query = random.standard_normal(DIM).astype(np.float32)
        self.query = query[None]
        self.cosines = self.units @ (query / np.linalg.norm(query)).astype(np.float64)
        words = np.minimum(random.geometric(0.02, (ROWS, 12)) - 1, len(VOCABULARY) - 1)
        self.words = [row[: 1 + number % 12] for number, row in enumerate(words)]
        records = [self.record(row) for row in range(ROWS)]
        self.index = NativeIndex(DIM)
        assert self.index.apply(RowBatch(None, 1, records, list(range(ROWS)), vectors, []))

    def record(self, row):
        number = int(self.numbers[row])
        return record(
            row,
            content=" ".join(VOCABULARY[word] for word in self.words[row]),
            importance=number / ROWS,
            metadata={"n": number},
            tags=[f"first {count}" for count in COUNTS if number < count],
        )

    def rank(self, ranking, limit, where=None, **options):
        return rank(
            self.index,
            Question(
                scope=AGENT,
                now=NOW,
                limit=limit,
                ranking=ranking,
                text=QUERY,
                vectors=None if ranking.similarity == 0 else self.query,
                filters=parse_filter(where),
                **options,
            ),
        )

    def keyword_matches(self):
        """Return BM25 of every row with k1 0.9 and b 0.4, divided by the most that it can be."""
        lengths = np.array([len(words) for words in self.words])
        scale = 0.9 * (1 - 0.4 + 0.4 * lengths / lengths.mean())
        total, most = np.zeros(ROWS), 0.0
        for word in QUERY.split():
            counts = np.array([np.sum(words == VOCABULARY.index(word)) for words in self.words])
            present = np.sum(counts > 0)
            idf = np.log(1 + (ROWS - present + 0.5) / (present + 0.5))
            total += idf * counts / (counts + scale)
            most += idf
        return total / most


@cache
def rows():
    return Rows()


@cache
def references():
    """Return what numpy says that every row scores, by the kind of search, in their plain forms."""
    keywords = rows().keyword_matches()
    return {
        "semantic": (SEMANTIC, rows().cosines, 1e-6),
        "keyword": (Ranking(similarity=0.0), keywords, 1e-5),
        "hybrid": (Ranking(similarity=0.4), 0.4 * rows().cosines + 0.6 * keywords, 1e-5),
    }


@cache
def everything(search_type):
    """Return the whole answer of a preset without a filter."""
    return rows().rank(BY_SEARCH_TYPE[search_type], ROWS).ranked


@pytest.mark.requirement("C001", "C076", "C193")
@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize("count", COUNTS)
def test_a_filter_leaves_of_the_whole_answer_what_it_lets_through(search_type, kind, count):
    where, preset = FILTERS[kind](count), BY_SEARCH_TYPE[search_type]
    numbers = rows().numbers
    inside = [hit for hit in everything(search_type) if numbers[hit.row] < count]
    if search_type != "keyword":
        assert len(inside) == count
    for limit in LIMITS:
        found = rows().rank(preset, limit, where).ranked
        assert found == inside[:limit]
        assert rows().rank(preset, limit + 1, where).ranked[:limit] == found
    counted = rows().rank(preset, 3, where, with_total=True)
    assert (counted.ranked, counted.total) == (inside[:3], len(inside))


@pytest.mark.parametrize("search_type", BY_SEARCH_TYPE)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("limit", LIMITS)
def test_the_best_that_a_filter_lets_through_are_those_of_numpy(search_type, count, limit):
    ranking, scores, tolerance = references()[search_type]
    numbers = rows().numbers
    allowed = (numbers < count) & ((scores > 0) | (search_type != "keyword"))
    found = rows().rank(ranking, limit, FILTERS["metadata"](count)).ranked
    assert len(found) == min(limit, int(allowed.sum()))
    found_rows = [hit.row for hit in found]
    assert allowed[found_rows].all()
    assert [hit.score for hit in found] == pytest.approx(scores[found_rows], abs=tolerance)
    allowed[found_rows] = False
    if found and allowed.any():
        assert scores[allowed].max() <= found[-1].score + tolerance


@pytest.mark.requirement("C002")
def test_memories_that_are_excluded_leave_space_for_as_many_others():
    for search_type, preset in BY_SEARCH_TYPE.items():
        best = everything(search_type)
        exclude = [hit.id for hit in best[:500]]
        found = rows().rank(preset, 50, exclude=exclude).ranked
        assert found == best[500:550]
        assert len(found) == 50

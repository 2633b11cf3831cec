"""The default ranking loses to none of its parts, on chats and texts written for these tests.

`python -m benches.quality tests/samples/*/` prints the figures.
"""

from itertools import chain
from pathlib import Path

import msgspec
import pytest

from benches.quality.compare import MeasuredSet, verdict
from benches.quality.datasets import load_conversations
from benches.quality.measure import DEPTH, Outcome, figures_of
from benches.quality.methods.front_door import entry_fields
from mnemic import Memory, Ranking
from mnemic.model import KeywordFields, SessionTerms
from mnemic.model.ranking import BY_SEARCH_TYPE

SAMPLES = Path(__file__).parents[1] / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())

BM25 = Ranking(similarity=0.0)
PARTS = {
    "keyword": {"search_type": "keyword"},
    "semantic": {"search_type": "semantic"},
    "bm25": {"ranking": BM25},
}

BEFORE = Ranking(
    similarity=0.25,
    keywords=KeywordFields(
        previous=0.8, second=0.5, stop_words=0.25, max_df=0.2, fuzziness=0.5, exponent=1.5
    ),
    session=SessionTerms(
        next=0.4,
        answer=0.5,
        second_neighbour=0.2,
        question=0.05,
        date=0.2,
        speaker=0.06,
        answer_type=0.05,
        isolated=0.5,
    ),
    strip_speaker_names=True,
)
"""A default that was learnt from two people's chats alone."""


@pytest.fixture(scope="module")
def embedder():
    pytest.importorskip("mnemic_minilm")
    from mnemic.embed import MiniLmEmbedder  # noqa: PLC0415 - its model may be missing

    return MiniLmEmbedder()


class Sample:
    """A stored sample, searched for each of its questions."""

    def __init__(self, name, embedder):
        self.dataset = load_conversations(SAMPLES / name)
        (self.collection,) = self.dataset.collections
        self.memory = Memory(":memory:", embedder=embedder, track_access=False)
        self.memory.add_many([entry_fields(one) for one in self.collection.memories])

    def ranked(self, text, **options):
        """Return the ids of all memories that are found, best first."""
        hits = self.memory.search(text, limit=len(self.collection.memories), **options)
        return [hit.entry.metadata["benchmark_id"] for hit in hits]

    def fused(self, text):
        """Return the ids by the sum of 1 / (60 + rank) over BM25 and meaning."""
        shares = {}
        for options in (PARTS["bm25"], PARTS["semantic"]):
            for rank, name in enumerate(self.ranked(text, **options), 1):
                shares[name] = shares.get(name, 0) + 1 / (60 + rank)
        return sorted(shares, key=shares.__getitem__, reverse=True)

    def outcomes(self, rank):
        return [
            Outcome("", "", one.id, figures_of(rank(one.text)[:DEPTH], one, 1))
            for one in self.collection.questions
        ]

    def verdict(self, **options):
        """Compare the ranking of these options, by default the default's, with its best part."""
        parts = {
            name: self.outcomes(lambda text, part=part: self.ranked(text, **part))
            for name, part in PARTS.items()
        }
        parts["rrf"] = self.outcomes(self.fused)
        default = self.outcomes(lambda text: self.ranked(text, **options))
        results = {"default": default, **parts}
        return verdict(MeasuredSet(self.dataset, results, "default", tuple(parts)))


@pytest.fixture(scope="module")
def sample(embedder):
    opened = {}

    def open_once(name):
        if name not in opened:
            opened[name] = Sample(name, embedder)
        return opened[name]

    yield open_once
    for one in opened.values():
        one.memory.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_default_is_at_least_its_best_part_less_one_standard_error(sample, name):
    found = sample(name).verdict()
    assert found.reached, found


@pytest.mark.parametrize(
    ("name", "ranking"),
    [
        ("assistant", BEFORE),
        ("chinese", msgspec.structs.replace(BY_SEARCH_TYPE["hybrid"], covered_only=False)),
    ],
)
def test_a_ranking_that_ignores_roles_or_scripts_is_a_bet(sample, name, ranking):
    # So the samples can tell.
    assert not sample(name).verdict(ranking=ranking).reached


def test_keywords_are_the_best_part_of_one_sample_and_meaning_of_another(sample):
    best = {sample(name).verdict().best_part for name in NAMES}
    assert best >= {"keyword", "semantic"}


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_small_and_its_evidence_is_stored(name):
    (collection,) = load_conversations(SAMPLES / name).collections
    stored = {memory.id for memory in collection.memories}
    assert 30 <= len(stored) == len(collection.memories) <= 60
    assert 8 <= len(collection.questions) <= 14
    assert stored >= set(chain.from_iterable(one.grades for one in collection.questions))
    assert len({one.text for one in collection.questions}) == len(collection.questions)

"""`memory.index`: how far the index is built, and how much of the best it finds."""

import random
import threading

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import InvalidArgumentError
from mnemic.index.choice import FaissIndex
from mnemic.index.faiss_source import FaissSource
from mnemic.model import IndexAudit
from mnemic.repository import vector_index
from mnemic.vectors import FaissOptions
from tests.support.embedders import WordEmbedder

WORDS = [first + last for first in "bdfgklmnprst" for last in ("ale", "ing", "on", "ure", "est")]
WEAK = FaissOptions(links=2, build_depth=1, search_depth=1)


def opened(**options):
    return Memory(":memory:", embedder=WordEmbedder(dimensions=16), **options)


def filled(memory, number=800):
    draw = random.Random(0)  # noqa: S311 - no secret
    texts = [" ".join(draw.choices(WORDS, k=6)) for _ in range(number)]
    memory.add_many(texts[: number // 2], user_id="ann")
    memory.add_many(texts[number // 2 :], user_id="bob")
    return memory


def test_an_exact_index_finds_all():
    with opened() as memory:
        found = filled(memory).index.audit(20)
        assert (found.kind, found.memories, found.sampled, found.k) == ("exact", 800, 20, 10)
        assert (found.recall, found.lowest_recall) == (1.0, 1.0)
        assert found.exact_seconds > 0.0
        assert (found.source_seconds, found.waiting, found.removed) == (0.0, 0, 0)
        assert memory.index.wait()


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [(FaissOptions("flat"), 1.0, 1.0), (FaissOptions(), 0.95, 1.0), (WEAK, 0.01, 0.9)],
)
def test_an_audit_measures_recall_of_an_approximate_index(options, least, most):
    with opened(index=options) as memory:
        assert filled(memory).index.wait()
        found = memory.index.audit(50)
        assert found.kind == options.kind
        assert least <= found.recall <= most
        assert found.lowest_recall <= found.recall
        assert found.source_seconds > 0.0
        assert found.sampled == 50


def test_the_same_seed_gives_the_same_queries():
    def shares(found):
        return found.recall, found.lowest_recall

    with opened(index=WEAK) as memory:
        filled(memory).index.wait()
        first = memory.index.audit(20, seed=1)
        assert shares(first) == shares(memory.index.audit(20, seed=1))
        assert len({shares(memory.index.audit(20, seed=seed)) for seed in range(5)}) > 1


def test_the_sample_is_of_all_pages_and_of_no_more_than_there_are(monkeypatch):
    monkeypatch.setattr(vector_index, "PAGE", 7)
    with opened() as memory:
        found = filled(memory, 50).index.audit(1000, 3)
        assert (found.sampled, found.k) == (50, 3)


def test_memories_without_a_vector_are_no_queries():
    with Memory(":memory:", embedder=None) as memory:
        assert memory.index.audit().sampled == 0
        memory.add("no vector")
        assert memory.index.audit() == IndexAudit("exact", 1, 0, 10, 1.0, 1.0, 0.0, 0.0, 0, 0)
        memory.add(MemoryEntry("with one", embedding=[1.0, 0.0]))
        memory.add(MemoryEntry("with another", embedding=[1.0, 0.5]))
        assert memory.index.audit().sampled == 2


def test_equal_scores_count_whichever_is_found():
    with opened(index=FaissOptions("flat")) as memory:
        memory.add_many(["bale"] * 30, on_duplicate="keep")
        memory.index.wait()
        assert memory.index.audit(30, 5).recall == 1.0


def test_info_says_how_far_the_index_is_built_and_waiting_reports_it(monkeypatch):
    may_add, add = threading.Event(), FaissIndex.add
    monkeypatch.setattr(FaissIndex, "add", lambda *given: may_add.wait(60) and add(*given))
    with opened(index="faiss") as memory:
        filled(memory)
        begun = memory.index.info()
        assert (begun.kind, begun.memories, begun.indexed) == ("hnsw", 800, 0)
        assert begun.waiting == 800
        assert not memory.index.wait(timeout=0.01)
        told = []

        def note(done, total):
            told.append((done, total))
            may_add.set()

        assert memory.index.wait(progress=note)
        assert told[0] == (0, 800)
        assert told[-1] == (800, 800)
        done = memory.index.info()
        assert (done.indexed, done.waiting, done.removed, done.proposes) == (800, 0, 0, True)
        assert done.nbytes > begun.nbytes / 2
        memory.delete(memory.recent(user_id="ann")[0].id, user_id="ann")
        memory.index.wait()
        assert memory.index.info().removed == 1


def test_an_audit_reports_progress_and_counts_no_access():
    with opened() as memory:
        filled(memory, 50)
        told = []
        memory.index.audit(10, progress=lambda done, total: told.append((done, total)))
        assert told == [(done, 10) for done in range(1, 11)]
        assert all(not entry.access_count for entry in memory.list(user_id="ann").entries)


def test_an_index_that_proposes_nothing_yet_misses_nothing(monkeypatch):
    monkeypatch.setattr(FaissSource, "_proposes_nothing", True)
    with opened(index="faiss") as memory:
        found = filled(memory, 50).index.audit(10)
        assert (found.kind, found.recall, found.source_seconds) == ("hnsw", 1.0, 0.0)


def test_searches_and_changes_go_on_during_an_audit():
    with opened(index="faiss", exact_limit=0) as memory:
        filled(memory)
        seen = []

        def search(done, _total):
            if done in (1, 5):
                memory.add(f"zebra {done}", user_id="ann")
                seen.append(memory.search("zebra", user_id="ann")[0].content)

        memory.index.audit(10, progress=search)
        assert [text.split()[0] for text in seen] == ["zebra", "zebra"]


def test_no_content_is_logged_or_returned(caplog):
    with caplog.at_level("DEBUG"), opened(index="faiss") as memory:
        memory.add_many(["bale zebra", "ding zebra"], user_id="ann")
        told = [memory.index.wait(), memory.index.info(), memory.index.audit(), memory.index]
        assert "zebra" not in f"{told}{caplog.text}"
        assert "ann" not in f"{told}"


@pytest.mark.parametrize(
    "wrong",
    [{"sample": 0}, {"sample": 10_001}, {"k": 0}, {"k": 1001}, {"seed": -1}, {"k": True}],
)
def test_audits_of_no_sense_are_refused(wrong):
    with opened() as memory, pytest.raises(InvalidArgumentError):
        memory.index.audit(**wrong)

"""Memories longer than the embedder sees: found by every part, and kept whole."""

import io
import sqlite3
from datetime import timedelta

import numpy as np
import pytest

from mnemic import Memory
from mnemic.embed import MiniLmEmbedder
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbeddingError
from mnemic.index import native
from mnemic.model import Scope
from mnemic.store.operations import StoredEntries
from mnemic.store.sql import change_log
from tests.support.clock import NOON, Clock
from tests.support.embedders import WordEmbedder

pytestmark = pytest.mark.requirement("C165")

WORDS_SEEN = 12
FILLER = " ".join(f"filler{number % 9}" for number in range(60)) + ". "
FACT = "zebras graze at dawn"


class Shortsighted(WordEmbedder):
    """Sees the first twelve words of a text and nothing else."""

    def __init__(self, model="short"):
        super().__init__(dimensions=256, model=model)
        self.max_tokens = WORDS_SEEN + 2
        self.fails = False

    def characters_seen(self, text):
        begins = [at for at, character in enumerate(text) if character == " "]
        return len(text) if len(begins) < WORDS_SEEN else begins[WORDS_SEEN - 1]

    def embed(self, texts):
        if self.fails:
            raise ConnectionError
        vectors = super().embed([text[: self.characters_seen(text)] for text in texts])
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def opened(path=":memory:", **options):
    return Memory(path, **{"embedder": Shortsighted(), "clock": Clock(), **options})


def similarity(memory, query=FACT):
    """Return the similarity of each memory that is found by meaning, by its id."""
    hits = memory.search(query, search_type="semantic", limit=100)
    return {hit.id: hit.components["similarity"] for hit in hits}


def stored_parts(memory):
    """Return how many vectors each row has in the file."""
    with memory._repository._store._connections.reading() as connection:
        sql = "SELECT entry_row, part FROM agent_memory_embeddings ORDER BY entry_row, part"
        found = connection.execute(sql).fetchall()
    parts = {}
    for row, part in found:
        assert part == parts.get(row, 0)
        parts[row] = part + 1
    return parts


def expected(embedder, content, query=FACT):
    """Return the greatest cosine of a query and a part, computed apart from any index."""
    (parts,) = ValidatedEmbedder(embedder).embed_chunked([content])
    return float((parts @ embedder.embed([query])[0]).max())


def exported_parts(memory):
    everyone = Scope(memory.agent_id, all_users=True)
    state = {"now": NOON, "include_deleted": True, "model": memory.embedder.model}
    found = memory._repository._store.read(StoredEntries(everyone, 0, 100, **state))
    return {
        one.entry.id: [vector.tobytes() for vector in (one.entry.embedding, *one.more)]
        for one in found
    }


@pytest.mark.parametrize("place", ["beginning", "middle", "end"])
def test_a_fact_anywhere_in_a_long_memory_is_found_by_its_meaning(place):
    content = {
        "beginning": FACT + ". " + FILLER * 2,
        "middle": FILLER + FACT + ". " + FILLER,
        "end": FILLER * 2 + FACT,
    }[place]
    with opened() as memory:
        long, other = memory.add(content), memory.add(FILLER * 2)
        found = similarity(memory)
        assert found[long.id] > 0.5
        assert found[other.id] < 0.3
        assert found[long.id] == pytest.approx(expected(memory.embedder, content), abs=1e-5)


def test_the_local_model_finds_the_end_of_a_long_memory():
    filler = "The committee went through the minutes of its last meeting and approved them. " * 40
    fact = "Her daughter is allergic to peanuts. " * 12
    with Memory(":memory:", embedder=MiniLmEmbedder()) as memory:
        long, other = memory.add(filler + fact), memory.add(filler)
        found = similarity(memory, "Who is allergic to peanuts?")
        assert max(stored_parts(memory).values()) > 2
        assert found[long.id] > 0.25 > found[other.id]


def test_the_similarity_is_the_greatest_of_all_parts_for_many_memories():
    chosen = np.random.default_rng(7)
    with opened() as memory:
        contents = [
            " ".join(f"word{number}" for number in chosen.integers(0, 40, size))
            for size in chosen.integers(1, 200, 60)
        ]
        added = memory.add_many(contents)
        found = similarity(memory, "word3 word9 word27")
        for entry in added:
            wanted = expected(memory.embedder, entry.content, "word3 word9 word27")
            assert found[entry.id] == pytest.approx(wanted, abs=1e-5)


def test_the_embedding_of_an_entry_is_that_of_all_its_parts():
    with opened() as memory:
        entry = memory.add(FILLER * 2 + FACT)
        (parts,) = ValidatedEmbedder(memory.embedder).embed_chunked([entry.content])
        assert len(parts) > 1
        assert entry.embedding.shape == parts.shape
        assert entry.embedding.tobytes() == parts.tobytes()


def test_an_embedder_that_uses_its_array_again_changes_no_part():
    class Reusing(Shortsighted):
        kept = np.zeros((100, 256), dtype=np.float32)

        def embed(self, texts):
            made = super().embed(texts)
            self.kept[: len(made)] = made
            return self.kept[: len(made)]

    with opened(embedder=Reusing()) as memory:
        long = memory.add(FILLER * 2 + FACT)
        memory.embedder.kept[:] = 0
        assert similarity(memory)[long.id] > 0.5


@pytest.mark.parametrize("way", ["forgotten", "deleted", "purged", "all deleted", "updated"])
def test_no_part_outlives_its_memory(tmp_path, way):
    clock = Clock()
    with opened(tmp_path / "a.db", clock=clock) as memory:
        long, kept = memory.add(FILLER * 2 + FACT), memory.add(FILLER * 2)
        row, kept_row = stored_parts(memory)
        similarity(memory)
        if way == "forgotten":
            memory.delete(long.id)
            assert long.id not in similarity(memory)
            assert memory.restore(long.id)
            assert similarity(memory)[long.id] > 0.5
            return
        if way == "updated":
            memory.update(long.id, content="brief")
            assert stored_parts(memory)[row] == 1
            assert similarity(memory)[long.id] < 0.3
            return
        if way == "deleted":
            memory.delete(long.id, permanent=True)
        elif way == "purged":
            memory.delete(long.id)
            clock.now += timedelta(days=91)
            assert memory.purge() == 1
        else:
            memory.delete(kept.id)
            memory.delete_all(permanent=True)
        assert row not in stored_parts(memory)
        assert (kept_row in stored_parts(memory)) == (way != "all deleted")
        assert long.id not in similarity(memory)


def test_the_bytes_of_all_parts_are_erased(tmp_path):
    with opened(tmp_path / "a.db") as memory:
        long = memory.add(FILLER * 2 + FACT)
        memory.add("stays")
        vectors = exported_parts(memory)[long.id]
        assert len(vectors) > 3
        assert all(vector in left_in(tmp_path) for vector in vectors)
        assert memory.delete(long.id, permanent=True).erased
        assert not any(vector in left_in(tmp_path) for vector in vectors)


def left_in(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_a_new_content_is_embedded_in_parts():
    with opened() as memory:
        entry = memory.add("brief")
        assert similarity(memory)[entry.id] < 0.3
        memory.update(entry.id, content=FILLER * 2 + FACT)
        assert similarity(memory)[entry.id] > 0.5
        memory.update(entry.id, importance=0.9)
        assert similarity(memory)[entry.id] > 0.5


def test_what_was_stored_while_the_embedder_failed_gets_all_its_parts_later():
    with opened() as memory:
        memory.embedder.fails = True
        entry = memory.add_many([FILLER * 2 + FACT], on_embed_error="pending")[0]
        assert stored_parts(memory) == {}
        memory.embedder.fails = False
        assert similarity(memory)[entry.id] > 0.5
        assert next(iter(stored_parts(memory).values())) > 3


def test_what_was_stored_without_an_embedder_gets_all_its_parts_on_opening(tmp_path):
    with opened(tmp_path / "a.db", embedder=None) as memory:
        entry = memory.add(FILLER * 2 + FACT)
    with opened(tmp_path / "a.db") as memory:
        assert similarity(memory)[entry.id] > 0.5


def test_an_embedder_that_cannot_count_fails_as_one_that_cannot_embed():
    class Broken(Shortsighted):
        def characters_seen(self, text):
            raise RuntimeError(len(text))

    with opened(embedder=Broken()) as memory:
        with pytest.raises(EmbeddingError, match="short"):
            memory.add(FILLER)
        assert memory.count() == 0


@pytest.mark.requirement("R001")
def test_reopening_gives_the_same_ranking(tmp_path, monkeypatch):
    contents = [f"{FILLER}{FILLER}{FACT} {number}" for number in range(8)] + ["brief", FACT]
    with opened(tmp_path / "a.db") as memory:
        memory.add_many(contents[:5])
        for content in contents[5:]:
            memory.add(content)
        before = similarity(memory)
    for size in (1, 2, 3, 7, 8192):
        monkeypatch.setattr(change_log, "_PART", size)
        with opened(tmp_path / "a.db") as memory:
            assert similarity(memory) == before


@pytest.mark.parametrize("others", [0, 60])
def test_parts_that_lie_apart_in_the_file_are_gathered(tmp_path, monkeypatch, others):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.add_many([FILLER * 2 + FACT, FACT + ". " + FILLER * 2, FILLER + FACT, "brief"])
        before = similarity(memory)
    with opened(path, agent_id="b") as memory:
        memory.add_many(["brief"] * others)
    with sqlite3.connect(path) as file:
        file.execute("CREATE TEMP TABLE kept AS SELECT * FROM agent_memory_embeddings")
        file.execute("DELETE FROM agent_memory_embeddings")
        file.execute("INSERT INTO agent_memory_embeddings SELECT * FROM kept ORDER BY part DESC")
    monkeypatch.setattr(change_log, "_PART", 2)
    with opened(path) as memory:
        assert similarity(memory) == before


def test_many_small_changes_taken_in_together_keep_all_parts(monkeypatch):
    monkeypatch.setattr(native, "MAX_PENDING", 1000)
    with opened() as memory:
        long = [memory.add(FILLER * 2 + f"{FACT} {number}") for number in range(5)]
        memory.update(long[0].id, importance=0.9)
        memory.update(long[1].id, content="brief")
        memory.delete(long[2].id)
        found = similarity(memory)
        assert long[2].id not in found
        assert found[long[1].id] < 0.3
        assert all(found[long[at].id] > 0.5 for at in (0, 3, 4))


def test_another_memory_on_the_file_sees_all_parts(tmp_path):
    with opened(tmp_path / "a.db") as mine, opened(tmp_path / "a.db") as other:
        assert similarity(other) == {}
        entry = mine.add(FILLER * 2 + FACT)
        assert similarity(other) == similarity(mine)
        mine.update(entry.id, content=FILLER + FACT)
        assert similarity(other) == similarity(mine)
        assert similarity(other)[entry.id] > 0.5


@pytest.mark.parametrize("embeddings", [True, False])
def test_all_parts_come_back_from_an_export(embeddings):
    with opened() as memory, opened() as copy:
        memory.add_many([FILLER * 2 + FACT, "brief", FILLER + FACT])
        text = io.StringIO()
        memory.export(text, embeddings=embeddings)
        text.seek(0)
        assert copy.import_(text).stored == 3
        assert bool(copy.embedder.texts) == (not embeddings)
        assert exported_parts(copy) == exported_parts(memory)
        assert similarity(copy) == similarity(memory)


def test_parts_count_for_no_quota_and_are_in_a_backup(tmp_path):
    with opened(tmp_path / "a.db") as memory:
        memory.add(FILLER * 2 + FACT)
        assert memory.stats().storage_bytes_used == len(FILLER * 2 + FACT)
        memory.backup(tmp_path / "b.db")
        with opened(tmp_path / "b.db") as copy:
            assert similarity(copy) == similarity(memory)

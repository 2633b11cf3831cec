"""Memories like another one, the newest and the most important."""

from uuid import UUID, uuid4

import pytest

from mnemic import MemoryEntry
from mnemic.errors import EmbeddingError, EntryNotFoundError, LicenseRestrictionError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.searches import SCOPED_CALLS, TEXTS, cosine, found, names, scores

# Similar


def test_similar_memories_are_the_nearest_without_itself(memory):
    kept = memory.add("the red sofa")
    memory.add_many(TEXTS)
    results = memory.similar(kept.id)
    cosines = {text: cosine(text, "the red sofa") for text in TEXTS}
    assert found(results) == sorted(TEXTS, key=cosines.get, reverse=True)
    assert scores(results) == pytest.approx(cosines, abs=1e-6)
    assert memory.similar(str(kept.id), limit=2) == results[:2]
    assert memory.similar(kept.id, limit=0) == results[:0]
    assert results[0].components.keys() == {"similarity"}
    explained = memory.similar(kept.id, explain=True)
    assert explained[0].components.keys() == {"similarity", "relevance"}


def test_similar_finds_other_memories_of_the_same_text(memory):
    one, other = memory.add("tea"), memory.add("tea")
    assert [hit.id for hit in memory.similar(one.id)] == [other.id]
    assert [hit.id for hit in memory.similar(other.id)] == [one.id]


def test_similar_neither_embeds_the_memory_again_nor_counts_as_reading_it(open_memory):
    embedder = WordEmbedder()
    memory = open_memory(embedder=embedder)
    kept = memory.add("the red sofa")
    memory.add_many(TEXTS)
    expected = memory.search("the red sofa", search_type="semantic")[1:]
    embedder.embed = None  # whoever calls it fails
    assert memory.similar(kept.id) == expected
    assert memory.get(kept.id).access_count == 0


def test_similar_embeds_a_memory_that_lacks_its_vector_still(open_memory):
    embedder = WordEmbedder()
    memory = open_memory(embedder=embedder)
    memory.add_many(TEXTS)
    embed, embedder.embed = embedder.embed, None
    kept = memory.add_many(["the red sofa"], on_embed_error="pending")[0]
    with pytest.raises(EmbeddingError):
        memory.similar(kept.id)
    embedder.embed = embed
    assert scores(memory.similar(kept.id)) == {
        text: pytest.approx(cosine(text, "the red sofa"), abs=1e-6) for text in TEXTS
    }


def test_similar_stays_inside_the_scope_of_the_memory(shared):
    (kept,) = shared.list(user_id="bob").entries
    assert names(shared.similar(kept.id, user_id="bob")) == []
    others = ["alice", "alice at home", "nobody"]
    assert names(shared.similar(kept.id, all_users=True)) == others
    assert names(shared.scoped(project_id="p").similar(kept.id, all_users=True)) == ["alice"]
    assert names(shared.scoped(user_id="bob").similar(kept.id)) == []


def test_an_id_outside_the_scope_is_like_one_that_does_not_exist(shared):
    (kept,) = shared.list(user_id="bob").entries
    shared.delete(kept.id, user_id="bob")
    (alive,) = shared.scoped(project_id="p").list(user_id="alice").entries
    for given, scope in [
        (uuid4(), {}),
        (alive.id, {}),
        (alive.id, {"user_id": "bob"}),
        (kept.id, {"user_id": "bob"}),
        (kept.id, {"all_users": True}),
    ]:
        with pytest.raises(EntryNotFoundError, match=f"no memory with id {given}"):
            shared.similar(given, **scope)
    with pytest.raises(EntryNotFoundError, match=f"no memory with id {alive.id}"):
        shared.scoped(project_id="q").similar(alive.id, user_id="alice")


# Newest and most important


def test_recent_memories_come_newest_first_and_ties_by_id(memory):
    for number, age in [(3, 1), (1, 2), (4, 0), (2, 1), (5, 3)]:
        memory.add(f"{number}", id=UUID(int=number), created_at=NOON - age * DAY)
    embedded = list(memory.embedder.texts)
    results = memory.recent()
    assert found(results) == ["4", "2", "3", "1", "5"]
    assert results[0].score == 1
    assert results[-1].score == 0
    assert [hit.score for hit in results] == sorted([hit.score for hit in results], reverse=True)
    assert [hit.components for hit in results] == [{"recency": hit.score} for hit in results]
    for limit in range(6):
        assert memory.recent(limit=limit) == results[:limit]
    assert memory.embedder.texts == embedded


def test_the_only_memory_is_the_most_recent_one(memory):
    assert len(memory.recent()) == 0
    memory.add("tea")
    assert [hit.score for hit in memory.recent()] == [1]


def test_important_memories_come_by_importance_then_newest_then_by_id(memory):
    for number, importance, age in [
        *((1, 0.5, 1), (2, 1.0, 5), (3, 0.5, 0), (4, 0.0, 0)),
        *((6, 0.5, 1), (5, 0.5, 1)),
    ]:
        memory.add(
            f"{number}",
            id=UUID(int=number),
            created_at=NOON - age * DAY,
            importance=importance,
        )
    results = memory.important()
    assert found(results) == ["2", "3", "1", "5", "6", "4"]
    assert [hit.score for hit in results] == [1.0, 0.5, 0.5, 0.5, 0.5, 0.0]
    assert [hit.components for hit in results] == [{"importance": hit.score} for hit in results]
    for limit in range(7):
        assert memory.important(limit=limit) == results[:limit]


@pytest.mark.parametrize("call", SCOPED_CALLS)
def test_what_was_deleted_or_has_expired_is_not_found(open_memory, call):
    clock = Clock()
    memory = open_memory(clock=clock)
    gone = memory.add("tea that is deleted")
    memory.add(MemoryEntry("tea that expires", expires_at=NOON + DAY))
    memory.add("tea that stays")
    memory.delete(gone.id)
    search = SCOPED_CALLS[call]
    assert sorted(found(search(memory))) == ["tea that expires", "tea that stays"]
    clock.now = NOON + DAY
    assert found(search(memory)) == ["tea that stays"]
    clock.now = NOON
    memory.restore(gone.id)
    assert len(search(memory)) == 3


def test_memories_of_a_tier_without_search_by_meaning_are_still_listed_by_worth(open_memory):
    memory = open_memory(license=DocumentedLicenses(LicenseTier.WRITER_PRO))
    memory.add("tea", importance=0.5)
    for search in (
        lambda: memory.search("tea"),
        lambda: memory.search("tea", search_type="semantic"),
    ):
        with pytest.raises(LicenseRestrictionError, match="Teams tier"):
            search()
    assert found(memory.search("tea", search_type="keyword")) == ["tea"]
    assert found(memory.recent()) == found(memory.important()) == ["tea"]

"""Changes of many memories: by filter and by id, with one call of the embedder or none."""

from uuid import UUID

import pytest

from mnemic.errors import (
    EmbeddingError,
)
from tests.support.clock import DAY, HOUR
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder

TEA = {"metadata.topic": "tea"}
USERS = ("alice", "bob", None)


def uid(number):
    return UUID(int=number)


def fill(memory, users=USERS):
    """Store three memories of each user: 1 and 2 about tea, 3 about coffee."""
    for user_id in users:
        for number, topic in ((1, "tea"), (2, "tea"), (3, "coffee")):
            memory.add(
                f"{topic} of {user_id}", id=uid(number), metadata={"topic": topic}, user_id=user_id
            )


def numbers(memory, user_id="alice", **options):
    return sorted(entry.id.int for entry in memory.list(user_id=user_id, **options))


@pytest.fixture
def memory():
    with opened() as memory:
        fill(memory)
        yield memory
        assert memory.verify().problems == ()


def test_memories_are_changed_by_filter_and_by_id(memory):
    assert memory.update_many(filters=TEA, add_tags=["hot"], user_id="alice") == 2
    assert memory.update_many([uid(3), uid(7)], importance=0.9, user_id="alice") == 1
    assert memory.update_many(filters={}, metadata={"seen": True}, all_users=True) == 9
    assert numbers(memory, filters={"tags": {"contains": "hot"}, "metadata.seen": True}) == [1, 2]
    assert numbers(memory, filters={"importance": 0.9}) == [3]
    assert numbers(memory, "bob", filters={"tags": {"contains": "hot"}}) == []
    assert memory.update_many(filters=TEA, all_users=True) == 0  # changes nothing


def test_metadata_and_expiry_of_many(memory):
    soon = memory.repository.now() + HOUR
    alice = {"user_id": "alice"}
    assert memory.update_many(filters=TEA, replace_metadata={"k": 1}, expires_at=soon, **alice) == 2
    assert memory.get(uid(1), **alice).metadata == {"k": 1}
    assert memory.get(uid(2), **alice).expires_at == soon
    assert memory.update_many(filters={"metadata.k": 1}, expires_at="never", **alice) == 2
    assert memory.get(uid(2), **alice).expires_at is None
    assert memory.update_many([uid(1)], expires_at=soon - DAY, **alice) == 1
    assert numbers(memory) == [2, 3]


def test_archived_memories_are_changed_where_the_call_or_the_filter_names_the_status(memory):
    assert memory.update_many(filters=TEA, status="archived", user_id="alice") == 2
    assert memory.count(user_id="alice") == 1
    assert memory.update_many(filters=TEA, importance=0.1, user_id="alice") == 0
    archived = {"status": "archived"}
    assert memory.update_many(filters=archived, importance=0.1, user_id="alice") == 2
    assert memory.update_many(filters=TEA, status="active", user_id="alice") == 2
    assert memory.count(user_id="alice") == 3


class Counting(WordEmbedder):
    calls = 0

    def embed(self, texts, /):
        self.calls += len(texts)
        return super().embed(texts)


def test_one_content_for_many_is_embedded_once():
    embedder = Counting()
    with opened(embedder=embedder) as memory:
        fill(memory, ["alice"])
        embedder.calls = 0
        assert memory.update_many(filters=TEA, content="removed on request", user_id="alice") == 2
        assert embedder.calls == 1
        found = memory.search("removed on request", user_id="alice", search_type="semantic")
        assert [hit.content for hit in found[:2]] == ["removed on request"] * 2
        assert memory.verify().problems == ()


def test_nothing_is_changed_where_the_embedder_fails():
    class Failing(WordEmbedder):
        def embed(self, texts, /):
            if any("bad" in text for text in texts):
                raise OSError
            return super().embed(texts)

    with opened(embedder=Failing()) as memory:
        fill(memory, ["alice"])
        with pytest.raises(EmbeddingError):
            memory.update_many(filters=TEA, content="bad", add_tags=["x"], user_id="alice")
        assert numbers(memory, filters={"tags": {"contains": "x"}}) == []

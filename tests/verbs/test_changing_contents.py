"""Updates may leave a content empty, where `add` may."""

import pytest

from mnemic import Memory
from mnemic.errors import InvalidEntryError
from tests.support.embedders import WordEmbedder


@pytest.fixture(params=[None, WordEmbedder()], ids=["without", "embedder"])
def memory(request):
    with Memory(":memory:", embedder=request.param) as opened:
        yield opened


def test_an_update_may_leave_a_content_empty_where_add_may(memory):
    bare, with_metadata = memory.add_many(
        [{"content": "tea"}, {"content": "tea", "metadata": {"a": 1}}]
    )
    with pytest.raises(InvalidEntryError, match="unless the memory has metadata or an embedding"):
        memory.update(bare.id, content="")
    assert memory.get(bare.id).content == "tea"
    changed = memory.update(with_metadata.id, content="")
    assert (changed.content, changed.version) == ("", 2)
    assert {hit.id for hit in memory.search("tea", search_type="keyword")} == {bare.id}
    assert memory.get(with_metadata.id, embeddings=True).embedding is None
    with pytest.raises(InvalidEntryError, match="unless"):
        memory.update(with_metadata.id, content="", replace_metadata={})
    assert memory.update(bare.id, content="", metadata={"b": 2}).content == ""
    with pytest.raises(InvalidEntryError, match="content cannot be"):
        memory.update(bare.id, content="   ")


def test_an_update_with_a_vector_may_have_no_content(memory):
    (stored,) = memory.add_many(["tea"])
    vector = WordEmbedder().embed(["milk"])[0]
    assert memory.update(stored.id, content="", embedding=vector).content == ""
    found = memory.search(vector=vector, limit=1)
    assert (found[0].id, round(found[0].score, 5)) == (stored.id, 1.0)


def test_many_updates_may_leave_contents_empty(memory):
    memory.add_many([{"content": "tea", "metadata": {"a": number}} for number in range(3)])
    assert memory.update_many(filters={}, content="") == 3
    assert len(memory.search("tea", search_type="keyword")) == 0
    memory.add("tea")
    with pytest.raises(InvalidEntryError, match="unless"):
        memory.update_many(filters={"content": "tea"}, content="")
    assert memory.count(filters={"content": "tea"}) == 1

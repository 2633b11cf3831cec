from uuid import uuid4

import msgspec
import numpy as np
import pytest

from mnemic import errors
from mnemic.embed import as_embedder
from mnemic.memory import Memory
from mnemic.model import MemoryEntry, MemoryType, Scope
from tests.support.clock import NOON
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents


@pytest.fixture(params=["file", "memory"])
def memory(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as opened:
        yield opened


# Adding and finding


def test_what_was_added_is_found_by_meaning_best_first(memory):
    memory.add("the cat sleeps on the red sofa")
    memory.add("ferries leave at noon")
    memory.add("a red sofa was bought")
    for search_type in ("hybrid", "semantic"):
        results = memory.search("red sofa", limit=2, search_type=search_type)
        assert contents(results) == ["a red sofa was bought", "the cat sleeps on the red sofa"]
    assert results[0].score == pytest.approx(2 / np.sqrt(2 * 5))
    assert results[0].components == {"similarity": pytest.approx(results[0].score)}


def test_add_returns_the_record_that_get_returns(memory):
    added = memory.add(
        MemoryEntry(
            "Prefers metric units",
            project_id="p",
            role="user",
            speaker="Alice",
            message_id="m-1",
            position=3,
            created_at="2026-05-01T14:00:00+02:00",
            type="preference",
            tags=["units"],
            importance=0.8,
            metadata={"source": "chat"},
            category="c",
        ),
        user_id="alice",
        session_id="s",
    )
    assert added == memory.get(added.id, user_id="alice")
    assert added == memory.get(str(added.id), user_id="alice")
    assert added == memory.search("units", user_id="alice")[0].entry
    assert (added.created_at, added.type) == (NOON, MemoryType.PREFERENCE)
    assert (added.agent_id, added.id.version) == ("default", 7)


@pytest.mark.requirement("R025")
@pytest.mark.parametrize(
    ("memories", "message"),
    [
        (["fine", ""], "memory 1 of the list: content cannot be empty"),
        (["fine", 5], "memory 1 of the list: a memory is a str, a dict or a MemoryEntry, got int"),
        (
            [{"content": "x", "colour": 1}],
            r"memory 0 .*unknown fields \['colour'\]; the fields are",
        ),
        ([{"tags": []}], "memory 0 of the list: content is missing"),
        ([{"content": "x", "created_at": "yesterday"}], "not an ISO 8601 time: 'yesterday'"),
        ([{"content": "x", "importance": 3}], "importance must be from 0 to 1, got 3"),
        ([{"content": "x", "id": "7"}], "id is not a UUID: '7'"),
        ("one text", "add_many takes a list of memories; add takes a single one"),
        ({"content": "x"}, "add_many takes a list of memories"),
    ],
)
def test_a_memory_that_cannot_be_stored_is_named_and_none_of_its_call_is(memory, memories, message):
    with pytest.raises(errors.InvalidEntryError, match=message):
        memory.add_many(memories)
    assert memory.count() == 0


def test_an_id_of_ones_own_makes_a_retry_safe(memory):
    mine = uuid4()
    memory.add("once", id=mine)
    with pytest.raises(errors.DuplicateEntryError, match=str(mine)):
        memory.add("once", id=str(mine))
    assert memory.count() == 1


@pytest.mark.parametrize("entry_id", ["", "7", 0, b"1234567890123456"])
def test_an_id_that_is_none_is_refused_and_not_replaced_by_a_new_one(memory, entry_id):
    with pytest.raises(errors.InvalidEntryError, match="id "):
        memory.add("x", id=entry_id)
    assert memory.count() == 0


def test_a_sealed_record_is_stored_in_plain_text_by_nobody(memory):
    base = MemoryEntry(id=uuid4(), agent_id="default", content="x", created_at=NOON)
    with pytest.raises(errors.KeyUnavailableError, match="is sealed, and there is no key"):
        memory.add_many([msgspec.structs.replace(base, is_encrypted=True)])


# Searching


def test_a_text_or_query_without_any_direction_is_found_with_a_score_of_zero(memory):
    memory.add_many(["!!!", "word"])
    found = memory.search("word", search_type="semantic")
    assert [hit.score for hit in found] == [pytest.approx(1), 0]
    for search_type in ("hybrid", "semantic"):
        assert [hit.score for hit in memory.search("?", search_type=search_type)] == [0, 0]


# Scope


def test_an_id_alone_opens_nothing_and_the_error_names_the_scope(memory):
    added = memory.add("secret", user_id="alice", session_id="s")
    unknown = uuid4()
    for scope, named in [
        ({}, "agent 'default', no user"),
        ({"user_id": "bob"}, "agent 'default', user 'bob'"),
        ({"user_id": "alice", "session_id": "t"}, "agent 'default', user 'alice', session 't'"),
    ]:
        for verb in (memory.get, memory.delete):
            for entry_id in (added.id, unknown):
                with pytest.raises(errors.EntryNotFoundError) as caught:
                    verb(entry_id, **scope)
                assert str(caught.value) == f"no memory with id {entry_id} for {named}"
    assert memory.get(added.id, user_id="alice", session_id="s") == added


def test_a_not_found_error_is_a_key_error(memory):
    with pytest.raises(KeyError):
        memory.get(uuid4())


def test_a_scoped_view_has_the_same_methods_and_names_the_scope_for_them(memory):
    view = memory.scoped(user_id="alice").scoped(session_id="s")
    added = view.add("hers")
    view.add_many(["hers too", {"content": "and this"}])
    memory.add("not hers")
    assert (added.user_id, added.session_id) == ("alice", "s")
    assert view.count() == memory.count(user_id="alice") == 3
    assert view.get(added.id) == added
    assert len(view.search("hers")) == 3
    view.delete(added.id)
    assert view.count() == 2
    assert view.scope == Scope("default", "alice", None, "s")
    public = {name for name in dir(Memory) if not name.startswith("_")}
    assert public - {name for name in dir(view) if not name.startswith("_")} == {
        "backup",
        "close",
        "drop_vectors",
        "embedder",
        "erase_pending",
        "forget_agent",
        "rotate_key",
        "events",
        "index",
        "model_of",
        "reembed",
        "retrieval_stats",
        "users",
        "verify",
    }


def test_a_view_never_leaves_its_scope(memory):
    view = memory.scoped(user_id="alice")
    for call in (
        lambda: view.search("x", user_id="bob"),
        lambda: view.add("x", user_id="bob"),
        lambda: view.scoped(user_id="bob"),
        lambda: view.count(user_id="bob"),
        lambda: view.get(uuid4(), user_id="bob"),
        lambda: view.delete(uuid4(), user_id="bob"),
        lambda: view.add_many(["x"], user_id="bob"),
        lambda: view.add_many([{"content": "x", "user_id": "bob"}]),
    ):
        with pytest.raises(errors.InvalidArgumentError, match="user_id is bound to 'alice' here"):
            call()
    assert memory.count(user_id="bob") == 0


def test_a_memory_names_its_file_and_scope(path):
    with opened(path, "one") as memory:
        model = f"embedder {memory.embedder.model!r}"
        assert repr(memory) == f"Memory({str(path)!r}, agent 'one', no user, {model})"
        view = memory.scoped(user_id="u")
        assert repr(view) == f"ScopedMemory({str(path)!r}, agent 'one', user 'u', {model})"
        assert memory.agent_id == "one"


# Embedders


def test_opening_with_another_model_or_dimension_is_refused_with_advice(path):
    with opened(path) as memory:
        memory.add("x")
    for other in (WordEmbedder(model="others"), WordEmbedder(dimensions=32)):
        with pytest.raises(
            errors.EmbeddingModelMismatchError, match=r"'words' with 64 .* reembed=True"
        ):
            opened(path, embedder=other)
    learns = as_embedder(WordEmbedder().embed, model="others")
    with pytest.raises(
        errors.EmbeddingModelMismatchError, match="is 'others' with an unknown number"
    ):
        opened(path, embedder=learns)
    with opened(path, "another agent", embedder=WordEmbedder(dimensions=32)) as memory:
        memory.add("x")
        assert len(memory.search("x")) == 1


@pytest.mark.parametrize(("dimensions", "model"), [(3, "words"), (64, "others")])
def test_the_first_vector_of_a_memory_must_be_one_of_its_embedder_too(memory, dimensions, model):
    record = MemoryEntry(id=uuid4(), agent_id="default", content="x", created_at=NOON)
    with pytest.raises(errors.EmbeddingModelMismatchError, match="leave its embedding out"):
        memory.add_many([record.with_embedding(np.ones(dimensions), model)])
    assert memory.count() == 0
    memory.add("y")
    assert contents(memory.search("y")) == ["y"]


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        (
            "other",
            "embedder must be 'minilm', 'multilingual', None, a function of texts.*got 'other'",
        ),
        (
            object(),
            "embedder must be 'minilm', 'multilingual', None, a function of texts.*got a value",
        ),
        (WordEmbedder, r"the class WordEmbedder; give an instance of it: WordEmbedder\("),
        (WordEmbedder(dimensions=0), "dimensions must be an int of at least 1 or None, got 0"),
    ],
)
def test_what_is_no_embedder_is_refused_before_a_file_is_made(path, embedder, said):
    with pytest.raises(errors.InvalidArgumentError, match=said):
        Memory(path, embedder=embedder)
    assert not path.exists()


def test_an_embedder_that_is_false_as_a_truth_value_is_an_embedder(path):
    class Empty(WordEmbedder):
        def __len__(self):
            return 0

    with Memory(path, embedder=Empty()) as memory:
        memory.add("x")
        assert contents(memory.search("x")) == ["x"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.full((1, 64), 1e300), "returned NaN or infinity"),
        (np.zeros((1, 63), np.float32), r"returned shape \(1, 63\) for 1 texts; it should be"),
        (np.zeros((2, 64), np.float32), r"returned shape \(2, 64\)"),
        (np.full((1, 64), np.nan, np.float32), "returned NaN or infinity"),
        (None, "failed: "),
    ],
)
def test_an_embedder_that_fails_leaves_nothing_behind(memory, answer, message):
    def embed(_texts):
        if answer is None:
            raise OSError("model file is gone")
        return answer

    working = memory.embedder.embed
    memory.embedder.embed = embed
    with pytest.raises(errors.EmbeddingError, match=message):
        memory.add("x")
    with pytest.raises(errors.EmbeddingError, match=message):
        memory.search("x", search_type="semantic")
    memory.embedder.embed = working
    assert memory.count() == 0
    memory.add("x")
    assert len(memory.search("x")) == 1


@pytest.mark.requirement("R113")
def test_content_tags_and_metadata_together_have_at_most_ten_megabytes(memory):
    kept = memory.add("x", metadata={"large": "y" * (10 * 1024 * 1024 - 20)})
    for wrong in (
        lambda: memory.add("x" * 100, metadata={"large": "y" * (10 * 1024 * 1024 - 20)}),
        lambda: memory.add("x" * (10 * 1024 * 1024), tags=["t"]),
        lambda: memory.update(kept.id, add_tags=["one more"]),
    ):
        with pytest.raises(errors.InvalidEntryError, match="together are larger than 10 MB"):
            wrong()
    assert memory.list().entries == (kept,)


def test_a_source_is_kept_filtered_hidden_and_exported(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as memory:
        tea = memory.add(MemoryEntry("likes tea", source="notes/tea.md"))
        web = memory.add(MemoryEntry("likes walks", source="https://example.org/Walks"))
        (plain,) = memory.add_many([{"content": "likes rain"}])
        (hidden,) = memory.add_many(
            [{"content": "likes nobody", "source": "diary.md", "sensitive": True}]
        )
        assert [memory.get(each.id).source for each in (tea, web, plain)] == [
            "notes/tea.md",
            "https://example.org/Walks",
            None,
        ]
        for source, wanted in (
            ("notes/tea.md", {tea.id}),
            ({"contains": "EXAMPLE.org"}, {web.id}),
            ({"in": ["notes/tea.md", "diary.md"]}, {tea.id, hidden.id}),
            ({"exists": False}, {plain.id}),
            ({"gte": "i"}, {tea.id}),
            ({"ne": "notes/tea.md"}, {web.id, plain.id, hidden.id}),
        ):
            filters = {"source": source}
            listed = memory.list(filters=filters).entries
            found = memory.search("likes", filters=filters)
            assert {entry.id for entry in listed} == {hit.entry.id for hit in found} == wanted
        assert ("source", "'notes/tea.md'") in tea.__rich_repr__()
        assert "diary.md" not in repr(hidden) + repr(hidden.__rich_repr__())
        memory.export(tmp_path / "memories.jsonl")
        assert memory.update(tea.id, content="likes green tea").source == "notes/tea.md"
    with Memory(tmp_path / "b.db", embedder=None) as memory:
        memory.import_(tmp_path / "memories.jsonl")
        assert memory.get(web.id).source == "https://example.org/Walks"
        assert memory.get(plain.id).source is None

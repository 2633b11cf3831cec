"""Calls without a user say that they left out the memories of users, and no export is empty."""

import io
import logging

import pytest

from mnemic import Memory
from mnemic.compat import LongTermMemory
from mnemic.errors import InvalidArgumentError
from mnemic_files import MemoryFiles
from tests.support.embedders import WordEmbedder

CALLS = {
    "search": lambda memory, **user: memory.search("tea", **user),
    "context": lambda memory, **user: memory.context("tea", **user),
    "list": lambda memory, **user: memory.list(**user),
    "list with vectors": lambda memory, **user: memory.list(embeddings=True, **user),
    "stats": lambda memory, **user: memory.stats(**user),
    "audit": lambda memory, **user: memory.audit(**user),
    "retrieve": lambda memory, **user: memory.retrieve("tea", **user),
    "recall": lambda memory, **user: memory.recall("tea", **user),
    "contradictions": lambda memory, **user: memory.contradictions("I live in Oslo", **user),
    "purge": lambda memory, **user: memory.purge(**user),
    "delete_many": lambda memory, **user: memory.delete_many(filters={"importance": 1}, **user),
    "delete_all": lambda memory, **user: memory.delete_all(**user),
}

COUNTS = {
    "count": lambda memory, **user: memory.count(**user),
    "distinct": lambda memory, **user: memory.distinct("tags", **user),
}


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "a.db", embedder=WordEmbedder()) as opened:
        yield opened


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_empty_answer_says_that_it_left_out_the_memories_of_users(memory, call):
    assert call(memory).hint is None  # there is nothing at all
    memory.add("red tea", user_id="ana-secret-name", session_id="s")
    hint = call(memory).hint
    assert "user_id=" in hint
    assert "all_users=True" in hint
    assert "ana" not in hint
    assert call(memory, session_id="s").hint == hint
    assert call(memory, session_id="another").hint is None
    assert call(memory, user_id="bob").hint is None
    assert call(memory.scoped(user_id="bob")).hint is None


def test_a_check_within_another_call_says_nothing(memory, caplog):
    memory.add("red tea", user_id="ana-secret-name")
    with caplog.at_level(logging.WARNING, "mnemic"):
        memory.add("I live in Oslo", check="contradictions")
    assert caplog.text == ""


@pytest.mark.parametrize("call", COUNTS.values(), ids=COUNTS)
def test_an_empty_number_or_list_says_so_once_in_the_log(memory, call, caplog):
    memory.add("red tea", user_id="ana-secret-name")
    with caplog.at_level(logging.WARNING, "mnemic"):
        for _ in range(2):
            assert not call(memory)
            assert not call(memory, user_id="bob")
    (line,) = [record.getMessage() for record in caplog.records]
    assert "all_users=True" in line
    assert "ana" not in line


def test_an_answer_that_is_not_empty_counts_nobody_elses_memories(memory, monkeypatch):
    memory.add("red tea", tags=["x"])
    memory.add("red tea", user_id="ana")
    monkeypatch.setattr(memory.repository.shared.user_hints, "_leaves_out", None)
    kept = [call for name, call in CALLS.items() if not name.startswith(("purge", "delete", "con"))]
    assert all(call(memory).hint is None for call in kept)
    assert all(call(memory) for call in COUNTS.values())


def test_pages_after_the_first_have_no_hint(memory):
    memory.add("red tea", user_id="ana")
    assert memory.list(offset=1).hint is None


@pytest.mark.parametrize("door", [Memory, LongTermMemory])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_no_export_is_empty_because_no_user_is_named(memory, tmp_path, door, is_deleted):
    entry = memory.add("red tea", user_id="ana-secret-name")
    if is_deleted:  # deleted ones are exported too
        memory.delete(entry.id, user_id="ana-secret-name")
    target, text = tmp_path / "all.jsonl", io.StringIO()
    with door(tmp_path / "a.db", embedder=None) as opened:
        with pytest.raises(InvalidArgumentError, match="all_users=True") as caught:
            opened.export(target)
        assert "ana" not in str(caught.value)
        assert not target.exists()
        with pytest.raises(InvalidArgumentError):
            opened.export(text)
        assert text.getvalue() == ""
        assert opened.export(target, all_users=True) == 1


def test_the_export_that_would_replace_a_backup_by_nothing_leaves_it(memory, tmp_path):
    memory.add("red tea", user_id="ana")
    target = tmp_path / "all.jsonl"
    target.write_text("an earlier backup")
    with pytest.raises(InvalidArgumentError, match="user_id="):
        memory.export(target, overwrite=True)
    assert target.read_text() == "an earlier backup"


def test_memories_without_a_user_are_exported_as_before(memory, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "mnemic"):
        assert memory.export(tmp_path / "none.jsonl") == 0
        assert memory.export(tmp_path / "bob.jsonl", user_id="bob") == 0
        first, second = (record.getMessage() for record in caplog.records)
        assert "no memory was written" in first
        assert "no memory was written" in second
        caplog.clear()
        memory.add("red tea")
        assert memory.export(tmp_path / "one.jsonl") == 1
        assert not caplog.records
        memory.add("green tea", user_id="ana-secret-name")
        assert memory.export(tmp_path / "two.jsonl") == 1
        (line,) = [record.getMessage() for record in caplog.records]
        assert "all_users=True" in line
        assert "ana" not in line
        assert memory.export(tmp_path / "three.jsonl", all_users=True) == 2


def test_an_export_of_a_session_knows_the_users_of_that_session(memory, tmp_path):
    memory.add("red tea", user_id="ana", session_id="s")
    with pytest.raises(InvalidArgumentError, match="all_users=True"):
        memory.export(tmp_path / "s.jsonl", session_id="s")
    assert memory.export(tmp_path / "other.jsonl", session_id="another") == 0


def test_memory_files_of_nobody_say_so(memory, tmp_path):
    files = MemoryFiles(user=tmp_path / "files")
    assert files.export(memory).hint is None
    memory.add("red tea", user_id="ana")
    assert "user_id=" in files.export(memory).hint
    assert files.export(memory.scoped(user_id="ana")).hint is None

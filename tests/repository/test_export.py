"""Exporting and importing whole memories; test_export_format.py tests the format."""

import io
import json
from uuid import UUID

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry, licensing
from mnemic.compat import DocumentedLicenses, LicenseTier
from mnemic.errors import ExportFormatError, InvalidArgumentError, StorageQuotaExceededError
from mnemic.model import ImportResult, Scope
from mnemic.repository.export import BATCH
from mnemic.store.operations import Links, StoredEntries
from tests.support.clock import HOUR, NOON, Clock
from tests.support.embedders import WordEmbedder


def opened(path=":memory:", agent="aide", **options):
    return Memory(path, agent, **{"embedder": WordEmbedder(), **options})


def filled(memory):
    old = memory.add("tea", user_id="a", tags=["x"], metadata={"n": [1, None]}, created_at=NOON)
    new = memory.add("coffee", user_id="a", supersedes=old.id, idempotency_key="k")
    gone = memory.add("gone", user_id="a", importance=0.9)
    memory.delete(gone.id, user_id="a")
    memory.add(
        MemoryEntry("brief", expires_at=NOON + HOUR, role="user"), user_id="b", session_id="s"
    )
    nobody = memory.add("nobody's")
    memory.get(nobody.id)
    return old, new


def everything(memory):
    store, scope = memory._repository._store, Scope(memory.agent_id, all_users=True)
    state = {"now": NOON, "include_deleted": True}
    stored = store.read(StoredEntries(scope, 0, 10_000, model="words", **state))
    links = [(read.link, read.user_id) for read in store.read(Links(scope, **state))]
    facts = [
        (one.entry, one.entry.access_count, one.entry.last_accessed_at, one.key) for one in stored
    ]
    vectors = [one.entry.embedding for one in stored]
    return facts, links, vectors


@pytest.mark.parametrize("embeddings", [True, False])
def test_all_of_a_memory_comes_back_from_its_export(tmp_path, embeddings):
    path = tmp_path / "out.jsonl"
    with opened(tmp_path / "a.db", clock=Clock()) as memory, opened(clock=Clock()) as copy:
        filled(memory)
        assert memory.export(path, all_users=True, embeddings=embeddings) == 5
        assert copy.import_(path) == ImportResult(stored=5, skipped=0, links=0)
        assert len(copy.embedder.texts) == (0 if embeddings else 5)
        facts, links, vectors = everything(memory)
        copied = everything(copy)
        assert copied[:2] == (facts, links)
        assert len(links) == 1
        assert all(map(np.array_equal, vectors, copied[2]))
        assert copy.add("coffee", user_id="a", idempotency_key="k").content == "coffee"
        assert copy.count(user_id="a") == 1
        assert copy.import_(path) == ImportResult(stored=0, skipped=5, links=0)
        assert everything(copy)[:2] == (facts, links)


def test_an_export_is_of_one_scope_and_one_state():
    with opened(clock=Clock()) as memory:
        old, _ = filled(memory)

        def lines(**options):
            target = io.StringIO()
            memory.export(target, **options)
            return [json.loads(line) for line in target.getvalue().splitlines()]

        def texts(**options):
            return [line["content"] for line in lines(**options) if line.get("kind") == "memory"]

        assert texts() == ["nobody's"]
        assert texts(user_id="a") == ["tea", "coffee", "gone"]
        assert texts(user_id="a", include_deleted=False) == ["tea", "coffee"]
        assert texts(user_id="b", session_id="s") == ["brief"]
        assert texts(user_id="b", session_id="t") == []
        assert len(texts(all_users=True)) == 5
        ends = [line["to_id"] for line in lines(user_id="a") if line.get("kind") == "link"]
        assert ends == [str(old.id)]
        assert not [line for line in lines() if line.get("kind") == "link"]
        view = memory.scoped(user_id="a")
        target = io.StringIO()
        assert view.export(target) == 3
        with pytest.raises(InvalidArgumentError, match="not widened to all users"):
            view.export(io.StringIO(), all_users=True)


def test_what_superseded_a_memory_that_is_gone_is_imported_all_the_same():
    with opened() as memory, opened() as copy:
        old = memory.add("tea")
        new = memory.add("coffee", supersedes=old.id)
        memory.delete(old.id, permanent=True)
        target = io.StringIO()
        memory.export(target)
        target.seek(0)
        copy.import_(target)
        assert copy.get(new.id).supersedes == old.id


def test_a_view_imports_only_what_lies_inside_it_and_says_which_line_does_not():
    with opened(clock=Clock()) as memory, opened() as copy:
        filled(memory)
        target = io.StringIO()
        memory.export(target, all_users=True)
        target.seek(0)
        with pytest.raises(ExportFormatError, match="line 5: user_id is bound to 'a'"):
            copy.scoped(user_id="a").import_(target)
        assert copy.stats().active_entries == 0


@pytest.mark.parametrize("damage", ["cut", "field", "json"])
def test_a_file_with_one_bad_line_stores_nothing(tmp_path, damage):
    path = tmp_path / "out.jsonl"
    with opened() as memory, opened() as copy:
        memory.add_many(f"memory {number}" for number in range(BATCH + 10))
        memory.export(path)
        lines = path.read_text().splitlines(keepends=True)
        if damage == "cut":
            lines = lines[:-5]
        elif damage == "field":
            lines[-3] = lines[-3].replace('"content"', '"contents"')
        else:
            lines[-3] = lines[-3][:20] + "\n"
        path.write_text("".join(lines))
        bad = len(lines) + 1 if damage == "cut" else len(lines) - 2
        with pytest.raises(ExportFormatError, match=f"line {bad}:"):
            copy.import_(path)
        assert copy.count() == 0


def test_a_memory_that_is_too_large_is_named_by_its_line_before_anything_is_stored():
    with opened(embedder=None) as memory, opened(embedder=None) as copy:
        for number in range(BATCH + 1):
            memory.add(f"tea {number}", id=UUID(int=number))
        exported = io.StringIO()
        memory.export(exported)
        *lines, end = exported.getvalue().splitlines()
        large = {**json.loads(lines[-1]), "tags": ["x"] * 3_000_000}
        source = io.StringIO("\n".join([*lines[:-1], json.dumps(large), end, ""]))
        with pytest.raises(ExportFormatError, match="larger than 10 MB") as caught:
            copy.import_(source)
        assert caught.value.line == BATCH + 2
        assert copy.count() == 0


def test_progress_is_told_batch_by_batch():
    with opened(embedder=None) as memory, opened(embedder=None) as copy:
        memory.add_many(f"memory {number}" for number in range(2 * BATCH + 5))
        target, exported, imported = io.StringIO(), [], []
        memory.export(target, progress=exported.append)
        target.seek(0)
        copy.import_(target, progress=imported.append)
        assert exported == imported == [BATCH, 2 * BATCH, 2 * BATCH + 5]


def test_an_import_that_breaks_off_can_be_repeated(monkeypatch):
    limits = {**licensing.STORAGE_LIMITS, LicenseTier.TEAMS: 12_000}
    monkeypatch.setattr(licensing, "STORAGE_LIMITS", limits)
    with (
        opened(embedder=None) as memory,
        opened(embedder=None, license=DocumentedLicenses(LicenseTier.TEAMS)) as copy,
    ):
        memory.add_many(f"memory {number:03}" for number in range(BATCH + 200))
        target = io.StringIO()
        memory.export(target)
        target.seek(0)
        with pytest.raises(StorageQuotaExceededError):
            copy.import_(target)
        assert copy.count() == BATCH
        limits[LicenseTier.TEAMS] = 20_000
        target.seek(0)
        assert copy.import_(target) == ImportResult(stored=200, skipped=BATCH, links=0)

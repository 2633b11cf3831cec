"""`add` and `add_many` with `on_conflict`, at both doors, beside indexes, caches and events."""

import asyncio
import shutil
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest

from mnemic import MemoryEntry
from mnemic.async_memory import AsyncMemory
from mnemic.errors import EmbeddingError, InvalidArgumentError, StorageQuotaExceededError
from mnemic.memory import Memory
from mnemic.observability.events import MemoryStoredEvent, MemoryUpdatedEvent
from mnemic.store.operations import NeedVectors
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import NOON
from tests.support.doors import opened, run
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents, entry, uid
from tests.support.failing_embedders import FailingEmbedder
from tests.support.operations import replace_operation
from tests.support.paths import FIXTURES
from tests.support.processes import ENVIRONMENT


@pytest.fixture(params=["file", "memory"])
def memory(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as opened:
        yield opened
        assert opened.verify().ok


def put(memory, number, content, *, on_embed_error="raise", **fields):
    given = {"content": content, "id": uid(number), **fields}
    return memory.add_many([given], on_conflict="replace", on_embed_error=on_embed_error)[0]


def test_an_unchanged_content_is_not_embedded_again(memory):
    embedder = memory.embedder
    memory.add_many([{"content": f"text {n}", "id": uid(n)} for n in range(3)])
    embedder.texts.clear()
    put(memory, 0, "text 0", importance=0.9)
    changed = [{"content": f"text {n + n // 2}", "id": uid(n)} for n in range(4)]
    memory.add_many(changed, on_conflict="replace")
    assert embedder.texts == ["text 3", "text 4"]
    memory.add_many([{"content": "new", "id": uid(n)} for n in (0, 9)], on_conflict="skip")
    assert embedder.texts == ["text 3", "text 4", "new"]
    assert memory.search("text 0", search_type="semantic")[0].score == pytest.approx(1)
    put(memory, 1, "text 1", embed=())
    put(memory, 1, "text 1")
    assert embedder.texts[-1] == "text 1"


def test_the_vectors_of_an_unchanged_content_go_with_the_race_that_changes_it(
    tmp_path, monkeypatch
):
    with opened(tmp_path / "a.db") as one, opened(tmp_path / "a.db") as other:
        put(one, 1, "a red sofa")
        store = one.repository._store

        def overtaken(own, wanted, **options):
            needed = own(wanted, **options)
            put(other, 1, "ferries leave at noon")
            return needed

        replace_operation(monkeypatch, store, NeedVectors, overtaken)
        put(one, 1, "a red sofa")
        for memory in (one, other):
            assert memory.search("red sofa", search_type="semantic")[0].score == pytest.approx(
                2 / np.sqrt(6)
            )
        assert one.verify().vectors == 1


def test_a_put_whose_embedder_fails_leaves_the_old_one():
    with opened(embedder=FailingEmbedder(is_down=True)) as failing:
        put(failing, 1, "a red sofa", on_embed_error="pending")
        with pytest.raises(EmbeddingError):
            put(failing, 1, "a green chair")
        assert failing.get(uid(1)).content == "a red sofa"
        put(failing, 1, "a green chair", on_embed_error="pending")
        assert failing.get(uid(1)).content == "a green chair"


def test_a_put_moves_to_the_project_and_session_of_the_call(memory):
    put(memory, 1, "a red sofa", user_id="u", project_id="p", session_id="s")
    view = memory.scoped(user_id="u", project_id="q")
    moved = view.add_many([MemoryEntry("a red sofa", id=uid(1))], on_conflict="replace")[0]
    assert (moved.project_id, moved.session_id, moved.version) == ("q", None, 2)
    assert len(memory.scoped(project_id="p").search("sofa", user_id="u")) == 0
    assert contents(view.search("sofa")) == ["a red sofa"]


def test_memories_take_the_place_of_others(memory):
    memory.add_many([{"content": f"text {n}", "id": uid(n)} for n in range(4)])
    memory.delete(uid(3))
    given = [{"content": "new 4", "id": uid(4)}, {"content": "new 1", "id": uid(1)}]
    gone = [uid(0), uid(1), uid(3), uid(9)]
    memory.add_many(given, on_conflict="replace", instead_of=gone)
    assert contents(memory.list(include_deleted=True)) == ["new 4", "text 2", "new 1"]
    assert len(memory.search("text 0", search_type="keyword")) == 1
    memory.add_many([], instead_of=iter([str(uid(1))]))
    assert contents(memory.list(include_deleted=True)) == ["new 4", "text 2"]


def test_what_others_take_the_place_of_is_within_the_scope_of_the_call(memory):
    put(memory, 1, "a red sofa", user_id="ann")
    put(memory, 1, "a green chair", user_id="bob")
    memory.add_many(["new"], instead_of=[uid(1)])
    memory.add_many(["new"], instead_of=[uid(1)], user_id="ann")
    assert contents(memory.list(user_id="bob")) == ["a green chair"]
    assert contents(memory.list(user_id="ann")) == ["new"]
    with pytest.raises(InvalidArgumentError, match="all_users"):
        memory.add_many(["new"], instead_of=[uid(1)], user_id="ann", all_users=True)
    memory.add_many([{"content": "new", "user_id": "ann"}], instead_of=[uid(1)], all_users=True)
    assert contents(memory.list(user_id="bob")) == []
    with pytest.raises(InvalidArgumentError, match="not a UUID"):
        memory.add_many(["new"], instead_of=["no id"])


def test_what_others_take_the_place_of_stays_where_they_are_not_stored():
    with opened(embedder=FailingEmbedder(is_down=True)) as failing:
        put(failing, 1, "a red sofa", on_embed_error="pending")
        with pytest.raises(EmbeddingError):
            failing.add_many(["a green chair"], instead_of=[uid(1)])
        assert contents(failing.list()) == ["a red sofa"]


def test_calls_at_once_each_delete_what_their_own_memories_take_the_place_of(tmp_path):
    async def replace_all(memory):
        return await asyncio.gather(
            *(memory.add_many([f"new {n}"], instead_of=[uid(n)]) for n in range(20))
        )

    with Memory(tmp_path / "a.db", embedder=None) as memory:
        memory.add_many([{"content": f"old {n}", "id": uid(n)} for n in range(20)])
        asyncio.run(replace_all(memory.aio))
        assert set(contents(memory.list())) == {f"new {n}" for n in range(20)}
        assert memory.verify().ok


def test_accesses_are_anew_for_every_opening(tmp_path):
    with opened(tmp_path / "a.db") as one, opened(tmp_path / "a.db") as other:
        for content in ("a red sofa", "a green chair"):
            put(one, 1, "a red sofa")
            for memory in (one, other):
                memory.search("sofa")
                memory.get(uid(1))
                memory.list(filters={"access_count": {"gte": 1}})
            run_sync(other.repository.shared.accesses.write())
            put(one, 1, content)
            for memory in (one, other, one):
                assert memory.list(filters={"access_count": {"gte": 1}}).entries == ()
                assert memory.list().entries[0].access_count == 0


def test_a_replacement_is_published_as_an_update(memory):
    seen = []
    memory.events.subscribe(MemoryStoredEvent, lambda event: seen.append(("new", event.entry_id)))
    memory.events.subscribe(
        MemoryUpdatedEvent,
        lambda event: seen.append((event.content_changed, event.entry_id)),
    )
    put(memory, 1, "a red sofa")
    put(memory, 1, "a red sofa")
    memory.add_many(
        [{"content": "x", "id": uid(2)}, {"content": "y", "id": uid(1)}], on_conflict="replace"
    )
    memory.add_many([MemoryEntry("z", id=uid(2))], on_conflict="skip")
    assert seen == [
        *(("new", uid(1)), (False, uid(1))),
        *(("new", uid(2)), (True, uid(1))),
    ]


def test_a_sensitive_replacement_hides_and_an_open_one_shows(memory):
    put(memory, 1, "a red sofa")
    memory.get(uid(1))
    hidden = put(memory, 1, "a secret", sensitive=True)
    assert "secret" not in repr(hidden)
    assert "secret" not in repr(memory.get(uid(1)))
    assert "sofa" in repr(put(memory, 1, "a red sofa"))


def test_the_quota_counts_the_difference():
    with opened(quota=20) as memory:
        put(memory, 1, "x" * 15)
        put(memory, 1, "y" * 20)
        with pytest.raises(StorageQuotaExceededError):
            put(memory, 1, "z" * 21)
        memory.add_many(
            [{"content": "a", "id": uid(1)}, {"content": "b" * 19, "id": uid(2)}],
            on_conflict="replace",
        )
        assert contents(memory.list()) == ["b" * 19, "a"]


def test_records_and_keys_at_the_other_doors():
    async def scenario(memory):
        first = entry("a red sofa", id=uid(1))
        await memory.store(first, idempotency_key="k")
        again = entry("a green chair", id=uid(1), version=9, created_at=NOON + timedelta(days=1))
        assert await memory.store(again, on_conflict="replace") == uid(1)
        stored = await memory.retrieve(uid(1))
        assert (stored.version, stored.created_at) == (2, first.created_at)
        assert await memory.store_batch([first], on_conflict="skip") == [uid(1)]
        assert await memory.store(first, idempotency_key="k", on_conflict="replace") == uid(1)
        return (await memory.retrieve(uid(1))).content

    assert run(scenario) == "a green chair"


def test_awaited_puts_of_one_id_at_once_get_no_error(tmp_path):
    async def scenario():
        async with AsyncMemory(tmp_path / "a.db", embedder=WordEmbedder()) as memory:
            puts = (
                memory.add_many([MemoryEntry(f"content {n}", id=uid(1))], on_conflict="replace")
                for n in range(30)
            )
            found = [one for (one,) in await asyncio.gather(*puts)]
            stored = await memory.get(uid(1))
            assert sorted(one.version for one in found) == list(range(1, 31))
            assert stored.version == 30
            assert stored in found
            assert [hit.content for hit in await memory.search("content")] == [stored.content]
            return (await memory.verify()).ok

    assert asyncio.run(scenario())


_PUTTING = """
import sys
from uuid import UUID
from mnemic.memory import Memory
from tests.support.embedders import WordEmbedder

path, name = sys.argv[1:]
with Memory(path, embedder=WordEmbedder()) as memory:
    sys.stdin.readline()
    for turn in range(20):
        memories = [{"content": f"{name} {turn} {n}", "id": UUID(int=n)} for n in range(10)]
        memory.add_many(memories, on_conflict="replace")
        last = {"content": f"{name} {turn}", "id": UUID(int=99)}
        memory.add_many([last], on_conflict="replace")
        assert len(memory.search("content", limit=99)) == 11
"""


def test_two_processes_put_the_same_keys_without_an_error(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.add("first", id=uid(99))
        children = [
            subprocess.Popen(
                [sys.executable, "-c", _PUTTING, str(path), name],
                env=ENVIRONMENT,
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for name in ("one", "two")
        ]
        for child in children:
            child.stdin.write(b"go\n")
            child.stdin.flush()
        errors = [child.communicate(timeout=120)[1] for child in children]
        assert errors == [b"", b""]
        kept = {found.id.int: found for found in memory.list()}
        assert len(kept) == 11
        batch = {tuple(found.content.split()[:2]) for number, found in kept.items() if number < 99}
        assert batch in ({("one", "19")}, {("two", "19")})
        assert kept[99].version == 41
        assert {kept[number].version for number in range(10)} == {40}
        for found in kept.values():
            hits = memory.search(found.content, search_type="semantic", limit=99)
            assert [hit.score for hit in hits if hit.id == found.id] == [pytest.approx(1)]
        assert memory.verify().ok


@pytest.mark.parametrize("version", range(1, 7))
def test_memories_of_earlier_versions_are_stored_over(tmp_path, version):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / f"store_v{version}.db", path)
    with Memory(path, "aide", embedder=None) as memory:
        statuses = {"status": {"in": ["active", "archived", "superseded"]}}
        old = list(memory.list(include_deleted=True, all_users=True, filters=statuses))
        assert len(old) == 3
        for number, kept in enumerate(old):
            content = kept.content + " again" * (number % 2)
            named = {"content": content, "id": kept.id, "user_id": kept.user_id}
            (new,) = memory.add_many([named], on_conflict="replace")
            assert (new.version, new.created_at) == (kept.version + 1, kept.created_at)
            memory.touch([kept.id], user_id=kept.user_id, expires_at="2100-01-01T00:00:00Z")
        assert memory.count(all_users=True) == 3
        report = memory.verify()
        assert (report.ok, report.without_sums) == (True, 0)


def test_kept_answers_and_contexts_follow_a_put(tmp_path):
    with opened(tmp_path / "a.db") as one, opened(tmp_path / "a.db") as other:
        put(one, 1, "a red sofa")
        for number in range(3):
            for memory in (one, other, one):
                found = memory.retrieve("sofa")
                assert [hit.entry.version for hit in found] == [number + 1]
                assert f"sofa {number}" in memory.context("sofa") or number == 0
            put(other, 1, f"a red sofa {number + 1}")


# The order within one call


@pytest.mark.parametrize("state", ["deleted", "archived", "expired", "superseded"])
@pytest.mark.parametrize("vectors", [{}, {"embedding": [[1.0] * 64, [2.0] * 64]}])
def test_a_memory_that_lives_again_is_found_by_the_vectors_that_it_kept(tmp_path, state, vectors):
    with opened(tmp_path / "a.db") as memory, opened(tmp_path / "a.db") as other:
        put(memory, 1, "a red sofa", **vectors)
        for each in (memory, other):
            assert contents(each.search("red sofa", search_type="semantic")) == ["a red sofa"]
        if state == "deleted":
            memory.delete(uid(1))
        elif state == "archived":
            memory.update(uid(1), status="archived")
        elif state == "expired":
            memory.update(uid(1), expires_at=NOON - timedelta(days=1))
        else:
            memory.add("a blue chair", supersedes=uid(1))
        for each in (memory, other):
            assert "a red sofa" not in contents(each.search("red sofa", search_type="semantic"))
        put(memory, 1, "a red sofa")
        for each in (memory, other):
            assert "a red sofa" in contents(each.search("red sofa", search_type="semantic"))

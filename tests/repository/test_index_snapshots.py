"""Snapshots of indexes: an opened memory answers as one whose rows came from the store."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Encryption, Memory
from mnemic._core import MemoryIndex
from mnemic.errors import OutOfMemoryError
from mnemic.model.rows import State
from mnemic.repository import index_snapshots
from mnemic.repository.index_snapshots import IndexSnapshots
from mnemic.store.operations import RowsSince
from mnemic.store.sqlite.store import SqliteStore
from tests.support import file_formats
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY
from tests.support.operations import replace_operation_of_all
from tests.support.processes import ENVIRONMENT
from tests.support.tiers import examples

pytestmark = pytest.mark.usefixtures("small_snapshots")

WORDS = [first + last for first in "bdfgklmnprst" for last in ("ale", "ing", "on", "ure", "est")]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def loaded(monkeypatch):
    """The numbers of rows of the snapshots that were loaded."""
    sizes, restored = [], IndexSnapshots.restored

    def counted(self):
        found = restored(self)
        if found is not None:
            sizes.append(len(found.core))
        return found

    monkeypatch.setattr(IndexSnapshots, "restored", counted)
    return sizes


def opened(path, **options):
    return Memory(path, embedder=WordEmbedder(dimensions=16), **options)


def entry(number, draw):
    words = draw.choices(WORDS, k=draw.randint(1, 9))
    return {
        "content": " ".join(words) + ("?" if draw.random() < 0.2 else ""),
        "tags": words[:1],
        "session_id": f"session {number // 7}",
        "speaker": draw.choice(["Ann Lee", "Bob", None]),
        "importance": draw.random(),
        "metadata": {"number": number},
        "created_at": BEGIN + timedelta(hours=number),
        "sensitive": draw.random() < 0.1,
    }


def filled(memory, count=120, seed=0):
    draw = random.Random(seed)  # noqa: S311 - no secret
    for user in ("ann", "bob"):
        memory.add_many([entry(number, draw) for number in range(count)], user_id=user)
    return memory


def saved(memory):
    """Return the memory with a snapshot of it saved."""
    sync = memory.repository._indexes.active
    memory.search("begin", user_id="ann")
    end = time.monotonic() + 20
    while sync.saving._thread.is_running and time.monotonic() < end:
        time.sleep(0.005)
    snapshot = sync.own.native.snapshot()
    assert sync.own.model.snapshots.save(snapshot, sync.accesses.written)
    if snapshot.source is not None:
        snapshot.source.release()
    return memory


def files(path):
    folder = Path(f"{path}-index")
    return sorted(folder.glob("*.index")) if folder.exists() else []


def answers(memory):
    found = {}
    for user in ("ann", "bob"):
        for query in ("bale", "ding fon", "When did Ann gure?", "What did Bob say of nest rest"):
            for kind in ("hybrid", "semantic", "keyword"):
                hits = memory.search(query, user_id=user, limit=40, search_type=kind)
                found[user, query, kind] = [(hit.id, hit.score) for hit in hits]
        narrowed = memory.search("bale", user_id=user, filters={"metadata.number": {"gt": 50}})
        found[user, "filter"] = [(hit.id, hit.score) for hit in narrowed]
        found[user, "list"] = [one.id for one in memory.list(user_id=user, limit=1000)]
    return found


def without_snapshots(path, tmp_path):
    """Return the answers of a copy of a closed file, whose index is loaded from the store."""
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    with opened(copy, track_access=False) as memory:
        found = answers(memory)
    shutil.rmtree(f"{copy}-index", ignore_errors=True)
    copy.unlink()
    return found


def test_a_memory_opened_from_a_snapshot_answers_as_one_from_the_store(tmp_path, loaded):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        saved(filled(memory))
    wanted = without_snapshots(path, tmp_path)
    loaded.clear()
    with opened(path, track_access=False) as memory:
        assert answers(memory) == wanted
        sensitive = sum(one.sensitive for one in memory.list(all_users=True, limit=1000))
    assert loaded == [240 - sensitive]
    assert sensitive > 10


def test_files_are_their_owners_alone(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved(filled(memory))
    (file,) = files(path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_sensitive_memories_are_in_no_snapshot(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        filled(memory)
        secret = {"content": "zyxwvu passphrase", "tags": ["qqqtag"], "sensitive": True}
        memory.add(**secret, user_id="ann", speaker="Zorblax", metadata={"kkkey": "vvvalue"})
        saved(memory)
    (file,) = files(path)
    stored = file.read_bytes().lower()
    assert b"bale" in stored
    for word in ("zyxwvu", "passphrase", "qqqtag", "zorblax", "kkkey", "vvvalue"):
        for encoding in ("utf-8", "utf-16-le"):
            assert word.encode(encoding) not in stored, word


def test_sealed_memories_are_in_no_snapshot_and_are_found_beside_one(tmp_path, loaded):
    path, options = tmp_path / "a.db", {"track_access": False}
    with opened(path, encryption=Encryption(KEY), **options) as memory:
        filled(memory)
        with opened(path, encryption=Encryption(KEY, encrypt_all=True), **options) as sealing:
            secret = {"content": "zyxwvu passphrase", "tags": ["qqqtag"], "speaker": "Zorblax"}
            sealed = sealing.add(**secret, user_id="ann")
            assert sealed.is_encrypted
            assert not sealed.sensitive
        saved(memory)
        wanted = answers(memory)
    stored = files(path)[0].read_bytes().lower()
    assert b"bale" in stored
    for word in (b"zyxwvu", b"passphrase", b"qqqtag", b"zorblax"):
        assert word not in stored, word
    loaded.clear()
    with opened(path, encryption=Encryption(KEY), **options) as memory:
        assert answers(memory) == wanted
        assert memory.search("zyxwvu", user_id="ann")[0].id == sealed.id
        numbers = [one.is_encrypted for one in memory.list(all_users=True, limit=1000)]
    assert loaded == [241 - sum(numbers)]
    with opened(path, **options) as memory:
        assert sealed.id not in [hit.id for hit in memory.search("zyxwvu", user_id="ann")]
        assert memory.stats(all_users=True).sealed_entries == sum(numbers)


def test_no_snapshot_is_saved_of_what_is_mostly_sealed(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, encryption=Encryption(KEY, encrypt_all=True)) as memory:
        sync = filled(memory).repository._indexes.active
        memory.search("bale", user_id="ann")
        assert sync.own.model.snapshots.due(240, 240, lambda: False) is None
    assert not files(path)


def test_nothing_of_a_removed_memory_is_in_a_later_snapshot(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        filled(memory)
        gone = memory.add("zyxwvu passphrase", user_id="ann", tags=["qqqtag"], speaker="Zorblax")
        saved(memory)
        assert b"zyxwvu" in files(path)[0].read_bytes()
        assert memory.delete(gone.id, user_id="ann", permanent=True).erased
        assert not files(path)
        saved(memory)
        (file,) = files(path)
        stored = file.read_bytes().lower()
        for word in (b"zyxwvu", b"passphrase", b"qqqtag", b"zorblax"):
            assert word not in stored, word


def test_a_snapshot_is_not_saved_once_more_was_removed(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        filled(memory)
        gone = memory.add("zyxwvu", user_id="ann")
        memory.search("x", user_id="ann")
        sync = memory.repository._indexes.active
        sync.stop()
        snapshot = sync.own.native.snapshot()
        assert memory.delete(gone.id, user_id="ann", permanent=True).erased
        assert not sync.own.model.snapshots.save(snapshot, 0)
        assert not files(path)


def test_a_snapshot_of_another_history_is_refused(tmp_path, loaded):
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    with opened(path) as memory:
        filled(memory)
        memory.backup(copy)
        memory.add("only in the first", user_id="ann")
        saved(memory)
    with opened(copy) as memory:  # the same number of changes, and another content
        memory.add("only in the second", user_id="ann")
        sync = memory.repository._indexes.active
        sync.stop()
    shutil.rmtree(f"{copy}-index", ignore_errors=True)
    shutil.copytree(f"{path}-index", f"{copy}-index")
    loaded.clear()
    with opened(copy) as memory:
        found = [hit.content for hit in memory.search("only in the", user_id="ann")]
    assert loaded == []
    assert "only in the second" in found
    assert "only in the first" not in found


def test_a_snapshot_of_another_version_is_refused(tmp_path, loaded, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved(filled(memory))
    kind = index_snapshots.IndexKind
    monkeypatch.setattr(
        "mnemic.repository.agent_index.IndexKind", lambda *given: kind(*given, mnemic="another")
    )
    loaded.clear()
    with opened(path) as memory:
        assert memory.search("bale", user_id="ann")
    assert loaded == []


def format_of(file):
    """Return the number of a snapshot's format."""
    return int.from_bytes(file.read_bytes()[8:16], "little")


def test_the_kept_snapshot_of_each_format_is_used_or_refused_and_the_answers_are_the_stores(
    tmp_path, loaded, monkeypatch
):
    kind = index_snapshots.IndexKind  # of any version of mnemic the format alone decides
    monkeypatch.setattr(
        "mnemic.repository.agent_index.IndexKind", lambda *given: kind(*given, mnemic="0.1.0")
    )
    MemoryIndex(16).snapshot().save(tmp_path / "today", b"")
    path = tmp_path / "kept.db"
    shutil.copy(file_formats.SNAPSHOT, path)
    shutil.copytree(f"{file_formats.SNAPSHOT}-index", f"{path}-index")
    is_of_today = format_of(files(path)[0]) == format_of(tmp_path / "today")
    wanted = without_snapshots(path, tmp_path)
    loaded.clear()
    with file_formats.opened(path) as memory:
        assert answers(memory) == wanted
        assert memory.search("tea in Bergen", user_id="ann", search_type="keyword")
    assert loaded == [40] * is_of_today


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_snapshot_is_dropped_or_never_read(tmp_path, seed):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        saved(filled(memory))
    wanted = without_snapshots(path, tmp_path)
    (file,) = files(path)
    sound = file.read_bytes()
    draw = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(8):
        stored = bytearray(sound)
        if draw.random() < 0.3:
            del stored[draw.randrange(len(stored)) :]
        else:
            stored[draw.randrange(len(stored))] ^= 1 << draw.randrange(8)
        file.parent.mkdir(exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(bytes(stored))
        with opened(path, track_access=False) as memory:
            assert answers(memory) == wanted


def test_damage_that_a_search_finds_is_mended_from_the_store(tmp_path, loaded, caplog):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        saved(filled(memory))
    wanted = without_snapshots(path, tmp_path)
    (file,) = files(path)
    stored = bytearray(file.read_bytes())
    stored[4096 + 10] ^= 1  # among the codes of the first vectors, which opening does not read
    file.unlink()
    file.write_bytes(stored)
    loaded.clear()
    with opened(path, track_access=False) as memory:
        assert loaded
        assert answers(memory) == wanted
    assert "is damaged; the index is loaded from the store" in caplog.text


def test_a_snapshot_that_there_is_no_space_to_map_is_kept(tmp_path, loaded, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        saved(filled(memory))

    def load_file(*_arguments, **_options):
        raise OutOfMemoryError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(index_snapshots, "MemoryIndex", SimpleNamespace(load_file=load_file))
        with pytest.raises(MemoryError), opened(path, track_access=False) as memory:
            memory.search("bale", user_id="ann")
    loaded.clear()
    with opened(path, track_access=False) as memory:
        assert memory.search("bale", user_id="ann")
    assert loaded


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_of_another_account_is_not_read(tmp_path, loaded):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        saved(filled(memory))
    os.chown(files(path)[0], 12345, 12345)
    loaded.clear()
    with opened(path, track_access=False) as memory:
        assert memory.search("bale", user_id="ann")
    assert loaded == []


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "delete", "restore", "purge", "link", "get", "reopen"]),
        st.integers(0, 10**6),
    ),
    max_size=25,
)


def play(memory, operations, state):
    draw, ids = state
    for name, number in operations:
        target = ids[number % len(ids)]
        if name == "add":
            added = memory.add(**entry(number % 500, draw), user_id=target[1])
            ids.append((added.id, target[1]))
        elif memory.count(user_id=target[1]) and name != "reopen":
            act(memory, name, target, ids[(number // 7) % len(ids)], draw)


def act(memory, name, target, other, draw):
    one, user = target
    known = {found.id for found in memory.list(user_id=user, limit=1000)}
    if name == "restore":
        memory.restore(one, user_id=user)
    elif one not in known:
        return
    elif name == "update":
        memory.update(one, user_id=user, content=" ".join(draw.choices(WORDS, k=5)))
    elif name == "get":
        memory.get(one, user_id=user)
    elif name == "link" and other[1] == user and other[0] in known and other[0] != one:
        memory.link(one, other[0], user_id=user)
    elif name in {"delete", "purge"}:
        memory.delete(one, user_id=user, permanent=name == "purge")


@examples(8)
@given(first=OPERATIONS, second=OPERATIONS, third=OPERATIONS)
def test_any_operations_between_openings_leave_the_answers_of_the_store(
    tmp_path_factory, first, second, third
):
    folder = tmp_path_factory.mktemp("any")
    path, draw = folder / "a.db", random.Random(1)  # noqa: S311 - no secret
    with opened(path) as memory:
        filled(memory, 20)
        state = draw, [(one.id, one.user_id) for one in memory.list(all_users=True, limit=100)]
    for operations in (first, second, third):
        with opened(path) as memory:
            play(memory, operations, state)
            saved(memory)
        wanted = without_snapshots(path, folder)
        with pytest.MonkeyPatch.context() as patched:
            replace_operation_of_all(patched, SqliteStore, RowsSince, only_changes)
            with opened(path, track_access=False) as memory:
                assert answers(memory) == wanted


def only_changes(read, store, wanted, **options):
    """Read for an index that was loaded from a snapshot: never all rows."""
    assert wanted.seq is not None or wanted.state is not State.ACTIVE, "loaded from the store"
    return read(store, wanted, **options)


SAVER = """
import sys
from mnemic.repository import index_snapshots
index_snapshots.MIN_ROWS, index_snapshots.MIN_CHANGES = 1, 1
index_snapshots.CHECK_SECONDS = 0.0
from tests.repository.test_index_snapshots import opened, saved
with opened(sys.argv[1]) as memory:
    print("open", flush=True)
    while True:
        saved(memory)
"""


def run_saver(path):
    saver = subprocess.Popen(
        [sys.executable, "-c", SAVER, str(path)], env=ENVIRONMENT, stdout=subprocess.PIPE
    )
    saver.stdout.readline()
    return saver


def test_a_process_killed_while_it_saves_leaves_a_sound_snapshot_or_none(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        filled(memory)
    wanted = without_snapshots(path, tmp_path)
    draw = random.Random(0)  # noqa: S311 - no secret
    for _ in range(6):
        saver = run_saver(path)
        time.sleep(draw.random() * 0.2)
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()
        with opened(path, track_access=False) as memory:
            assert answers(memory) == wanted
    with opened(path) as memory:
        one = next(iter(memory.list(user_id="ann")))
        assert memory.delete(one.id, user_id="ann", permanent=True).erased
        left = [one.name for one in Path(f"{path}-index").iterdir() if one.name != "lock"]
        assert left == []  # temporary files of the killed ones are gone as well


def test_a_process_opens_while_another_one_saves(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, track_access=False) as memory:
        filled(memory)
    wanted = without_snapshots(path, tmp_path)
    saver = run_saver(path)
    try:
        for _ in range(8):
            with opened(path, track_access=False) as memory:
                assert answers(memory) == wanted
    finally:
        saver.kill()
        saver.wait()
        saver.stdout.close()

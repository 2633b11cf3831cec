"""Nothing of a sealed memory is in any file beside it, nor in anything that is told of it.

Texts are searched for as they are and in Base64 (at its three alignments), in UTF-8 and UTF-16;
vectors as 32-bit and 16-bit floats and as 8-bit numbers. A twin in plain text shows that the search
finds what is there.
"""

import asyncio
import base64
import inspect
import io
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import MnemicError
from mnemic.observability import telemetry
from mnemic.repository import index_snapshots
from tests.support.embedders import WordEmbedder
from tests.support.entries import uid
from tests.support.keys import shows
from tests.support.processes import ENVIRONMENT
from tests.support.sealing import (
    DenseEmbedder,
    encryption,
)
from tests.support.secret_forms import forms_of, forms_of_vector, left_in, shown, written_in
from tests.support.silence import (
    CANARIES,
    HIDDEN_WORD,
    Ear,
    found_in,
    listen,
    opened,
    said_by,
    use_all,
)
from tests.support.silence import shown as reprs_of
from tests.support.workers import Worker

SECRET = "zqsecret"  # noqa: S105 - no password
FIELDS = {
    "tags": [f"{SECRET}tag"],
    "metadata": {f"{SECRET}name": [f"{SECRET}value", {"inner": f"{SECRET}inner"}]},
    "category": f"{SECRET}category",
    "source": f"{SECRET}source",
    "speaker": f"{SECRET}speaker",
    "role": f"{SECRET}role",
    "message_id": "zqmessage",
}
CONTENT = f"{SECRET} content of the night in Oslo"
EMBEDDER = DenseEmbedder()
VECTOR = EMBEDDER.embed([CONTENT])[0]


@pytest.fixture
def folder(tmp_path):
    """Return a directory of the memory's own."""
    made = tmp_path / "memory"
    made.mkdir()
    return made


@pytest.fixture(autouse=True)
def snapshots_of_small_indexes(monkeypatch):
    """Save snapshots of small indexes, as soon as they are due."""
    monkeypatch.setattr(index_snapshots, "MIN_ROWS", 1)
    monkeypatch.setattr(index_snapshots, "MIN_CHANGES", 1)
    monkeypatch.setattr(index_snapshots, "CHANGED_SHARE", 10**9)
    monkeypatch.setattr(index_snapshots, "CHECK_SECONDS", 0.0)


@pytest.fixture
def ear(monkeypatch):
    """Hear events, log records of all loggers, measurements and warnings."""
    heard = Ear()

    class All(dict):
        def __missing__(self, name):
            self[name] = heard.measure(name)
            return self[name]

    instruments = All()
    monkeypatch.setattr(telemetry._process, "instruments", lambda: instruments)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(heard)
    root.setLevel(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield heard
        heard.told += [str(one.message) for one in warned]
        assert not found_in(heard.told, SECRET)
        assert not any(map(shows, heard.told))
    root.removeHandler(heard)
    root.setLevel(level)


def memory_in(folder, **options):
    given = {"embedder": DenseEmbedder(), "encryption": encryption(), **options}
    return Memory(folder / "a.db", **given)


def add_secret(memory, content=CONTENT, *, idempotency_key=None, on_duplicate="keep", **fields):
    given = {"content": content, "sensitive": True, **FIELDS, **fields}
    return memory.add(given, idempotency_key=idempotency_key, on_duplicate=on_duplicate)


# The search itself


@pytest.mark.parametrize("before", range(5))
@pytest.mark.parametrize("code", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_text_is_found_in_every_form_and_at_every_place(before, code):
    data = bytes(range(before)) + SECRET.encode(code) + b"some more"
    assert shown(data, [SECRET, "other"]) == [SECRET]
    assert shown(base64.b64encode(data), [SECRET, "other"]) == [SECRET]
    assert min(map(len, forms_of(SECRET))) >= len(SECRET)


@pytest.mark.parametrize("kind", ["<f4", "<f2"])
def test_a_vector_is_found_in_every_precision_and_in_parts(kind):
    data = b"x" + VECTOR.astype(kind)[3:].tobytes()
    assert shown(data, [], [VECTOR]) == [0]
    assert shown(np.random.default_rng(5).bytes(100_000), [SECRET], [VECTOR]) == []
    assert min(map(len, forms_of_vector(VECTOR))) >= 16


def test_a_twin_in_plain_text_shows_all_that_is_searched_for(folder):
    with memory_in(folder, encryption=None) as memory:
        memory.add(MemoryEntry(CONTENT, **FIELDS), idempotency_key=f"{SECRET}key")
        found = set().union(*left_in(folder, secrets(), [VECTOR]).values())
    assert found == {*secrets(), 0}


def secrets():
    """Return every text of the secret memory, and its idempotency key."""
    texts = re.findall(rf"{SECRET}\w*", repr([CONTENT, FIELDS]))
    return [*dict.fromkeys(texts), f"{SECRET}key", FIELDS["message_id"]]


# Files


@pytest.mark.requirement("R117", "R126", "R105", "R106", "C087")
@pytest.mark.parametrize("options", [{}, {"encrypt_all": True}, {"detect": "pii"}], ids=repr)
def test_no_step_of_a_memorys_life_leaves_a_secret_in_any_file(folder, options, monkeypatch):
    temporary = folder / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    other = np.arange(32, dtype=np.float32) / 7 + 1
    vectors = [VECTOR, other, EMBEDDER.embed([f"{CONTENT} changed"])[0]]
    with memory_in(folder, encryption=encryption(**options)) as memory:
        for step in [*writes_of(memory, other), *reads_of(memory, folder)]:
            step()
            assert left_in(folder, secrets(), vectors) == {}
            assert_no_deleted_file_shows(folder)
    assert left_in(folder, secrets(), vectors) == {}
    assert list(temporary.iterdir()) == []
    names = {name.partition("/")[0] for name in written_in(folder)}
    snapshots = set() if "encrypt_all" in options else {"a.db-index"}
    assert names == {"a.db", "backup.db"} | snapshots


def writes_of(memory, other):
    """Return calls that store, change and delete sensitive memories."""
    add_secret(memory, idempotency_key=f"{SECRET}key", id=uid(1))
    many = [
        {"content": f"{CONTENT} {at}", "sensitive": True, "id": uid(100 + at), **FIELDS}
        for at in range(12)
    ]
    of_category = {"category": FIELDS["category"]}
    upserted = {"content": f"{CONTENT} upserted", "id": uid(3), "sensitive": True}
    return [
        lambda: memory.add_many(many),
        lambda: memory.add("plain", id=uid(2)),
        lambda: memory.add_many([f"plain {at}" for at in range(40)]),
        lambda: add_secret(memory, embedding=other, id=uid(3)),
        lambda: add_secret(memory, embed=[CONTENT, f"{CONTENT} changed"], id=uid(4)),
        lambda: add_secret(memory, supersedes=uid(101)),
        lambda: add_secret(memory, on_duplicate="merge", tags=[f"{SECRET}more"]),
        lambda: memory.update(uid(1), content=f"{CONTENT} changed", add_tags=[f"{SECRET}tag"]),
        lambda: memory.update(uid(1), metadata={SECRET: SECRET}, embedding=other),
        lambda: memory.update_many(add_tags=[f"{SECRET}tag"], filters=of_category),
        lambda: memory.touch([uid(1)]),
        lambda: memory.link(uid(1), uid(100), "refines"),
        lambda: memory.add_many([upserted], on_conflict="replace"),
        lambda: memory.delete(uid(3)),
        lambda: memory.restore(uid(3)),
        lambda: memory.delete(uid(3), permanent=True),
        lambda: memory.verify(repair=True),
    ]


def reads_of(memory, folder):
    """Return calls that read and copy them."""
    by_tag = {"tags": {"contains": FIELDS["tags"][0]}}
    return [
        lambda: memory.search(CONTENT, limit=5),
        lambda: memory.search(CONTENT, filters=by_tag, explain=True),
        lambda: memory.recall(CONTENT),
        lambda: memory.list(limit=50),
        lambda: memory.similar(uid(1)),
        memory.stats,
        memory.verify,
        lambda: memory.get(uid(1)),
        lambda: memory.backup(folder / "backup.db"),
    ]


def assert_no_deleted_file_shows(folder):
    """Look into files that this process has open, and that have no name any more."""
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = str(descriptor.readlink())
            if not target.endswith("(deleted)") or str(folder) not in target:
                continue
            assert shown(descriptor.read_bytes(), [SECRET]) == [], target
        except FileNotFoundError:
            continue


@pytest.mark.requirement("R117", "R105", "C087")
@pytest.mark.parametrize("door", [Memory, AsyncMemory, AsyncLongTermMemory])
def test_no_verb_of_a_door_writes_any_content_where_all_is_sealed(door, tmp_path, monkeypatch):
    """Called in every way, rightly and wrongly, as for the silence about contents."""
    monkeypatch.chdir(tmp_path)
    files, ear = tmp_path / "files", Ear()
    files.mkdir()
    options = {"encryption": encryption(encrypt_all=True)}
    with opened(door, tmp_path, ear, url=str(files / "a.db"), **options) as world:
        asyncio.run(use_all(ear, world.memory, world, allowed=CANARIES))
        if not inspect.iscoroutinefunction(type(world.memory).close):
            assert left_in(files, CANARIES) == {}
    assert left_in(files, CANARIES) == {}
    copies = [data for data in written_in(tmp_path).values() if data[:6] == b"SQLite"]
    assert all(shown(data, CANARIES) == [] for data in copies)
    assert len(copies) > 1  # some are backups


@pytest.mark.requirement("C087")
@pytest.mark.parametrize("door", [Memory, AsyncLongTermMemory])
def test_no_verb_of_a_door_writes_or_tells_anything_of_sensitive_memories(
    door, tmp_path, monkeypatch, ear
):
    monkeypatch.chdir(tmp_path)
    files = tmp_path / "files"
    files.mkdir()
    with opened(door, tmp_path, ear, url=str(files / "a.db"), encryption=encryption()) as world:
        asyncio.run(use_all(ear, world.memory, world))
    assert left_in(files, [HIDDEN_WORD]) == {}


# What an update seals


@pytest.mark.requirement("R078", "C087", "C175")
@pytest.mark.parametrize("way", ["update", "update_many", "add"])
@pytest.mark.parametrize("size", [1, 100, 3000])
def test_what_an_update_seals_is_in_no_file_any_more(folder, way, size):
    content = " ".join([CONTENT] * size)
    vector = EMBEDDER.embed([content])[0]
    with memory_in(folder, encryption=None) as memory:
        for at in range(20):
            memory.add(f"neighbour {at} before", id=uid(100 + at))
        memory.add(MemoryEntry(content, id=uid(1), **FIELDS), idempotency_key=f"{SECRET}key")
        for at in range(20):
            memory.add(f"neighbour {at} after", id=uid(200 + at))
        memory.search(CONTENT)
    shown_before = left_in(folder, secrets(), [vector])
    assert set().union(*shown_before.values()) == {*secrets(), 0}
    assert any("index" in name for name in shown_before)
    with memory_in(folder) as memory:
        if way == "update":
            memory.update(uid(1), metadata={"sensitive": True})
        elif way == "update_many":
            memory.update_many([uid(1)], metadata={"sensitive": "true"})
        else:
            fields = {"content": content, "id": uid(1), "sensitive": True, **FIELDS}
            memory.add_many([fields], on_conflict="replace")
        assert left_in(folder, secrets(), [vector]) == {}
        assert memory.get(uid(1)).content == content
        (hit,) = memory.search(CONTENT, limit=1)
        assert hit.id == uid(1)
        assert memory.add(content, idempotency_key=f"{SECRET}key").id == uid(1)
        assert memory.verify().ok
    assert left_in(folder, secrets(), [vector]) == {}


@pytest.mark.requirement("C087", "C175")
def test_what_another_process_reads_keeps_the_plain_bytes_until_it_ends(folder):
    """As those of permanent deletions; `erase_pending` tells, and tries again."""
    with memory_in(folder) as memory, memory_in(folder) as reader:
        memory.add(MemoryEntry(CONTENT, id=uid(1), **FIELDS))
        reading = reader.repository._store._connections.reading()
        with reading as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM agent_memory_entries").fetchall()
            memory.update(uid(1), metadata={"sensitive": True})
            assert left_in(folder, [SECRET]) != {}
            connection.execute("ROLLBACK")
        assert memory.erase_pending()
        assert left_in(folder, [SECRET]) == {}


# What is told


@pytest.mark.requirement("R071", "R072", "R089", "C087")
@pytest.mark.parametrize("log_content", [False, True])
def test_neither_logs_nor_events_nor_metrics_nor_reprs_show_a_sealed_memory(
    folder, ear, log_content
):
    with memory_in(folder, log_content=log_content) as memory:
        listen(ear, memory)
        steps = writes_of(memory, np.arange(32, dtype=np.float32) + 1)
        if not log_content:  # else queries are told
            steps += reads_of(memory, folder)
        for step in steps:
            texts = [*ear.take(), *reprs_of(step())]
            assert not found_in(texts, SECRET)
            assert not any(map(shows, texts))


@pytest.mark.requirement("C087")
def test_no_error_shows_a_sealed_memory_or_a_key(folder):
    with memory_in(folder) as memory:
        add_secret(memory, id=uid(1), idempotency_key="k")
        calls = [
            lambda: add_secret(memory, id=uid(1)),
            lambda: add_secret(memory, content=f"{CONTENT} other", idempotency_key="k"),
            lambda: add_secret(memory, supersedes=uid(9)),
            lambda: add_secret(memory, importance=7),
            lambda: add_secret(memory, metadata={f"{SECRET} name": object()}),
            lambda: memory.update(uid(1), content=SECRET, if_version=9),
            lambda: memory.update(uid(1), embedding=[1.0, 2.0]),
            lambda: memory.update(uid(1), metadata={SECRET: "x" * 11_000_000}),
            lambda: memory.get(uid(9)),
            lambda: memory.link(uid(1), uid(9)),
        ]
        for call in calls:
            with pytest.raises(MnemicError) as raised:
                call()
            told = " ".join(said_by(raised.value))
            assert SECRET not in told
            assert not shows(told)


def test_an_export_is_the_one_place_where_a_sealed_memory_is_in_plain_text(folder, tmp_path):
    with memory_in(folder) as memory:
        add_secret(memory, id=uid(1), idempotency_key=f"{SECRET}key")
        target = io.StringIO()
        memory.export(target, unseal=True)
        assert CONTENT in target.getvalue()
        other = tmp_path / "other"
        other.mkdir()
        with memory_in(other) as copy:
            target.seek(0)
            copy.import_(target)
            assert copy.get(uid(1)).is_encrypted
            assert copy.add(CONTENT, sensitive=True, idempotency_key=f"{SECRET}key").id == uid(1)
            assert left_in(other, secrets(), [VECTOR]) == {}


# Processes

SEALING = """
import sys
from mnemic import Memory
from mnemic.crypto import Encryption
from tests.support.keys import KEY
from tests.support.sealing import DenseEmbedder
from tests.support.entries import uid

with Memory(sys.argv[1], embedder=DenseEmbedder(), encryption=Encryption(KEY)) as memory:
    number = int(sys.argv[2])
    while True:
        number += 1
        memory.add(f"zqsecret content {number}", id=uid(number), sensitive=True, tags=["zqsecret"])
        memory.add(f"plain {number}", id=uid(1_000_000 + number))
        print(number, flush=True)
"""

UPDATING = """
import sys
from mnemic import Memory
from mnemic.crypto import Encryption
from tests.support.keys import KEY
from tests.support.sealing import DenseEmbedder
from tests.support.entries import uid

with Memory(sys.argv[1], embedder=DenseEmbedder(), encryption=Encryption(KEY)) as memory:
    for number in range(int(sys.argv[2]) + 1, 1000):
        memory.update(uid(number), metadata={"sensitive": True})
        print(number, flush=True)
"""


def killed_after(program, path, begun, steps):
    """Run a program, kill it some time after a number of steps; return the last acknowledged."""
    command = [sys.executable, "-c", program, str(path), str(begun)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as child:
        last = begun
        for _ in range(steps):
            last = int(child.stdout.readline())
        child.kill()
        told = [int(line) for line in child.stdout.read().splitlines() if line.strip()]
    return max([last, *told])


@pytest.mark.requirement("R117", "R126")
def test_a_process_that_is_killed_while_it_seals_loses_nothing_and_leaves_nothing_plain(folder):
    last = 0
    for steps in (1, 3, 2, 7, 1, 12):
        last = killed_after(SEALING, folder / "a.db", last + 1, steps)
        assert left_in(folder, [SECRET]) == {}
    with memory_in(folder) as memory:
        sealed = {entry.id.int for entry in memory.list(limit=1000) if entry.is_encrypted}
        known = memory.count()
        assert memory.get(uid(last)).content == f"{SECRET} content {last}"
        assert len(sealed) >= 26
        assert max(sealed) in {last, last + 1}
        assert known == memory.stats().active_entries
        assert memory.stats().unreadable_entries == 0
        assert memory.verify().ok
    assert left_in(folder, [SECRET]) == {}


@pytest.mark.requirement("C087", "C175")
def test_a_process_that_is_killed_while_it_seals_what_was_plain_leaves_nothing_of_it(folder):
    """What it acknowledged is in no file once another process has opened and closed the memory."""
    with memory_in(folder) as memory:
        memory.add_many(
            [{"content": f"zqtext{at:03}x of the night", "id": uid(at)} for at in range(1, 60)]
        )
    last = 0
    for steps in (2, 5, 1, 4):
        last = killed_after(UPDATING, folder / "a.db", last, steps)
        with memory_in(folder) as memory:
            assert memory.verify().ok
            assert memory.get(uid(last)).is_encrypted
            memory.erase_pending()
        gone = [f"zqtext{at:03}x" for at in range(1, last + 1)]
        assert left_in(folder, gone) == {}
        with memory_in(folder) as memory:
            assert memory.get(uid(last)).content == f"zqtext{last:03}x of the night"


@pytest.mark.requirement("R126", "R107")
def test_of_two_processes_the_one_without_a_key_sees_what_is_plain_alone(folder):
    with memory_in(folder, embedder=WordEmbedder()) as memory, Worker(folder / "a.db") as blind:
        add_secret(memory, id=uid(1))
        memory.add("plain words of the night", id=uid(2))
        assert [hit["content"] for hit in blind.call("search", "night in Oslo")] == [
            "plain words of the night"
        ]
        assert blind.call("get", str(uid(1))) == "EntryNotFoundError"
        assert blind.call("count") == 1
        assert blind.call("add", "secret", sensitive=True) == "KeyUnavailableError"
        added = blind.call("add", "of the other process at night")
        assert {entry.content for entry in memory.search("night", limit=9)} >= {
            CONTENT,
            added["content"],
        }
        memory.update(uid(2), metadata={"sensitive": True})
        assert blind.call("get", str(uid(2))) == "EntryNotFoundError"
        assert [hit["content"] for hit in blind.call("search", "night")] == [added["content"]]
        assert blind.call("update", str(uid(1)), importance=1.0) == "EntryNotFoundError"
        assert blind.call("delete", str(uid(1))) is not None
        assert memory.count() == 2
        assert left_in(folder, [SECRET]) == {}

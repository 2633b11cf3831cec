"""What an import stores: once, by user, in batches, and all or nothing of a damaged source."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError, StorageQuotaExceededError
from mnemic.importers.exporting import memories_of, write_table
from mnemic.importers.importing import OTHER_USERS, VERSION, Import
from mnemic.importers.kinds import KINDS, reader_of
from mnemic.reporting.progress import silent
from tests.importers.sources import SOURCES, one


@pytest.fixture
def rows(tmp_path):
    """Write numbered memories."""

    def rows(count, **fields):
        path = tmp_path / "rows.jsonl"
        with path.open("w") as file:
            for number in range(count):
                file.write(json.dumps({"id": f"r{number}", "text": f"Memory {number}", **fields}))
                file.write("\n")
        return path

    return rows


def test_every_kind_has_a_reader():
    assert all(callable(reader_of(kind)) for kind in KINDS)
    with pytest.raises(InvalidArgumentError, match="one of mem0, "):
        reader_of("zep")


def counts(report):
    return report.new, report.changed, report.present, report.kept


def test_a_second_import_stores_nothing(bring, rows):
    assert counts(bring("jsonl", rows(3))[0]) == (3, 0, 0, 0)
    assert counts(bring("jsonl", rows(3))[0]) == (0, 0, 3, 0)


def test_what_the_source_changed_takes_the_place_of_what_it_had(bring, memory, lines):
    before = {"id": "r1", "text": "Lives in Bergen", "tags": ["home"], "sure": 1}
    _, stored = bring("jsonl", lines(before, {"id": "r2", "text": "Likes tea"}))
    old = stored["Lives in Bergen"]
    memory.link(old.id, stored["Likes tea"].id, "related")
    after = {"id": "r1", "text": "Lives in Oslo", "tags": ["city"], "importance": 0.9}
    report, stored = bring("jsonl", lines(after, {"id": "r2", "text": "Likes tea"}))
    assert counts(report) == (0, 1, 1, 0)
    new = stored["Lives in Oslo"]
    assert (new.id, new.created_at, new.version) == (old.id, old.created_at, 2)
    assert (new.tags, new.importance) == (("city",), 0.9)
    assert new.metadata == {VERSION: 2}
    assert len(memory.links(new.id)) == 1
    for text in ("Lives in Rome", "Lives in Bergen"):
        assert counts(bring("jsonl", lines(after | {"text": text}))[0]) == (0, 1, 0, 0)
    assert counts(bring("jsonl", lines(after | {"text": "Lives in Bergen"}))[0]) == (0, 0, 1, 0)


@pytest.mark.parametrize("was_replaced", [False, True])
def test_what_was_edited_where_it_is_stored_stays_and_is_counted(
    bring, memory, lines, was_replaced
):
    _, stored = bring("jsonl", lines({"id": "r1", "text": "Lives in Bergen"}))
    if was_replaced:
        _, stored = bring("jsonl", lines({"id": "r1", "text": "Lives in Rome"}))
    memory.update(one(stored).id, content="Lives in Oslo, says Ana")
    for text in ("Lives in Bergen", "Lives in Oslo"):
        report, stored = bring("jsonl", lines({"id": "r1", "text": text}))
        assert counts(report) == (0, 0, 0, 1)
        assert list(stored) == ["Lives in Oslo, says Ana"]


def test_a_deleted_memory_does_not_come_back_while_it_can_be_restored(bring, memory, rows):
    _, stored = bring("jsonl", rows(2))
    memory.delete(stored["Memory 0"].id)
    path = rows(2)
    path.write_text(path.read_text().replace("Memory 0", "Changed"))
    for source in (rows(2), path):
        assert counts(bring("jsonl", source)[0]) == (0, 0, 1, 1)
        assert memory.count() == 1


def test_archived_expired_and_superseded_memories_are_present_and_stay_so(bring, memory, lines):
    rows = [{"id": f"r{number}", "text": f"Memory {number}"} for number in range(3)]
    _, stored = bring("jsonl", lines(*rows))
    memory.update(stored["Memory 0"].id, status="archived")
    memory.add("Newer", supersedes=stored["Memory 1"].id)
    memory.update(stored["Memory 2"].id, expires_at="2020-01-01")
    assert counts(bring("jsonl", lines(*rows))[0]) == (0, 0, 3, 0)
    changed = [row | {"text": "Other"} for row in rows]
    assert counts(bring("jsonl", lines(*changed))[0]) == (0, 0, 0, 3)
    assert [entry.content for entry in memory.list(filters={"status": "active"})] == ["Newer"]


def test_an_id_that_two_rows_have_makes_two_memories_of_two_texts(bring, lines):
    rows = [{"id": "r", "text": text} for text in ("one", "two", "one", "three")]
    report, stored = bring("jsonl", lines(*rows))
    assert (report.found, report.new, set(stored)) == (4, 3, {"one", "two", "three"})
    assert counts(bring("jsonl", lines(*rows))[0]) == (0, 0, 3, 0)
    own = [row | {"id": "0b1f6f3e-8a51-4c57-9f53-1d2f4f9b2a10"} for row in rows]
    assert bring("jsonl", lines(*own))[0].new == 3


def test_a_comparison_counts_as_an_import_does_and_stores_nothing(bring, memory, lines):
    source = lines({"id": "a", "text": "one"}, {"id": "b", "text": "two"})
    assert counts(Import("jsonl", source).compare(None, silent)) == (2, 0, 0, 0)
    assert counts(Import("jsonl", source).compare(memory, silent)) == (2, 0, 0, 0)
    assert memory.count() == 0
    bring("jsonl", source)
    source = lines({"id": "a", "text": "1"}, {"id": "b", "text": "two"}, {"id": "c", "text": "3"})
    assert counts(Import("jsonl", source).compare(memory, silent)) == (1, 1, 1, 0)
    assert {entry.content for entry in memory.list()} == {"one", "two"}


def test_what_the_source_calls_sensitive_now_is_sensitive(bring, lines):
    row = {"id": "a", "text": "one", "user": "ana"}
    bring("jsonl", lines(row))
    report, stored = bring("jsonl", lines(row | {"text": "two", "sensitive": True}))
    assert counts(report) == (0, 1, 0, 0)
    assert (one(stored).sensitive, one(stored).version) == (True, 2)
    assert counts(bring("jsonl", lines(row))[0]) == (0, 1, 0, 0)


def test_what_somebody_changes_during_the_import_stays(memory, lines, monkeypatch):
    Import("jsonl", lines({"id": "a", "text": "one"})).store(memory, silent)
    update = Memory.update

    def late(self, given, **options):
        update(self, given, content="edited meanwhile")
        return update(self, given, **options)

    monkeypatch.setattr(Memory, "update", late)
    report = Import("jsonl", lines({"id": "a", "text": "two"})).store(memory, silent)
    assert counts(report) == (0, 0, 0, 1)
    assert [entry.content for entry in memory.list()] == ["edited meanwhile"]


@pytest.mark.parametrize(
    ("kind", "file"), [*SOURCES, ("basic-memory", "basic-memory"), ("mem0", "mem0")]
)
def test_every_source_is_present_as_a_whole_the_second_time(bring, fixtures, kind, file):
    first, _ = bring(kind, fixtures / file)
    again, _ = bring(kind, fixtures / file)
    assert counts(again) == (0, 0, first.found, 0)


def test_a_changed_note_is_changed_in_its_place(bring, tmp_path):
    for kind in ("markdown", "basic-memory"):
        (tmp_path / kind).mkdir()
        note = tmp_path / kind / "note.md"
        note.write_text("At noon\n")
        bring(kind, note.parent)
        note.write_text("At one\n")
        report, stored = bring(kind, note.parent)
        assert counts(report) == (0, 1, 0, 0)
        assert not any("noon" in text for text in stored)


def test_observations_of_one_category_are_memories_of_their_own(bring, tmp_path):
    (tmp_path / "tea.md").write_text("- [fact] Green\n- [fact] Hot\n")
    bring("basic-memory", tmp_path)
    (tmp_path / "tea.md").write_text("- [fact] Hot\n- [fact] Cold\n")
    assert counts(bring("basic-memory", tmp_path)[0]) == (1, 0, 1, 0)


def test_an_exported_table_that_was_edited_comes_back(bring, memory, tmp_path):
    entry = memory.add("Lives in Bergen", user_id="ana")
    path = tmp_path / "all.csv"
    with path.open("w", newline="") as file:
        write_table(memories_of(memory, {"all_users": True}, unseal=False), file)
    path.write_text(path.read_text().replace("Bergen", "Oslo"))
    report, _ = bring("csv", path)
    assert counts(report) == (0, 1, 0, 0)
    assert memory.get(entry.id, user_id="ana").content == "Lives in Oslo"


def test_the_ids_of_one_user_say_nothing_of_anothers(bring, memory, rows):
    bring("jsonl", rows(2), "ana")
    report, _ = bring("jsonl", rows(2), "ben")
    assert (report.new, report.present) == (2, 0)
    assert memory.count(user_id="ana") == memory.count(user_id="ben") == 2


def test_an_id_that_two_users_have_is_stored_for_each_and_once(bring, memory, tmp_path):
    path = tmp_path / "rows.jsonl"
    own = "0b1f6f3e-8a51-4c57-9f53-1d2f4f9b2a10"
    path.write_text("\n".join(json.dumps({"id": own, "text": "x", "user": who}) for who in "abc"))
    memory.add("x", id=own, user_id="a")
    assert bring("jsonl", path)[0].new == 2
    assert bring("jsonl", path)[0].present == 3
    assert memory.count(all_users=True) == 3


def test_a_named_user_gets_what_has_no_user_and_nothing_of_others(bring, tmp_path):
    path = tmp_path / "rows.jsonl"
    users = ["ana", None, "ben", 7]
    path.write_text("\n".join(json.dumps({"text": f"{who}", "user": who}) for who in users))
    report, stored = bring("jsonl", path, "ana")
    assert report.left_out == {OTHER_USERS: 2}
    assert report.examples == []
    assert {entry.user_id for entry in stored.values()} == {"ana"}
    assert set(stored) == {"ana", "None"}
    assert bring("jsonl", path)[0].users == {"ana": 1, "": 1, "ben": 1, "7": 1}


def test_a_check_stores_nothing(check, memory, rows):
    assert check("jsonl", rows(3)).found == 3
    assert memory.count() == 0


def test_progress_counts_to_the_number_found(memory, rows):
    seen = []
    Import("jsonl", rows(600)).store(memory, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (600, 600)
    assert seen[599] == (600, None)
    assert len(seen) == 603  # each while checking, then each batch


def test_a_full_memory_stops_the_import_and_the_report_tells_how_far_it_came(tmp_path, rows):
    path = rows(600)
    with Memory(tmp_path / "small.db", embedder=None, max_entries=300) as small:
        job = Import("jsonl", path)
        with pytest.raises(StorageQuotaExceededError):
            job.store(small, silent)
        assert job.report.new == small.count() == 256
    with Memory(tmp_path / "small.db", embedder=None) as larger:
        report = Import("jsonl", path).store(larger, silent)
        assert (report.new, report.present, larger.count()) == (344, 256, 600)


PROGRAM = """
import sys
from pathlib import Path
from mnemic import Memory
from mnemic.importers.importing import Import

with Memory(sys.argv[1], embedder=None) as memory:
    Import("jsonl", Path(sys.argv[2])).store(memory, lambda done, total: print(done, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it sends SIGKILL")
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_import_goes_on_and_loses_and_doubles_nothing(tmp_path, rows, seed):
    path, place = rows(3000), tmp_path / "memory.db"
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, place, path], stdout=subprocess.PIPE, env=os.environ
    )
    for _ in range(3001):  # until the first batch is stored
        started.stdout.readline()
    time.sleep(random.Random(seed).random() / 20)  # noqa: S311 - repeatable
    started.send_signal(signal.SIGKILL)
    started.wait()
    started.stdout.close()
    with Memory(place, embedder=None) as memory:
        before = memory.count()
        assert before % 256 == 0 or before == 3000
        report = Import("jsonl", path).store(memory, silent)
        assert (report.new, report.present) == (3000 - before, before)
        texts = [
            entry.content
            for at in range(0, 3000, 1000)
            for entry in memory.list(limit=1000, offset=at)
        ]
        assert sorted(texts) == sorted(f"Memory {number}" for number in range(3000))


def test_two_imports_at_once_store_each_memory_once(tmp_path, rows):
    path, place = rows(1000), tmp_path / "memory.db"
    Memory(place, embedder=None).close()
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, place, path], stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [each.wait() for each in programs] == [0, 0]
    with Memory(place, embedder=None) as memory:
        assert memory.count() == 1000


def test_a_conversation_array_of_any_size_takes_little_memory(tmp_path):
    path = tmp_path / "conversations.json"
    message = {"uuid": "m", "sender": "human", "text": "x" * 2000}
    with path.open("w") as file:
        file.write("[")
        for number in range(400):
            messages = [message | {"uuid": f"{number}-{at}"} for at in range(50)]
            file.write("," if number else "")
            file.write(json.dumps({"uuid": str(number), "chat_messages": messages}))
        file.write("]")
    assert path.stat().st_size > 40_000_000
    program = """
import resource, sys
from pathlib import Path
from mnemic.importers.importing import Import
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = Import("claude", Path(sys.argv[1])).check(lambda done, total: None)
print(report.found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, path], check=True, capture_output=True, text=True
    )
    found, kilobytes = map(int, done.stdout.split())
    assert found == 20_000
    assert kilobytes < 40_000


def test_a_source_may_be_named_by_a_link(check, rows, tmp_path):
    link = Path(tmp_path / "link.jsonl")
    link.symlink_to(rows(2))
    assert check("jsonl", link).found == 2


@pytest.mark.parametrize("user", [["ana"], {"id": "ana"}, True, "a\nb", " ana", "\ud800"])
def test_a_record_with_a_user_that_is_no_name_is_left_out(bring, lines, user):
    report, stored = bring("jsonl", lines({"text": "secret", "user_id": user}, "shown"))
    assert list(stored) == ["shown"]
    assert sum(report.left_out.values()) == 1
    assert report.examples[0].startswith("line 1: ")
    assert "codec" not in report.examples[0]


def test_a_text_above_the_limit_is_left_out_and_the_rest_is_stored(bring, lines):
    report, stored = bring("jsonl", lines({"text": "x" * 10_500_000}, {"text": "short"}))
    assert list(stored) == ["short"]
    assert "larger than 10 MB" in next(iter(report.left_out))


def test_identical_rows_without_an_id_are_one_and_others_stay(bring, lines):
    rows = [{"text": "x"}, {"text": "x"}, {"text": "x", "date": "2026-05-01"}]
    report, _ = bring("jsonl", lines(*rows))
    assert (report.found, report.new) == (3, 2)

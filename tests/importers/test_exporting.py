"""Tables and notes of memories, and that they come back."""

import csv
import io
import sys

import pytest

from mnemic import Encryption, Memory
from mnemic.errors import InvalidArgumentError
from mnemic.importers.exporting import COLUMNS, memories_of, write_notes, write_table
from mnemic.reporting.progress import silent
from mnemic_files import MemoryFiles, parse_memory_file

TEXTS = [
    "Ana moved to Oslo, in May",
    '=cmd "quoted"\r\nand\u2028lines\n---\nid: x',
    "ends with a line\n",
    "ends as on an old Mac\rand goes on\r",
    "---\nbegins as front matter",
    "Tromsø 😀",
]


@pytest.fixture
def filled(memory):
    for at, text in enumerate(TEXTS):
        memory.add(
            text,
            tags=["a, b", "yes", "[x"] if at == 0 else (),
            metadata={"deep": {"list": [1, 2.5, None, "\x85"]}, "no": False} if at == 0 else None,
            role="user",
            speaker="Ben: the second",
            session_id=f"s{at}",
            type="preference" if at else "event",
            importance=at / 10,
            sensitive=at == 5,
            created_at=f"2026-05-0{at + 1}T08:00:00.25Z",
        )
    return memory


@pytest.fixture(params=["csv", "markdown"])
def moved(request, filled, tmp_path):
    """What was exported, and imported into another memory."""
    from mnemic.importers.importing import Import  # noqa: PLC0415 - the subject

    entries = memories_of(filled, {"all_users": True}, unseal=False)
    target = tmp_path / "export"
    if request.param == "csv":
        with target.open("w", newline="", encoding="utf-8") as file:
            assert write_table(entries, file) == len(TEXTS)
    else:
        assert write_notes(entries, target, overwrite=False, report=silent) == len(TEXTS)
    with Memory(tmp_path / "other.db", embedder=None) as other:
        report = Import(request.param, target).store(other, silent)
        assert report.new == len(TEXTS)
        assert not any(report.lost.values())
        yield list(filled.list()), list(other.list()), request.param


def test_all_fields_come_back(moved):
    before, after, kind = moved
    for one, other in zip(before, after, strict=True):
        names = ["id", "content", "created_at", "updated_at", "tags", "role", "speaker"]
        names += ["session_id", "type", "importance", "sensitive", "user_id"]
        assert {name: getattr(one, name) for name in names} == {
            name: getattr(other, name) for name in names
        }
        path = {"path": f"mem_{one.id}.md"} if kind == "markdown" else {}
        assert other.metadata == one.metadata | path


def test_an_export_brought_back_into_its_own_memory_stores_nothing(filled, bring, tmp_path):
    with (tmp_path / "all.csv").open("w", newline="") as file:
        write_table(memories_of(filled, {}, unseal=False), file)
    assert bring("csv", tmp_path / "all.csv")[0].new == 0


def test_a_table_has_a_header_and_a_row_each(filled):
    file = io.StringIO()
    write_table(memories_of(filled, {}, unseal=False), file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert [*rows[0]] == [*COLUMNS]
    assert [row["content"] for row in rows] == TEXTS[::-1]


def test_notes_are_memory_files(filled, tmp_path):
    folder = tmp_path / "notes"
    write_notes(memories_of(filled, {}, unseal=False), folder, overwrite=False, report=silent)
    texts = [path.read_bytes().decode() for path in folder.glob("*.md")]
    assert {parse_memory_file(text).content for text in texts} == set(TEXTS)
    with Memory(tmp_path / "other.db", embedder=None) as other:
        result = MemoryFiles(user=folder).synchronise(other)
        assert result.problems == ()
        assert len(result.added) == len(TEXTS)
        stored = {entry.content: entry for entry in other.list()}
        assert stored[TEXTS[0]].tags == ("a, b", "yes", "[x")
        assert stored[TEXTS[0]].type.name == "EVENT"
        assert stored[TEXTS[5]].sensitive


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_notes_are_for_their_owner_alone(filled, tmp_path):
    folder = tmp_path / "notes"
    write_notes(memories_of(filled, {}, unseal=False), folder, overwrite=False, report=silent)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_folder_that_is_not_empty_is_left_alone_unless_it_may_be_changed(filled, tmp_path):
    folder = tmp_path / "notes"
    for overwrite in (False, True):
        entries = memories_of(filled, {}, unseal=False)
        write_notes(entries, folder, overwrite=overwrite, report=silent)
    with pytest.raises(InvalidArgumentError, match="is not empty"):
        write_notes([], folder, overwrite=False, report=silent)


def test_all_pages_are_written(memory):
    memory.add_many([f"Memory {number}" for number in range(1234)])
    file = io.StringIO()
    assert write_table(memories_of(memory, {}, unseal=False), file) == 1234
    assert len(set(file.getvalue().splitlines())) == 1235


def test_sealed_memories_are_written_only_if_their_plain_text_is_asked_for(tmp_path):
    key = Encryption(b"k" * 32)
    with Memory(tmp_path / "sealed.db", embedder=None, encryption=key) as sealed:
        sealed.add("A secret", sensitive=True)
        with pytest.raises(InvalidArgumentError, match=r"is sealed, .*--unseal"):
            list(memories_of(sealed, {}, unseal=False))
        assert [one.content for one in memories_of(sealed, {}, unseal=True)] == ["A secret"]

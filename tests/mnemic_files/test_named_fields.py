"""Fields of a memory as people write them between the delimiters of its file."""

from pathlib import Path

import pytest

from mnemic import Memory, MemoryType
from mnemic_files import MemoryFiles, serialise_memory_file
from tests.support.memory_files import memory_file

YES = ("yes", "Yes", "YES", "y", "on", "true", "'true'", '"yes"', "1", "' True '")
NO = ("no", "off", "false", "0", "", "~")

READ = [
    *((f"sensitive: {word}", "sensitive", True) for word in YES),
    *((f"sensitive: {word}", "sensitive", False) for word in NO),
    ("Sensitive: yes", "sensitive", True),
    ("tags: git", "tags", ("git",)),
    ("tags: git, python", "tags", ("git", "python")),
    ("tags: [git, 2024, yes, true]", "tags", ("git", "2024", "yes", "true")),
    ("tags: 7", "tags", ("7",)),
    ("tags:", "tags", ()),
    ("tags: [git, git]", "tags", ("git",)),
    ("importance: '0.9'", "importance", 0.9),
    ("importance: 90%", "importance", 0.9),
    ("importance: 1", "importance", 1.0),
    ("importance:", "importance", 0.5),
    ("type: Preference", "type", MemoryType.PREFERENCE),
    ("type: CORRECTION", "type", MemoryType.CORRECTION),
]

REPORTED = [
    ("sensitive: perhaps", "sensitive", True),
    ("sensitive: ''", "sensitive", True),
    ("sensitive: 2", "sensitive", True),
    ("sensitive: [yes]", "sensitive", True),
    ("sensitive: {is: no}", "sensitive", True),
    ("tags: [git, [a, b], python, null]", "tags", ("git", "python")),
    ("tags: [git, '']", "tags", ("git",)),
    ("tags: git,, python", "tags", ("git", "python")),
    ("tags: {git: python}", "tags", ()),
    ("importance: 5", "importance", 0.5),
    ("importance: high", "importance", 0.5),
    ("importance: nan", "importance", 0.5),
    ("importance: inf", "importance", 0.5),
    ("importance: true", "importance", 0.5),
    ("importance: 900%", "importance", 0.5),
    ("importance: [1]", "importance", 0.5),
    ("type: note", "type", MemoryType.FACT),
    ("type: [fact]", "type", MemoryType.FACT),
    ("type: 3", "type", MemoryType.FACT),
]


def synchronised(directory, line):
    """Return what a file with a line becomes, and its problems."""
    file = memory_file(category="user-facts")
    text = serialise_memory_file(file).replace("trigger:", f"{line}\ntrigger:")
    directory.mkdir()
    (directory / f"{file.id}.md").write_text(text)
    files = MemoryFiles(directory)
    with Memory(":memory:", embedder=None) as memory:
        first, second = files.synchronise(memory), files.synchronise(memory)
        assert first.problems == second.problems
        files.list()
        assert files.problems() == first.problems
        (entry,) = memory.list()
        return entry, first.problems


@pytest.mark.parametrize(("line", "field", "value"), READ)
def test_a_value_that_is_plain_to_a_person_is_read(tmp_path, line, field, value):
    entry, problems = synchronised(tmp_path / "repo", line)
    assert getattr(entry, field) == value
    assert not problems


@pytest.mark.parametrize(("line", "field", "value"), REPORTED)
def test_a_value_that_cannot_be_used_is_reported_and_takes_nothing_else_with_it(
    tmp_path, line, field, value
):
    entry, problems = synchronised(tmp_path / "repo", line)
    assert getattr(entry, field) == value
    (problem,) = problems
    assert field.rstrip("s") in problem.reason
    assert not problem.is_left_out
    assert "python" not in problem.reason


def test_a_value_of_a_stored_memory_stays_where_its_file_has_none_that_can_be_used(tmp_path):
    files = MemoryFiles(tmp_path / "repo")
    path = Path(files.write(memory_file(keys={"importance": 0.9, "tags": ["git"]})))
    with Memory(":memory:", embedder=None) as memory:
        files.synchronise(memory)
        path.write_text(path.read_text().replace("importance: 0.9", "importance: much"))
        assert "importance" in files.synchronise(memory).problems[0].reason
        (entry,) = memory.list()
        assert (entry.importance, entry.tags) == (0.9, ("git",))

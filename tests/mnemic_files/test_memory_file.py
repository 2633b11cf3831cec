"""The record of a memory file: its checks, and a repr without content."""

import msgspec
import pytest

from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic_files import MemoryFile, RelatedFile, serialise_memory_file
from mnemic_files.errors import MemoryFileFormatError
from tests.support.memory_files import memory_file


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": "../test"},
        {"scope": "team"},
        {"category": ""},
        {"session_id": " "},
        {"trigger": ""},
        {"version": 0},
        {"version": True},
        {"content": None},
        {"related": [("a",)]},
        {"keys": {"a": object()}},
        {"created_at": "soon"},
    ],
)
def test_invalid_fields_are_refused(fields):
    given = msgspec.structs.asdict(memory_file()) | fields
    with pytest.raises(InvalidArgumentError):
        MemoryFile(**given)


def test_a_record_that_was_not_checked_is_not_written():
    file = memory_file()
    msgspec.structs.force_setattr(file, "session_id", "")
    with pytest.raises(MemoryFileFormatError, match="session_id is empty"):
        serialise_memory_file(file)


def test_the_repr_hides_the_content():
    file = memory_file(content="the secret", keys={"note": "another"})
    assert "secret" not in repr(file)
    assert "another" not in repr(file)


def test_an_edge_is_no_empty_text():
    with pytest.raises(InvalidEntryError):
        RelatedFile("", "refines")

"""JSON lines of any program."""

import pytest

from mnemic.errors import SourceError


def test_a_line_may_be_a_text(bring, lines):
    assert bring("jsonl", lines("Ben likes rain"))[1].keys() == {"Ben likes rain"}


def test_an_export_of_mnemic_is_named(check, memory, tmp_path):
    memory.add("x")
    memory.export(tmp_path / "all.jsonl")
    with pytest.raises(SourceError, match="leave --from out"):
        check("jsonl", tmp_path / "all.jsonl")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"text": "a"}\n{"text": ', "line 2: it is no JSON"),
        ("[" * 100_000, "line 1: it is no JSON"),
        ("3\n", "line 1: it is neither an object nor a text"),
        ("1" + "0" * 5000, "line 1: it is no JSON"),
    ],
)
def test_a_damaged_line_stores_nothing(bring, memory, tmp_path, text, reason):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(SourceError, match=reason):
        bring("jsonl", path)
    assert memory.count(all_users=True) == 0

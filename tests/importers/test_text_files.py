"""Texts in all encodings, of any length, and cut off."""

import pytest

from mnemic.errors import SourceError
from mnemic.importers.text_files import MAX_LINE
from tests.importers.sources import one


@pytest.mark.parametrize("kind", ["jsonl", "csv", "markdown", "chatgpt"])
def test_a_text_that_is_not_utf_8_is_an_error(check, tmp_path, kind):
    path = tmp_path / "old.md"
    path.write_bytes('[{"text": "Tromsø"}]'.encode("latin1"))
    with pytest.raises(SourceError, match=r"it is not UTF-8.*iconv"):
        check(kind, path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_encodings_are_understood(bring, tmp_path, encoding):
    path = tmp_path / "rows.csv"
    path.write_text("text,user\nTromsø,ana\n", encoding=encoding)
    assert one(bring("csv", path)[1]).content == "Tromsø"


def test_an_endless_line_is_an_error_before_it_is_read(check, tmp_path):
    path = tmp_path / "rows.jsonl"
    with path.open("w") as file:
        file.truncate(10 * MAX_LINE)
    with pytest.raises(SourceError, match="line 1: it is longer than"):
        check("jsonl", path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no array"),
        ("{}", "no array"),
        ("[{}", "item 1: it is cut off"),
        ('[{"mapping": {}}, {"mapping', "item 2: Unterminated string"),
        ("[" * 100_000, "item 1: .*recursion"),
        ("[1" + "0" * 5000 + "]", "item 1: .*limit"),
    ],
)
def test_damaged_json_is_an_error_that_names_the_item(check, tmp_path, text, reason):
    path = tmp_path / "conversations.json"
    path.write_text(text)
    with pytest.raises(SourceError, match=reason):
        check("chatgpt", path)

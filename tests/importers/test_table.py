"""Tables of any program."""

import pytest

from mnemic.errors import SourceError
from mnemic.importers.cleaning import TOO_LARGE
from mnemic.importers.text_files import MAX_LINE
from tests.importers.sources import one


def test_a_table_is_read_by_its_header(bring, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "text;user;created_at;tags;importance;sensitive;position;Colour\n"
        '"Ana; moved\nto Oslo";ana;2026-05-03 08:00;home, cold;.9;yes;3;red\n'
        "Ben likes rain;007;;;;no;;\n"
    )
    _, stored = bring("csv", path)
    oslo, rain = stored["Ana; moved\nto Oslo"], stored["Ben likes rain"]
    assert (oslo.user_id, oslo.tags, oslo.position) == ("ana", ("home", "cold"), 3)
    assert (oslo.sensitive, oslo.metadata) == (True, {"Colour": "red", "importance": ".9"})
    assert f"{oslo.created_at:%F %H:%M %Z}" == "2026-05-03 08:00 UTC"
    assert (rain.user_id, rain.sensitive) == ("007", False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("text,user\na,b,c\n", "line 2: the row has more or fewer cells"),
        ("text,user\na\n", "line 2: the row has more or fewer cells"),
        ('text,user\n"a"b,c\n', "line 2: "),
        ('text\n"' + "x," * MAX_LINE, "longer than|field larger"),
        ("text,user, text\na,b,c\n", "two columns are called 'text'"),
        ('text\n"never closed\n' + "x\n" * 1000, "unexpected end of data"),
    ],
)
def test_a_damaged_table_is_an_error_that_names_the_line(check, tmp_path, text, reason):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=reason):
        check("csv", path)


def test_an_empty_cell_is_no_metadata(bring, tmp_path):
    (tmp_path / "rows.csv").write_text("text,colour\nx,\n")
    assert one(bring("csv", tmp_path / "rows.csv")[1]).metadata == {}


def test_columns_of_any_number_are_bounded_metadata(bring, tmp_path):
    names = ",".join(f"c{number}" for number in range(20_000))
    (tmp_path / "rows.csv").write_text(f"text,{names},,\nx,{names},,\n")
    report, stored = bring("csv", tmp_path / "rows.csv")
    assert report.lost == {TOO_LARGE: 1}
    assert len(one(stored).metadata) < 10_000

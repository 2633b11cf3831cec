"""The core counts distinct values of records that are in no index, as an index and a twin do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import RECORD_COLUMNS, distinct_values
from mnemic.errors import InvalidArgumentError
from mnemic.index import ListRequest, NativeIndex
from mnemic.model import Scope
from mnemic.model.filter import Field, parse_filter
from tests.support.distinct_twin import distinct, key
from tests.support.entries import numbered, to_row
from tests.support.filter_strategies import memory, metadata_values
from tests.support.rows import batch
from tests.support.tiers import examples

PROFILE = examples(200)
EVERYTHING = parse_filter({})
AT_M = Field("metadata", ("m",))
ALL = 10_000


def records_of(entries):
    return [(row, *to_row(entry)) for row, entry in enumerate(entries, start=1)]


def by_index(records, field, prefix=None):
    index = NativeIndex(None)
    assert index.apply(batch(records))
    scope = Scope("a", all_users=True)
    request = ListRequest(scope=scope, now=-(2**62), filters=EVERYTHING, limit=ALL)
    assert index.counted(request) == len(records)
    return index.distinct(request, field, prefix)


@PROFILE
@given(
    values=st.lists(metadata_values, max_size=8),
    prefix=st.none() | st.sampled_from(["", "t", "T", "1"]),
    at_once=st.integers(1, 4),
)
def test_any_values_of_metadata_are_counted_as_by_the_twin(values, prefix, at_once):
    entries = [memory(number, metadata={"m": value}) for number, value in enumerate(values)]
    records = records_of(entries)
    parts = (records[at : at + at_once] for at in range(0, len(records), at_once))
    found = distinct_values(EVERYTHING, parts, AT_M, prefix, 0, ALL)
    assert [(key(value), count) for value, count in found] == distinct(
        entries, ("metadata", "m"), prefix
    )
    assert by_index(records, AT_M, prefix) == found


def test_thousands_of_records_in_one_batch_are_counted():
    entries = [numbered(at, session_id=f"{at % 7}", tags=["x"]) for at in range(3000)]
    records = records_of(entries)
    for field in (Field("session_id"), Field("tags")):
        found = distinct_values(EVERYTHING, [records], field, None, 0, ALL)
        assert found == by_index(records, field) == distinct_of(entries, field.name)


def distinct_of(entries, field):
    return [(frozen[1], count) for frozen, count in distinct(entries, field)]


def test_a_filter_a_prefix_an_offset_and_a_limit_hold():
    entries = [numbered(at, session_id=f"s{at}", importance=at / 10) for at in range(10)]
    some = parse_filter({"importance": {"lt": 0.6}})
    records = [records_of(entries)]
    session = Field("session_id")
    assert distinct_values(some, records, session, "s", 2, 3) == [("s2", 1), ("s3", 1), ("s4", 1)]
    assert distinct_values(some, records, session, "s5", 0, 9) == [("s5", 1)]
    assert distinct_values(some, [], session, None, 0, 9) == []


def test_an_error_of_the_records_or_of_their_source_is_raised():
    session = Field("session_id")

    def failing():
        yield records_of([numbered(1)])
        raise KeyError("the source")

    with pytest.raises(KeyError, match="the source"):
        distinct_values(EVERYTHING, failing(), session, None, 0, 9)
    with pytest.raises(InvalidArgumentError):
        distinct_values(EVERYTHING, [[()]], session, None, 0, 9)
    with pytest.raises(TypeError):
        distinct_values(EVERYTHING, [None], session, None, 0, 9)
    with pytest.raises(TypeError):
        distinct_values(EVERYTHING, [], Field("colour"), None, 0, 9)
    for path in ((), (5,)):
        with pytest.raises(TypeError):
            distinct_values(EVERYTHING, [], Field("metadata", path), None, 0, 9)
    with pytest.raises(OverflowError):
        distinct_values(EVERYTHING, [], session, None, -1, 9)


def test_fields_of_other_kinds_have_no_values():
    records = [records_of([numbered(1, position=3)])]
    for name in ("id", "content", "created_at", "importance", "position"):
        assert distinct_values(EVERYTHING, records, Field(name), None, 0, 9) == []
    assert "session_id" in RECORD_COLUMNS

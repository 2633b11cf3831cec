"""The core decides records that are in no index, as an index and the naive twin do."""

import sys

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mnemic._core import RECORD_COLUMNS, matches
from mnemic.errors import InvalidArgumentError
from mnemic.index import ListRequest, NativeIndex
from mnemic.model import MemoryFilter, Scope
from mnemic.model.filter import All, Field, Not, Op, Test, parse_filter
from tests.support import filter_twin
from tests.support.entries import numbered, to_row
from tests.support.filter_strategies import (
    field_filters,
    flattened,
    memory,
    metadata_values,
    population,
    sizes_and_filters,
)
from tests.support.rows import batch
from tests.support.tiers import examples

PROFILE = examples(300)
EVERYTHING = parse_filter({})
COLUMN = {name: at for at, name in enumerate(RECORD_COLUMNS)}


def records_of(entries):
    return [(row, *to_row(entry)) for row, entry in enumerate(entries, start=1)]


def listed(records, where):
    """Return whether an index of these records lists each of them."""
    index = NativeIndex(None)
    assert index.apply(batch(records))
    scope = Scope("a", all_users=True)
    request = ListRequest(scope=scope, now=-(2**62), filters=where, limit=len(records))
    rows = {row for row, *_ in index.listed(request)}
    return [record[0] in rows for record in records]


def changed(**columns):
    """Return a valid record but for these columns."""
    record = list(records_of([numbered(1, metadata={"k": 1})])[0])
    for name, value in columns.items():
        record[COLUMN[name]] = value
    return tuple(record)


@PROFILE
@given(case=sizes_and_filters)
def test_records_pass_as_the_twin_and_an_index_let_them_through(case):
    size, where = case
    entries = population(size)
    records, expression = records_of(entries), parse_filter(where)
    expected = [filter_twin.matches(where, entry) for entry in entries]
    event(f"size {size}, different judgements: {len(set(expected))}")
    assert matches(expression, records) == expected
    assert listed(records, expression) == expected
    assert matches(Not(expression), records) == [not passes for passes in expected]


@PROFILE
@given(values=st.lists(metadata_values, max_size=5), data=st.data())
def test_any_metadata_passes_as_the_twin_lets_it_through(values, data):
    entries = [memory(number, metadata={"m": value}) for number, value in enumerate(values)]
    where = data.draw(field_filters(tuple(flattened(values)), "metadata.m"))
    expected = [filter_twin.matches(where, entry) for entry in entries]
    assert matches(parse_filter(where), records_of(entries)) == expected


def test_thousands_of_records_keep_their_order():
    entries = [numbered(at, tags=["odd"] if at % 2 else []) for at in range(5000)]
    odd = parse_filter({"tags": {"contains": "odd"}})
    assert matches(odd, records_of(entries)) == [at % 2 == 1 for at in range(5000)]
    assert matches(odd, []) == []


def test_records_of_several_batches_of_long_texts_keep_their_order():
    entries = [numbered(at, content=f"{'long ' * 200_000}{at}") for at in range(12)]
    seven = MemoryFilter(content_contains="LONG 7")
    assert matches(parse_filter(seven), records_of(entries)) == [at == 7 for at in range(12)]


def test_a_row_may_repeat_and_columns_may_follow():
    records = [(*changed(content=content), "more") for content in ("tea", "milk", "tea")]
    assert matches(parse_filter({"content": "tea"}), records) == [True, False, True]


def test_metadata_that_is_no_object_or_too_deep_holds_no_key():
    deep = '{"k":1,"deep":' + "[" * 100_000 + "]" * 100_000 + "}"
    texts = ['{"k":1}', "[1]", "7", "nonsense", "", '{"k":', deep]
    records = [changed(metadata=text) for text in texts]
    passed = matches(parse_filter({"metadata.k": {"exists": True}}), records)
    assert passed == [True, False, False, False, False, False, True]
    assert not any(matches(parse_filter({"metadata.deep": {"exists": True}}), records))


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ((), InvalidArgumentError),
        (changed()[:-1], InvalidArgumentError),
        (None, TypeError),
        (list(changed()), TypeError),
        (changed(row="1"), TypeError),
        (changed(row=2**63), OverflowError),
        (changed(id=b"short"), ValueError),
        (changed(created_at=None), TypeError),
        (changed(created_at=2**62), ValueError),
        (changed(content=b"bytes"), TypeError),
        (changed(content=None), TypeError),
        (changed(content="x" * (10 * 1024 * 1024 + 1)), ValueError),
        (changed(role=7), TypeError),
        (changed(role="a\ud800"), ValueError),
        (changed(memory_type=256), OverflowError),
        (changed(importance=float("nan")), ValueError),
        (changed(importance=2), ValueError),
        (changed(access_count=-1), ValueError),
        (changed(tags=["a"]), TypeError),
        (changed(metadata={"k": 1}), TypeError),
    ],
)
def test_a_record_of_other_values_raises(record, error):
    with pytest.raises(error):
        matches(EVERYTHING, [changed(), record])


def test_arguments_of_other_types_raise():
    for records in (None, (changed(),), "text", 7):
        with pytest.raises(TypeError):
            matches(EVERYTHING, records)
    for tree in (None, {}, "text", Test(Field("colour"), Op.EQ, 1), Test(Field("role"), Op.EQ, [])):
        with pytest.raises((TypeError, AttributeError)):
            matches(tree, [])


def test_a_tree_deeper_than_any_filter_raises():
    deepest = {}
    for _ in range(15):
        deepest = {"NOT": deepest}
    assert matches(parse_filter(deepest), [changed()]) == [False]
    tree = EVERYTHING
    for _ in range(100_000):
        tree = Not(tree)
    with pytest.raises(InvalidArgumentError, match="more than 64 levels deep"):
        matches(tree, [changed()])
    while isinstance(tree, Not):  # or its own end overflows the stack
        tree = tree.part


def test_the_deepest_filters_of_every_form_are_read():
    for word in ("AND", "OR"):
        where = {"role": {"exists": False}}
        for _ in range(15):
            where = {word: [where]}
        assert matches(parse_filter(MemoryFilter(filters=where)), [changed()]) == [True]
    assert matches(All((All(()),)), [changed()]) == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="counts with getrusage")
def test_any_number_of_records_is_tested_in_bounded_memory():
    import resource  # noqa: PLC0415 - not on Windows

    text = "x" * 1_000_000
    records = [changed(content=text)] * 400
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert matches(MATCHING_X, records) == [True] * 400
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert grown < 100 * 1024  # kilobytes; all records at once are 400 MB


MATCHING_X = parse_filter({"content": {"contains": "X"}})

"""Values of filters: numbers, dicts and lists below metadata, and their bounds."""

import msgspec
import pytest

from mnemic.errors import FilterError
from mnemic.model import MemoryFilter
from mnemic.model.filter import Op, Test, parse_filter
from mnemic.model.filter_values import JsonObject


def refusal(asked):
    with pytest.raises(FilterError) as caught:
        parse_filter(asked)
    return str(caught.value)


def nested(levels):
    asked = {"role": "x"}
    for _ in range(levels - 1):
        asked = {"NOT": asked}
    return asked


def test_lists_may_have_10_000_values_and_no_more(search):
    words = [f"{number}" for number in range(10_000)]
    entries = {word: {"role": word} for word in ("0", "9999", "10000")}
    assert search(entries, {"role": {"in": words}}) == {"0", "9999"}
    assert search(entries, {"AND": [{}] * 10_000}) == set(entries)
    assert search(entries, {"NOT": {"AND": [{"OR": []}] * 10_000}}) == set(entries)
    for asked in ({"role": {"in": [*words, "x"]}}, {"AND": [{}] * 10_001}):
        assert refusal(asked).endswith(": found 10001 values, allowed: 10000")


def parsed(asked):
    """Return path, operator and value of each test of a filter without AND, OR and NOT."""
    (inner,) = parse_filter(asked).parts
    tests = [inner] if isinstance(inner, Test) else inner.parts
    return [(test.field.path, test.op, test.value) for test in tests]


def test_a_dict_to_compare_with_is_an_object_by_key():
    nested = JsonObject((("a", (1, None)), ("b", JsonObject(()))))
    assert parsed({"metadata.k": {"eq": {"b": {}, "a": [1, None]}}}) == [(("k",), Op.EQ, nested)]
    assert parsed({"metadata.k": {"in": [{"b": {}, "a": [1, None]}, [1]]}}) == [
        (("k",), Op.IN, (nested, (1,)))
    ]


def deep(levels, within=None):
    for _ in range(levels):
        within = [within]
    return within


def test_paths_and_values_may_be_64_deep_and_no_deeper():
    path = 1
    for _ in range(64):
        path = {"k": path}
    assert parsed({"metadata": path})[0][0] == ("k",) * 64
    assert refusal({"metadata": {"k": path}}).endswith(": found keys 65 deep, allowed: 64")
    assert parsed({"metadata.k": deep(64)})[0][1] is Op.EQ
    assert refusal({"metadata.k": deep(65)}).endswith(": found values 65 deep, allowed: 64")
    endless = {}
    endless["k"] = endless["l"] = endless
    assert "keys 65 deep" in refusal({"metadata": endless})
    assert "values 65 deep" in refusal({"metadata.k": {"eq": endless}})


def test_a_value_and_a_dict_below_metadata_may_have_10_000_parts_and_no_more():
    rows = [[number] * 99 for number in range(100)]
    assert "found 10001 values, allowed: 10000" in refusal({"metadata.k": rows})
    assert parsed({"metadata.k": rows[:-1]})[0][1] is Op.EQ
    keys = {f"k{number}": {} for number in range(10_001)}
    assert refusal({"metadata": keys}).endswith(": found 10001 keys, allowed: 10000")


def test_a_number_beyond_every_float_is_a_smaller_one_beyond_every_float():
    assert parsed({"metadata": {"a": 10**5000, "b": -(10**5000)}}) == [
        (("a",), Op.EQ, 2**1024),
        (("b",), Op.EQ, -(2**1024)),
    ]
    assert parsed({"metadata": {"a": 2**1024 - 1}}) == [(("a",), Op.EQ, 2**1024 - 1)]


def test_a_memory_filter_keeps_dicts_and_large_numbers_as_json_does():
    given = {"metadata": {"a": {"\\in": {"eq": {"b": (2**70,)}}}}, "tags": ("x",)}
    kept = MemoryFilter(filters=given)
    assert kept.filters == {"metadata": {"a": {"\\in": {"eq": {"b": [2**70]}}}}, "tags": ["x"]}
    again = msgspec.json.decode(msgspec.json.encode(kept), type=MemoryFilter)
    assert again == kept
    assert parse_filter(again) == parse_filter(kept)

"""Distinct values of a field: what may be asked for, and a record that hides itself."""

import pytest

from mnemic import Memory
from mnemic.model import DistinctValue


def test_a_distinct_value_hides_itself():
    shown = repr(DistinctValue("a secret", 2))
    assert "secret" not in shown
    assert "count=2" in shown


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("content",), {}, "field must be one of .*category.*metadata.<key>, or a path"),
        (("metadata",), {}, "field must be one of"),
        (("created_at",), {}, "field must be one of"),
        (("user_id",), {}, "field must be one of"),
        ((("metadata",),), {}, "field must be one of"),
        ((("address", "city"),), {}, "field must be one of"),
        ((["metadata", *"k" * 65],), {}, "of at most 64 keys"),
        ((("metadata", 5),), {}, "a key of field must be a str of valid text, got 5"),
        (("metadata.\ud800",), {}, "a key of field must be a str"),
        ((5,), {}, "field must be one of"),
        (("category",), {"prefix": 5}, "prefix must be a str of valid text, or None; got 5"),
        (("type",), {"prefix": "f"}, "prefix goes with texts"),
        (("category",), {"limit": 0}, "limit must be an int from 1 to 10000, got 0"),
        (("category",), {"limit": 10_001}, "limit must be an int from 1 to 10000"),
        (("category",), {"offset": -1}, "offset must be at least 0"),
        (("category",), {"filters": {"x": 1}}, "found field 'x'"),
    ],
)
def test_wrong_arguments_of_distinct_are_refused(arguments, options, message):
    with Memory(":memory:", embedder=None) as memory, pytest.raises(ValueError, match=message):
        memory.distinct(*arguments, **options)

"""Filters as they are parsed, and refused."""

from datetime import datetime, time
from uuid import UUID

import msgspec
import pytest

from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.model import MemoryFilter, MemorySortOrder, MemoryType
from mnemic.model.filter import All, AnyOf, Field, Not, Op, Test, parse_filter
from mnemic.model.filter_values import JsonObject
from tests.support.clock import HOUR, NOON
from tests.support.filters import ABSENT, metadata


def refusal(asked):
    with pytest.raises(FilterError) as caught:
        parse_filter(asked)
    return str(caught.value)


# The tree


def test_a_filter_becomes_one_tree_of_typed_values():
    tree = parse_filter(
        {
            "type": {"in": ["fact", MemoryType.EVENT]},
            "OR": [
                {"metadata.a.b": 5},
                {"NOT": {"created_at": {"$gte": "2026-05-01T14:00+02:00"}}},
            ],
        }
    )
    key = Field("metadata", ("a.b",))
    created = Test(Field("created_at"), Op.GTE, NOON)
    assert tree == All(
        (
            All((Test(Field("type"), Op.IN, (0, 1)),)),
            AnyOf((All((Test(key, Op.EQ, 5),)), All((Not(All((All((created,)),))),)))),
        )
    )


def test_no_filter_and_an_empty_one_let_everything_through(search):
    assert parse_filter(None) == parse_filter({}) == parse_filter(MemoryFilter()) == All(())
    assert search({"x": {}}, {}) == {"x"}


def test_the_fields_of_a_memory_filter_are_tests_of_the_same_tree():
    tree = parse_filter(
        MemoryFilter(
            types=["event", 0],
            tags=["a"],
            any_tags=["b"],
            min_importance=1,
            created_after="2026-05-01T12:00:00Z",
            created_before=datetime(2026, 5, 2),  # noqa: DTZ001 - naive is UTC
            content_contains="x",
            filters={"role": "user"},
        )
    )
    assert tree == All(
        (
            Test(Field("type"), Op.IN, (1, 0)),
            Test(Field("tags"), Op.ALL, ("a",)),
            Test(Field("tags"), Op.ANY, ("b",)),
            Test(Field("importance"), Op.GTE, 1.0),
            Test(Field("created_at"), Op.GTE, NOON),
            Test(Field("created_at"), Op.LT, NOON + 12 * HOUR),
            Test(Field("content"), Op.CONTAINS, "x"),
            All((Test(Field("role"), Op.EQ, "user"),)),
        )
    )


@pytest.mark.requirement("R055")
def test_a_memory_filter_keeps_its_fields_in_their_final_form():
    kept = MemoryFilter(types=["FACT"], tags={"a"}, created_after=datetime(2026, 5, 1, 12))  # noqa: DTZ001
    assert kept.types == (MemoryType.FACT,)
    assert kept.tags == ("a",)
    assert kept.created_after == NOON
    assert (kept.limit, kept.offset, kept.include_forgotten) == (100, 0, False)
    assert kept.sort_by is None
    assert kept.list_order is MemorySortOrder.CREATED_DESCENDING
    oldest = MemorySortOrder.CREATED_ASCENDING
    assert MemoryFilter(sort_by=oldest).list_order is oldest


def test_a_memory_filter_keeps_nothing_of_the_callers_dict():
    given = {"tags": {"any": ["a"]}, "created_at": {"gte": NOON}, "id": {"in": {UUID(int=1)}}}
    kept = MemoryFilter(filters=given)
    tree = parse_filter(kept)
    given["tags"]["any"].append("b")
    given["importance"] = 1
    assert parse_filter(kept) == tree
    assert kept.filters == {
        "tags": {"any": ["a"]},
        "created_at": {"gte": NOON.isoformat()},
        "id": {"in": [str(UUID(int=1))]},
    }


# Refusals


@pytest.mark.parametrize(
    ("asked", "beginning"),
    [
        ([], "filter: found a list of 0 items, allowed: a dict"),
        ({"user_id": "x"}, "user_id: found field 'user_id'"),
        ({"metadata": "x"}, "metadata: found a str of 1 character, allowed: a dict of keys"),
        ({"metadata": {5: 1}}, "metadata.5: found key 5, allowed: a str"),
        ({"metadata": {"$like": 1}}, "metadata.$like: found operator '$like', allowed: eq"),
        ({"metadata": {"$gte": 1}}, "metadata.$gte: found operator '$gte', allowed: eq"),
        ({"metadata": {"k": {"$like": 1}}}, "metadata.k.$like: found operator '$like'"),
        ({"metadata": {"k": {"gte": [1]}}}, "metadata.k.gte: found a list of 1 item"),
        ({"metadata": {"a": {"b": {"exists": 1}}}}, "metadata.a.b.exists: found 1 (int)"),
        ({"metadata": {"k": {"in": {"a": 1}}}}, "metadata.k.in: found a dict of 1 item"),
        ({"metadata": {"\ud800": 1}}, "metadata.<1 character>: found a str of 1 character"),
        ({"metadata": {"two words": {5: 1}}}, "metadata.<9 characters>.5: found key 5"),
        ({"metadata.k": {"city": 1}}, "metadata.k.city: found operator 'city', allowed: eq"),
        ({"metadata.k": {"eq": {"a": NOON}}}, "metadata.k.eq.a: found datetime.date"),
        ({"metadata.k": {"eq": {5: 1}}}, "metadata.k.eq.5: found 5 (int), allowed: a str"),
        ({"metadata.k": [1, {"b": {1}}]}, "metadata.k[1].b: found a set of 1 item"),
        ({"metadata.k": {"prefix": 1}}, "metadata.k.prefix: found 1 (int), allowed: a str"),
        ({"version": {"prefix": "1"}}, "version.prefix: found prefix on version, allowed: eq"),
        ({"and": []}, "and: found field 'and'"),
        ({5: 1}, "5: found field 5"),
        ({"role": {"like": "x"}}, "role.like: found operator 'like'"),
        ({"role": {"$$eq": "x"}}, "role.$$eq: found operator '$$eq'"),
        ({"role": {5: "x"}}, "role.5: found operator 5"),
        (
            {"OR": [{}, {"metadata.age": {"gte": [1]}}]},
            "OR[1].metadata.age.gte: found a list of 1 item",
        ),
        ({"AND": {"role": "x"}}, "AND: found a dict of 1 item, allowed: a list"),
        ({"NOT": []}, "NOT: found a list of 0 items, allowed: a dict"),
        ({"AND": ["x"]}, "AND[0]: found a str of 1 character, allowed: a dict"),
        ({"OR": [{"NOT": {"AND": [{"x": 1}]}}]}, "OR[0].NOT.AND[0].x: found field 'x'"),
        ({"role": {"in": "user"}}, "role.in: found a str of 4 characters, allowed: a list"),
        ({"role": {"in": ["a", {}]}}, "role.in[1]: found a dict of 0 items"),
        ({"role": {"exists": 1}}, "role.exists: found 1 (int), allowed: True or False"),
        ({"role": {"any": ["x"]}}, "role.any: found any on role, allowed: eq, ne"),
        ({"tags": "x"}, "tags: found a str of 1 character, allowed: a list of str"),
        ({"tags": None}, "tags: found None (NoneType), allowed: a list of str"),
        ({"tags": ["x", 1]}, "tags: found a list of 2 items, allowed: a list of str"),
        ({"tags": {"in": ["x"]}}, "tags.in[0]: found a str of 1 character, allowed: a list of str"),
        ({"tags": {"gt": ["x"]}}, "tags.gt: found gt on tags, allowed: eq, ne, in, nin, contains"),
        ({"type": {"gt": 0}}, "type.gt: found gt on type"),
        ({"importance": {"contains": 0}}, "importance.contains: found contains on importance"),
        ({"type": "fiction"}, "type: found 'fiction' (str), allowed: fact, event"),
        ({"status": 3}, "status: found 3 (int), allowed: active, archived, superseded"),
        ({"type": True}, "type: found True (bool)"),
        ({"id": "x"}, "id: found 'x' (str), allowed: a UUID"),
        ({"created_at": {"lt": "soon"}}, "created_at.lt: found 'soon' (str), allowed: a datetime"),
        ({"created_at": 5}, "created_at: found 5 (int)"),
        ({"updated_at": time(12)}, "updated_at: found datetime.time(12, 0) (time)"),
        ({"expires_at": "0001-01-01T00:00+01:00"}, "expires_at: found '0001-01-01"),
        ({"metadata.k": NOON}, "metadata.k: found datetime.date"),
        ({"metadata.k": float("nan")}, "metadata.k: found nan (float)"),
        ({"importance": {"lt": float("inf")}}, "importance.lt: found inf (float)"),
        ({"role": "\ud800"}, "role: found a str of 1 character"),
        (
            {"metadata.\ud800": 1},
            "metadata.<1 character>: found a str of 1 character, allowed: a str of valid",
        ),
    ],
)
def test_a_refusal_names_the_place_what_was_found_and_what_is_allowed(asked, beginning):
    message = refusal(asked)
    assert message.startswith(beginning)
    assert ", allowed: " in message


def test_a_filter_error_is_an_invalid_argument():
    assert issubclass(FilterError, InvalidArgumentError)


@pytest.mark.parametrize(
    ("fields", "beginning"),
    [
        ({"types": "fact"}, "types: found a str of 4 characters"),
        ({"types": ["fact", "x"]}, "types[1]: found 'x'"),
        ({"tags": ["a", None]}, "tags[1]: found None"),
        ({"any_tags": [1]}, "any_tags[0]: found 1"),
        ({"min_importance": 1.01}, "min_importance: found 1.01"),
        ({"min_importance": float("nan")}, "min_importance: found nan"),
        ({"min_importance": True}, "min_importance: found True"),
        ({"created_after": 5}, "created_after: found 5"),
        ({"created_before": "x"}, "created_before: found 'x'"),
        ({"content_contains": 5}, "content_contains: found 5"),
        ({"content_contains": "\udfff"}, "content_contains: found a str of 1 character"),
        ({"include_forgotten": 1}, "include_forgotten: found 1"),
        ({"include_forgotten": None}, "include_forgotten: found None"),
        ({"limit": 0}, "limit: found 0"),
        ({"limit": 1001}, "limit: found 1001"),
        ({"limit": True}, "limit: found True"),
        ({"limit": None}, "limit: found None"),
        ({"offset": -1}, "offset: found -1"),
        ({"offset": 1.0}, "offset: found 1.0"),
        ({"sort_by": "created_descending"}, "sort_by: found 'created_descending'"),
        ({"filters": []}, "filters: found a list of 0 items"),
        ({"filters": {"OR": [{"x": 1}]}}, "filters.OR[0].x: found field 'x'"),
    ],
)
def test_a_memory_filter_refuses_wrong_values_when_it_is_made(fields, beginning):
    with pytest.raises(FilterError) as caught:
        MemoryFilter(**fields)
    assert str(caught.value).startswith(beginning)


def test_limits_and_offsets_may_be_as_large_as_documented():
    MemoryFilter(limit=1, offset=2**63 - 1)
    MemoryFilter(limit=1000)


def nested(levels):
    asked = {"role": "x"}
    for _ in range(levels - 1):
        asked = {"NOT": asked}
    return asked


def test_filters_may_be_16_deep_and_no_deeper(search):
    assert search({"x": {"role": "x"}, "y": {"role": "y"}}, nested(16)) == {"y"}
    assert refusal(nested(17)) == ".".join(["NOT"] * 16) + ": found filters 17 deep, allowed: 16"
    assert "filters 17 deep" in refusal(nested(100_000))


def test_a_filter_that_holds_itself_is_too_deep():
    asked = {}
    asked["AND"] = [asked]
    assert "filters 17 deep" in refusal(asked)


def test_a_filter_may_have_256_tests_and_no_more(search):
    entries = {"0": {"role": "0"}, "255": {"role": "255"}, "256": {"role": "256"}}
    asked = {"OR": [{"role": f"{number}"} for number in range(256)]}
    assert search(entries, asked) == {"0", "255"}
    asked["OR"].append({"role": "256"})
    assert refusal(asked) == "OR[256].role: found test number 257, allowed: 256 tests"


def test_the_fields_of_a_memory_filter_count_as_tests():
    where = {"OR": [{"role": f"{number}"} for number in range(256)]}
    MemoryFilter(filters=where)
    with pytest.raises(FilterError, match="test number 257"):
        MemoryFilter(tags=[], filters=where)


def test_256_tests_one_inside_the_other_and_side_by_side_stay_within_what_sqlite_can_parse(search):
    values = {"exists": True, "ne": 5, "nin": [1, "x", None], "contains": "x"}
    asked = {"AND": [{"metadata.k": values} for _ in range(60)]}
    for _ in range(14):
        asked = {"OR": [{"metadata.k": None}, asked]}
    assert search(metadata(text="xy", number=5), asked) == {"text", ABSENT}


# Below metadata


def parsed(asked):
    """Return path, operator and value of each test of a filter without AND, OR and NOT."""
    (inner,) = parse_filter(asked).parts
    tests = [inner] if isinstance(inner, Test) else inner.parts
    return [(test.field.path, test.op, test.value) for test in tests]


def test_a_dict_below_metadata_leads_deeper_unless_all_of_its_keys_are_operators():
    assert parsed({"metadata": {"a": 1, "b": {"gte": 3, "$lt": 5}}}) == [
        (("a",), Op.EQ, 1),
        (("b",), Op.GTE, 3),
        (("b",), Op.LT, 5),
    ]
    assert parsed({"metadata": {"a": {"b": {"c.d": {"exists": True}}, "e": "x"}}}) == [
        (("a", "b", "c.d"), Op.EXISTS, True),
        (("a", "e"), Op.EQ, "x"),
    ]
    assert parsed({"metadata": {"a": {"gte": 3, "b": 1}}}) == [
        (("a", "gte"), Op.EQ, 3),
        (("a", "b"), Op.EQ, 1),
    ]
    assert parsed({"metadata": {"a": {"b": {}}, "c": {}}}) == []
    assert parsed({"metadata": {"a": [1, {"b": None}]}}) == [
        (("a",), Op.EQ, (1, JsonObject((("b", None),))))
    ]


def test_a_key_with_the_name_of_an_operator_has_a_backslash_but_at_the_first_level():
    assert parsed({"metadata": {"in": 5}}) == [(("in",), Op.EQ, 5)]
    assert parsed({"metadata": {"in": {"in": [5]}}}) == [(("in",), Op.IN, (5,))]
    assert parsed({"metadata": {"a": {"\\in": 5}}}) == [(("a", "in"), Op.EQ, 5)]
    assert parsed({"metadata": {"\\$a": {"\\\\b": 5, "\\c": 6}}}) == [
        (("$a", "\\b"), Op.EQ, 5),
        (("$a", "c"), Op.EQ, 6),
    ]


# Values


def test_lists_may_have_10_000_values_and_no_more(search):
    words = [f"{number}" for number in range(10_000)]
    entries = {word: {"role": word} for word in ("0", "9999", "10000")}
    assert search(entries, {"role": {"in": words}}) == {"0", "9999"}
    assert search(entries, {"AND": [{}] * 10_000}) == set(entries)
    assert search(entries, {"NOT": {"AND": [{"OR": []}] * 10_000}}) == set(entries)
    for asked in ({"role": {"in": [*words, "x"]}}, {"AND": [{}] * 10_001}):
        assert refusal(asked).endswith(": found 10001 values, allowed: 10000")


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

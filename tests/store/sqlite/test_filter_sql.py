"""The truth table of filters on a real file: SQL narrows, the core decides."""
# ruff: noqa: RUF001, S608 - texts in many scripts are the point; conditions are under test

import unicodedata
from datetime import UTC, datetime, timezone
from functools import partial
from uuid import UUID

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import fold
from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.model import MemoryFilter, MemorySortOrder, MemoryStatus, MemoryType
from mnemic.model.filter import parse_filter
from mnemic.store.sql.filters import MAX_NUMBERS
from mnemic.store.sql.filters import narrowed as narrowed_by
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.store import SqliteStore
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered
from tests.support.filters import ABSENT, keep, metadata, narrowed_and_decided, numbers_found

narrowed = partial(narrowed_by, SQLITE)

# AND, OR, NOT


def test_all_tests_and_all_names_must_hold(search):
    entries = {
        f"{role}{version}": {"role": role, "version": version}
        for role in "ab"
        for version in (1, 2)
    }
    assert search(entries, {"role": "a", "version": {"gt": 1, "$lt": 3}}) == {"a2"}
    assert search(entries, {"AND": [{"role": "a"}, {"version": 1}]}) == {"a1"}
    assert search(entries, {"OR": [{"role": "a"}, {"version": 1}]}) == {"a1", "a2", "b1"}
    assert search(entries, {"NOT": {"role": "a", "version": 1}}) == {"a2", "b1", "b2"}
    assert search(entries, {"role": {}}) == set(entries)


def test_an_empty_and_is_true_and_an_empty_or_is_false(search):
    assert search({"x": {}}, {"AND": []}) == {"x"}
    assert search({"x": {}}, {"OR": []}) == set()
    assert search({"x": {}}, {"NOT": {"OR": []}}) == {"x"}
    assert search({"x": {}}, {"NOT": {}}) == set()
    assert search({"x": {}}, {"OR": [{"OR": []}, {}]}) == {"x"}


@pytest.mark.parametrize("field", ["metadata.k", "role", "last_accessed_at", "tags"])
def test_not_is_plain_negation_for_every_test_even_where_the_value_is_missing(search, field):
    entries = {
        "full": {"metadata": {"k": "a"}, "role": "a", "last_accessed_at": NOON, "tags": ["a"]},
        "null": {"metadata": {"k": None}},
        ABSENT: {},
    }
    value = NOON if field == "last_accessed_at" else "a"
    tests = [{op: value} for op in ("eq", "ne", "gt", "gte", "lt", "lte", "contains")]
    tests += [{op: [value]} for op in ("in", "nin", "any", "all")]
    tests += [{"prefix": "a"}]
    tests += [{"eq": None}, {"ne": None}, {"nin": [None]}, {"exists": True}, {"exists": False}]
    if field == "tags":  # are compared with whole lists
        of_lists = [{"eq": ["a"]}, {"ne": ["a"]}, {"in": [["a"], []]}, {"nin": [["a"], []]}]
        tests = [test for test in tests if not set(test) & {"eq", "ne", "in", "nin"}] + of_lists
    asked = [{field: test} for test in tests if fits(field, test)]
    assert len(asked) >= 5
    for each in asked:
        assert search(entries, {"NOT": each}) == set(entries) - search(entries, each)


def fits(field, test):
    try:
        parse_filter({field: test})
    except FilterError as error:
        assert " on " in str(error)  # noqa: PT017
        return False
    return True


# Missing


@pytest.mark.parametrize("field", ["metadata.k", "role", "last_accessed_at", "expires_at"])
def test_on_a_missing_value_only_four_tests_are_true(search, field):
    fields = {
        "role": "b",
        "last_accessed_at": NOON,
        "expires_at": NOON,
        "metadata": {"k": NOON.isoformat()},
    }
    entries = {"there": fields, ABSENT: {}, "null": {"metadata": {"k": None}}}
    there, missing = {"there"}, {ABSENT, "null"}
    other = "2020-01-01"
    expected = [
        ({"exists": True}, there),
        ({"exists": False}, missing),
        ({"eq": None}, missing),
        ({"ne": None}, there),
        ({"ne": other}, there | missing),
        ({"nin": [other]}, there | missing),
        ({"nin": []}, there | missing),
        ({"nin": [other, None]}, there),
        ({"nin": [None]}, there),
        ({"in": [None]}, set()),
        ({"in": []}, set()),
        ({"eq": other}, set()),
        ({"gt": other}, there),
        ({"gte": other}, there),
        ({"lt": other}, set()),
        ({"lte": other}, set()),
        ({"gte": None}, set()),
        ({"lte": None}, set()),
    ]
    for test, names in expected:
        assert search(entries, {field: test}) == names, test
    assert search(entries, {field: None}) == missing


def test_lists_are_looked_for_in_vain_where_a_value_is_missing(search):
    entries = metadata(null=None)
    for test in (
        {"contains": "x"},
        {"contains": None},
        {"any": [None]},
        {"all": [None]},
        {"all": []},
    ):
        assert search(entries, {"metadata.k": test}) == set(), test


# Types


VALUES = {
    "one": 1,
    "one_float": 1.0,
    "true": True,
    "zero": 0,
    "false": False,
    "text": "1",
    "word": "true",
    "list": [1],
    "dict": {"1": 1},
    "null": None,
}


@pytest.mark.parametrize(
    ("value", "equal"),
    [
        (1, {"one", "one_float"}),
        (1.0, {"one", "one_float"}),
        (True, {"true"}),
        (False, {"false"}),
        (0, {"zero"}),
        (-0.0, {"zero"}),
        ("1", {"text"}),
        ("true", {"word"}),
        ("[1]", set()),
        ('{"1":1}', set()),
        ("null", set()),
        (2, set()),
    ],
)
def test_values_are_equal_only_to_values_of_their_kind(search, value, equal):
    entries = metadata(**VALUES)
    for same in (value, {"eq": value}, {"in": [value]}, {"in": ["other", value, 77]}):
        assert search(entries, {"metadata.k": same}) == equal
    for other in ({"ne": value}, {"nin": [value]}):
        assert search(entries, {"metadata.k": other}) == set(entries) - equal


def test_a_list_of_several_kinds_matches_each_of_them(search):
    entries = metadata(**VALUES)
    values = [1, True, "true", None]
    assert search(entries, {"metadata.k": {"in": values}}) == {"one", "one_float", "true", "word"}
    assert search(entries, {"metadata.k": {"nin": values}}) == {
        "zero", "false", "text", "list", "dict",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ({"gt": 0}, {"one", "one_float"}),
        ({"gte": 0.5, "lt": 2}, {"one", "one_float"}),
        ({"lt": 1}, {"zero"}),
        ({"gte": "0"}, {"text", "word"}),
        ({"lt": "true"}, {"text"}),
        ({"gte": False}, set()),
        ({"lte": True}, set()),
        ({"gte": None}, set()),
    ],
)
def test_order_is_between_numbers_or_between_strings_and_never_across(search, test, names):
    assert search(metadata(**VALUES), {"metadata.k": test}) == names


@pytest.mark.parametrize("field", ["importance", "access_count", "version"])
def test_a_number_field_is_not_compared_with_strings_or_booleans(search, field):
    entries = {"x": {"importance": 1.0, "access_count": 1, "version": 1}}
    for value in (1, 1.0):
        assert search(entries, {field: value}) == {"x"}
        assert search(entries, {field: {"in": ["1", value]}}) == {"x"}
    for value in ("1", "1.0", True, None):
        assert search(entries, {field: value}) == set()
        assert search(entries, {field: {"in": [value]}}) == set()
        assert search(entries, {field: {"gte": value}}) == set()
        assert search(entries, {field: {"ne": value}}) == {"x"}
        assert search(entries, {field: {"nin": [value]}}) == {"x"}


def test_a_text_field_is_not_compared_with_numbers(search):
    entries = {"x": {"role": "5", "content": "5"}}
    for field in ("role", "content"):
        for value in (5, 5.0, True):
            assert search(entries, {field: value}) == set()
            assert search(entries, {field: {"lte": value}}) == set()
            assert search(entries, {field: {"contains": value}}) == set()
            assert search(entries, {field: {"nin": [value]}}) == {"x"}


def test_sensitive_is_a_boolean_and_not_a_number(search):
    entries = {"open": {}, "secret": {"sensitive": True}}
    assert search(entries, {"sensitive": True}) == {"secret"}
    assert search(entries, {"sensitive": {"in": [False]}}) == {"open"}
    assert search(entries, {"sensitive": 1}) == set()
    assert search(entries, {"sensitive": {"ne": 1}}) == {"open", "secret"}


def test_large_integers_and_floats_are_compared_exactly(search):
    entries = metadata(safe=2**53, below=2**53 - 1, real=float(2**53))
    assert search(entries, {"metadata.k": 2**53}) == {"safe", "real"}
    assert search(entries, {"metadata.k": {"lt": 2**53}}) == {"below"}
    assert search(entries, {"metadata.k": {"lt": 2**53 + 1}}) == {"safe", "below", "real"}
    assert search(entries, {"metadata.k": {"in": [2**63 - 1, -(2**63), 2**53 - 1]}}) == {"below"}
    count = {"x": {"access_count": 2**63 - 1}}
    assert search(count, {"access_count": 2**63 - 1}) == {"x"}
    assert search(count, {"access_count": 2.0**63}) == set()
    assert search(count, {"access_count": {"lt": 2.0**63}}) == {"x"}


def test_numbers_of_any_size_are_compared_exactly(search):
    entries = metadata(large=1e300, small=-1e300, word=2**53)
    large = int(1e300)
    for value, equal, below in [
        (large, {"large"}, {"small", "word"}),
        (large + 1, set(), {"small", "word", "large"}),
        (large - 1, set(), {"small", "word"}),
        (10**400, set(), {"small", "word", "large"}),
        (-(10**400), set(), set()),
        (2**64, set(), {"small", "word"}),
    ]:
        assert search(entries, {"metadata.k": value}) == equal
        assert search(entries, {"metadata.k": {"in": [value, "x"]}}) == equal
        assert search(entries, {"metadata.k": {"lt": value}}) == below
        assert search(entries, {"metadata.k": {"gte": value}}) == {"large", "small", "word"} - below
    counts = {"x": {"access_count": 2**63 - 1, "importance": 1.0, "position": 0}}
    for field in ("access_count", "importance", "position"):
        assert search(counts, {field: {"lt": 2**63}}) == {"x"}
        assert search(counts, {field: {"gt": -(2**63) - 1}}) == {"x"}
        assert search(counts, {field: {"in": [2**63, 2**1000]}}) == set()
        assert search(counts, {field: {"ne": 2**63}}) == {"x"}


def test_messages_and_positions_are_filtered(search):
    entries = {
        "first": {"message_id": "m-1", "position": 0},
        "second": {"message_id": "m-2", "position": 1},
        ABSENT: {},
    }
    assert search(entries, {"message_id": "m-2"}) == {"second"}
    assert search(entries, {"message_id": {"nin": ["m-2"]}}) == {"first", ABSENT}
    assert search(entries, {"position": 0}) == {"first"}
    assert search(entries, {"position": {"lt": 1}}) == {"first"}
    assert search(entries, {"position": {"in": [-(2**63), 1]}}) == {"second"}
    assert search(entries, {"position": {"gte": -(2**63)}}) == {"first", "second"}
    assert search(entries, {"position": None}) == {ABSENT}
    assert search(entries, {"position": {"ne": 0}}) == {"second", ABSENT}
    assert search(entries, {"position": {"exists": True}, "message_id": {"prefix": "m"}}) == {
        "first", "second",
    }  # fmt: skip


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_every_float_is_found_again(floats):
    store = SqliteStore(":memory:")
    try:
        entries = [numbered(at, metadata={"k": number}) for at, number in enumerate(floats)]
        keep(store, entries)
        with store._connections.reading() as connection:
            for test in ({"eq": floats[0]}, {"in": [floats[0], 0.5]}):
                expression = parse_filter({"metadata.k": test})
                found = narrowed_and_decided(connection, "a", expression)
                same = {floats[0], 0.5} if "in" in test else {floats[0]}
                expected = {at for at, number in enumerate(floats) if number in same}
                assert {UUID(bytes=row[2]).int for row in found} == expected
    finally:
        store.close()


# Strings


def test_strings_are_equal_by_code_points_and_ordered_by_them(search):
    words = ["", "Z", "a", "é", "e\u0301", "ﬁ", "\uffff", "😀"]
    entries = {word: {"role": word or None, "metadata": {"k": word}} for word in words}
    for pivot in words[1:]:
        below = {word for word in words if word < pivot}
        for field, expected in (("metadata.k", below), ("role", below - {""})):
            assert search(entries, {field: {"lt": pivot}}) == expected
            assert search(entries, {field: {"lte": pivot}}) == expected | {pivot}
            assert search(entries, {field: pivot}) == {pivot}
            assert search(entries, {field: {"in": [pivot]}}) == {pivot}


def test_a_nul_in_a_filter_is_an_ordinary_character_that_is_never_stored(search):
    entries = metadata(a="a", ab="ab")
    assert search(entries, {"metadata.k": "a\0"}) == set()
    assert search(entries, {"metadata.k": {"in": ["a\0", "ab"]}}) == {"ab"}
    assert search(entries, {"metadata.k": {"gt": "a\0"}}) == {"ab"}
    assert search(entries, {"metadata.k": {"contains": "a\0"}}) == set()


def test_contains_finds_parts_whatever_case_and_width_either_side_has(search):
    texts = {
        "german": "Die STRASSE",
        "wide": "Ｎｏ．５",
        "joined": "ﬁne",
        "decomposed": "cafe\u0301",
    }
    entries = {name: {"content": text, "metadata": {"k": text}} for name, text in texts.items()}
    for needle, names in [
        ("straße", {"german"}),
        ("no.5", {"wide"}),
        ("ＦＩＮ", {"joined"}),
        ("CAFÉ", {"decomposed"}),
        ("", set(texts)),
        ("%", set()),
        ("_", set()),
    ]:
        assert search(entries, {"content": {"contains": needle}}) == names
        assert search(entries, {"metadata.k": {"contains": needle}}) == names
        assert search(entries, MemoryFilter(content_contains=needle)) == names


WORDS = (
    "",
    "a",
    "ab",
    "a\ud7ff",
    "a\ud7ffb",
    "a\ue000",
    "b",
    "\U0010ffff",
    "\U0010ffff\U0010ffff",
    "Ａ",
)


@pytest.mark.parametrize("field", ["role", "message_id", "content", "metadata.k", "tags"])
def test_a_prefix_finds_the_texts_that_begin_with_it(search, field):
    name = field.partition(".")[0]
    held = {word or ABSENT: word for word in WORDS if word or name == "metadata"}
    shaped = {"metadata": lambda word: {"k": word}, "tags": lambda word: ["z", word]}
    shape = shaped.get(name, lambda word: word)
    entries = {key: {name: shape(word)} for key, word in held.items()}
    for prefix in WORDS:
        expected = {key for key, word in held.items() if word.startswith(prefix)}
        assert search(entries, {field: {"prefix": prefix}}) == expected
        assert search(entries, {"NOT": {field: {"prefix": prefix}}}) == set(entries) - expected


def test_a_prefix_of_a_name_is_a_range_of_its_index():
    for prefix, bound in [("a", ["a", "b"]), ("a\ud7ff", ["a\ud7ff", "a\ue000"])]:
        sql, values, is_exact = narrowed(parse_filter({"session_id": {"prefix": prefix}}))
        assert (sql, values, is_exact) == (
            "((coalesce(session_id >= ? AND session_id < ?, false)))", bound, True,
        )  # fmt: skip
    last = narrowed(parse_filter({"role": {"prefix": "\U0010ffff"}}))
    assert last == ("((coalesce(role >= ?, false)))", ["\U0010ffff"], True)


# Lists


LISTS = {
    "none": [],
    "a": ["a"],
    "ab": ["a", "b", "a"],
    "upper": ["A"],
    "longer": ["ab"],
}


def test_tags_are_found_by_exact_elements(search):
    entries = {name: {"tags": tags} for name, tags in LISTS.items()}
    expected = [
        ({"contains": "a"}, {"a", "ab"}),
        ({"contains": 1}, set()),
        ({"any": ["b", "A"]}, {"ab", "upper"}),
        ({"any": []}, set()),
        ({"all": ["a", "b"]}, {"ab"}),
        ({"all": ["a", "a"]}, {"a", "ab"}),
        ({"all": ["a", None]}, set()),
        ({"all": []}, set(entries)),
        ({"exists": True}, set(entries)),
        ({"exists": False}, set()),
        ({"eq": ["a", "b", "a"]}, {"ab"}),
        ({"eq": ["a", "a", "b"]}, set()),
        ({"eq": []}, {"none"}),
        ({"ne": ["a"]}, set(entries) - {"a"}),
        ({"in": [[], ["A"], ["unknown"]]}, {"none", "upper"}),
        ({"nin": [[], ["A"]]}, {"a", "ab", "longer"}),
        ({"in": []}, set()),
        ({"prefix": "a"}, {"a", "ab", "longer"}),
        ({"prefix": ""}, set(entries) - {"none"}),
    ]
    for test, names in expected:
        assert search(entries, {"tags": test}) == names, test


def test_the_lists_of_a_memory_filter_follow_the_table(search):
    entries = {name: {"tags": tags} for name, tags in LISTS.items()}
    assert search(entries, MemoryFilter(tags=["a", "b"])) == {"ab"}
    assert search(entries, MemoryFilter(any_tags=["b", "A"])) == {"ab", "upper"}
    assert search(entries, MemoryFilter(tags=[])) == set(entries)
    assert search(entries, MemoryFilter(any_tags=[])) == set()
    assert search(entries, MemoryFilter(types=[])) == set()
    assert search(entries, MemoryFilter(types=["fact"])) == set(entries)


def test_metadata_lists_are_found_by_exact_elements_of_the_same_kind(search):
    entries = metadata(
        empty=[],
        mixed=[1, True, None, "x", 2.5, [9], {"k": 9}],
        ints=[0, 1, 1.0],
        text="x",
        dict={"x": "x"},
    )
    expected = [
        ({"contains": "x"}, {"mixed", "text"}),
        ({"contains": 1}, {"mixed", "ints"}),
        ({"contains": 1.0}, {"mixed", "ints"}),
        ({"contains": True}, {"mixed"}),
        ({"contains": False}, set()),
        ({"contains": None}, {"mixed"}),
        ({"contains": 9}, set()),
        ({"contains": "[9]"}, set()),
        ({"any": [0, "x"]}, {"mixed", "ints"}),
        ({"any": [None, False]}, {"mixed"}),
        ({"any": []}, set()),
        ({"all": [1, 1.0]}, {"mixed", "ints"}),
        ({"all": [1, True, None, "x", 2.5]}, {"mixed"}),
        ({"all": [0, 1]}, {"ints"}),
        ({"all": [0, 1, False]}, set()),
        ({"all": []}, {"empty", "mixed", "ints"}),
    ]
    for test, names in expected:
        assert search(entries, {"metadata.k": test}) == names, test


def test_metadata_is_equal_to_lists_and_dicts_by_their_values(search):
    entries = metadata(
        pair=[1, {"a": None, "b": [True]}],
        floats=[1.0, {"b": [True], "a": None}],
        swapped=[{"a": None, "b": [True]}, 1],
        ones=[1, {"a": None, "b": [1]}],
        dict={"a": None, "b": [True]},
        empty=[],
        nothing={},
    )
    inner = {"b": [True], "a": None}
    for value, names in [
        ([1, inner], {"pair", "floats"}),
        (inner, {"dict"}),
        ([], {"empty"}),
        ({}, {"nothing"}),
        ([[]], set()),
        ({"a": None}, set()),
    ]:
        assert search(entries, {"metadata.k": {"eq": value}}) == names
        assert search(entries, {"metadata": {"k": {"in": [value, "x"]}}}) == names
        others = set(entries) | {ABSENT}
        assert search({**entries, ABSENT: {}}, {"metadata.k": {"ne": value}}) == others - names
    assert search(entries, {"metadata.k": {"contains": inner}}) == {"pair", "floats", "swapped"}
    assert search(entries, {"metadata.k": {"any": [[1], {"a": None, "b": [1]}]}}) == {"ones"}
    assert search(entries, {"metadata.k": {"all": [inner, 1]}}) == {"pair", "floats", "swapped"}


def test_a_dict_below_metadata_leads_to_values_inside_dicts(search):
    entries = {
        "oslo": {"metadata": {"address": {"city": "Oslo", "zip": 150}, "address.city": "x"}},
        "rome": {"metadata": {"address": {"city": "Rome", "in": True}}},
        "text": {"metadata": {"address": "Oslo"}},
        "list": {"metadata": {"address": [{"city": "Oslo"}]}},
        ABSENT: {},
    }
    for below, names in [
        ({"address": {"city": "Oslo"}}, {"oslo"}),
        ({"address": {"city": {"prefix": "R"}}}, {"rome"}),
        ({"address": {"city": {"in": ["Oslo", "Rome"]}, "zip": {"gte": 100}}}, {"oslo"}),
        ({"address": {"\\in": True}}, {"rome"}),
        ({"address": {"city": {"exists": False}}}, {"text", "list", ABSENT}),
        ({"address": {"city": {"ne": "Oslo"}}}, {"rome", "text", "list", ABSENT}),
        ({"address.city": "x"}, {"oslo"}),
        ({"address": {"city": {"of": None}}}, set(entries)),
    ]:
        assert search(entries, {"metadata": below}) == names


def test_a_list_in_the_metadata_equals_no_single_value(search):
    entries = metadata(list=["a"], text="a")
    assert search(entries, {"metadata.k": "a"}) == {"text"}
    assert search(entries, {"metadata.k": {"ne": "a"}}) == {"list", ABSENT}
    assert search(entries, {"metadata.k": {"gte": ""}}) == {"text"}


# Times, ids, types


def test_times_are_moments_whatever_zone_or_form_they_are_given_in(search):
    entries = {
        "early": {"created_at": NOON - HOUR},
        "noon": {},
        "late": {"created_at": NOON + HOUR},
    }
    berlin = timezone(2 * HOUR)
    forms = [NOON, NOON.replace(tzinfo=None), NOON.astimezone(berlin), "2026-05-01T12:00:00"]
    forms += ["2026-05-01T12:00Z", "2026-05-01T14:00:00.000000+02:00", "20260501T120000Z"]
    for noon in forms:
        assert search(entries, {"created_at": noon}) == {"noon"}
        assert search(entries, {"created_at": {"in": [noon]}}) == {"noon"}
        assert search(entries, {"updated_at": {"gt": noon}}) == {"late"}
        assert search(entries, MemoryFilter(created_after=noon)) == {"noon", "late"}
        assert search(entries, MemoryFilter(created_before=noon)) == {"early"}
    assert search(entries, {"created_at": "2026-05-01"}) == set()


def test_times_are_compared_to_the_microsecond_from_year_1_to_year_9999(search):
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    entries = {"first": {"created_at": first}, "last": {"created_at": last}}
    assert search(entries, {"created_at": {"gt": first}}) == {"last"}
    assert search(entries, {"created_at": {"lte": first}}) == {"first"}
    assert search(entries, {"created_at": {"lt": last}}) == {"first"}


def test_ids_types_and_statuses_are_found_in_every_form(search):
    entries = {
        "event": {"type": MemoryType.EVENT, "status": MemoryStatus.ARCHIVED},
        "plain": {},
    }
    for value in (UUID(int=1), str(UUID(int=1)), UUID(int=1).hex):
        assert search(entries, {"id": value}) == {"plain"}
        assert search(entries, {"id": {"in": [value, UUID(int=9)]}}) == {"plain"}
        assert search(entries, {"id": {"nin": [value]}}) == {"event"}
    for value in (MemoryType.EVENT, 1, "event", "EVENT"):
        assert search(entries, {"type": value}) == {"event"}
        assert search(entries, {"type": {"nin": [value]}}) == {"plain"}
    for value in (MemoryStatus.ARCHIVED, 1, "Archived"):
        assert search(entries, {"status": {"in": [value]}}) == {"event"}


# Keys


AWKWARD_KEYS = [
    "a\"b'c", "", ".", "a.b", "$", "$.a", "[0]", "#-1", "\\", '\\"', "a\\u0062", "\n\t\x01\x7f",
    "'); DROP TABLE agent_memory_entries; --", "?", ":k", "é", "e\u0301", "😀", " ", "*", '"', '""',
]  # fmt: skip


def test_every_key_finds_its_own_value_and_no_other(search):
    for key in AWKWARD_KEYS:
        others = {other: "wrong" for other in AWKWARD_KEYS if other != key}
        entries = {"right": {"metadata": {key: "v", **others}}, "others": {"metadata": others}}
        assert search(entries, {f"metadata.{key}": "v"}) == {"right"}
        assert search(entries, {f"metadata.{key}": {"exists": True}}) == {"right"}


def test_a_dotted_key_is_one_key_and_no_path(search):
    entries = {"flat": {"metadata": {"a.b": 1}}, "deep": {"metadata": {"a": {"b": 1}}}}
    assert search(entries, {"metadata.a.b": 1}) == {"flat"}
    assert search(entries, {"metadata.a": {"exists": True}}) == {"deep"}


def test_a_key_with_a_nul_is_missing_everywhere(search):
    entries = {"x": {"metadata": {"": 1, "a": 1}}, "y": {}}
    for key in ("\0", "\0a", "a\0", "a\0b"):
        assert search(entries, {f"metadata.{key}": {"exists": False}}) == {"x", "y"}
        assert search(entries, {f"metadata.{key}": 1}) == set()
        assert search(entries, {f"metadata.{key}": {"any": [1]}}) == set()


def test_values_are_bound_and_never_part_of_the_sql():
    poison = "x'; DROP TABLE agent_memory_entries; --"
    tests = [{op: poison} for op in ("eq", "ne", "gt", "lte", "contains")]
    tests += [{op: [poison]} for op in ("in", "nin")]
    asked = {"AND": [{"role": test} for test in tests] + [{f"metadata.{poison}": poison}]}
    sql, values, is_exact = narrowed(parse_filter(asked))
    assert not is_exact
    assert "DROP" not in sql
    assert sql.count("?") == len(values) == len(tests) - 1


def test_types_and_ids_are_found_through_their_indexes(tmp_path):
    path = str(tmp_path / "a.db")
    SqliteStore(path).close()
    connection = GuardedConnection(path, apsw.SQLITE_OPEN_READONLY, SQLITE)
    for asked, index in [
        (MemoryFilter(types=["fact"]), "agent_memory_entries_by_type"),
        ({"id": UUID(int=1)}, "agent_memory_entries_by_id"),
        ({"id": {"in": [UUID(int=1)]}}, "agent_memory_entries_by_id"),
    ]:
        condition, values, is_exact = narrowed(parse_filter(asked))
        assert is_exact
        sql = f"SELECT row FROM agent_memory_entries WHERE agent_id = ? AND {condition}"
        steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", ["a", *values])
        assert index in " ".join(step for *_, step in steps)
    connection.close()


def test_a_poisoned_value_finds_the_entry_that_has_it(search):
    poison = "x' OR 1=1; DROP TABLE agent_memory_entries; --\"?"
    entries = {
        "poisoned": {"role": poison, "metadata": {"k": poison}, "tags": [poison]},
        ABSENT: {},
    }
    assert search(entries, {"role": poison}) == {"poisoned"}
    assert search(entries, {"metadata.k": {"in": [poison]}}) == {"poisoned"}
    assert search(entries, {"tags": {"all": [poison]}}) == {"poisoned"}


# What goes to SQL


EXACT = {
    "type": {"eq": "fact"},
    "importance": {"gte": 0.5},
    "created_at": {"lt": "2026-01-01"},
    "role": {"in": ["user", None]},
    "sensitive": {"ne": True},
    "last_accessed_at": {"exists": False},
    "message_id": {"prefix": "m"},
    "position": {"lte": 3},
}


@pytest.mark.parametrize("field", EXACT)
def test_tests_of_columns_are_exact_and_so_is_their_negation(field):
    for asked in ({field: EXACT[field]}, {"NOT": {field: EXACT[field]}}):
        sql, _, is_exact = narrowed(parse_filter(asked))
        assert is_exact
        assert sql not in {"false", "true"}


@pytest.mark.parametrize(
    "asked",
    [
        {"content": "tea"},
        {"content": {"contains": "tea"}},
        {"role": {"contains": "tea"}},
        {"tags": {"any": ["tea"]}},
        {"metadata.k": {"exists": False}},
        {"access_count": {"lt": 2**63}},
        {"position": {"in": [1, -(2**63) - 1]}},
        {"tags": {"prefix": "tea"}},
        {"metadata": {"a": {"b": "tea"}}},
        {"importance": {"nin": [at / 1000 for at in range(MAX_NUMBERS + 1)]}},
    ],
)
def test_other_tests_are_left_to_the_core_negated_too(asked):
    left = "true", [], False
    assert narrowed(parse_filter(asked)) == narrowed(parse_filter({"NOT": asked})) == left
    some = {"role": "user", "NOT": {"OR": [{"type": "fact"}, asked]}}
    sql, values, is_exact = narrowed(parse_filter(some))
    assert (sql.count("?"), len(values), is_exact) == (2, 2, False)
    assert narrowed(parse_filter({"OR": [{"role": "user"}, asked]})) == left


def test_what_no_entry_or_every_entry_passes_is_exact_beside_any_test():
    contains = {"content": {"contains": "tea"}}
    nothing, everything = {"role": 7}, {"role": {"ne": 7}}
    assert narrowed(parse_filter({"AND": [contains, nothing]})) == ("false", [], True)
    assert narrowed(parse_filter({"OR": [contains, everything]})) == ("true", [], True)
    assert narrowed(parse_filter({"AND": [contains, everything]})) == ("true", [], False)
    assert narrowed(parse_filter({"OR": [contains, nothing]})) == ("true", [], False)


def test_the_largest_filters_stay_within_the_limits_of_sqlite(search):
    numbers = [at / 100 for at in range(MAX_NUMBERS)]
    texts = [f"{at}" for at in range(10_000)]
    deep = {"OR": [{"role": {"ne": f"{at}"}} for at in range(226)]}
    for _ in range(14):
        deep = {"NOT": {"role": {"in": texts[:99]}}, "OR": [deep, {"importance": {"in": numbers}}]}
    entries = {"x": {"importance": 0.5}, "y": {"importance": 0.75}}
    for asked, names in [
        ({"OR": [{"importance": {"in": numbers}} for _ in range(256)]}, {"x"}),
        (
            {"AND": [{"role": {"nin": texts if at == 0 else texts[:99]}} for at in range(256)]},
            {"x", "y"},
        ),
        ({"NOT": {"AND": [{"importance": {"in": numbers}} for _ in range(256)]}}, {"y"}),
        (deep, {"x", "y"}),
    ]:
        assert search(entries, asked) == names


# Order


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (MemorySortOrder.CREATED_DESCENDING, [3, 1, 2, 4, 5]),
        (MemorySortOrder.CREATED_ASCENDING, [4, 5, 1, 2, 3]),
        (MemorySortOrder.IMPORTANCE_DESCENDING, [2, 3, 4, 5, 1]),
        (MemorySortOrder.ACCESSED_DESCENDING, [1, 5, 2, 3, 4]),
        (MemorySortOrder.ACCESS_COUNT_DESCENDING, [5, 2, 4, 3, 1]),
    ],
)
def test_ties_go_to_the_newer_then_the_smaller_id_and_missing_values_come_last(
    tmp_path, order, numbers
):
    entries = [
        numbered(4, created_at=NOON - HOUR, access_count=2),
        numbered(5, created_at=NOON - HOUR, access_count=3, last_accessed_at=NOON),
        numbered(
            2, importance=0.9, access_count=2, last_accessed_at=datetime(1969, 1, 1, tzinfo=UTC)
        ),
        numbered(1, importance=0.1, last_accessed_at=NOON),
        numbered(3, created_at=NOON + HOUR),
    ]
    path = str(tmp_path / "a.db")
    store = SqliteStore(path)
    keep(store, entries)
    store.close()
    assert numbers_found(path, {}, order) == numbers


# Folding


@given(st.text(st.characters(exclude_categories=["Cs", "Cn", "Co"])))
def test_folding_is_that_of_unicodedata(text):
    composed = unicodedata.normalize("NFKC", text)
    assert fold(text) == unicodedata.normalize("NFKC", composed.casefold())


def test_folding_strips_nothing_and_reaches_a_fixed_point():
    assert fold("  “ＡＢＣ”, STRAẞE!\n") == "  “abc”, strasse!\n"
    assert fold("") == ""
    assert fold(fold("ΐ İ ǰ ℃")) == fold("ΐ İ ǰ ℃")
    assert fold("Straße " * 10_000) == "strasse " * 10_000


def test_folding_refuses_what_is_no_text():
    with pytest.raises(TypeError):
        fold(b"text")
    with pytest.raises(InvalidArgumentError, match="text has a lone surrogate at position 1"):
        fold("a\ud800")

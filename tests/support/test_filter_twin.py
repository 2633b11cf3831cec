"""The truth table of filters by hand: the twin, and what SQL narrows and the core decides."""

# ruff: noqa: RUF001, FBT003 - letters that look alike and bare booleans are the point

from datetime import timedelta, timezone
from functools import cache
from itertools import count
from uuid import UUID

import msgspec
import pytest

from mnemic.model import MemoryStatus, MemoryType
from mnemic.model.filter import parse_filter
from mnemic.store.sqlite.store import SqliteStore
from tests.support import entries, filter_twin
from tests.support.clock import MICROSECOND, NOON
from tests.support.filters import keep, narrowed_and_decided

ONE = UUID(int=1)
AGENTS = map("agent {}".format, count())


@cache
def store():
    return SqliteStore(":memory:")


@pytest.fixture(scope="module", autouse=True)
def _closed_store():
    yield
    store().close()
    store.cache_clear()


def matches(where, one):
    """Judge an entry as the twin does, after a look that SQL and the core judge so too."""
    judged, agent = filter_twin.matches(where, one), next(AGENTS)
    keep(store(), [msgspec.structs.replace(one, agent_id=agent)])
    with store()._connections.reading() as connection:
        for asked, expected in ((where, judged), ({"NOT": where}, not judged)):
            found = narrowed_and_decided(connection, agent, parse_filter(asked))
            assert bool(found) is expected, asked
    return judged


def entry(**fields):
    return entries.numbered(1, **{"content": "Tea at noon", **fields})


def holds(test, *values, key="m"):
    """Return for each value whether the test of metadata holds where it is the value."""
    return [matches({f"metadata.{key}": test}, entry(metadata={key: value})) for value in values]


@pytest.mark.parametrize("missing", [{}, {"m": None}, {"n": 1}])
@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ({"exists": False}, True),
        ({"exists": True}, False),
        (None, True),
        ({"eq": None}, True),
        ({"ne": None}, False),
        ({"eq": 1}, False),
        ({"eq": ""}, False),
        ({"eq": False}, False),
        ({"ne": 1}, True),
        ({"nin": [1, "a"]}, True),
        ({"nin": []}, True),
        ({"nin": [None]}, False),
        ({"nin": [1, None]}, False),
        ({"in": [None]}, False),
        ({"in": [1, None]}, False),
        ({"in": []}, False),
        ({"gt": 0}, False),
        ({"gte": 0}, False),
        ({"lt": 0}, False),
        ({"lte": 0}, False),
        ({"lte": None}, False),
        ({"contains": "a"}, False),
        ({"contains": ""}, False),
        ({"contains": None}, False),
        ({"any": [1]}, False),
        ({"any": []}, False),
        ({"all": [1]}, False),
        ({"all": []}, False),
        ({"prefix": ""}, False),
        ({"eq": []}, False),
        ({"ne": {}}, True),
    ],
)
def test_what_is_missing_or_null_passes_only_the_tests_that_ask_for_it(missing, test, expected):
    assert matches({"metadata.m": test}, entry(metadata=missing)) is expected
    assert matches({"NOT": {"metadata.m": test}}, entry(metadata=missing)) is not expected


def test_a_field_without_a_value_is_missing_like_a_key():
    without, with_value = entry(), entry(role="user", last_accessed_at=NOON)
    assert matches({"role": None, "last_accessed_at": {"exists": False}}, without)
    assert matches({"role": {"ne": "user"}, "expires_at": {"nin": [NOON]}}, without)
    assert not matches({"role": {"contains": ""}}, without)
    assert not matches({"last_accessed_at": {"lte": NOON}}, without)
    assert not matches({"role": None}, with_value)
    assert matches({"role": {"exists": True}, "last_accessed_at": {"ne": None}}, with_value)


def test_booleans_are_equal_to_booleans_alone():
    assert holds(True, True, False, 1, 1.0, "true") == [True, False, False, False, False]
    assert holds(1, True, 1) == [False, True]
    assert holds({"ne": 0}, False, 0) == [True, False]
    assert holds({"in": [0, "a"]}, False) == [False]
    assert holds({"nin": [True]}, 1, True) == [True, False]
    assert holds({"gt": 0}, True) == [False]
    assert holds({"contains": 1}, [True], [1.0]) == [False, True]
    assert matches({"sensitive": True}, entry(sensitive=True))
    assert not matches({"sensitive": 1}, entry(sensitive=True))
    assert matches({"sensitive": {"ne": 0}}, entry())


def test_a_nul_is_never_stored_and_poison_is_a_text_like_others():
    assert holds({"eq": "a\0"}, "a", "ab") == holds({"contains": "a\0"}, "ab", "a") == [False] * 2
    assert (
        holds({"in": ["a\0", "ab"]}, "a", "ab") == holds({"gt": "a\0"}, "a", "ab") == [False, True]
    )
    one = entry(role=POISON, tags=[POISON])
    assert matches({"role": POISON, "tags": {"all": [POISON]}}, one)
    assert not matches({"role": {"in": [POISON]}}, entry(role="x"))


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("Tea at noon", "TEA AT", True),
        ("Tea at noon", "", True),
        ("Tea at noon", "tea  at", False),
        ("Straße", "STRASSE", True),
        ("STRASSE", "ße", True),
        ("Groẞ", "gross", True),
        ("İstanbul", "i\u0307stanbul", True),
        ("İstanbul", "istanbul", False),
        ("ΟΔΟΣ", "οδος", True),
        ("cafe\u0301", "CAF\u00c9", True),
        ("ﬁsh", "FIS", True),
        ("２０ ℃", "20 °c", True),
        ("100%", "%", True),
        ("100", "%", False),
        ("a_b", "_", True),
        ("ab", "_", False),
    ],
)
def test_contains_on_a_string_is_a_substring_of_the_folded_forms(text, part, expected):
    assert matches({"content": {"contains": part}}, entry(content=text)) is expected
    assert holds({"$contains": part}, text) == [expected]
    assert matches({"speaker": {"contains": part}}, entry(speaker=text)) is expected


@pytest.mark.parametrize(
    "noon",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=-5, minutes=-30))),
        "2026-05-01T12:00:00Z",
        "2026-05-01T12:00:00",
        "2026-05-01T14:00+02:00",
        "2026-05-01T12:00:00.000000+00:00",
    ],
)
def test_times_are_iso_texts_or_datetimes_and_naive_ones_are_utc(noon):
    just_before, just_after = (
        entry(created_at=NOON - MICROSECOND),
        entry(created_at=NOON + MICROSECOND),
    )
    three = [just_before, entry(), just_after]
    for test, expected in (
        (noon, [False, True, False]),
        ({"ne": noon}, [True, False, True]),
        ({"gte": noon}, [False, True, True]),
        ({"gt": noon}, [False, False, True]),
        ({"lt": noon}, [True, False, False]),
        ({"lte": noon}, [True, True, False]),
        ({"in": [noon, None]}, [False, True, False]),
        ({"nin": [noon]}, [True, False, True]),
    ):
        assert [matches({"created_at": test}, one) for one in three] == expected
        assert [matches({"updated_at": test}, one) for one in three] == expected


def test_types_states_and_ids_have_several_spellings():
    one = entry(type=MemoryType.INSIGHT, status=MemoryStatus.ARCHIVED)
    for spelling in ("insight", "INSIGHT", 2, MemoryType.INSIGHT):
        assert matches({"type": spelling}, one)
        assert matches({"type": {"in": ["fact", spelling]}}, one)
        assert not matches({"type": {"ne": spelling}}, one)
    for spelling in ("archived", "Archived", 1, MemoryStatus.ARCHIVED):
        assert matches({"status": {"eq": spelling}}, one)
        assert not matches({"status": {"nin": [spelling]}}, one)
    for spelling in (ONE, str(ONE), ONE.hex.upper()):
        assert matches({"id": spelling}, one)
        assert not matches({"id": {"ne": spelling}}, one)
        assert not matches({"id": spelling}, entry(id=UUID(int=2)))


POISON = "x' OR 1=1; DROP TABLE agent_memory_entries; --\"?"
AWKWARD_KEYS = [
    "a.b", "a\"b'c", "", ".", "$", "$.a", "$eq", "[0]", "#-1", "\\", '\\"', "a\\u0062", " ", "*",
    "\n\t\x01\x7f", "?", ":k", "\u00e9", "e\u0301", "😀", "AND", '"', POISON,
]  # fmt: skip


def test_the_rest_of_the_name_is_one_key_whatever_it_holds():
    for key in AWKWARD_KEYS:
        assert holds(1, 1, 2, key=key) == [True, False]
        others = dict.fromkeys(set(AWKWARD_KEYS) - {key}, 1)
        assert not matches({f"metadata.{key}": {"exists": True}}, entry(metadata=others))
    for key in ("\0", "\0a", "a\0", "a\0b"):  # which no metadata has
        assert matches({f"metadata.{key}": {"exists": False}}, entry(metadata={"": 1, "a": 1}))
    nested = entry(metadata={"a": {"b": 1}, "e\u0301": 1})
    assert not matches({"metadata.a.b": 1}, nested)
    assert not matches({"metadata.\u00e9": 1}, nested)


def test_a_dict_below_metadata_leads_deeper_unless_all_of_its_keys_are_operators():
    one = entry(metadata={"a": {"b": {"c.d": 1}, "in": 2, "$x": 3, "l": [{"b": 1}]}, "in": 5})
    for where, expected in (
        ({"a": {"b": {"c.d": 1}}}, True),
        ({"a": {"b": {"c.d": {"$gte": 1, "lt": 2}}}}, True),
        ({"a": {"b": {"c.d": 1}, "l": "x"}}, False),
        ({"a": {"b": {"c": {"exists": False}}}}, True),
        ({"a": {"b": {"eq": {"c.d": 1.0}}}}, True),
        ({"a": {"b": {"c.d": {"e": 1}}}}, False),
        ({"a": {"b": {"c.d": {"e": None}}}}, True),
        ({"a": {"l": {"b": 1}}}, False),
        ({"a": {"in": 2, "b": {"exists": True}}}, True),
        ({"a": {"\\in": 2}}, True),
        ({"a": {"in": [2]}}, False),
        ({"a": {"\\$x": 3}}, True),
        ({"in": 5}, True),
        ({"in": {"in": [5, 6]}}, True),
        ({"a": {}}, True),
        ({}, True),
    ):
        assert matches({"metadata": where}, one) is expected, where


def test_a_prefix_is_exact_and_in_lists_one_of_the_texts_has_it():
    assert holds({"prefix": "Te"}, "Tea", "tea", "Te", "a Tea") == [True, False, True, False]
    assert holds({"prefix": ""}, "", "a", 1, [], [1], [""]) == [
        True, True, False, False, False, True,
    ]  # fmt: skip
    assert holds({"prefix": "caf\u00e9"}, "caf\u00e9s", "cafe\u0301s") == [True, False]
    assert holds({"prefix": "a"}, ["b", "ab"], ["b", ["a"]], {"a": 1}) == [True, False, False]
    assert matches({"content": {"prefix": "Tea at"}, "tags": {"prefix": "x/"}}, entry(tags=["x/y"]))
    assert not matches({"tags": {"prefix": "x/"}}, entry(tags=["y/x/"]))
    assert matches(
        {"message_id": {"prefix": "m"}, "position": {"gte": 2}}, entry(message_id="m1", position=2)
    )


@pytest.mark.parametrize("name", ["user_id", "agent_id", "embedding", "Role"])
def test_walls_and_unknown_names_are_not_fields(name):
    with pytest.raises(ValueError, match="is not a field"):
        matches({name: "a"}, entry())


def numbered(number, **fields):
    return entry(id=UUID(int=number), **fields)


def numbers(entries):
    return [one.id.int for one in entries]

"""What of a filter goes to SQL; tests/support/test_filter_twin.py has the truth table."""

# ruff: noqa: RUF001, S608 - texts in many scripts are the point; conditions are under test

import unicodedata
from functools import partial
from uuid import UUID

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic._core import fold
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryFilter, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import MAX_NUMBERS
from mnemic.store.sql.conditions import narrowed as narrowed_by
from mnemic.store.sql.lists import numbers_of, selected
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import added
from tests.support.entries import numbered, uid
from tests.support.filters import ABSENT

narrowed = partial(narrowed_by, SQLITE)


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


@pytest.fixture
def writer(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    added(store, "a", [numbered(number, user_id="alice") for number in range(20)])
    yield store._connections.writer
    store.close()


def plans(connection, statements):
    return [
        step
        for sql, values in statements
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
        if "agent_memory_entries" in step
    ]


@pytest.mark.parametrize("scope", [Scope("a", "alice"), Scope("a", all_users=True)])
@pytest.mark.parametrize("where", [None, {"importance": 0.5}, {"content": {"contains": "1"}}])
def test_ids_are_looked_up_and_rows_that_are_known_are_read_by_number(writer, scope, where):
    executed = []
    writer.exec_trace = lambda _, sql, values: executed.append((sql, values)) or True
    criteria = Criteria([uid(1), uid(11)], where and parse_filter(where))
    rows = numbers_of(writer, selected(writer, RowCodec(), scope, criteria))
    writer.exec_trace = None
    assert len(rows) == 2
    first, *others = plans(writer, executed)
    assert "agent_memory_entries_by_id (agent_id=? AND id=?" in first
    assert others or not scope.all_users
    assert all("USING INTEGER PRIMARY KEY (rowid=?)" in step for step in others)

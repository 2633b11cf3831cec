"""The columns that the core reads from a memory's row are the fields that Python declares."""

import pytest

from mnemic._core import (
    RECORD_COLUMNS,
    RECORD_FIELDS,
    SUMMED_COLUMNS,
    changed_sums,
    column_sum,
    link_sums,
    placed_sums,
)
from mnemic.errors import InvalidArgumentError
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import ACCESS, CHANGED, FILTERED, Kind
from mnemic.store.row_codec import CHANGED_NAMES, COLUMN_NAMES, FIELDS

STORED = {field.column: field for field in MEMORY_FIELDS if field.column is not None}
NUMBERS_OF_OTHERS = {28, 29, 30}
"""Of fingerprint, idempotency key and the key's fingerprint."""


def kind_of(field):
    return f"optional_{field.kind.value}" if field.is_optional else field.kind.value


def test_names_and_kinds_are_those_of_the_declared_fields():
    found = {column: kind for column, kind, *_ in RECORD_FIELDS}
    assert found == {column: kind_of(field) for column, field in STORED.items()}


def test_the_order_is_that_of_the_row_codec():
    names = [column for column, *_ in RECORD_FIELDS]
    assert names == list(COLUMN_NAMES) == [field.column for field in FIELDS]
    assert ("row", *names) == RECORD_COLUMNS
    assert (*names, "fingerprint", "idempotency_key", "key_fingerprint") == SUMMED_COLUMNS


def test_an_update_writes_what_is_declared_as_changed():
    changed = {column for column, field in STORED.items() if field.has(CHANGED)}
    assert set(CHANGED_NAMES) == changed
    assert "updated_at" in changed
    assert "created_at" not in changed


def test_filters_test_the_same_fields():
    found = {column: name for column, *_, name in RECORD_FIELDS if name is not None}
    assert found == {
        column: field.name
        for column, field in STORED.items()
        if field.has(FILTERED) and field.kind is not Kind.METADATA  # whose keys have names
    }


def test_all_columns_but_accesses_have_a_number_of_their_own():
    numbers = {column: number for column, _, number, _ in RECORD_FIELDS}
    without = {column for column, number in numbers.items() if number is None}
    assert without == {column for column, field in STORED.items() if field.has(ACCESS)}
    given = [number for number in numbers.values() if number is not None]
    assert len(set(given)) == len(given)
    assert not set(given) & NUMBERS_OF_OTHERS


def test_a_column_without_a_number_has_no_sum():
    for column in ("access_count", "colour"):
        with pytest.raises(InvalidArgumentError, match=f'no sum covers a column "{column}"'):
            column_sum(column, 1)
    assert column_sum("category", "a") != column_sum("scope", "a")


def test_changes_of_a_row_take_its_sums_from_its_first_to_its_last_state():
    before = (1, 10, None, None, 0, None)
    added = column_sum("status", 1) + column_sum("forgotten_at", 7)
    links = [(1, 1, 2, 1, 0.5, 9), (1, 1, 3, 1, 0.5, 9), (1, -1, 2, 1, 0.5, 9)]
    changes = [
        (*before, "a", 1, None, "status", None, 1),
        (1, 77, None, None, 1, None, "a", 1, 7, "forgotten_at", None, 7),
    ]
    ((row_sum, *others),), gains = changed_sums(changes, links, {1: 8})
    assert row_sum == (10 + added) % 2**62
    assert others == [8, *link_sums([(3, 1, 0.5, 9)]), 1]
    lost, new = (placed_sums([row])[1] for row in (before, (1, row_sum, *others[:2], 1, 7)))
    assert gains == {"a": (0, (new - lost) % 2**62)}


def test_a_deleted_row_is_not_written_and_one_without_a_sum_counts_for_nothing():
    deleted, unsummed = (1, 10, 8, None, 0, None), (2, None, 8, None, 0, None)
    nothing = (None,) * 5
    written, gains = changed_sums([(*deleted, "a", *nothing), (*unsummed, "b", *nothing)], [], {})
    assert not written
    assert gains == {"a": (-1, -placed_sums([deleted])[1] % 2**62)}

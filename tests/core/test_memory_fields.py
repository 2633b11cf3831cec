"""The columns that the core reads from a memory's row are the fields that Python declares."""

import pytest

from mnemic._core import RECORD_COLUMNS, RECORD_FIELDS, SUMMED_COLUMNS, column_sum
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

"""Errors of stored values: told without what they are."""

import pytest

from mnemic import errors
from mnemic.store.errors import ReadingStored
from tests.support.silence import said_by


def test_an_error_for_a_value_that_cannot_be_read_neither_quotes_it_nor_is_chained_to_it():
    with pytest.raises(errors.StoreCorruptError) as raised, ReadingStored("a link", "restore it"):
        raise ValueError("a secret")
    assert str(raised.value) == "a link cannot be read (ValueError); restore it"
    assert [said for said in said_by(raised.value) if "secret" in said] == []

"""Errors of SQLite: each documented result code has its typed error, with what to do."""

import apsw
import pytest

from mnemic import errors
from mnemic.store.errors import FAILURES, failure_of
from mnemic.store.sqlite.sqlite_errors import typed
from tests.support.codes import expected

RESULTS = {
    code: name
    for codes in (apsw.mapping_result_codes, apsw.mapping_extended_result_codes)
    for code, name in codes.items()
    if isinstance(code, int)
    if not name.startswith(("SQLITE_OK", "SQLITE_ROW", "SQLITE_DONE"))
    if not name.startswith(("SQLITE_NOTICE", "SQLITE_WARNING"))  # go to the log of SQLite
}
"""Result codes of errors, by number."""

OF_RESULTS = {
    "SQLITE_BUSY": errors.StoreBusyError,
    "SQLITE_CANTOPEN": errors.StoreFileError,
    "SQLITE_CORRUPT": errors.StoreCorruptError,
    "SQLITE_FULL": errors.StoreFullError,
    "SQLITE_INTERRUPT": errors.StoreCorruptError,
    "SQLITE_IOERR": errors.StoreFullError,
    "SQLITE_IOERR_CORRUPTFS": errors.StoreCorruptError,
    "SQLITE_IOERR_DATA": errors.StoreCorruptError,
    "SQLITE_IOERR_NOMEM": errors.OutOfMemoryError,
    "SQLITE_LOCKED": errors.StoreBusyError,
    "SQLITE_NOMEM": errors.OutOfMemoryError,
    "SQLITE_NOTADB": errors.StoreFileError,
    "SQLITE_PERM": errors.StoreFileError,
    "SQLITE_PROTOCOL": errors.StoreBusyError,
    "SQLITE_READONLY": errors.StoreFileError,
    "SQLITE_READONLY_DBMOVED": errors.StoreReplacedError,
}
"""The errors of result codes, or of all that extend one; all others are not expected."""


@pytest.mark.parametrize("code", RESULTS, ids=RESULTS.get)
def test_each_result_code_of_sqlite_has_its_error(code):
    error = typed(apsw.exception_for(code), "the/path")
    assert type(error) is expected(RESULTS[code], OF_RESULTS)
    assert str(error).startswith("the/path: ")
    assert "; " in str(error)  # what to do
    assert "(SQLite: " in str(error)


def test_an_error_that_a_file_system_raised_has_that_of_its_class():
    made = {
        kind: type(typed(kind("told"), "the/path"))
        for kind in (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ThreadingViolationError)
    }
    assert made == {
        apsw.FullError: errors.StoreFullError,
        apsw.IOError: errors.StoreFullError,
        apsw.CantOpenError: errors.StoreFileError,
        apsw.ThreadingViolationError: errors.StoreError,
    }


def test_each_row_of_the_table_is_that_of_a_documented_code():
    reached = {id(failure_of(code)) for code in RESULTS}
    rows = {code: row for code, row in FAILURES.items() if isinstance(code, int)}
    assert [code for code, row in rows.items() if id(row) not in reached] == []


def test_no_error_of_a_file_has_its_transaction_begun_again_by_the_table():
    assert not any(failure_of(code).is_repeated for code in RESULTS)

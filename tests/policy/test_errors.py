"""The table of errors, and the error of each exception."""

import pytest

from mnemic import errors
from mnemic.policy.payload import (
    COLLECTION_NOT_FOUND,
    ERROR_POLICIES,
    TIMEOUT,
    UNAVAILABLE,
    RetrievalError,
    error_of,
    is_expected,
    timed_out,
)

TABLE = [
    ("ZEP_UNAVAILABLE", "Memory service temporarily unavailable", "skip"),
    ("COLLECTION_NOT_FOUND", "User memory collection does not exist", "empty"),
    ("RATE_LIMITED", "Memory retrieval rate limit exceeded", "cache"),
    ("INVALID_QUERY", "Query text invalid or too long", "skip"),
    ("TIMEOUT", "Memory retrieval exceeded its time limit", "skip"),
]


@pytest.mark.requirement("R307", "R308", "R309", "R310", "R311", "C051")
def test_the_table_has_the_documented_rows_and_cannot_be_changed():
    for row, (code, message, fallback) in zip(ERROR_POLICIES.values(), TABLE, strict=True):
        assert row == ERROR_POLICIES[code]
        assert row == RetrievalError(code=code, message=message, fallback=fallback)
        assert row.to_dict() == {"code": code, "message": message, "fallback": fallback}
    with pytest.raises(TypeError):
        ERROR_POLICIES["TIMEOUT"] = UNAVAILABLE


class UnforeseenError(Exception):
    pass


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (errors.DeadlineExceededError(), TIMEOUT),
        (errors.StoreError("x"), UNAVAILABLE),
        (errors.StoreClosedError("x"), UNAVAILABLE),
        (errors.StoreBusyError("x"), UNAVAILABLE),
        (errors.StoreCorruptError("x"), UNAVAILABLE),
        (errors.EmbeddingModelMismatchError("x"), UNAVAILABLE),
        (errors.EmbeddingError("x"), UNAVAILABLE),
        (errors.EmbedderResultError("x"), UNAVAILABLE),
        (errors.OutOfMemoryError("x"), UNAVAILABLE),
        (OSError(5, "x"), UNAVAILABLE),
        (TimeoutError("of a socket"), UNAVAILABLE),
        (MemoryError(), UNAVAILABLE),
        (UnforeseenError("x"), UNAVAILABLE),
        (errors.EntryNotFoundError("x"), COLLECTION_NOT_FOUND),
        (errors.InvalidArgumentError("x"), None),
        (errors.ArgumentMismatchError("x"), None),
        (errors.FilterError("x"), None),
        (errors.EmbedderRequiredError("x"), None),
        (errors.MissingExtraError("x"), None),
        (errors.LicenseRestrictionError("x", "key", "pro", "free"), None),
    ],
)
@pytest.mark.requirement("C150")
def test_each_exception_has_its_row_or_is_raised(failure, error):
    assert error_of(failure) == error


@pytest.mark.requirement("T086")
def test_the_error_of_a_time_limit_names_the_limit():
    assert error_of(errors.DeadlineExceededError(), 0.5) == timed_out(0.5)
    assert timed_out(0.5).message == "Memory retrieval exceeded its time limit of 0.5 s"
    assert (timed_out(0.5).code, timed_out(0.5).fallback) == (TIMEOUT.code, TIMEOUT.fallback)


def test_errors_in_code_are_unexpected():
    assert is_expected(errors.StoreError("x"))
    assert is_expected(OSError())
    assert is_expected(MemoryError())
    assert not is_expected(UnforeseenError())
    assert not is_expected(TypeError())

"""Errors of PostgreSQL: each documented SQLSTATE has its typed error, with what to do."""

import pytest
from psycopg import errors as postgres

from mnemic import errors
from mnemic.store.errors import FAILURES, failure_of
from mnemic.store.postgres.postgres_errors import typed
from tests.support.codes import expected

STATES = {
    kind.sqlstate: kind
    for kind in vars(postgres).values()
    if isinstance(getattr(kind, "sqlstate", None), str)
}

OF_STATES = {
    "08": errors.StoreUnavailableError,
    "25006": errors.ReadOnlyError,
    "28": errors.StoreUnavailableError,
    "3D000": errors.StoreUnavailableError,
    "40": errors.StoreBusyError,
    "25P03": errors.StoreBusyError,
    "53": errors.StoreFullError,
    "53300": errors.StoreUnavailableError,
    "54": errors.InvalidEntryError,
    "55": errors.StoreUnavailableError,
    "55P03": errors.StoreBusyError,
    "57": errors.StoreUnavailableError,
    "57014": errors.DeadlineExceededError,
    "58": errors.StoreFullError,
    "XX001": errors.StoreCorruptError,
    "XX002": errors.StoreCorruptError,
}
"""The errors of SQLSTATEs, or of all of a class; all others are not expected."""

REPEATED = {"25P03", "26000", "40001", "40P01", "42P05"}
"""SQLSTATEs after which a transaction is begun again, beside those of lost connections."""


@pytest.mark.parametrize("code", STATES)
def test_each_sqlstate_of_postgresql_has_its_error_which_quotes_no_value(code):
    error = typed(STATES[code]("a secret"), "postgresql:///db")
    assert type(error) is expected(code, OF_STATES)
    assert str(error).startswith("postgresql:///db: ")
    assert "; " in str(error)
    assert code in str(error)
    assert "secret" not in str(error)


def test_transactions_are_begun_again_after_conflicts_and_lost_connections():
    lost = {code for code in STATES if code[:2] in {"08", "57"}} - {"57014"}
    assert {code for code in STATES if failure_of(code).is_repeated} == REPEATED | lost


def test_each_row_of_the_table_is_that_of_a_documented_code():
    reached = {id(failure_of(code)) for code in STATES}
    rows = {code: row for code, row in FAILURES.items() if isinstance(code, str)}
    assert [code for code, row in rows.items() if id(row) not in reached] == []


@pytest.mark.parametrize("cause", ["server_login_retry", "query_wait_timeout"])
def test_what_a_pooler_has_no_server_for_is_said(cause):
    said = postgres.ProtocolViolation(f"server login has been failing ({cause}) zqsecret")
    error = typed(said, "postgresql:///db")
    assert isinstance(error, errors.StoreUnavailableError)
    assert cause in str(error)
    assert "zqsecret" not in str(error)
    other = typed(postgres.ProtocolViolation("zqsecret"), "postgresql:///db")
    assert "08P01" in str(other)
    assert "zqsecret" not in str(other)

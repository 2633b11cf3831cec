"""SQLite's errors as mnemic's, with the file's name and advice."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import apsw

from mnemic.errors import MnemicError
from mnemic.store.errors import typed_error

_CODES: Final = range(1, 27)
"""Plain result codes of errors."""


@contextmanager
def typed_errors(path: str) -> Generator[None, None, None]:
    """Convert SQLite's errors to mnemic's, with the file's name and advice."""
    try:
        yield
    except apsw.Error as error:
        raise typed(error, path) from error


def typed(error: apsw.Error, path: str) -> MnemicError:
    """Return mnemic's error for an error of SQLite, with the file's name and advice."""
    code = getattr(error, "extendedresult", None)
    return typed_error(code or _code_of(type(error)), path, f"SQLite: {error}")


def _code_of(kind: type[apsw.Error]) -> int:
    """Return the result code of a class of errors: one that a file system raised has no number."""
    return next((code for code in _CODES if type(apsw.exception_for(code)) is kind), 1)

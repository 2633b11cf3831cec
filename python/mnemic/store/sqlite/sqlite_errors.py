"""SQLite's errors as mnemic's, and those for stored values of a file that cannot be read."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Final

import apsw

from mnemic.errors import MnemicError
from mnemic.model.rows import Record
from mnemic.store import errors
from mnemic.store.row_codec import RowCodec

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
    return errors.typed_error(code or _code_of(type(error)), path, f"SQLite: {error}")


def _code_of(kind: type[apsw.Error]) -> int:
    """Return the result code of a class of errors: one that a file system raised has no number."""
    return next((code for code in _CODES if type(apsw.exception_for(code)) is kind), 1)


DAMAGED = f"the file is damaged; {errors.RESTORE}"

unreadable = partial(errors.unreadable, advice=DAMAGED)


def reading_stored(what: str) -> errors.ReadingStored:
    """Convert errors of decoding stored values of a file; see `errors.ReadingStored`."""
    return errors.ReadingStored(what, DAMAGED)


def plain_records(codec: RowCodec, rows: list[Record]) -> list[Record]:
    """Return rows, each a number and columns, as the index reads them.

    Raises:
        StoreCorruptError: If the codec cannot have made them.
    """
    with reading_stored("a memory"):
        return codec.records(rows)

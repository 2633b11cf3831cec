"""Errors for stored values of a file that cannot be read."""

from contextlib import AbstractContextManager
from functools import partial

from mnemic.model.rows import Record
from mnemic.store import errors
from mnemic.store.row_codec import RowCodec

DAMAGED = f"the file is damaged; {errors.RESTORE}"

unreadable = partial(errors.unreadable, advice=DAMAGED)


def reading_stored(what: str) -> AbstractContextManager[None]:
    """Convert errors of decoding stored values of a file; see `errors.reading_stored`."""
    return errors.reading_stored(what, DAMAGED)


def plain_records(codec: RowCodec, rows: list[Record]) -> list[Record]:
    """Return rows, each a number and columns, as the index reads them.

    Raises:
        StoreCorruptError: If the codec cannot have made them.
    """
    with reading_stored("a memory"):
        return codec.records(rows)

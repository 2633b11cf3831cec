"""Errors for stored values that cannot be read."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from mnemic.errors import MnemicError, StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.model.rows import Record
from mnemic.store.row_codec import UNREADABLE, LostContentError, RowCodec

RESTORE = "keep it, and restore a backup (its -wal and -shm are not the backup's: move them away)"
"""Advice for a damaged file. A log left beside a restored backup would be mixed into it."""

DAMAGED = f"the file is damaged; {RESTORE}"


@contextmanager
def reading_stored(what: str) -> Generator[None, None, None]:
    """Convert errors of decoding stored values to StoreCorruptError.

    Args:
        what: Name of the value for the message, such as "a link".
    """
    try:
        yield
    except MnemicError:
        raise
    except UNREADABLE as error:
        raise unreadable(what, error) from None


def unreadable(what: str, error: Exception) -> StoreCorruptError:
    """Return the error for a value that cannot be read; it does not quote the value."""
    return StoreCorruptError(f"{what} cannot be read ({type(error).__name__}); {DAMAGED}")


def decoded(codec: RowCodec, rows: Iterable[Sequence[Any]]) -> list[MemoryEntry]:
    """Return the entries of rows, each the columns of the codec.

    Raises:
        StoreCorruptError: If no entry has these columns.
    """
    try:
        return list(map(codec.decode, rows))
    except MnemicError:
        raise
    except LostContentError as error:
        problem = StoreCorruptError(
            f"memory {error.entry_id} has lost a part of its content; {DAMAGED}"
        )
    except UNREADABLE as error:
        problem = unreadable("a stored memory", error)
    raise problem  # out here, for an error that is chained to it may quote the value


def plain_records(codec: RowCodec, rows: list[Record]) -> list[Record]:
    """Return rows, each a number and columns, as the index reads them.

    Raises:
        StoreCorruptError: If the codec cannot have made them.
    """
    with reading_stored("a memory"):
        return codec.records(rows)

"""SQL functions of the migrations.

They work on plain text, which is all that the versions they lead from store.
"""

from collections.abc import Callable
from typing import Any

import apsw

from mnemic._core import column_sum, placed_sums
from mnemic.errors import StoreCorruptError
from mnemic.store.row_codec import fingerprint
from mnemic.store.sqlite.checksums import MASK
from mnemic.store.sqlite.damage import DAMAGED


def register(connection: apsw.Connection) -> None:
    """Register the functions on a connection."""
    for name, function, arguments in _FUNCTIONS:
        connection.create_scalar_function(name, function, arguments, deterministic=True)
    connection.create_aggregate_function("mnemic_sum_change_without", _SumChangeWithout, 8)


def _fingerprint_stored(*arguments: Any) -> bytes:
    (content,) = arguments
    if not isinstance(content, str):
        raise StoreCorruptError(f"a content is no text; {DAMAGED}")
    return fingerprint(content)


def _column_sum(*arguments: Any) -> int:
    column, value = arguments
    return column_sum(column, value)


_FUNCTIONS: list[tuple[str, Callable[..., Any], int]] = [
    ("mnemic_fingerprint", _fingerprint_stored, 1),
    ("mnemic_column_sum", _column_sum, 2),
]


class _SumChangeWithout:
    """The change of an agent's sum when rows lose a column."""

    def __init__(self) -> None:
        self._change = 0

    def step(self, *arguments: Any) -> None:
        """Add a row: name and value of the column, then the row's `SUM_COLUMNS`."""
        column, value, row, row_sum, *others = arguments
        if row_sum is not None:
            without = (row_sum - column_sum(column, value)) & MASK
            _, before = placed_sums([(row, row_sum, *others)])
            _, after = placed_sums([(row, without, *others)])
            self._change = (self._change + after - before) & MASK

    def final(self) -> int:
        """Return the change."""
        return self._change

"""Conditions of filters as SQLite writes them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from mnemic.model.fields import Kind
from mnemic.model.timestamps import to_microseconds
from mnemic.store.filter_sql import Condition, FilterSql

MAX_NUMBERS: Final = 64
"""Numbers of a list that are bound one by one; SQLite's reading of decimals may round another way.
"""

IDS: Final = "(SELECT DISTINCT unhex(value) AS wanted FROM json_each(?))"
"""A table of ids, bound as one value; see `bound_ids`."""

_MEMBERS: Final = "(SELECT value FROM json_each(?))"
_UUIDS: Final = "(SELECT unhex(value) FROM json_each(?))"

_BOUND: Final[Mapping[Kind, Callable[[Any], object]]] = {
    Kind.UUID: lambda identifier: identifier.bytes,
    Kind.TYPE: int,
    Kind.STATUS: int,
    Kind.TIME: to_microseconds,
    Kind.FLAG: int,
}


class _Sqlite:
    mark = "?"
    never = "0"
    always = "1"
    sealed = "is_encrypted <> 0"
    holds_nul = True
    bound: Mapping[Kind, Callable[[Any], object]] = _BOUND

    def known(self, condition: str) -> str:
        return f"ifnull({condition}, 0)"

    def among(self, column: str, kind: Kind, values: Sequence[object]) -> Condition | None:
        if kind is Kind.UUID:
            return f"{column} IN {_UUIDS}", [_json(values)]
        if kind not in (Kind.WHOLE, Kind.FRACTION):
            return f"{column} IN {_MEMBERS}", [_json(values)]
        if len(values) > MAX_NUMBERS:
            return None
        return f"{column} IN ({', '.join('?' * len(values))})", [*values]


narrowed = FilterSql(_Sqlite()).narrowed


def bound_ids(ids: Sequence[UUID]) -> object:
    """Return ids as the value to bind to `IDS`."""
    return _json([entry_id.bytes for entry_id in ids])


def _json(values: Sequence[Any]) -> str:
    plain = [value.hex() if isinstance(value, bytes) else value for value in values]
    return msgspec.json.encode(plain).decode()

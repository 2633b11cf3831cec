"""Data frames of pandas from memories and hits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mnemic.errors import MissingExtraError
from mnemic.records.lines import entry_of
from mnemic.records.plain import plain

if TYPE_CHECKING:
    import pandas as pd

_TIMES = frozenset({"created_at", "updated_at", "last_accessed_at", "forgotten_at", "expires_at"})
_PARTS = ("components", "scores")
"""Fields of hits with the parts of the score: a column for each part."""


def frame_of(
    items: Sequence[Any], hit_fields: Sequence[str], entry_fields: Sequence[str]
) -> "pd.DataFrame":
    """Return a data frame with one row for each item.

    Args:
        items: Memories or hits.
        hit_fields: The first columns: fields of the hits; none for memories.
        entry_fields: The columns after them: fields of the memories.

    Raises:
        MissingExtraError: If pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - optional, and loaded where it is used
    except ImportError as error:
        raise MissingExtraError(
            "to_pandas() needs pandas, which is not installed: pip install pandas"
        ) from error
    memories = [entry_of(item) for item in items]
    columns = {name: [plain(getattr(item, name)) for item in items] for name in hit_fields}
    for name in entry_fields:
        values = [getattr(memory, name) for memory in memories]
        if name in _TIMES:
            columns[name] = pd.to_datetime(pd.Series(values, dtype="object"), utc=True)
        elif name != "embedding":
            columns[name] = [plain(value) for value in values]
        elif any(value is not None for value in values):
            columns[name] = values
    return pd.DataFrame(columns | _parts(items))


def _parts(items: Sequence[Any]) -> dict[str, list[Any]]:
    """Return a column for each part that any score has, in the order of the first that has it."""
    parts = [_parts_of(item) for item in items]
    names = dict.fromkeys(name for named in parts for name in named)
    return {name: [named.get(name) for named in parts] for name in names}


def _parts_of(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in _PARTS:
        given = getattr(item, field, None) or {}
        named = msgspec.structs.asdict(given) if isinstance(given, msgspec.Struct) else given
        found |= {f"{field}.{name}": value for name, value in named.items()}
    return found

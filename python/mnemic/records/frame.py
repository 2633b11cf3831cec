"""Data frames of pandas from memories and hits."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import msgspec

from mnemic.errors import MissingExtraError
from mnemic.records.lines import entry_of
from mnemic.records.plain import plain

_PARTS = ("components", "scores")
"""Fields of hits with the parts of the score: a column for each part."""

_TIME = "datetime64[us, UTC]"
_DTYPES = {
    "created_at": _TIME,
    "updated_at": _TIME,
    "last_accessed_at": _TIME,
    "forgotten_at": _TIME,
    "expires_at": _TIME,
    "score": "float64",
    "similarity": "float64",
    "importance": "float64",
    "position": "Int64",  # with missing values
}
"""Types of columns whose values may be missing, or be all None."""


def frame_of(items: Sequence[Any], hit_fields: Sequence[str], entry_fields: Sequence[str]) -> Any:
    """Return a data frame with one row for each item.

    Args:
        items: Memories or hits.
        hit_fields: The first columns: fields of the hits; none for memories.
        entry_fields: The columns after them: fields of the memories.

    Raises:
        MissingExtraError: If pandas is not installed.
    """
    try:
        pd = import_module("pandas")
    except ImportError as error:
        raise MissingExtraError(
            "to_pandas() needs pandas 2 or newer, which is not installed: pip install pandas"
        ) from error
    memories = [entry_of(item) for item in items]
    columns = {name: [getattr(item, name) for item in items] for name in hit_fields}
    columns |= {name: [getattr(memory, name) for memory in memories] for name in entry_fields}
    if not any(vector is not None for vector in columns["embedding"]):
        del columns["embedding"]
    made = {name: _series(pd, name, values) for name, values in columns.items()}
    parts = _parts(items).items()
    return pd.DataFrame(made | {name: pd.Series(part, dtype="float64") for name, part in parts})


def _series(pd: Any, name: str, values: list[Any]) -> Any:
    if name in _DTYPES:
        return pd.Series(values, dtype=_DTYPES[name])
    kept = values if name == "embedding" else [plain(value) for value in values]
    return pd.Series(kept) if kept else pd.Series(kept, dtype="object")


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

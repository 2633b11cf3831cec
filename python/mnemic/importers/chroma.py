"""Reads the folder of Chroma's PersistentClient, as chromadb 1.5 writes it."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from mnemic.importers.cleaning import records_of
from mnemic.importers.record import VECTORS, Chosen, Lost, Record
from mnemic.importers.sqlite_files import Database, opened

_TABLES: Final = ("collections", "segments", "embeddings", "embedding_metadata")
_DOCUMENT: Final = "chroma:document"
_FILE: Final = "chroma.sqlite3"
_ROWS: Final = """
SELECT e.id, c.name, e.embedding_id, e.created_at,
       m.key, m.string_value, m.int_value, m.float_value, m.bool_value
FROM embeddings e
JOIN segments s ON s.id = e.segment_id
JOIN collections c ON c.id = s.collection
LEFT JOIN embedding_metadata m ON m.id = e.id
ORDER BY e.id
"""
_LISTS: Final = """
SELECT key, string_value, int_value, float_value, bool_value
FROM embedding_metadata_array WHERE id = {id}
"""


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each document of all collections."""
    with opened(path / _FILE if path.is_dir() else path) as database:
        database.require(*_TABLES, maker="Chroma")
        has_lists = "embedding_metadata_array" in database.tables
        for (row, collection, name, created), rows in groupby(
            database.rows(_ROWS), key=itemgetter(0, 1, 2, 3)
        ):
            lost[VECTORS] += 1
            values = {cells[4]: _value(cells[5:]) for cells in rows if cells[4] is not None}
            if has_lists:
                values |= _lists(database, int(row))
            yield from records_of(
                values | {"content": values.pop(_DOCUMENT, None)},
                chosen,
                lost,
                f"record {name!r:.80} of {collection!r:.80}",
                f"{collection}/{name}",
                defaults={"created_at": created},
                metadata={"collection": collection, "id": name},
            )


def _lists(database: Database, row: int) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for key, *cells in database.rows(_LISTS.format(id=row)):
        found.setdefault(key, []).append(_value(tuple(cells)))
    return found


def _value(cells: tuple[Any, ...]) -> Any:
    text, whole, number, flag = cells
    if flag is not None:
        return bool(flag)
    return next((each for each in (text, whole, number) if each is not None), None)

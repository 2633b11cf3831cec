"""Reads the folder of Chroma's PersistentClient, as chromadb 1.5 writes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mnemic.importers.cleaning import records_of
from mnemic.importers.record import VECTORS, Chosen, Lost, Record
from mnemic.importers.sqlite_files import opened
from mnemic.importers.text_files import json_of

_TABLES: Final = ("collections", "segments", "embeddings", "embedding_metadata")
_LISTS: Final = "embedding_metadata_array"
_DOCUMENT: Final = "chroma:document"
_FILE: Final = "chroma.sqlite3"
_VALUE: Final = """
CASE WHEN bool_value IS NOT NULL THEN json(iif(bool_value, 'true', 'false'))
     WHEN abs(float_value) = 9e999 THEN NULL
     ELSE coalesce(CAST(string_value AS TEXT), int_value, float_value) END
"""
"""As JSON has it, which has no infinity."""

_ROWS: Final = f"""
SELECT c.name, e.embedding_id, e.created_at,
       (SELECT json_group_object(key, {_VALUE}) FROM embedding_metadata WHERE id = e.id), {{lists}}
FROM embeddings e
JOIN segments s ON s.id = e.segment_id
JOIN collections c ON c.id = s.collection
ORDER BY e.id
"""
_OF_LISTS: Final = f"""
(SELECT json_group_object(key, json(items)) FROM
  (SELECT key, json_group_array({_VALUE}) AS items FROM {_LISTS} WHERE id = e.id GROUP BY key))
"""


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each document of all collections."""
    with opened(path / _FILE if path.is_dir() else path) as database:
        database.require("Chroma", *_TABLES)
        lists = _OF_LISTS if _LISTS in database.tables else "'{}'"
        for collection, name, created, *values in database.rows(_ROWS.format(lists=lists)):
            lost[VECTORS] += 1
            key = f"{collection}/{name}"
            single, many = (json_of(each, f"{path}, {key:.80}") for each in values)
            content = single.pop(_DOCUMENT, None)
            yield from records_of(
                {**single, **many, "content": content},
                chosen,
                lost,
                key,
                key,
                defaults={"created_at": created},
                metadata={"collection": collection, "id": name},
            )

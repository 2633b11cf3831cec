"""Reads the file of LangGraph's SqliteStore, as langgraph-checkpoint-sqlite 3.1 writes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mnemic.importers.cleaning import records_of
from mnemic.importers.record import VECTORS, Chosen, Lost, Record
from mnemic.importers.sqlite_files import opened
from mnemic.importers.text_files import json_of

_ITEMS: Final = "SELECT prefix, key, value, created_at, updated_at, expires_at FROM store"


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each item; a value without a text is its own JSON."""
    with opened(path) as database:
        database.require("LangGraph's SqliteStore", "store")
        if "store_vectors" in database.tables:
            for (vectors,) in database.rows("SELECT count(*) FROM store_vectors"):
                lost[VECTORS] += vectors
        for prefix, key, value, created, updated, expires in database.rows(_ITEMS):
            name = f"{prefix}/{key}"
            found = json_of(value, f"{path}, {name:.80}")
            values = found if isinstance(found, dict) else {"value": found}
            yield from records_of(
                values,
                chosen,
                lost,
                name,
                name,
                otherwise=json.dumps(values, ensure_ascii=False) if values else None,
                defaults={"created_at": created, "updated_at": updated, "expires_at": expires},
                metadata={"namespace": str(prefix).split("."), "key": key},
            )

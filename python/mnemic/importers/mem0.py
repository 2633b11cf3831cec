"""Reads the local stores of mem0: its Qdrant folder, or its history, as mem0ai 2.2 writes them.

Qdrant keeps its points as pickles. They are read by a machine that makes no object of the names in
them, so a hostile one can name what it likes. Python's own is used, not the one in C, which would
take as much memory as a hostile pickle says.
"""

import io
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from mnemic.errors import SourceError
from mnemic.importers.cleaning import records_of
from mnemic.importers.record import VECTORS, Chosen, Lost, Record
from mnemic.importers.sqlite_files import Database, opened
from mnemic.importers.text_files import files_in

ENTITIES: Final = "entities and other collections of mem0's own"
NO_USERS: Final = "users, which the history does not have: read the Qdrant folder instead"
VERSIONS: Final = "earlier and deleted versions in the history"

_POINTS: Final = "storage.sqlite"
_HISTORY: Final = "history.db"
_OWN: Final = ("data", "hash", "text_lemmatized", "memory_type")
_VERSIONS: Final = """
SELECT memory_id, new_memory, created_at, updated_at, actor_id, role, event, count(*), max(rowid)
FROM history GROUP BY memory_id ORDER BY max(rowid)
"""
"""Beside max, SQLite takes the other columns from its row."""

_Row: TypeAlias = tuple[dict[str, Any], str, str]
"""Values, a key and a place."""


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each memory in a Qdrant folder, or in a history."""
    files = [path]
    if path.is_dir():
        found = sorted(files_in(path, (_POINTS, _HISTORY), Lost()))
        files = [file for file in found if file.name == _POINTS] or found
    if not files:
        raise SourceError(f"{path}: there is no {_POINTS} of Qdrant and no {_HISTORY} in it")
    for file in files:
        with opened(file) as database:
            read_file = _of_points if "points" in database.tables else _of_history
            for values, name, place in read_file(database, file, lost):
                yield from records_of(values, chosen, lost, place, name)


def _of_points(database: Database, path: Path, lost: Lost) -> Iterator[_Row]:
    database.require("Qdrant", "points")
    collection = path.parent.name
    for number, (blob,) in enumerate(database.rows("SELECT point FROM points"), 1):
        place = f"{collection}, point {number}"
        name, payload = _point(blob, path, place)
        if not isinstance(payload, Mapping) or collection.endswith(("entities", "migrations")):
            lost[ENTITIES] += 1
            continue
        lost[VECTORS] += 1
        values = {name: each for name, each in payload.items() if name not in _OWN}
        values["content"] = payload.get("data")
        if payload.get("memory_type") == "procedural_memory":
            values["type"] = "procedural"
        yield values, name, place


def _of_history(database: Database, _: Path, lost: Lost) -> Iterator[_Row]:
    """Yield the last version of each memory."""
    database.require("mem0", "history")
    for name, text, created, updated, actor, role, event, count, row in database.rows(_VERSIONS):
        is_deleted = event == "DELETE"
        lost[VERSIONS] += count - (not is_deleted)
        if not is_deleted:
            lost[NO_USERS] += 1
            values = {"content": text, "created_at": created, "updated_at": updated}
            yield values | {"speaker": actor, "role": role}, str(name), f"row {row}"


class _Inert:
    """Stands for each object in a pickle, and keeps its state."""

    def __init__(self, *_: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def _as_list(load: Callable[[Any], None]) -> Callable[[Any], None]:
    def load_list(unpickler: Any) -> None:
        load(unpickler)
        unpickler.stack[-1] = list(unpickler.stack[-1])

    return load_list


class _DataOnly(pickle._Unpickler):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - see the module
    def find_class(self, module: str, name: str) -> Any:
        del module, name
        return _Inert


# Tuples become lists: as a key, one nested a million times would end the process in its hash.
_TUPLES: Final = b"t\x85\x86\x87"
_DataOnly.dispatch = {
    code: _as_list(load) if code in _TUPLES else load for code, load in _DataOnly.dispatch.items()
}


def _point(blob: object, path: Path, place: str) -> tuple[str, Any]:
    """Return the id and the payload of a point."""
    try:
        point = _DataOnly(io.BytesIO(blob if isinstance(blob, bytes) else b"")).load()
        state = point.state["__dict__"]
        return str(state["id"]), state.get("payload")
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises anything
        reason = str(error) or type(error).__name__
        raise SourceError(f"{path}, {place}: it is no point of Qdrant ({reason:.200})") from None

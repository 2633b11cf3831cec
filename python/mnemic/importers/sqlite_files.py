"""Reads SQLite databases of other programs, and changes nothing of them."""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from mnemic.errors import SourceError
from mnemic.importers.text_files import reading

MAGIC: Final = b"SQLite format 3\0"
_WAL_VERSION: Final = 2
_TRIES: Final = 3
_MAX_VALUE: Final = 64 * 1024 * 1024


class Database:
    """A database that is read.

    Args:
        connection: To it.
        path: Its name, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._path = path
        self.rows: Callable[[str], Iterator[Any]] = connection.execute
        query = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'"
        self.tables = frozenset(str(name) for (name,) in self.rows(query))

    def require(self, maker: str, *tables: str) -> None:
        """Raise an error unless there are these tables, and they are whole.

        The check finds pages that are in use twice, too, with which a table would never end.
        """
        for name in tables:
            if name not in self.tables:
                raise SourceError(f"{self._path}: it has no table {name}, so {maker} made it not")
            for (found,) in self.rows(f"PRAGMA quick_check('{name}')"):
                if found != "ok":
                    raise _damaged(self._path, found)


def _damaged(path: Path, reason: object) -> SourceError:
    shown = " ".join(str(reason).split())  # what SQLite finds has several lines
    return SourceError(
        f"{path}: it cannot be read ({shown:.200}); stop what uses it, or restore it from a copy"
    )


@contextmanager
def opened(path: Path) -> Generator[Database, None, None]:
    """Open a database; if it has a log, a copy of both, as opening it would change the log."""
    with reading(path), tempfile.TemporaryDirectory(prefix="mnemic-import-") as folder:
        with path.open("rb") as file:
            header = file.read(20)
        if header[:16] != MAGIC:
            raise SourceError(f"{path}: it is no SQLite database, or it is encrypted")
        place = path.resolve()  # beside which the log is
        has_log = _WAL_VERSION in header[18:20] or any(map(Path.exists, _with_log(place)[1:]))
        if has_log:
            place = _copy(place, Path(folder))
        mode = "rw" if has_log else "ro"  # the copy takes its log in
        try:
            connection = sqlite3.connect(f"{place.as_uri()}?mode={mode}", uri=True, timeout=10)
            with closing(connection):
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
                connection.text_factory = _text
                connection.execute("PRAGMA trusted_schema = OFF")
                yield Database(connection, path)
        except (sqlite3.Error, OverflowError, MemoryError) as error:
            raise _damaged(path, error) from None


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _with_log(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-journal"))]


def _copy(path: Path, folder: Path) -> Path:
    """Copy a database with its log, and return the copy; again if it was written meanwhile."""
    files = _with_log(path)
    for _ in range(_TRIES):
        before = _signatures(files)
        for file in files:
            (folder / file.name).unlink(missing_ok=True)
            if file.is_file():  # a link to a device would have no end
                shutil.copyfile(file, folder / file.name)
        if _signatures(files) == before:
            return folder / path.name
    raise SourceError(f"{path}: it is being written; stop the program that uses it, and try again")


def _signatures(files: list[Path]) -> list[tuple[int, int] | None]:
    found = [file.stat() if file.exists() else None for file in files]
    return [None if each is None else (each.st_size, each.st_mtime_ns) for each in found]

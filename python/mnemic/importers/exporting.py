"""Writes memories for other programs: as a table, or as notes in Markdown."""

import csv
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from mnemic.errors import InvalidArgumentError, MnemicError, StoreFileError
from mnemic.importers.front_matter import written
from mnemic.importers.importing import entries_of
from mnemic.importers.sqlite_files import MAGIC
from mnemic.model import MemoryEntry

if TYPE_CHECKING:
    from mnemic import Memory

COLUMNS: Final = (
    *("id", "user_id", "created_at", "content", "type", "tags", "importance", "category"),
    *("role", "speaker", "session_id", "position", "message_id", "project_id", "source"),
    *("sensitive", "updated_at", "expires_at", "metadata"),
)

_NO_CATEGORY: Final = "user-facts"


def memories_of(
    memory: "Memory", scope: Mapping[str, Any], *, unseal: bool
) -> Iterator[MemoryEntry]:
    """Yield the memories of a scope, the newest first, without deleted ones.

    Raises:
        InvalidArgumentError: At the first one that is sealed, unless `unseal`.
    """
    for entry in entries_of(memory, **scope):
        if entry.is_encrypted and not unseal:
            raise InvalidArgumentError(
                f"memory {entry.id} is sealed, and the file would have it in plain text; "
                "--unseal permits it, and backup keeps it sealed"
            )
        yield entry


@contextmanager
def new_text(path: Path, *, overwrite: bool) -> Generator[IO[str], None, None]:
    """Open a file for its owner alone, which gets its name when it is complete and on disk.

    Raises:
        InvalidArgumentError: If there is something that is not to be replaced.
        StoreFileError: If it cannot be written.
    """
    if os.path.lexists(path) and not (overwrite and _is_replaceable(path)):
        raise InvalidArgumentError(
            f"{path} exists; choose another name, or use --overwrite to replace a file that is "
            "neither a link nor a database"
        )
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", newline="", prefix=".mnemic-", dir=path.parent, delete=False
        ) as file:
            part = Path(file.name)
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, MnemicError):  # of the memory that is read meanwhile
            raise
        raise StoreFileError(f"{path}: it cannot be written ({error.strerror})") from None


def _is_replaceable(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) != MAGIC


class _Lines(NamedTuple):
    """Ends rows by a line feed alone; the writer quotes what is in its own line end."""

    file: IO[str]

    def write(self, text: str, /) -> object:
        return self.file.write(text.removesuffix("\r\n") + "\n")


def write_table(entries: Iterable[MemoryEntry], file: IO[str]) -> int:
    """Write a row for each memory below a header; return their number.

    Lists and metadata are JSON. A cell that begins with = is written as it is, though spreadsheets
    take it for a formula.
    """
    rows = csv.writer(_Lines(file))
    rows.writerow(COLUMNS)
    count = 0
    for count, entry in enumerate(entries, 1):  # noqa: B007 - the number is returned
        values = entry.to_dict()
        rows.writerow([_cell(values[name]) for name in COLUMNS])
    return count


def _cell(value: Any) -> Any:
    if value in (None, [], {}):
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


def write_notes(
    entries: Iterable[MemoryEntry],
    folder: Path,
    *,
    overwrite: bool,
    report: Callable[[int, int | None], object],
) -> int:
    """Write a file for each memory of one user, as mnemic-files has them; return their number.

    Raises:
        InvalidArgumentError: If there is something in the folder, unless it may be replaced.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not overwrite and any(folder.iterdir()):
        raise InvalidArgumentError(f"{folder} is not empty; name a new folder, or use --overwrite")
    count = 0
    for count, entry in enumerate(entries, 1):
        with new_text(folder / f"mem_{entry.id}.md", overwrite=overwrite) as file:
            file.write(f"{written(_front(entry))}\n{entry.content}\n")
        report(count, None)
    return count


def _front(entry: MemoryEntry) -> dict[str, Any]:
    given = entry.to_dict()
    values = {
        name: given[name]
        for name in sorted(COLUMNS)
        if name != "content" and given[name] is not False and given[name] not in (None, [], {})
    }
    first = {
        "id": f"mem_{values.pop('id')}",
        "created_at": values.pop("created_at"),
        "updated_at": values.pop("updated_at"),
        "version": entry.version,
        "scope": "user",
        "category": values.pop("category", _NO_CATEGORY),
        "session_id": values.pop("session_id", "none"),
        "trigger": "export",
    }
    return first | values

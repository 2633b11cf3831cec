"""Writes memories for other programs: as a table, or as notes in Markdown."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mnemic.errors import InvalidArgumentError
from mnemic.importers.front_matter import written
from mnemic.new_files import new_file, tidy_folder

if TYPE_CHECKING:
    from mnemic.memory import Memory
    from mnemic.model import MemoryEntry

COLUMNS: Final = (
    *("id", "user_id", "created_at", "content", "type", "tags", "importance", "category"),
    *("role", "speaker", "session_id", "position", "message_id", "project_id", "source"),
    *("sensitive", "updated_at", "expires_at", "metadata"),
)

_PAGE: Final = 500
_NOT_WRITTEN: Final = frozenset(
    {
        *("agent_id", "content", "type_name", "access_count", "last_accessed_at"),
        *("is_encrypted", "scope", "status", "supersedes"),
    }
)
_NO_CATEGORY: Final = "user-facts"


def memories_of(
    memory: "Memory", scope: Mapping[str, Any], *, unseal: bool
) -> Iterator["MemoryEntry"]:
    """Yield the memories of a scope, the newest first, without deleted ones.

    Raises:
        InvalidArgumentError: At the first one that is sealed, unless `unseal`.
    """
    cursor = None
    while True:
        page = memory.list(limit=_PAGE, cursor=cursor, **scope)
        for entry in page:
            if entry.is_encrypted and not unseal:
                raise InvalidArgumentError(
                    f"memory {entry.id} is sealed, and the file would have it in plain text; "
                    "--unseal permits it, and backup keeps it sealed"
                )
            yield entry
        cursor = page.cursor
        if cursor is None:
            return


class _File:
    """Ends rows by a line feed alone; the writer quotes what is in its own line end."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def write(self, text: str, /) -> object:
        return self._write(text.removesuffix("\r\n") + "\n")


def write_table(entries: Iterable["MemoryEntry"], write: Callable[[str], object]) -> int:
    """Write a row for each memory below a header; return their number.

    Lists and metadata are JSON. A cell that begins with = is written as it is, though spreadsheets
    take it for a formula.
    """
    rows = csv.writer(_File(write), lineterminator="\r\n")
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
    entries: Iterable["MemoryEntry"],
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
        path = str(folder / f"mem_{entry.id}.md")
        with (
            new_file(path, overwrite=overwrite, is_one_of_many=True) as descriptor,
            open(descriptor, "w", encoding="utf-8", newline="", closefd=False) as file,
        ):
            file.write(f"{written(_front(entry))}\n{entry.content}\n")
        report(count, None)
    tidy_folder(str(folder))
    return count


def _front(entry: "MemoryEntry") -> dict[str, Any]:
    values = {
        name: value
        for name, value in entry.to_dict().items()
        if name not in _NOT_WRITTEN and value is not False and value not in (None, [], {})
    }
    return {
        "id": f"mem_{values.pop('id')}",
        "created_at": values.pop("created_at"),
        "updated_at": values.pop("updated_at"),
        "version": values.pop("version"),
        "scope": "user",
        "category": values.pop("category", _NO_CATEGORY),
        "session_id": values.pop("session_id", "none"),
        "trigger": "export",
    } | {name: values[name] for name in sorted(values)}

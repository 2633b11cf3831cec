"""Writes the memories of a scope as memory files."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from mnemic import MemoryEntry, MemoryType
from mnemic.errors import InvalidArgumentError
from mnemic.model import LinkType, MemoryLink, Scope
from mnemic_files.entries import (
    DEFAULT_CATEGORIES,
    EXPORT_TRIGGER,
    NO_SESSION,
    RELATIONSHIPS,
    TRIGGER_KEY,
    TYPES,
    declared_edges,
    file_id_in,
    further_keys,
    made_of,
)
from mnemic_files.errors import MemoryFileExistsError, MemoryFileFormatError
from mnemic_files.folder import FileProblem, Folder
from mnemic_files.ids import file_name
from mnemic_files.inside import Record, Report, Repository, file_version, run_blocking
from mnemic_files.memory_file import MAX_RELATED, FileScope, MemoryFile, RelatedFile

_PAGE: Final = 1000
_BATCH: Final = 256
_DEFAULT_CATEGORY: Final = "user-facts"
_DIFFERS: Final = "there is a file with this id already, and its text is another one"
_NO_DIRECTORY: Final = "there is no directory of its scope"
_SEALED: Final = (
    "memory files are plain text, and some of these memories are sealed where they are stored; "
    "export(..., unseal=True) writes them as plain text"
)


class ExportResult(Record, frozen=True, kw_only=True):
    """The outcome of an export. It is true if a file was written.

    Attributes:
        written: Ids of the files that were written.
        present: Number of memories whose files were there with the same text.
        problems: Memories that were left out, by the names of their files.
        hint: A sentence about the cause of an export of nothing, if one is likely; else None.
    """

    written: tuple[str, ...] = ()
    present: int = 0
    problems: tuple[FileProblem, ...] = ()
    hint: str | None = None

    def __bool__(self) -> bool:
        return bool(self.written)


class Export(NamedTuple):
    """A request for an export.

    Attributes:
        scope: Only its memories are written.
        include_sensitive: Whether sensitive memories are written.
        unseal: Whether sealed memories may be written in plain text.
        report: Gets the number of memories written so far and of all.
    """

    scope: Scope
    include_sensitive: bool
    unseal: bool
    report: Report


async def exported(
    repository: Repository, folders: Sequence[Folder], request: Export
) -> ExportResult:
    """Write the active and superseded memories of a scope as files; see `MemoryFiles.export`."""
    entries = await _entries(repository, request)
    if not request.unseal and any(entry.is_encrypted for entry in entries.values()):
        raise InvalidArgumentError(_SEALED)
    numbers = _versions(entries)
    written: list[str] = []
    problems: list[FileProblem] = []
    request.report(0, len(entries))
    listed = list(entries.values())
    for begin in range(0, len(listed), _BATCH):
        batch = listed[begin : begin + _BATCH]
        links = {
            each.id: await repository.linker.links(request.scope, each.id, "out", None)
            for each in batch
        }
        files = partial(_write_all, batch, links, entries, numbers, folders)
        done, failed = await run_blocking(files, repository)
        written += done
        problems += failed
        request.report(begin + len(batch), len(listed))
    for folder in folders:
        await run_blocking(folder.sync, repository)
    return ExportResult(
        written=tuple(sorted(written)),
        present=len(listed) - len(written) - len(problems),
        problems=tuple(sorted(problems, key=lambda one: (one.scope, one.name))),
        hint=None if listed else await repository.shared.user_hints.of("export", request.scope),
    )


async def _entries(repository: Repository, request: Export) -> dict[UUID, MemoryEntry]:
    """Return the memories to write, oldest first."""
    filters: dict[str, Any] = {"status": {"in": ["active", "superseded"]}}
    if not request.include_sensitive:
        filters["sensitive"] = False
    found: list[MemoryEntry] = []
    cursor: str | None = None
    while True:
        page = await repository.lister.page(
            request.scope, limit=_PAGE, cursor=cursor, filters=filters, include_deleted=False
        )
        found += page.entries
        cursor = page.cursor
        if cursor is None:
            return {entry.id: entry for entry in reversed(found)}


def _versions(entries: Mapping[UUID, MemoryEntry]) -> dict[UUID, int]:
    """Return the version of each memory: that of its file, or one more than its predecessor's."""
    numbers: dict[UUID, int] = {}
    for entry in entries.values():
        chain = {entry.id: entry}
        last: MemoryEntry | None = entry
        while last is not None and _version_of(last) is None and last.id not in numbers:
            before = entries.get(last.supersedes) if last.supersedes else None
            last = None if before is None or before.id in chain else before
            if last is not None:
                chain[last.id] = last
        number = 0
        for each in reversed(chain.values()):
            number = numbers.get(each.id) or _version_of(each) or number + 1
            numbers[each.id] = number
    return numbers


def _version_of(entry: MemoryEntry) -> int | None:
    """Return the version of the file that a memory was made of."""
    return file_version(entry) if made_of(entry) else None


def _write_all(
    batch: Sequence[MemoryEntry],
    links: Mapping[UUID, Sequence[MemoryLink]],
    entries: Mapping[UUID, MemoryEntry],
    numbers: Mapping[UUID, int],
    folders: Sequence[Folder],
) -> tuple[list[str], list[FileProblem]]:
    """Write the files of some memories; return the ids of those written, and the problems."""
    written: list[str] = []
    problems: list[FileProblem] = []
    for entry in batch:
        file_id = file_id_in(entry)
        folder = _folder_of(entry, folders)
        if folder is None:
            scope, name = _scope_of(entry), file_name(file_id)
            problems.append(FileProblem(name=name, scope=scope, reason=_NO_DIRECTORY))
            continue
        try:
            file = _file_of(entry, links[entry.id], entries, numbers[entry.id])
            if _is_written(file, folder):
                written.append(file.id)
        except (MemoryFileExistsError, MemoryFileFormatError, InvalidArgumentError) as error:
            problems.append(folder.problem(file_name(file_id), str(error)))
    return written, problems


def _is_written(file: MemoryFile, folder: Folder) -> bool:
    """Write a file; return False if it is there with the same text.

    Raises:
        MemoryFileExistsError: If it is there with another text.
        StoreError: If it cannot be written.
    """
    try:
        folder.add(file)
    except MemoryFileExistsError:
        if folder.read(file_name(file.id))[0].content != file.content:
            raise MemoryFileExistsError(_DIFFERS) from None
        return False
    return True


def _scope_of(entry: MemoryEntry) -> FileScope:
    """Return the scope of a memory's file: a memory without one is the user's."""
    return "repo" if entry.scope == "repo" else "user"


def _folder_of(entry: MemoryEntry, folders: Sequence[Folder]) -> Folder | None:
    return next((one for one in folders if one.scope == _scope_of(entry)), None)


def _file_of(
    entry: MemoryEntry,
    links: Sequence[MemoryLink],
    entries: Mapping[UUID, MemoryEntry],
    version: int,
) -> MemoryFile:
    before = entries.get(entry.supersedes) if entry.supersedes else None
    related = [
        RelatedFile(file_id_in(entries[link.to_id]), RELATIONSHIPS.get(link.type, "relates-to"))
        for link in links
        if link.type is not LinkType.SUPERSEDES and link.to_id in entries
    ]
    declared = [edge for edge in declared_edges(entry) if edge not in related]
    trigger = entry.metadata.get(TRIGGER_KEY) if made_of(entry) else None
    return MemoryFile(
        id=file_id_in(entry),
        created_at=entry.created_at,
        updated_at=max(entry.updated_at, entry.created_at),
        version=version,
        scope=_scope_of(entry),
        category=_category(entry),
        supersedes=None if before is None else file_id_in(before),
        related=tuple([*declared, *related][:MAX_RELATED]),
        session_id=entry.session_id or NO_SESSION,
        trigger=trigger if isinstance(trigger, str) and trigger.strip() else EXPORT_TRIGGER,
        content=entry.content,
        keys=further_keys(entry) | _fields(entry),
    )


def _category(entry: MemoryEntry) -> str:
    return entry.category or DEFAULT_CATEGORIES.get(entry.type, _DEFAULT_CATEGORY)


def _fields(entry: MemoryEntry) -> dict[str, Any]:
    """Return the further keys that set fields of a memory, where these are not the usual ones."""
    found: dict[str, Any] = {}
    if entry.type is not TYPES.get(_category(entry), MemoryType.FACT):
        found["type"] = str(entry.type)
    if entry.tags:
        found["tags"] = list(entry.tags)
    if entry.importance != _USUAL_IMPORTANCE:
        found["importance"] = entry.importance
    if entry.sensitive:
        found["sensitive"] = True
    return found


_USUAL_IMPORTANCE: Final = next(
    field.default for field in msgspec.structs.fields(MemoryEntry) if field.name == "importance"
)

"""Import, which checks what a reader yields, and stores it in batches."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID, uuid5

import msgspec

from mnemic.errors import EntryNotFoundError, InvalidEntryError, VersionConflictError
from mnemic.importers.cleaning import TIMES, clean_metadata, clean_text, time_of
from mnemic.importers.kinds import reader_of
from mnemic.importers.record import ALL, Chosen, Lost, Record
from mnemic.model import MemoryEntry, MemoryStatus

if TYPE_CHECKING:
    from mnemic import Memory

Progress: TypeAlias = Callable[[int, int | None], object]
"""Gets the number of memories done, and of all where it is known."""

OTHER_USERS: Final = "memories of other users than the one named"
VERSION: Final = "imported_version"
"""In the metadata of a memory that an import has changed: the version that it made."""

_NAMESPACE: Final = UUID("0d4f7a52-3c1b-5e0e-9f53-6b1f2f9c7a44")
_BATCH: Final = 256
_BATCH_CHARACTERS: Final = 4_000_000
_PAGE: Final = 500
_SHOWN: Final = 10
_REASONS: Final = 50
_STATES: Final = [state.value for state in MemoryStatus]


class ImportCounts(msgspec.Struct, kw_only=True):
    """What an import found, and what became of it, or would if it were not dry.

    Attributes:
        kind: Kind of the source.
        source: Its path.
        found: Number of memories found.
        users: Number of memories of each user; "" has those without one.
        new: Number of memories that were not stored before.
        changed: Number of memories whose texts the source has changed since an earlier import.
        present: Number of memories that an earlier import had stored as they are.
        kept: Number of memories that differ from the source, because they were changed or deleted
            where they are stored; they stay as they are.
        left_out: Numbers of records that are no memories, by reason.
        examples: Places of some of them.
        lost: Numbers of what the source has beside memories, by kind.
    """

    kind: str
    source: str
    found: int = 0
    users: dict[str, int] = msgspec.field(default_factory=dict)
    new: int = 0
    changed: int = 0
    present: int = 0
    kept: int = 0
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    examples: list[str] = msgspec.field(default_factory=list)
    lost: dict[str, int] = msgspec.field(default_factory=dict)


class Import:
    """Stores the memories of a source.

    An id is made of the kind, the user and the key in the source, or of the text where a key may
    have several, so an import that was stopped may be repeated.

    Args:
        kind: Kind of the source.
        source: Its path.
        chosen: Which of its fields are text and user, and whose memories are kept.

    Attributes:
        report: What was found and done so far.
    """

    def __init__(self, kind: str, source: Path, chosen: Chosen = ALL) -> None:
        self.report = ImportCounts(kind=kind, source=str(source))
        self._reader = reader_of(kind)
        self._source = source
        self._chosen = chosen
        self._texts: dict[int, int] = {}

    def check(self, progress: Progress) -> ImportCounts:
        """Read all of the source, and store nothing; return what was found.

        Raises:
            SourceError: If it is damaged, or of another kind.
        """
        users = Counter[str]()
        for entry in self._entries():
            users[entry.user_id or ""] += 1
            self.report.found += 1
            progress(self.report.found, None)
        self.report.users = dict(users)
        return self.report

    def compare(self, memory: "Memory | None", progress: Progress) -> ImportCounts:
        """Return what `store` would do, and store nothing; None is a memory without any."""
        for new, changed in self._compared(memory, progress):
            self.report.new += len(new)
            self.report.changed += len(changed)
        return self.report

    def store(self, memory: "Memory", progress: Progress) -> ImportCounts:
        """Store what is new, and change what the source has changed; return what was done.

        Nothing is stored of a source that is damaged. A batch is stored as a whole, and where a
        later one fails, `report` tells how many were.
        """
        for new, changed in self._compared(memory, progress):
            memory.add_many(new, on_conflict="skip")
            self.report.new += len(new)
            for stored, entry in changed:
                try:
                    _change(memory, stored, entry)
                    self.report.changed += 1
                except (EntryNotFoundError, VersionConflictError):  # somebody else changed it
                    self.report.kept += 1
        return self.report

    def _compared(
        self, memory: "Memory | None", progress: Progress
    ) -> Iterator[tuple[list[MemoryEntry], list[tuple[MemoryEntry, MemoryEntry]]]]:
        """Yield what is new of each batch, and what changed beside how it is stored."""
        report = self.check(progress)
        for batch in _batches(self._entries()):
            known = _stored(memory, batch) if memory is not None else {}
            new, changed = [], []
            for entry in batch:
                stored = known.get((entry.user_id, entry.id))
                if stored is None:
                    new.append(entry)
                elif stored.content == entry.content and not stored.is_forgotten:
                    report.present += 1
                elif stored.is_forgotten or stored.version != stored.metadata.get(VERSION, 1):
                    report.kept += 1
                else:
                    changed.append((stored, entry))
            yield new, changed
            done = report.new + report.changed + report.present + report.kept
            progress(done, report.found)

    def _entries(self) -> Iterator[MemoryEntry]:
        """Yield the memories of the source, and count what is left out from the beginning."""
        lost, left_out = Lost(), Counter[str]()
        self.report.examples = []
        self._texts.clear()
        for record in self._reader(self._source, self._chosen, lost):
            try:
                yield self._entry(record, lost)
            except ValueError as error:  # each InvalidEntryError is one
                reason = str(error)
                left_out[reason if len(left_out) < _REASONS else "for other reasons"] += 1
                if len(self.report.examples) < _SHOWN and reason != OTHER_USERS:
                    self.report.examples.append(f"{record.place:.100}: {reason}")
        self.report.lost = {kind: count for kind, count in lost.items() if count}
        self.report.left_out = dict(left_out)

    def _entry(self, record: Record, lost: Lost) -> MemoryEntry:
        content = clean_text(record.content, lost)
        fields: dict[str, Any] = {
            name: value for name, value in record.fields.items() if value is not None
        }
        fields |= {name: time_of(fields[name], lost) for name in TIMES if name in fields}
        metadata = clean_metadata(record.metadata, lost)
        metadata.pop(VERSION, None)  # of the memory that was exported
        key = clean_text(record.key, lost)
        kind = self.report.kind
        fields["user_id"] = user = self._user(fields.get("user_id"))
        own = fields.pop("id", None)
        name = json.dumps([kind, user, key or [fields, metadata]], default=str)
        identity = own or uuid5(_NAMESPACE, name)
        if not (record.is_current and self._is_first(user, identity, content)):
            identity = uuid5(_NAMESPACE, name + content)
        fields = {"source": kind, "message_id": key if key and not own else None} | fields
        return MemoryEntry(content, **fields, id=identity, metadata=metadata)

    def _is_first(self, user: str | None, identity: UUID, content: str) -> bool:
        """Return whether this run has found no other text with an id; it keeps hashes of both."""
        text = hash(content)
        return self._texts.setdefault(hash((user, identity)), text) == text

    def _user(self, own: object) -> str | None:
        if own is None or own == "":
            return self._chosen.user_id
        if isinstance(own, bool) or not isinstance(own, str | int):
            raise InvalidEntryError("its user is no text; name another field by --user-field")
        if self._chosen.user_id is not None and str(own) != self._chosen.user_id:
            raise InvalidEntryError(OTHER_USERS)
        return str(own)


def _batches(entries: Iterable[MemoryEntry]) -> Iterator[list[MemoryEntry]]:
    batch: dict[tuple[str | None, UUID], MemoryEntry] = {}
    size = 0
    for entry in entries:
        batch[entry.user_id, entry.id] = entry
        size += len(entry.content)
        if len(batch) >= _BATCH or size >= _BATCH_CHARACTERS:
            yield list(batch.values())
            batch, size = {}, 0
    if batch:
        yield list(batch.values())


def _stored(
    memory: "Memory", batch: list[MemoryEntry]
) -> dict[tuple[str | None, UUID], MemoryEntry]:
    """Return the memories with these ids, also those that no search finds, by users and ids."""
    chosen = {"id": {"in": [entry.id for entry in batch]}, "status": {"in": _STATES}}
    found = entries_of(memory, filters=chosen, include_deleted=True, all_users=True)
    return {(entry.user_id, entry.id): entry for entry in found}


def entries_of(memory: "Memory", **given: Any) -> Iterator[MemoryEntry]:
    """Yield the memories that `list` finds, page by page."""
    cursor = None
    while True:
        page = memory.list(limit=_PAGE, cursor=cursor, **given)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def _change(memory: "Memory", stored: MemoryEntry, entry: MemoryEntry) -> None:
    """Give a memory that nobody has changed what the source has of it now."""
    metadata = {**entry.metadata, VERSION: stored.version + 1}
    if entry.sensitive != stored.sensitive:  # which no update changes
        whole = msgspec.structs.replace(entry, metadata=metadata)
        memory.add_many([whole], on_conflict="replace")
        return
    memory.update(
        stored.id,
        content=entry.content,
        type=entry.type,
        importance=entry.importance,
        remove_tags=[tag for tag in stored.tags if tag not in entry.tags],
        add_tags=entry.tags,
        expires_at=entry.expires_at or "never",
        replace_metadata=metadata,
        if_version=stored.version,
        user_id=stored.user_id,
    )

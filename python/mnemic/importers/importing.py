"""Import, which checks what a reader yields, and stores it in batches."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

import msgspec

from mnemic.errors import AmbiguousIdError, InvalidEntryError
from mnemic.importers.cleaning import TIMES, clean_metadata, clean_text, time_of
from mnemic.importers.kinds import reader_of
from mnemic.importers.record import Chosen, Lost, Record
from mnemic.model import MemoryEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemic.memory import Memory

_NAMESPACE: Final = UUID("0d4f7a52-3c1b-5e0e-9f53-6b1f2f9c7a44")
_BATCH: Final = 256
_BATCH_CHARACTERS: Final = 4_000_000
_SHOWN: Final = 10
_REASONS: Final = 50

OTHER_USERS: Final = "memories of other users than the one named"


class ImportCounts(msgspec.Struct, kw_only=True):
    """What an import found, and what became of it.

    Attributes:
        kind: Kind of the source.
        source: Its path.
        found: Number of memories found.
        users: Number of memories of each user; "" has those without one.
        stored: Number of memories stored by this run.
        present: Number of memories that an earlier run had stored.
        left_out: Numbers of records that are no memories, by reason.
        examples: Places of some of them.
        lost: Numbers of what the source has beside memories, by kind.
    """

    kind: str
    source: str
    found: int = 0
    users: dict[str, int] = msgspec.field(default_factory=dict)
    stored: int = 0
    present: int = 0
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    examples: list[str] = msgspec.field(default_factory=list)
    lost: dict[str, int] = msgspec.field(default_factory=dict)


class Import:
    """Stores the memories of a source.

    An id is made of the kind, the user, the key and the text, so an import that was stopped may be
    repeated, and what changed in the source meanwhile is a memory of its own.

    Args:
        kind: Kind of the source.
        source: Its path.
        chosen: Which of its fields are text and user.
        user_id: The user of memories that name none; those of others are left out. None keeps all.

    Attributes:
        report: What was found and done so far.
    """

    def __init__(
        self,
        kind: str,
        source: Path,
        chosen: Chosen | None = None,
        user_id: str | None = None,
    ) -> None:
        self.report = ImportCounts(kind=kind, source=str(source))
        self._reader = reader_of(kind)
        self._source = source
        self._chosen = chosen or Chosen()
        self._user_id = user_id

    def check(self, progress: "Callable[[int, int | None], object]") -> ImportCounts:
        """Read all of the source, and store nothing; return what was found.

        Args:
            progress: Gets the number of memories done, and of all where it is known.

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

    def store(
        self, memory: "Memory", progress: "Callable[[int, int | None], object]"
    ) -> ImportCounts:
        """Store what is not stored yet; return what was done.

        Nothing is stored of a source that is damaged. A batch is stored as a whole, and where a
        later one fails, `report` tells how many were.
        """
        found = self.check(progress).found
        for batch in _batches(self._entries()):
            new = _missing(memory, batch)
            added = memory.add_many(new, on_conflict="skip")
            deleted = sum(entry.forgotten_at is not None for entry in added)
            self.report.stored += len(new) - deleted
            self.report.present += len(batch) - len(new) + deleted
            progress(self.report.stored + self.report.present, found)
        return self.report

    def _entries(self) -> Iterator[MemoryEntry]:
        """Yield the memories of the source, and count what is left out from the beginning."""
        lost, left_out = Lost(), Counter[str]()
        self.report.examples = []
        for record in self._reader(self._source, self._chosen, lost):
            try:
                yield self._entry(record, lost)
            except ValueError as error:  # each InvalidEntryError is one
                reason = str(error)
                left_out[reason if len(left_out) < _REASONS else "for other reasons"] += 1
                if len(self.report.examples) < _SHOWN and reason != OTHER_USERS:
                    self.report.examples.append(f"{record.place}: {reason}")
        self.report.lost = {kind: count for kind, count in lost.items() if count}
        self.report.left_out = dict(left_out)

    def _entry(self, record: Record, lost: Lost) -> MemoryEntry:
        content = clean_text(record.content, lost)
        fields: dict[str, Any] = {
            name: value for name, value in record.fields.items() if value is not None
        }
        fields |= {name: time_of(fields[name], lost) for name in TIMES if name in fields}
        metadata = clean_metadata(record.metadata, lost)
        key = clean_text(record.key, lost)
        kind = self.report.kind
        fields["user_id"] = user = self._user(fields.get("user_id"))
        if "id" not in fields:
            name = key or json.dumps([fields, metadata], default=str)
            fields["id"] = uuid5(_NAMESPACE, f"{kind}\0{user or ''}\0{name}\0{content}")
        fields = {"source": kind, "message_id": key or None} | fields
        return MemoryEntry(content, **fields, metadata=metadata)

    def _user(self, own: object) -> str | None:
        if own is None or own == "":
            return self._user_id
        if isinstance(own, bool) or not isinstance(own, str | int):
            raise InvalidEntryError("its user is no text; name another field by --user-field")
        if self._user_id is not None and str(own) != self._user_id:
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


def _missing(memory: "Memory", batch: list[MemoryEntry]) -> list[MemoryEntry]:
    """Return the memories that their own users have not stored yet."""
    ids = [entry.id for entry in batch]
    try:
        present = memory.get_many(ids, all_users=True)
    except AmbiguousIdError:  # two users have one of them
        users = {entry.user_id for entry in batch}
        present = [one for user in users for one in memory.get_many(ids, user_id=user)]
    known = {(entry.user_id, entry.id) for entry in present}
    return [entry for entry in batch if (entry.user_id, entry.id) not in known]

"""The row codec that seals entries: one sealed field for an entry, and one for each vector.

What is sealed of an entry is stored in the column `content`, in Base64, so that the checksums of
rows cover it. The other sealed columns are empty then. Scope, type, times, counts, importance and
states stay in plain text: scopes and filters of the database read them.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.crypto import Sealer
from mnemic.crypto.envelope import KEY_ID, header
from mnemic.errors import (
    InvalidArgumentError,
    KeyUnavailableError,
    SealBrokenError,
    StoreUnavailableError,
)
from mnemic.model import MemoryEntry
from mnemic.model.rows import Record
from mnemic.reporting.logs import logger
from mnemic.store.agent_keys import Keyring
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    COPIED_COLUMNS,
    SEALED_COLUMNS,
    Columns,
    EncodedRow,
    KeyedEntry,
    Place,
    RowCodec,
    UsedKey,
    fingerprint,
    fingerprints,
)
from mnemic.store.values import StoredKey

_log = logger(__name__)

_FIELD: Final = "entry"
PREFIX: Final = 12
"""Characters of Base64 for version and key id of a sealed field, which are 9 bytes."""

_ID_BYTES: Final = 16
_AT: Final[Mapping[str, int]] = {name: at for at, name in enumerate(COLUMN_NAMES)}
_AGENT, _ID, _ENCRYPTED, _CONTENT = map(
    COLUMN_NAMES.index, ("agent_id", "id", "is_encrypted", "content")
)
_SEALED: Final = tuple(_AT[name] for name in SEALED_COLUMNS)
_EMPTY: Final = {"content": "", "type_name": ""}
"""Values of sealed columns that cannot be NULL."""

_EMPTIED: Final = tuple((_AT[name], _EMPTY.get(name)) for name in SEALED_COLUMNS)
_sealed_of = itemgetter(*_SEALED)
_copied_of = itemgetter(*(_AT[name] for name in COPIED_COLUMNS))

_COPIES: Final = len(COPIED_COLUMNS)
_CONTENT_AT: Final = _COPIES + SEALED_COLUMNS.index("content")
_KEY_AT: Final = _COPIES + len(SEALED_COLUMNS)
"""Indexes in what is sealed: of the content, and of the idempotency key with its fingerprint."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[Any]).decode
_TRUE: Final = (True, 1)


class SealingRowCodec(RowCodec):
    """Seals entries that are marked as encrypted, and stores others in plain text.

    Args:
        keyring: The keys of agents. The key of an agent must have been made before an entry of it
            is encoded; see `prepare`.
    """

    seals = True

    def __init__(self, keyring: Keyring) -> None:
        super().__init__()
        self.keyring: Final = keyring

    def prepare(self, agent_id: str) -> StoredKey | None:
        """Make the key of an agent if it has none; return the stored key that seals."""
        return self.keyring.prepared(agent_id).sealing

    def check_key(self, agent_id: str, *, can_write: bool) -> None:
        """Check the keys of an agent; make one if it has none and the store can be written."""
        if can_write:
            self.keyring.prepared(agent_id)
        self.keyring.check(agent_id)

    def rows(self, entries: Sequence[KeyedEntry]) -> list[EncodedRow]:
        """Return entries as they are stored, sealed if they are marked as encrypted."""
        rows = super().rows(entries)
        places = [at for at, (entry, _) in enumerate(entries) if entry.is_encrypted]
        for at, sealed in zip(places, self._sealed([rows[at] for at in places]), strict=True):
            rows[at] = sealed
        return rows

    def _sealed(self, rows: Sequence[EncodedRow]) -> list[EncodedRow]:
        """Return rows in plain text, all of one agent, sealed."""
        if not rows:
            return []
        sealer = self._current(rows[0].columns[_AGENT])
        ids = [row.columns[_ID] for row in rows]
        fields = sealer.seal_many(list(map(_packed, rows)), ids, _FIELD)
        return [_with_field(row, sealer, field) for row, field in zip(rows, fields, strict=True)]

    def resealed(self, rows: Sequence[Columns]) -> list[EncodedRow]:
        """Return the columns of sealed rows of one agent, sealed under the current key.

        Raises:
            SealBrokenError: If one does not open.
        """
        unpacked = list(map(self._unpacked, rows))
        digests = fingerprints([known[_CONTENT_AT] for known in unpacked])
        return self._sealed(
            [
                EncodedRow(_plain_columns(columns, known), _plain_keys(digest, known))
                for columns, known, digest in zip(rows, unpacked, digests, strict=True)
            ]
        )

    def used_key(self, row: EncodedRow) -> UsedKey | None:
        """Return the idempotency key of a stored row in plain text."""
        if not row.columns[_ENCRYPTED]:
            return super().used_key(row)
        known = self._unpacked(row.columns)
        if known[_KEY_AT] is None:
            return None
        return UsedKey(known[_KEY_AT], known[_KEY_AT + 1] or fingerprint(known[_CONTENT_AT]))

    def decode(self, columns: Sequence[Any]) -> MemoryEntry:
        """Return the entry of columns.

        Raises:
            SealBrokenError: If its sealed field does not open, or belongs to another row.
        """
        return super().decode(self.opened(columns) if columns[_ENCRYPTED] else columns)

    def records(self, rows: list[Record]) -> list[Record]:
        """Return rows in plain text; those that do not open are logged and left out."""
        if not any(row[1 + _ENCRYPTED] for row in rows):
            return rows
        return list(self._records(rows))

    def _records(self, rows: list[Record]) -> Iterator[Record]:
        end = 1 + len(COLUMN_NAMES)
        for row in rows:
            if not row[1 + _ENCRYPTED]:
                yield row
                continue
            try:
                yield (row[0], *self.opened(row[1:end]), *row[end:])
            except SealBrokenError as error:
                log_broken(error)

    def other_keys(self, entry: MemoryEntry, key: str) -> Sequence[str]:
        """Return the key in plain text for a sealed entry, and its hash for another."""
        if entry.is_encrypted:
            return [key]
        sealer = self.keyring.keys(entry.agent_id).current
        return [] if sealer is None else [sealer.keyed(key).hex()]

    def lookup(self, entry: MemoryEntry) -> list[bytes]:
        """Return the fingerprints of both versions, keyed for an entry that is to be sealed."""
        plain = super().lookup(entry)
        if not entry.is_encrypted:
            return plain
        return list(map(self._current(entry.agent_id).keyed_fingerprint, plain))

    def marked(self, entry: MemoryEntry) -> MemoryEntry:
        """Return the entry, marked as encrypted if it is to be sealed; a seal is never undone.

        One that is found to be sensitive by its metadata or by the detector is marked as that too.
        """
        is_sensitive = entry.sensitive or is_sensitive_by_metadata(entry) or self._detects(entry)
        if not (is_sensitive or entry.is_encrypted or self.keyring.encryption.encrypt_all):
            return entry
        if entry.is_encrypted and entry.sensitive == is_sensitive:
            return entry
        return _with_marks(entry, is_sensitive=is_sensitive)

    def _detects(self, entry: MemoryEntry) -> bool:
        return self.keyring.encryption.detects(_texts_of(entry))

    def seal_vector(self, entry: MemoryEntry, model: str, part: int, vector: Any) -> Any:
        """Return a chunk's vector, sealed if its entry is; zeros, which stand for none, are not."""
        if not entry.is_encrypted or is_zero(bytes(vector)):
            return vector
        sealer = self._current(entry.agent_id)
        return sealer.seal(bytes(vector), entry.id.bytes, _vector_field(part), model)

    def sealed_vectors(
        self, agent_id: str, ids: Sequence[bytes], model: str, part: int, vectors: Sequence[bytes]
    ) -> list[bytes]:
        """Return the vectors of a chunk of several sealed entries of an agent, sealed."""
        sealed = self._current(agent_id).seal_many(vectors, ids, _vector_field(part), model)
        return [
            vector if is_zero(vector) else one for vector, one in zip(vectors, sealed, strict=True)
        ]

    def open_vector(self, place: Place, model: str, part: int, stored: object) -> bytes:
        """Return the bytes of a sealed vector."""
        if type(stored) is not bytes:
            raise broken(place[1], "a sealed vector cannot be read")
        if is_zero(stored):
            return stored
        return self._opened(place, stored, _vector_field(part), model)

    def opened(self, columns: Sequence[Any]) -> Columns:
        """Return the plain columns of a sealed row.

        Raises:
            SealBrokenError: If its sealed field does not open, or belongs to another row.
            WrongKeyError: If it is sealed under a key of the agent that is not given.
        """
        return _plain_columns(columns, self._unpacked(columns))

    def _unpacked(self, columns: Sequence[Any]) -> Sequence[Any]:
        """Return what is sealed of a row, as of `_packed`."""
        entry_id = columns[_ID]
        try:
            field = a2b_base64(columns[_CONTENT], strict_mode=True)
        except (TypeError, ValueError):
            raise broken(entry_id, "its sealed field cannot be read") from None
        known = _unpack(self._opened((columns[_AGENT], entry_id), field, _FIELD))
        if tuple(known[:_COPIES]) != _copied_of(columns):
            raise broken(entry_id, f"one of {', '.join(COPIED_COLUMNS)} is not as it was stored")
        return known

    def unopened(self, place: Place) -> SealBrokenError:
        """Return the error of a row whose seal is broken."""
        return broken(place[1], "its sealed field is damaged, or was sealed for another row")

    def _current(self, agent_id: str) -> Sealer:
        sealer = self.keyring.keys(agent_id).current
        if sealer is None:
            raise KeyUnavailableError(
                f"agent {agent_id!r} has no key any more: it was destroyed; open the memory again"
            )
        return sealer

    def _opened(self, place: Place, field: bytes, name: str, model: str = "") -> bytes:
        """Return the plain bytes of a sealed field; one of a key that was recreated opens too."""
        agent_id, entry_id = place
        sealer = self._sealer_of(agent_id, entry_id, field)
        try:
            return sealer.open(field, entry_id, name, model)
        except SealBrokenError as error:
            now = self._sealer_now(agent_id, sealer.key_id)
            if now is None or now is sealer:
                raise error from None
            return now.open(field, entry_id, name, model)

    def _sealer_now(self, agent_id: str, key_id: bytes) -> Sealer | None:
        with suppress(StoreUnavailableError):  # then the keys are those that were read before
            return self.keyring.refreshed(agent_id).sealers.get(key_id)
        return None

    def _sealer_of(self, agent_id: str, entry_id: bytes, field: bytes) -> Sealer:
        key_id = field[KEY_ID]
        sealer = self.keyring.sealer_of(agent_id, key_id)
        if sealer is None:
            raise broken(entry_id, "it is sealed under no key of its agent")
        return sealer


def sealing_codec_of(codec: RowCodec) -> SealingRowCodec:
    """Return a codec that seals.

    Raises:
        InvalidArgumentError: If this one does not.
    """
    if isinstance(codec, SealingRowCodec):
        return codec
    raise InvalidArgumentError(
        "the memory was opened without encryption, and has no key to replace; open it with "
        "encryption=Encryption(key=...)"
    )


def sealed_prefix(key_id: bytes) -> str:
    """Return how the column `content` of entries begins that are sealed under a key."""
    # Of 9 bytes, so that no character mixes others in.
    return b2a_base64(header(key_id), newline=False).decode()


def is_zero(vector: bytes) -> bool:
    """Return whether a vector is of zeros, which stand for none."""
    return bool(vector) and not vector.strip(b"\0")


def _vector_field(part: int) -> str:
    return f"embedding {part}"


def is_sensitive_by_metadata(entry: MemoryEntry) -> bool:
    """Return whether metadata says that an entry is sensitive."""
    value = entry.metadata.get("sensitive")
    if isinstance(value, str):
        return value.strip().casefold() == "true"
    return isinstance(value, int) and value in _TRUE


def broken(entry_id: bytes, reason: str) -> SealBrokenError:
    """Return the error of a sealed row that is not as it was stored."""
    entry = UUID(bytes=entry_id) if len(entry_id) == _ID_BYTES else None
    return SealBrokenError(f"memory {entry}: {reason}; restore a backup, or delete it", entry)


def log_broken(error: SealBrokenError) -> None:
    """Log that an entry could not be opened."""
    _log.error("Failed to decrypt memory entry %s: %s", error.entry_id, error)


# What is sealed of a row is a list: copies of plain columns, sealed columns, idempotency key, and
# the fingerprint that it came with if it is not that of the content. Later versions append to it.


def _packed(row: EncodedRow) -> bytes:
    """Return what is sealed of a row in plain text."""
    own, key, of_key = row.more
    of_key = None if of_key == own else of_key
    return _pack((*_copied_of(row.columns), *_sealed_of(row.columns), key, of_key))


def _plain_columns(columns: Sequence[Any], known: Sequence[Any]) -> Columns:
    """Return the columns of a sealed row with what was sealed of it."""
    opened = list(columns)
    for at, value in zip(_SEALED, known[_COPIES:_KEY_AT], strict=True):
        opened[at] = value
    return tuple(opened)


def _plain_keys(fingerprint: bytes, known: Sequence[Any]) -> tuple[bytes, str | None, bytes | None]:
    key, of_key = known[_KEY_AT : _KEY_AT + 2]
    return fingerprint, key, None if key is None else of_key or fingerprint


def _with_field(row: EncodedRow, sealer: Sealer, field: bytes) -> EncodedRow:
    """Return a row in plain text with a sealed field in place of what was sealed of it."""
    columns = list(row.columns)
    for at, empty in _EMPTIED:
        columns[at] = empty
    columns[_CONTENT] = b2a_base64(field, newline=False)
    own, key, of_key = row.more
    more = (
        sealer.keyed_fingerprint(own),
        None if key is None else sealer.keyed(key).hex(),
        None if of_key is None else sealer.keyed_fingerprint(of_key),
    )
    return EncodedRow(tuple(columns), more, row.columns)


def _with_marks(entry: MemoryEntry, *, is_sensitive: bool) -> MemoryEntry:
    marked = copy(entry)
    force_setattr(marked, "is_encrypted", True)  # noqa: FBT003 - a field's value
    force_setattr(marked, "sensitive", is_sensitive)
    return marked


def _texts_of(entry: MemoryEntry) -> Iterator[str]:
    """Yield what a detector looks at: every text that is sealed."""
    yield entry.content
    yield from entry.tags
    names = (entry.speaker, entry.role, entry.category, entry.scope, entry.source, entry.message_id)
    yield from (name for name in names if name is not None)
    yield from _texts_in(entry.metadata)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts_in(part)

"""Row codec: what is stored of an entry, and the entry of what is stored. Free of any database.

A codec alone reads and writes content, tags, metadata and fingerprints, and measures contents for
the quota; a store keeps what it is given. Other columns stay as they are: scopes, filters and
indexes of the database read them.
"""

import copy
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter, methodcaller
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID, SafeUUID

import msgspec
from msgspec.structs import force_setattr

from mnemic._core import RECORD_COLUMNS, fingerprint_digests
from mnemic.arrays import Float32Array, np
from mnemic.errors import InvalidEntryError, KeyUnavailableError, MnemicError
from mnemic.model import MemoryEntry, MemoryStatus, MemoryType, validation
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import CHANGED, Kind, MemoryField
from mnemic.model.rows import Record
from mnemic.model.timestamps import EPOCH, from_microseconds, to_microseconds
from mnemic.model.validation import MAX_CONTENT_BYTES, MAX_METADATA_DEPTH
from mnemic.records import NumberedEnum
from mnemic.store.values import StoredKey

Columns: TypeAlias = tuple[Any, ...]

COLUMN_NAMES: Final = RECORD_COLUMNS[1:]
"""Stored names of an entry's columns, in the order of a codec and of the index's records."""

_BY_COLUMN = {field.column: field for field in MEMORY_FIELDS}
FIELDS: Final = tuple(_BY_COLUMN[column] for column in COLUMN_NAMES)
"""The field of each column."""

CHANGED_FIELDS: Final = tuple(field for field in FIELDS if field.has(CHANGED))
"""The fields that an update may change."""

CHANGED_NAMES: Final = tuple(str(field.column) for field in CHANGED_FIELDS)
"""Their stored names, in the order of `changed_columns`."""

_changed_of = itemgetter(*map(FIELDS.index, CHANGED_FIELDS))

ENCRYPTED: Final = 1 + COLUMN_NAMES.index("is_encrypted")
"""Index of the mark of sealed entries in a record, or in any row that begins with its number."""

_CONTENT: Final = COLUMN_NAMES.index("content")

ENTRY_ID: Final = 1 + COLUMN_NAMES.index("id")
"""Index of an entry's id in the same."""

SEALED_COLUMNS: Final = (
    *("content", "metadata", "tags", "speaker", "category", "source", "role", "scope"),
    *("message_id", "type_name"),
)
"""Stored names of the columns whose values a codec that seals puts into the sealed field."""

COPIED_COLUMNS: Final = ("user_id", "is_sensitive", "created_at")
"""Plain columns of which a copy is sealed: a row given to another user does not open."""

_FINGERPRINT_BYTES: Final = 16  # 128 bits: two of 2**32 texts collide with probability 2**-65

Place: TypeAlias = tuple[str, bytes]
"""Agent and id of an entry."""

UNREADABLE: Final = (
    ArithmeticError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.DecodeError,
)
"""Errors of decoding a value that cannot have been stored; a message may quote the value."""


class UsedKey(NamedTuple):
    """An idempotency key in plain text.

    Attributes:
        key: The key.
        fingerprint: Fingerprint of the content that it came with, in plain text; None is that of
            the entry that it goes with.
    """

    key: str
    fingerprint: bytes | None = None


KeyedEntry: TypeAlias = tuple[MemoryEntry, UsedKey | None]
"""An entry, and the idempotency key that it came with."""


class EncodedRow(NamedTuple):
    """An entry as it is stored, without its vectors.

    Attributes:
        columns: In the order of `COLUMN_NAMES`.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        plain: The columns in plain text; empty for a row that was read.
    """

    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
    plain: Columns = ()


class LostContentError(ValueError):
    """A part of a content was lost.

    Attributes:
        entry_id: Id of the entry.
    """

    def __init__(self, entry_id: UUID) -> None:
        super().__init__(f"memory {entry_id} has lost a part of its content")
        self.entry_id = entry_id


def encoded_row(row: Sequence[Any]) -> EncodedRow:
    """Return a row that begins with number, columns and keys as a codec made it."""
    keys = 1 + len(COLUMN_NAMES)
    return EncodedRow(tuple(row[1:keys]), tuple(row[keys : keys + 3]))


def sealed_ids(rows: Iterable[Sequence[Any]]) -> dict[int, bytes]:
    """Return the ids of the sealed rows among rows that begin with number and columns."""
    return {row[0]: row[ENTRY_ID] for row in rows if row[ENCRYPTED]}


class RowCodec:
    """What a store keeps of an entry, and back; this one keeps every field in plain text.

    A codec is immutable, and safe from any thread. Decoding raises one of `UNREADABLE` for values
    that it cannot have made; a store turns that into its own error.

    Attributes:
        seals: Whether columns of entries that are marked as encrypted are unreadable.
        content_size_sql: SQL expression for the bytes that the content of a row counts in the
            quota: statistics and deletions need not read contents then.
        encode: Returns the columns of an entry in plain text.
    """

    seals = False
    content_size_sql = "octet_length(content)"

    def __init__(self) -> None:
        self.encode, self._decode = _functions()

    def prepare(self, agent_id: str) -> StoredKey | None:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - needs no key
        """Make what encoding entries of an agent needs; return the key that seals, if any does.

        It may write to the store, and must not be called in a transaction.
        """
        return None

    def check_key(self, agent_id: str, *, can_write: bool) -> None:  # pyright: ignore[reportUnusedParameter]
        """Check the keys of an agent; make one if it has none and the store can be written."""

    def rows(self, entries: Sequence[KeyedEntry]) -> list[EncodedRow]:
        """Return entries as they are stored, each with the idempotency key that it came with.

        Fingerprints are equal for equivalent texts, of sealed entries of one agent or of others.

        Raises:
            InvalidEntryError: If content, tags and metadata together are larger than 10 MB.
        """
        digests = fingerprints([entry.content for entry, _ in entries])
        rows = [self.encode(entry) for entry, _ in entries]
        return [
            EncodedRow(
                columns, (digest, None, None) if key is None else _keys(digest, key), columns
            )
            for (_, key), digest, columns in zip(entries, digests, rows, strict=True)
        ]

    def used_key(self, row: EncodedRow) -> UsedKey | None:
        """Return the idempotency key of a stored row in plain text; None without one.

        A content that is still the one that the key came with has a fingerprint of this version.
        """
        own, key, of_key = row.more
        if key is None or of_key is None:
            return None
        return UsedKey(key, fingerprint(row.columns[_CONTENT]) if of_key == own else of_key)

    def decode(self, columns: Sequence[Any]) -> MemoryEntry:
        """Return the entry of the columns of `rows`.

        Content, tags and metadata are as they were stored or an error; a content changed into
        another text is not detected.
        """
        return self._decode(columns)

    def decode_tags(self, stored: object) -> tuple[str, ...]:
        """Return the tags of the column `tags` of an entry that is not sealed."""
        return () if stored is None else _to_tags(_text(stored))

    def records(self, rows: list[Record]) -> list[Record]:
        """Return rows, each a number and columns, as the index reads them: in plain text.

        Rows that the codec cannot open are left out. Rows of a filter have placeholders in the
        columns that it does not test, None in those of tags and metadata and an empty content; what
        opening a row needs is always as it is stored.
        """
        return [row for row in rows if not row[ENCRYPTED]]

    def other_keys(self, entry: MemoryEntry, key: str) -> Sequence[str]:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - none
        """Return the other forms of an idempotency key.

        A memory that was stored with the key may have been sealed since, or not have been sealed.
        """
        return ()

    def lookup(self, entry: MemoryEntry) -> list[bytes]:
        """Return the fingerprints under which rows of the same text are stored.

        Those of an earlier version are among them, so that a row may have another text.
        """
        return [fingerprint(entry.content), earlier_fingerprint(entry.content)]

    def marked(self, entry: MemoryEntry) -> MemoryEntry:
        """Return the entry, marked as encrypted if it is to be sealed.

        Raises:
            KeyUnavailableError: If it is marked already, and there is no key.
            DetectorError: If a detector of sensitive texts fails.
        """
        if entry.is_encrypted:
            raise self.unopened((entry.agent_id, entry.id.bytes))
        return entry

    def seal_vector(self, entry: MemoryEntry, model: str, part: int, vector: Any) -> Any:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - stored as it is
        """Return a chunk's vector, a buffer, as it is stored of an entry."""
        return vector

    def open_vector(self, place: Place, model: str, part: int, stored: object) -> bytes:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - never
        """Return the bytes of a chunk's vector of what `seal_vector` made for an encrypted entry.

        Raises:
            SealBrokenError: If it did not make it.
            KeyUnavailableError: If there is no key.
        """
        raise self.unopened(place)

    def unopened(self, place: Place) -> MnemicError:
        """Return the error of a sealed row that cannot be opened."""
        return KeyUnavailableError(
            f"memory {uuid_of(place[1])} of agent {place[0]!r} is sealed, and there is no key; "
            "open the memory with encryption=Encryption(key=...)"
        )

    def stored_content_size(self, stored: object) -> int:
        """Return the bytes that a column `content` counts in the quota, 0 for what is none."""
        if isinstance(stored, bytes):
            return len(stored)
        return len(stored.encode()) if isinstance(stored, str) else 0


def _keys(fingerprint: bytes, used: UsedKey) -> tuple[bytes, str, bytes]:
    return fingerprint, used.key, used.fingerprint or fingerprint


def changed_columns(columns: Columns) -> Columns:
    """Return those of an entry's columns that an update may change."""
    changed: Columns = _changed_of(columns)
    return changed


def with_changed(entry: MemoryEntry, changed: MemoryEntry) -> MemoryEntry:
    """Return the next version of an entry, with what an update may change of another state.

    One that became sensitive, or sealed, stays so.
    """
    kept = copy.copy(entry)
    for field in CHANGED_FIELDS:
        force_setattr(kept, field.name, getattr(changed, field.name))
    force_setattr(kept, "sensitive", entry.sensitive or changed.sensitive)
    force_setattr(kept, "is_encrypted", entry.is_encrypted or changed.is_encrypted)
    force_setattr(kept, "version", next_version(entry.version))
    return kept


def next_version(version: int) -> int:
    """Return the version after this one; the largest number that fits stays."""
    return min(version, _MAX_INT64 - 1) + 1


def fingerprint(content: str) -> bytes:
    """Return a content's fingerprint, equal for equivalent texts; as `mnemic.model.fingerprint`."""
    return fingerprints([content])[0]


def earlier_fingerprint(content: str) -> bytes:
    """Return a content's fingerprint of version 1, which took raised digits for others."""
    return fingerprint(unicodedata.normalize("NFKC", content))


def fingerprints(contents: list[str]) -> list[bytes]:
    """Return the fingerprint of each content."""
    return [digest[:_FINGERPRINT_BYTES] for digest in fingerprint_digests(contents)]


def exact_digest(data: bytes) -> str:
    """Return a digest of 64 hexadecimal characters that every byte changes.

    It is the SHA-256 of the bytes in hexadecimal, which are their own normal form: `hashlib` loads
    OpenSSL, a fiftieth of the time in which a command searches.
    """
    return fingerprint_digests([data.hex()])[0].hex()


def check_size(entry: MemoryEntry) -> None:
    """Check that content, tags and metadata of an entry can be stored.

    Raises:
        InvalidEntryError: If they are larger than 10 MB together.
    """
    _texts_of(entry)


def vector_of(blob: object) -> Float32Array:
    """Return a stored vector.

    Raises:
        ValueError: If it is not a vector, or has a component that is not finite.
    """
    if type(blob) is not bytes or not blob:
        raise ValueError("a vector that is none")
    vector = np.frombuffer(blob, dtype="<f4")
    if not np.isfinite(vector).all():
        raise ValueError("a vector with a component that is no number")
    return vector


def text_of(stored: object) -> str | None:
    """Return a stored text, None for none; raise ValueError if it is something else."""
    return None if stored is None else _text(stored)


def uuid_of(data: object) -> UUID:
    """Return UUID(bytes=data) in a quarter of the time, which is half that of reading an entry.

    Raises:
        ValueError: If it does not have 16 bytes.
    """
    if type(data) is not bytes or len(data) != _UUID_BYTES:
        raise ValueError("an id that has not 16 bytes")
    made = UUID.__new__(UUID)
    _set_number(made, int.from_bytes(data, "big"))
    _set_safety(made, _UNKNOWN)
    return made


_MAX_INT64 = 2**63 - 1
_UUID_BYTES = 16
_UNKNOWN = SafeUUID.unknown  # a member of an enumeration takes time to look up
_set_number = UUID.__dict__["int"].__set__
_set_safety = UUID.__dict__["is_safe"].__set__
_to_json = msgspec.json.Encoder().encode


def _texts_of(entry: MemoryEntry) -> tuple[str | None, str | None]:
    """Return tags and metadata in their stored form."""
    if not entry.tags and not entry.metadata:  # and a content alone is never too large
        return None, None
    tags = _to_json(entry.tags) if entry.tags else b""
    metadata = _to_json(entry.metadata) if entry.metadata else b""
    if len(tags) + len(metadata) + len(entry.content.encode()) > MAX_CONTENT_BYTES:
        raise InvalidEntryError(
            f"memory {entry.id}: content, tags and metadata together are larger than 10 MB; keep "
            "large things elsewhere, and their place in metadata"
        )
    return tags.decode() or None, metadata.decode() or None


# Readers of stored values


def _content(text: Any) -> str:
    if type(text) is not str or len(text) > MAX_CONTENT_BYTES:
        raise ValueError("a content that is no text, or too long")
    return text


def _fraction(number: Any) -> float:
    if not 0 <= number <= 1:
        raise ValueError("a number that is not from 0 to 1")
    return float(number)


def whole(number: Any) -> int:
    """Return a stored number; raise ValueError if it is not whole, or not from 0 to 2**63 - 1."""
    if type(number) is not int or not 0 <= number <= _MAX_INT64:
        raise ValueError("a number that is not whole, below 0, or of more than 64 bits")
    return number


def _text(text: Any) -> str:
    if type(text) is not str or "\0" in text:
        raise ValueError("a field that is no text")
    return text


def _metadata(text: Any) -> dict[str, Any]:
    metadata = _to_object(text)
    is_flat = text.count("{") + text.count("[") <= MAX_METADATA_DEPTH
    if is_flat and not _ODD.search(text):
        return metadata
    try:
        return validation.metadata(metadata)
    except InvalidEntryError:  # whose message has a key of it
        raise ValueError("metadata that cannot have been stored") from None


_to_tags = msgspec.json.Decoder(tuple[str, ...]).decode
_to_object = msgspec.json.Decoder(dict[str, Any]).decode
_ODD = re.compile(r"\d{16}|[eE]\+?\d{3}|\\u0000")
"""May be a number that is too large, or a NUL character."""

_FLAGS = {0: False, 1: True}
_READ: dict[Kind, Callable[[Any], object]] = {
    Kind.CONTENT: _content,
    Kind.NAME: _text,
    Kind.TYPE_NAME: _text,
    Kind.UUID: uuid_of,
    Kind.TIME: from_microseconds,
    Kind.WHOLE: whole,
    Kind.FRACTION: _fraction,
    Kind.FLAG: _FLAGS.__getitem__,
    Kind.TYPE: dict(enumerate(MemoryType)).__getitem__,
    Kind.STATUS: dict(enumerate(MemoryStatus)).__getitem__,
    Kind.TAGS: _to_tags,
    Kind.METADATA: _metadata,
}


# Functions over all columns. A loop over tables takes twice as long as statements in a row, which
# are made from the declarations when the first codec is.


_WRITE: Final = {
    Kind.UUID: "{}.bytes",
    Kind.TIME: "to_microseconds({})",
    Kind.FLAG: "int({})",
    Kind.TYPE: "{}.number",
    Kind.STATUS: "{}.number",
}
"""Expressions of the kinds that are stored in another form; tags and metadata go together."""

_WRITTEN_APART: Final = {"created_at", "updated_at", "tags", "metadata"}
_READ_APART: Final = {"updated_at", "metadata"}

_ENCODE: Final = """
def encode(entry):
    created_at = to_microseconds(entry.created_at)
    is_unchanged = entry.updated_at is entry.created_at
    updated_at = created_at if is_unchanged else to_microseconds(entry.updated_at)
    tags, metadata = texts_of(entry)
    return ({values})
"""
_DECODE: Final = """
def decode(columns):
    ({names}) = columns
    entry = copy_of(BLANK)
    {statements}
    is_unchanged = of_updated_at == of_created_at
    set_field(entry, "updated_at", entry.created_at if is_unchanged else read_time(of_updated_at))
    set_field(entry, "metadata", {{}} if of_metadata is None else read_metadata(of_metadata))
    if NUL in of_content:
        raise LostContentError(entry.id)
    return entry
"""


@cache
def _functions() -> tuple[Callable[[MemoryEntry], Columns], Callable[[Sequence[Any]], MemoryEntry]]:
    """Return the functions that encode and decode all columns."""
    statements = [_reading(field) for field in FIELDS if field.name not in _READ_APART]
    source = _ENCODE.format(values=", ".join(map(_writing, FIELDS))) + _DECODE.format(
        names=", ".join(f"of_{field.name}" for field in FIELDS),
        statements="\n    ".join(statements),
    )
    names: dict[str, Any] = {
        "to_microseconds": to_microseconds,
        "texts_of": _texts_of,
        "copy_of": methodcaller("__copy__"),
        # Copying and filling it takes a third of the time that checking an entry again takes.
        "BLANK": MemoryEntry(
            id=UUID(int=0), agent_id="nobody", content="nothing", created_at=EPOCH
        ),
        "set_field": force_setattr,
        "NUL": "\0",  # a lost sector reads as NULs, which are never stored
        "LostContentError": LostContentError,
        **{f"read_{kind.value}": read for kind, read in _READ.items()},
    }
    exec(source, names)  # noqa: S102 - of nothing but declared names
    return names["encode"], names["decode"]


def _writing(field: MemoryField) -> str:
    """Return the expression of a field's stored value."""
    if field.name in _WRITTEN_APART:
        return field.name
    value = f"entry.{field.name}"
    written = _WRITE.get(field.kind, "{}").format(value)
    is_same = written == value or not field.is_optional
    return written if is_same else f"None if {value} is None else {written}"


def _reading(field: MemoryField) -> str:
    """Return the statement that reads a field's stored value, unless it is that of the default."""
    stored = f"of_{field.name}"
    read = f"read_{field.kind.value}({stored})"
    if field.kind is Kind.NAME:  # nearly always a text, which needs no call
        read = f"{stored} if type({stored}) is str and NUL not in {stored} else {read}"
    assigned = f'set_field(entry, "{field.name}", {read})'
    if field.is_required:
        return assigned
    if field.is_optional or field.kind is Kind.TAGS:  # an empty list is stored as NULL
        return f"if {stored} is not None: {assigned}"
    default = field.default
    if isinstance(default, int | NumberedEnum):
        default = int(default)
    return f"if {stored} != {default!r}: {assigned}"

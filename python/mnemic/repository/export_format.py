"""The format of an export: records, and the JSON line of each.

docs/reference/export.md describes it. `export_writer.py` writes whole files, `export_reader.py`
reads them.
"""

import re
from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from mnemic.arrays import Float32Array, np
from mnemic.errors import ExportFormatError, InvalidEntryError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, MemoryType, validation
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import Kind, MemoryField
from mnemic.reporting.description import hidden, is_word, quoted

Line = TypeVar("Line")

LAST_LINE: Final = '{"kind": "end", ...}'
_KINDS = "memory, link and end"
_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])", re.DOTALL
)  # msgspec says of it that the line was cut off
_QUOTED = re.compile(
    r"^(.*?unknown field `|Invalid(?: enum)? value ')(.*?)([`'](?: - at `[^`]*`)?)$", re.DOTALL
)
"""Matches the parts of a line that msgspec's errors quote: names of fields, and tags."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?+', re.DOTALL)


def decoded(decode: Callable[[bytes], Line], number: int, line: bytes) -> Line:
    """Return the value of a line.

    Raises:
        ExportFormatError: If it is not JSON, or of another type.
    """
    try:
        return decode(line)
    except msgspec.ValidationError as error:
        problem = _QUOTED.sub(_quoted_if_word, str(error))
        if "`$.kind`" in problem or "`kind`" in problem:
            problem += f"; the kinds are {_KINDS}"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = _broken(line, error)
    except RecursionError:
        problem = f"nested too deep; metadata has at most {validation.MAX_METADATA_DEPTH} levels"
    # Raised out here, for an error that is chained to it may carry the line.
    raise ExportFormatError(number, problem)


def _quoted_if_word(found: re.Match[str]) -> str:
    shown = found[2] if is_word(found[2]) else hidden(found[2])
    return f"{found[1]}{shown}{found[3]}"


def _broken(line: bytes, error: Exception) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as not_text:  # which only some versions of msgspec raise
        return f"the line is not UTF-8: {not_text}"
    if not line.strip():
        return f"the line is blank; wanted a memory, a link or the last line, {LAST_LINE}"
    half = _HALF_PAIR.search(line)
    if half:
        return f"{half[0].decode()} is half of a character, which is not text"
    cut = "" if line.endswith(b"\n") else "; the file stops here, so it may have been cut off"
    return f"not JSON: {error}{cut}"


def refuse_duplicate_keys(number: int, line: bytes) -> None:
    """Refuse a line with an object that has a key twice: readers disagree on which one counts."""
    keys = [match[0] for match in _STRING.finditer(line) if match[1]]
    if len(set(keys)) == len(keys) and not any(b"\\" in key for key in keys):
        return  # not even in different objects, which is allowed
    import json  # noqa: PLC0415 - nearly never needed

    try:
        json.loads(line, object_pairs_hook=_with_unique_keys)
    except _DuplicateKeyError as error:
        name = quoted(error.args[0])
    else:
        return
    raise ExportFormatError(number, f"the key {name} stands twice in one object")


class _DuplicateKeyError(Exception):
    """An object has a key twice; the argument is the key."""


def _with_unique_keys(pairs: list[tuple[str, object]]) -> None:
    names = set()
    for name, _ in pairs:
        if name in names:
            raise _DuplicateKeyError(name)
        names.add(name)


FORMAT: Final = "mnemic"
LINKS_NAME_USERS: Final = 3
"""From this version on a link names its user: several users may have the same ids."""

VERSION: Final = max(LINKS_NAME_USERS, *(field.export_version for field in MEMORY_FIELDS))
"""Version 2 added `more_embeddings`, version 3 the `user_id` of links, others fields of memories.
"""

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""10 MB of content, each byte escaped as six, and 4 MB for everything else."""

_FLOAT32, _FLOAT32_BYTES = "<f4", 4


class ExportHeader(NamedTuple):
    """The first line.

    Attributes:
        agent_id: Agent of the memories.
        exported_at: Time of the export.
        version: Version of the format.
    """

    agent_id: str
    exported_at: datetime
    version: int = VERSION


class ExportedMemory(NamedTuple):
    """A memory with its idempotency key.

    Attributes:
        entry: With its embedding if the export has it.
        idempotency_key: None if it was stored without one.
        more: Vectors of the chunks after the first of a long content; the first chunk's vector is
            the entry's own.
    """

    entry: MemoryEntry
    idempotency_key: str | None = None
    more: tuple[Float32Array, ...] = ()


class ExportedLink(NamedTuple):
    """A link with the user of its memories.

    Attributes:
        link: The link.
        user_id: None for memories without a user, and before version 3 of the format for all.
    """

    link: MemoryLink
    user_id: str | None = None


class ExportFooter(
    msgspec.Struct, frozen=True, tag="end", tag_field="kind", forbid_unknown_fields=True
):
    """The last line: counts of the lines before it.

    Attributes:
        memories: Number of memories.
        links: Number of links.
    """

    memories: int
    links: int


ExportRecord: TypeAlias = ExportHeader | ExportedMemory | ExportedLink | ExportFooter


# What stands in a line. Names and types are the format: a change of them is a new version.


class _Preamble(msgspec.Struct):
    format: str
    version: int


class _HeaderLine(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    agent_id: str
    exported_at: datetime


_WIRE_TYPES: Final[dict[Kind, Any]] = {
    Kind.CONTENT: str,
    Kind.NAME: str,
    Kind.TYPE_NAME: str,
    Kind.UUID: UUID,
    Kind.TIME: datetime,
    Kind.WHOLE: int,
    Kind.FRACTION: float,
    Kind.FLAG: bool,
    Kind.TYPE: str,
    Kind.STATUS: str,
    Kind.TAGS: list[str],
    Kind.METADATA: dict[str, Any],
    Kind.VECTOR: bytes,
}


def _line_field(field: MemoryField) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return name, type and default of a field in a line of a memory."""
    wire_type = _WIRE_TYPES[field.kind]
    if field.is_required:
        return field.name, wire_type
    if field.is_optional and field.kind is not Kind.VECTOR:
        return field.name, wire_type | None, None
    return field.name, wire_type | UnsetType, UNSET


_MemoryLine = msgspec.defstruct(
    "_MemoryLine",
    [
        *map(_line_field, MEMORY_FIELDS),
        ("more_embeddings", list[bytes] | UnsetType, UNSET),
        ("idempotency_key", str | None, None),
    ],
    tag="memory",
    tag_field="kind",
    forbid_unknown_fields=True,
    kw_only=True,
)


class _LinkLine(
    msgspec.Struct,
    tag="link",
    tag_field="kind",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    from_id: UUID
    to_id: UUID
    type: str
    strength: float
    created_at: datetime
    user_id: str | None = None


# A record to its line


def _name(member: MemoryType | MemoryStatus | LinkType) -> str:
    return member.name.lower()


_to_json = msgspec.json.Encoder().encode
_LEFT_OUT: Final[dict[str, object]] = {
    field.name: field.default
    for field in MEMORY_FIELDS
    if not field.is_required and field.kind is not Kind.VECTOR and field.name != "updated_at"
}
"""Fields, and the value at which each is omitted."""

_left_out_values = attrgetter(*_LEFT_OUT)
_NAMED: Final = [field.name for field in MEMORY_FIELDS if field.kind in {Kind.TYPE, Kind.STATUS}]
"""Fields written as names of their numbers."""


def header_line(header: ExportHeader) -> bytes:
    """Return the first line."""
    return _line(_HeaderLine(FORMAT, header.version, header.agent_id, header.exported_at))


def memory_line(memory: ExportedMemory) -> bytes:
    """Return the line of a memory, without the fields at their defaults."""
    entry = memory.entry
    fields: dict[str, object] = {
        "kind": "memory",
        "id": entry.id,
        "agent_id": entry.agent_id,
        "content": entry.content,
        "created_at": entry.created_at,
    }
    values = zip(_LEFT_OUT.items(), _left_out_values(entry), strict=True)
    for (field, default), value in values:
        if value is not default and value != default:
            fields[field] = value
    for field in _NAMED:
        if field in fields:
            fields[field] = _name(getattr(entry, field))
    if entry.updated_at != entry.created_at:
        fields["updated_at"] = entry.updated_at
    if entry.embedding is not None:
        fields["embedding"] = _bytes(entry.embedding)
    if memory.more:
        fields["more_embeddings"] = [_bytes(vector) for vector in memory.more]
    if memory.idempotency_key is not None:
        fields["idempotency_key"] = validation.name("idempotency_key", memory.idempotency_key)
    return _line(fields)


def _bytes(vector: Float32Array) -> bytes:
    return vector.astype(_FLOAT32, copy=False).tobytes()


def link_line(exported: ExportedLink) -> bytes:
    """Return the line of a link."""
    link, user_id = exported
    kind, owner = _name(link.type), validation.optional_name("user_id", user_id)
    return _line(_LinkLine(link.from_id, link.to_id, kind, link.strength, link.created_at, owner))


def footer_line(footer: ExportFooter) -> bytes:
    """Return the last line."""
    return _line(footer)


def _line(fields: dict[str, object] | msgspec.Struct) -> bytes:
    return _to_json(fields) + b"\n"


# A line to its record

_to_preamble = msgspec.json.Decoder(_Preamble).decode
_to_header = msgspec.json.Decoder(_HeaderLine).decode
_Line: Any = _MemoryLine | _LinkLine | ExportFooter
_to_line: Callable[[bytes], msgspec.Struct] = msgspec.json.Decoder(_Line).decode


def parse_header(number: int, line: bytes) -> ExportHeader:
    """Return the record of a first line.

    Raises:
        ExportFormatError: If it is no header, or of a later version.
    """
    if not line.strip():
        raise ExportFormatError(number, "found nothing; an export begins with its header")
    try:
        preamble = _to_preamble(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        preamble = None
    if preamble is None or preamble.format != FORMAT:
        raise ExportFormatError(
            number,
            f"found a line of {len(line)} bytes that is no header; an export begins with "
            f'{{"format": "{FORMAT}", "version": {VERSION}, ...}}; rows of a table and memories of '
            "other programs are stored by add_many",
        )
    if preamble.version > VERSION:
        raise ExportFormatError(
            number,
            f"the export has version {preamble.version}, and this mnemic reads up to "
            f"{VERSION}: upgrade mnemic",
        )
    if preamble.version < 1:
        raise ExportFormatError(
            number, f"version must be from 1 to {VERSION}, got {preamble.version}"
        )
    read = decoded(_to_header, number, line)
    refuse_duplicate_keys(number, line)
    try:
        return ExportHeader(
            validation.name("agent_id", read.agent_id),
            validation.time("exported_at", read.exported_at),
            read.version,
        )
    except InvalidEntryError as error:
        raise ExportFormatError(number, str(error)) from error


def parse_record(number: int, line: bytes) -> ExportedMemory | ExportedLink | ExportFooter:
    """Return the record of a line after the first.

    Raises:
        ExportFormatError: If it is none.
    """
    record = _of_line(number, decoded(_to_line, number, line))
    refuse_duplicate_keys(number, line)
    return record


def _of_line(number: int, read: msgspec.Struct) -> ExportedMemory | ExportedLink | ExportFooter:
    if isinstance(read, ExportFooter):
        return read
    try:
        if not isinstance(read, _LinkLine):
            return _memory(read)
        kind = LinkType.parse(read.type)
        link = MemoryLink(read.from_id, read.to_id, kind, read.strength, read.created_at)
        return ExportedLink(link, validation.optional_name("user_id", read.user_id))
    except InvalidEntryError as error:
        raise ExportFormatError(number, str(error)) from error


def _memory(read: msgspec.Struct) -> ExportedMemory:
    fields = {name: value for name, value in asdict(read).items() if value is not UNSET}
    key = validation.optional_name("idempotency_key", fields.pop("idempotency_key"))
    if "embedding" in fields:
        fields["embedding"] = _vector(fields["embedding"])
    more = [_vector(data) for data in fields.pop("more_embeddings", ())]
    make = MemoryEntry if fields["content"] else MemoryEntry.empty  # its vectors may be left out
    validation.name("agent_id", fields["agent_id"])
    entry = make(**fields)
    return ExportedMemory(entry, key, tuple(_like(entry.embedding, vector) for vector in more))


def _like(first: Float32Array | None, vector: Float32Array) -> Float32Array:
    """Return the vector of a further chunk, checked like the first one's."""
    checked = validation.embedding(vector)
    if first is None or checked is None:
        raise InvalidEntryError("more_embeddings stands without embedding")
    if checked.size != first.size:
        raise InvalidEntryError(
            f"more_embeddings has a vector of {checked.size} numbers, embedding has {first.size}"
        )
    return checked


def _vector(data: bytes) -> Float32Array:
    if len(data) % _FLOAT32_BYTES:
        raise InvalidEntryError(f"embedding has {len(data)} bytes; each number takes four")
    return np.frombuffer(data, _FLOAT32)

"""Exports: memories and links as JSON Lines, written and read one line at a time.

docs/export.md describes the format. Neither side holds more than one line in memory.
"""

import codecs
import io
import os
import re
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict
from numpy.typing import NDArray

from mnemic.description import described, hidden, is_word, quoted
from mnemic.errors import ExportFormatError, InvalidArgumentError, InvalidEntryError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, MemoryType, validation
from mnemic.model.agent_id import is_same_agent
from mnemic.new_files import file_errors, new_file, typed

FORMAT: Final = "mnemic"
VERSION: Final = 3
"""Version 2 added `more_embeddings`, version 3 the `user_id` of links."""

LINKS_NAME_USERS: Final = 3
"""From this version on a link names its user: several users may have the same ids."""

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""10 MB of content, each byte escaped as six, and 4 MB for everything else."""

_FLOAT32 = np.dtype("<f4")
_END = '{"kind": "end", ...}'
_KINDS = "memory, link and end"


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
    more: tuple[NDArray[np.float32], ...] = ()


class ExportedLink(NamedTuple):
    """A link with the user of its memories.

    Attributes:
        link: The link.
        user_id: None for memories without a user, and before version 3 of the format for all.
    """

    link: MemoryLink
    user_id: str | None = None


class ExportFooter(NamedTuple):
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


class _MemoryLine(
    msgspec.Struct, tag="memory", tag_field="kind", forbid_unknown_fields=True, kw_only=True
):
    id: UUID
    agent_id: str
    content: str
    created_at: datetime
    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    type: str | UnsetType = UNSET
    type_name: str | UnsetType = UNSET
    role: str | None = None
    speaker: str | None = None
    message_id: str | None = None
    position: int | None = None
    importance: float | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    embedding: bytes | UnsetType = UNSET
    more_embeddings: list[bytes] | UnsetType = UNSET
    embedding_model: str | None = None
    updated_at: datetime | UnsetType = UNSET
    last_accessed_at: datetime | None = None
    access_count: int | UnsetType = UNSET
    status: str | UnsetType = UNSET
    forgotten_at: datetime | None = None
    expires_at: datetime | None = None
    category: str | None = None
    scope: str | None = None
    version: int | UnsetType = UNSET
    supersedes: UUID | None = None
    sensitive: bool | UnsetType = UNSET
    is_encrypted: bool | UnsetType = UNSET
    idempotency_key: str | None = None


class _LinkLine(msgspec.Struct, tag="link", tag_field="kind", forbid_unknown_fields=True):
    from_id: UUID
    to_id: UUID
    type: str
    strength: float
    created_at: datetime
    user_id: str | None = None


class _EndLine(msgspec.Struct, tag="end", tag_field="kind", forbid_unknown_fields=True):
    memories: int
    links: int


# Writing


def _name(member: MemoryType | MemoryStatus | LinkType) -> str:
    return member.name.lower()


_to_json = msgspec.json.Encoder().encode
_LEFT_OUT: Final[dict[str, object]] = {
    "user_id": None,
    "project_id": None,
    "session_id": None,
    "type": MemoryType.FACT,
    "type_name": "str",
    "role": None,
    "speaker": None,
    "message_id": None,
    "position": None,
    "importance": 0.5,
    "tags": (),
    "metadata": {},
    "embedding_model": None,
    "last_accessed_at": None,
    "access_count": 0,
    "status": MemoryStatus.ACTIVE,
    "forgotten_at": None,
    "expires_at": None,
    "category": None,
    "scope": None,
    "version": 1,
    "supersedes": None,
    "sensitive": False,
    "is_encrypted": False,
}
"""Fields, and the value at which each is omitted."""

_left_out_values = attrgetter(*_LEFT_OUT)


class ExportWriter:
    """Writes the lines of one export; made by `write_export`. Not thread-safe."""

    def __init__(self, write: Callable[[bytes], object], agent_id: str) -> None:
        self._write = write
        self._agent_id = agent_id
        self._memories = 0
        self._links = 0

    @property
    def written(self) -> ExportFooter:
        """Counts of the lines written so far."""
        return ExportFooter(self._memories, self._links)

    def write_memory(
        self,
        entry: MemoryEntry,
        idempotency_key: str | None = None,
        more: Sequence[NDArray[np.float32]] = (),
    ) -> None:
        """Write a memory, with its embedding if it has one, and those of its further chunks.

        Raises:
            InvalidArgumentError: If it is another agent's, or comes after a link, or would be
                longer than a reader accepts (`MAX_LINE_BYTES`).
        """
        if entry.agent_id != self._agent_id:
            raise InvalidArgumentError(
                f"memory {entry.id} is agent {entry.agent_id!r}'s; "
                f"this export is agent {self._agent_id!r}'s"
            )
        if self._links:
            raise InvalidArgumentError("memories are written before links")
        line = _line(_memory_fields(ExportedMemory(entry, idempotency_key, tuple(more))))
        if len(line) > MAX_LINE_BYTES:
            raise InvalidArgumentError(
                f"memory {entry.id} takes {len(line)} bytes as JSON; a line of an export has at "
                f"most {MAX_LINE_BYTES}, so its metadata or tags must become smaller"
            )
        self._write(line)
        self._memories += 1

    def write_link(self, link: MemoryLink, user_id: str | None = None) -> None:
        """Write a link between a user's memories; its ends need not be in the export."""
        self._write(_line(_link_fields(ExportedLink(link, user_id))))
        self._links += 1


def _line(fields: dict[str, object]) -> bytes:
    return _to_json(fields) + b"\n"


def _header_fields(header: ExportHeader) -> dict[str, object]:
    return {
        "format": FORMAT,
        "version": header.version,
        "agent_id": header.agent_id,
        "exported_at": header.exported_at,
    }


def _link_fields(exported: ExportedLink) -> dict[str, object]:
    link, user_id = exported
    fields: dict[str, object] = {
        "kind": "link",
        "from_id": link.from_id,
        "to_id": link.to_id,
        "type": _name(link.type),
        "strength": link.strength,
        "created_at": link.created_at,
    }
    if user_id is not None:
        fields["user_id"] = validation.name("user_id", user_id)
    return fields


def _memory_fields(memory: ExportedMemory) -> dict[str, object]:
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
    if "type" in fields:
        fields["type"] = _name(entry.type)
    if "status" in fields:
        fields["status"] = _name(entry.status)
    if entry.updated_at != entry.created_at:
        fields["updated_at"] = entry.updated_at
    if entry.embedding is not None:
        fields["embedding"] = _bytes(entry.embedding)
    if memory.more:
        fields["more_embeddings"] = [_bytes(vector) for vector in memory.more]
    if memory.idempotency_key is not None:
        fields["idempotency_key"] = validation.name("idempotency_key", memory.idempotency_key)
    return fields


def _bytes(vector: NDArray[np.float32]) -> bytes:
    return vector.astype(_FLOAT32, copy=False).tobytes()


@contextmanager
def write_export(
    target: str | os.PathLike[str] | IO[str],
    *,
    agent_id: str,
    exported_at: datetime,
    overwrite: bool = False,
) -> Generator[ExportWriter, None, None]:
    """Write one export: memories first, then links; the footer comes when all went well.

    A path is written beside its place, with mode 0600, and moved there when it is complete and on
    disk; if the `with` block fails, nothing is left of it. A text file is written as it goes and
    stays open; if the block fails, it lacks the footer, and no reader takes it for complete.

        with write_export("memories.jsonl", agent_id="default", exported_at=now) as export:
            export.write_memory(entry, idempotency_key)
            export.write_link(link)

    Args:
        target: A path, or a text file opened for writing UTF-8.
        agent_id: Whose memories they are.
        exported_at: Now.
        overwrite: Whether a file at this path may be replaced.

    Raises:
        InvalidArgumentError: If there is a file at this path already, or something that is no
            file, or if the open file does not take UTF-8 text.
        StoreFullError: If the disk is full or failing.
        StoreError: If the file cannot be made or written.
    """
    header = ExportHeader(
        validation.name("agent_id", agent_id), validation.time("exported_at", exported_at)
    )
    if isinstance(target, str | os.PathLike):
        with _new_file(Path(target), overwrite=overwrite) as write:
            yield from _written(write, header)
    else:
        _refuse_other_text("target", target, "write")
        yield from _written(lambda line: target.write(line.decode()), header)
        target.flush()


def _written(
    write: Callable[[bytes], object], header: ExportHeader
) -> Generator[ExportWriter, None, None]:
    write(_line(_header_fields(header)))
    writer = ExportWriter(write, header.agent_id)
    yield writer
    memories, links = writer.written
    write(_line({"kind": "end", "memories": memories, "links": links}))


@contextmanager
def _new_file(path: Path, *, overwrite: bool) -> Generator[Callable[[bytes], None], None, None]:
    """Make a file of mode 0600 that gets its name when the block succeeds; yield its writer."""
    _refuse_existing(path, overwrite=overwrite)
    name = str(path)
    try:
        with (
            new_file(name, overwrite=overwrite) as descriptor,
            open(descriptor, "wb", closefd=False) as file,
        ):

            def write(line: bytes) -> None:
                try:
                    file.write(line)
                except OSError as error:
                    raise typed(error, name) from error

            yield write
            with file_errors(name):
                file.flush()
    except FileExistsError:
        raise _exists(path) from None


def _exists(path: Path) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path} exists; choose another name or pass overwrite=True")


def _refuse_existing(path: Path, *, overwrite: bool) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not overwrite:
        raise _exists(path)
    if not stat.S_ISREG(mode):
        raise InvalidArgumentError(f"{path} is not a regular file and is not overwritten")


def _refuse_other_text(what: str, file: object, method: str) -> None:
    """Refuse an object that is not an open file, and text that would be changed in writing."""
    if not callable(getattr(file, method, None)):
        raise InvalidArgumentError(f"{what} is neither a path nor an open file: {described(file)}")
    if method == "write" and isinstance(file, io.RawIOBase | io.BufferedIOBase):
        raise InvalidArgumentError(f"{what} is opened for bytes; open it as text, or pass the path")
    encoding = getattr(file, "encoding", None)
    if isinstance(encoding, str) and not _is_utf8(encoding):
        raise InvalidArgumentError(
            f"{what} is opened as {encoding}; open it with encoding='utf-8', or pass the path"
        )


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}


# Reading


class ExportReader:
    """The records of one export, with the numbers of their lines; made by `read_export`.

    Each iteration starts again with the first line; only one goes on at a time. It gives the
    header, then memories, then links, then the footer, so that links find their memories stored.
    Ids are not compared with each other: remembering them would take memory as the file grows.

    Attributes:
        version: Of the format; 0 before the header was read.

    Raises:
        ExportFormatError: At the first line that is not right; what came before it is.
    """

    def __init__(self, file: IO[str] | IO[bytes]) -> None:
        self._file = file
        self._start = file.tell()
        self.version = 0

    def __iter__(self) -> Iterator[tuple[int, ExportRecord]]:
        self._file.seek(self._start)
        for number, record in _records(_lines(self._file)):
            if isinstance(record, ExportHeader):
                self.version = record.version
            yield number, record


@contextmanager
def read_export(
    source: str | os.PathLike[str] | IO[str] | IO[bytes],
) -> Generator[ExportReader, None, None]:
    """Open an export, to be read as often as needed.

    What cannot be read twice, such as a pipe, is first copied to a temporary file without a name.

        with read_export("memories.jsonl") as export:
            for line, record in export: ...

    Args:
        source: A path, or an open file, which stays open: UTF-8 text, or bytes.

    Raises:
        InvalidArgumentError: If it is neither, or text of another encoding.
        OSError: If the file cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file, _seekable(file) as again:
            yield ExportReader(again)
    else:
        _refuse_other_text("source", source, "readline")
        with _seekable(source) as again:
            yield ExportReader(again)


@contextmanager
def _seekable(file: IO[str] | IO[bytes]) -> Generator[IO[str] | IO[bytes], None, None]:
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:  # mode 0600, gone when closed
        for _, line in _lines(file):
            copy.write(line)
        copy.seek(0)
        yield copy


def _lines(file: IO[str] | IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines as bytes; the first without a byte order mark."""
    read_line = file.readline
    for number in count(1):
        try:
            read, problem = read_line(MAX_LINE_BYTES + 1), None
        except UnicodeDecodeError as error:  # of a text file, which decodes ahead of its lines
            read, problem = b"", str(error)
        if problem is not None:
            raise ExportFormatError(number, f"this or a later line is not UTF-8: {problem}")
        line = read.encode(errors="surrogatepass") if isinstance(read, str) else read
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise ExportFormatError(number, f"the line is longer than {MAX_LINE_BYTES} bytes")
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _records(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, ExportRecord]]:
    number, line = next(lines, (1, b""))
    header = _header(number, line)
    yield number, header
    memories = links = 0
    for number, line in lines:
        record = _record(number, line)
        if isinstance(record, ExportedMemory):
            _check_memory(number, record, header, links)
            memories += 1
        elif isinstance(record, ExportedLink):
            links += 1
        else:
            _check_end(number, record, ExportFooter(memories, links), lines)
        yield number, record
        if isinstance(record, ExportFooter):
            return
    raise ExportFormatError(
        number + 1, f"the file ends without its last line, {_END}: it was cut off; export again"
    )


def _check_memory(number: int, record: ExportedMemory, header: ExportHeader, links: int) -> None:
    if not is_same_agent(record.entry.agent_id, header.agent_id):
        raise ExportFormatError(
            number,
            f"a memory of agent {record.entry.agent_id!r} in an export of agent "
            f"{header.agent_id!r}",
        )
    if links:
        raise ExportFormatError(number, "a memory after a link; all memories come before the links")


def _check_end(
    number: int, footer: ExportFooter, read: ExportFooter, lines: Iterator[tuple[int, bytes]]
) -> None:
    if footer != read:
        raise ExportFormatError(
            number,
            f"the file holds {read.memories} memories and {read.links} links, but ends with the "
            f"counts {footer.memories} and {footer.links}: lines were lost or added; export again",
        )
    for after, line in lines:
        if line.strip():
            raise ExportFormatError(after, f"found {len(line)} bytes after the last line, {_END}")


# A line

Line = TypeVar("Line")
_to_preamble = msgspec.json.Decoder(_Preamble).decode
_to_header = msgspec.json.Decoder(_HeaderLine).decode
_to_line = msgspec.json.Decoder(_MemoryLine | _LinkLine | _EndLine).decode
_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])", re.DOTALL
)  # msgspec says of it that the line was cut off


def _header(number: int, line: bytes) -> ExportHeader:
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
            f'{{"format": "{FORMAT}", "version": {VERSION}, ...}}',
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
    read = _decoded(_to_header, number, line)
    _refuse_twice_named(number, line)
    try:
        return ExportHeader(
            validation.name("agent_id", read.agent_id),
            validation.time("exported_at", read.exported_at),
            read.version,
        )
    except InvalidEntryError as error:
        raise ExportFormatError(number, str(error)) from error


def _record(number: int, line: bytes) -> ExportedMemory | ExportedLink | ExportFooter:
    read = _decoded(_to_line, number, line)
    record = _of_line(number, read)
    _refuse_twice_named(number, line)
    return record


def _of_line(
    number: int, read: _MemoryLine | _LinkLine | _EndLine
) -> ExportedMemory | ExportedLink | ExportFooter:
    try:
        if isinstance(read, _MemoryLine):
            return _memory(read)
        if isinstance(read, _LinkLine):
            return _link(read)
    except InvalidEntryError as error:
        raise ExportFormatError(number, str(error)) from error
    return ExportFooter(read.memories, read.links)


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?+', re.DOTALL)


def _refuse_twice_named(number: int, line: bytes) -> None:
    """Refuse a line with an object that has a key twice: readers disagree on which one counts."""
    keys = [match[0] for match in _STRING.finditer(line) if match[1]]
    if len(set(keys)) == len(keys) and not any(b"\\" in key for key in keys):
        return  # not even in different objects, which is allowed
    import json  # noqa: PLC0415 - nearly never needed

    try:
        json.loads(line, object_pairs_hook=_once_named)
    except _TwiceNamedError as error:
        name = quoted(error.args[0])
    else:
        return
    raise ExportFormatError(number, f"the key {name} stands twice in one object")


class _TwiceNamedError(Exception):
    """An object has a key twice; the argument is the key."""


def _once_named(pairs: list[tuple[str, object]]) -> None:
    names = set()
    for name, _ in pairs:
        if name in names:
            raise _TwiceNamedError(name)
        names.add(name)


def _memory(read: _MemoryLine) -> ExportedMemory:
    fields = {name: value for name, value in asdict(read).items() if value is not UNSET}
    key = validation.optional_name("idempotency_key", fields.pop("idempotency_key"))
    if read.embedding is not UNSET:
        fields["embedding"] = _vector(read.embedding)
    more = [_vector(data) for data in fields.pop("more_embeddings", ())]
    entry = MemoryEntry(**fields)
    return ExportedMemory(entry, key, tuple(_like(entry.embedding, vector) for vector in more))


def _like(first: NDArray[np.float32] | None, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vector of a further chunk, checked like the first one's."""
    checked = validation.embedding(vector)
    if first is None or checked is None:
        raise InvalidEntryError("more_embeddings stands without embedding")
    if checked.size != first.size:
        raise InvalidEntryError(
            f"more_embeddings has a vector of {checked.size} numbers, embedding has {first.size}"
        )
    return checked


def _link(read: _LinkLine) -> ExportedLink:
    kind = LinkType.parse(read.type)
    link = MemoryLink(read.from_id, read.to_id, kind, read.strength, read.created_at)
    return ExportedLink(link, validation.optional_name("user_id", read.user_id))


def _vector(data: bytes) -> NDArray[np.float32]:
    if len(data) % _FLOAT32.itemsize:
        raise InvalidEntryError(f"embedding has {len(data)} bytes; each number takes four")
    return np.frombuffer(data, _FLOAT32)


def _decoded(decode: Callable[[bytes], Line], number: int, line: bytes) -> Line:
    try:
        return decode(line)
    except msgspec.ValidationError as error:
        problem = _wanted(_QUOTED.sub(_quoted_if_word, str(error)))
    except msgspec.DecodeError as error:
        problem = _broken(line, error)
    except UnicodeDecodeError as error:
        problem = f"the line is not UTF-8: {error}"
    except RecursionError:
        problem = f"nested too deep; metadata has at most {validation.MAX_METADATA_DEPTH} levels"
    # Raised out here, for an error that is chained to it may carry the line.
    raise ExportFormatError(number, problem)


_QUOTED = re.compile(
    r"^(.*?unknown field `|Invalid(?: enum)? value ')(.*?)([`'](?: - at `[^`]*`)?)$", re.DOTALL
)
"""Matches the parts of a line that msgspec's errors quote: names of fields, and tags."""


def _quoted_if_word(found: re.Match[str]) -> str:
    shown = found[2] if is_word(found[2]) else hidden(found[2])
    return f"{found[1]}{shown}{found[3]}"


def _wanted(problem: str) -> str:
    if "`$.kind`" in problem or "`kind`" in problem:
        return f"{problem}; the kinds are {_KINDS}"
    return problem


def _broken(line: bytes, error: msgspec.DecodeError) -> str:
    if not line.strip():
        return f"the line is blank; wanted a memory, a link or the last line, {_END}"
    half = _HALF_PAIR.search(line)
    if half:
        return f"{half[0].decode()} is half of a character, which is not text"
    cut = "" if line.endswith(b"\n") else "; the file stops here, so it may have been cut off"
    return f"not JSON: {error}{cut}"

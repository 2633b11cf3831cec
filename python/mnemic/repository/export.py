"""Moves memories between a store and an export in batches, so that neither is held whole."""

import codecs
import copy
import io
import os
import tempfile
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import count, islice
from pathlib import Path
from typing import IO, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.arrays import Float32Array
from mnemic.errors import ExportFormatError, InvalidArgumentError
from mnemic.model import ImportResult, MemoryEntry, MemoryLink, Scope, validation
from mnemic.model.ids import is_same_agent
from mnemic.model.new_entry import NewEntry, checked_record
from mnemic.model.scope import NO_USER
from mnemic.new_files import file_errors, new_file, writing_errors
from mnemic.protocols import Source, Target
from mnemic.reporting.description import described
from mnemic.reporting.progress import Report
from mnemic.repository.export_format import (
    LAST_LINE,
    LINKS_NAME_USERS,
    MAX_LINE_BYTES,
    ExportedLink,
    ExportedMemory,
    ExportFooter,
    ExportHeader,
    ExportRecord,
    footer_line,
    header_line,
    link_line,
    memory_line,
    parse_header,
    parse_record,
)
from mnemic.store import Store
from mnemic.store.operations import AddLinks, EntriesById, Links, StoredEntries
from mnemic.store.row_codec import check_size
from mnemic.store.values import StoredEntry, StoredLink
from mnemic.threads.sync_bridge import arrived, run_blocking


@contextmanager
def new_export_file(
    path: Path, *, overwrite: bool
) -> Generator[Callable[[bytes], None], None, None]:
    """Make a file of mode 0600 that gets its name when the block succeeds; yield its writer."""
    _refuse_existing(path, overwrite=overwrite)
    name = str(path)
    try:
        with new_file(name, overwrite=overwrite) as descriptor:
            file = open(descriptor, "wb", closefd=False)  # noqa: SIM115 - see `finally`

            def write(line: bytes) -> None:
                with writing_errors(name):
                    file.write(line)

            try:
                yield write
                with writing_errors(name):
                    file.flush()
            finally:
                # Closing writes the rest; its error would take the place of the one that counts.
                with suppress(OSError):
                    file.close()
    except FileExistsError:
        raise _exists(path) from None


def _exists(path: Path) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path} exists; choose another name or pass overwrite=True")


def _refuse_existing(path: Path, *, overwrite: bool) -> None:
    if not os.path.lexists(path):  # or no file can have this name, as making it tells
        return
    if not overwrite:
        raise _exists(path)
    if path.is_symlink() or not path.is_file():
        raise InvalidArgumentError(f"{path} is not a regular file and is not overwritten")
    if _is_database(path):
        raise InvalidArgumentError(f"{path} is a database and is not overwritten")


def _is_database(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
    return False


def refuse_other_text(what: str, file: object, method: str) -> None:
    """Refuse an object that is not an open file, and text that would be changed in writing."""
    if not callable(getattr(file, method, None)):
        raise InvalidArgumentError(f"{what} is neither a path nor an open file: {described(file)}")
    if method == "write" and isinstance(file, io.RawIOBase | io.BufferedIOBase):
        raise InvalidArgumentError(f"{what} is opened for bytes; open it as text, or pass the path")
    encoding = getattr(file, "encoding", None)
    if isinstance(encoding, str) and codecs.lookup(encoding).name not in {"utf-8", "utf-8-sig"}:
        raise InvalidArgumentError(
            f"{what} is opened as {encoding}; open it with encoding='utf-8', or pass the path"
        )


@contextmanager
def seekable(file: IO[str] | IO[bytes]) -> Generator[IO[str] | IO[bytes], None, None]:
    """Yield a file that can be read twice: the given one, or a temporary copy without a name."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:  # mode 0600, gone when closed
        for _, line in numbered_lines(file):
            copy.write(line)
        copy.seek(0)
        yield copy


def numbered_lines(file: IO[str] | IO[bytes]) -> Iterator[tuple[int, bytes]]:
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
        for number, record in _records(numbered_lines(self._file)):
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
        StoreFileError: If the file cannot be opened.
    """
    if isinstance(source, str | os.PathLike):
        path = validation.file("source", source)
        with file_errors(path):
            file = Path(path).open("rb")  # noqa: SIM115 - closed below
        with file, seekable(file) as again:
            yield ExportReader(again)
    else:
        refuse_other_text("source", source, "readline")
        with seekable(source) as again:
            yield ExportReader(again)


def _records(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, ExportRecord]]:
    number, line = next(lines, (1, b""))
    header = parse_header(number, line)
    yield number, header
    memories = links = 0
    for number, line in lines:
        record = parse_record(number, line)
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
        number + 1,
        f"the file ends without its last line, {LAST_LINE}: it was cut off; export again",
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
            raise ExportFormatError(
                after, f"found {len(line)} bytes after the last line, {LAST_LINE}"
            )


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
        more: Sequence[Float32Array] = (),
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
        line = memory_line(ExportedMemory(entry, idempotency_key, tuple(more)))
        if len(line) > MAX_LINE_BYTES:
            raise InvalidArgumentError(
                f"memory {entry.id} takes {len(line)} bytes as JSON; a line of an export has at "
                f"most {MAX_LINE_BYTES}, so its metadata or tags must become smaller"
            )
        self._write(line)
        self._memories += 1

    def write_link(self, link: MemoryLink, user_id: str | None = None) -> None:
        """Write a link between a user's memories; its ends need not be in the export."""
        self._write(link_line(ExportedLink(link, user_id)))
        self._links += 1


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
        path = Path(validation.file("target", target))
        with new_export_file(path, overwrite=overwrite) as write:
            yield from _written(write, header)
    else:
        refuse_other_text("target", target, "write")
        name = str(getattr(target, "name", "the open file"))

        def write_text(line: bytes) -> None:
            with writing_errors(name):
                target.write(line.decode())

        yield from _written(write_text, header)
        with writing_errors(name):
            target.flush()


def _written(
    write: Callable[[bytes], object], header: ExportHeader
) -> Generator[ExportWriter, None, None]:
    write(header_line(header))
    writer = ExportWriter(write, header.agent_id)
    yield writer
    write(footer_line(writer.written))


BATCH = 1000

SEALED = (
    "an export is plain text, and some of these memories are sealed where they are stored; "
    "export(..., unseal=True) writes them as plain text, and backup keeps them sealed"
)


class ExportSelection(NamedTuple):
    """The exported part of a store.

    Attributes:
        scope: Scope of the memories.
        now: Memories expired by now count as deleted.
        include_deleted: Whether to export deleted and expired memories.
        model: Model of the exported vectors, or None for none.
        unseal: Whether sealed memories may be written in plain text.
    """

    scope: Scope
    now: datetime
    include_deleted: bool
    model: str | None
    unseal: bool

    def after(self, store: Store, row: int, limit: int = BATCH) -> list[StoredEntry]:
        """Return the first memories of this part after a row, in the order of storing."""
        return store.read(
            StoredEntries(
                self.scope,
                row,
                limit,
                now=self.now,
                include_deleted=self.include_deleted,
                model=self.model,
            )
        )


def export(
    store: Store,
    part: ExportSelection,
    target: Target,
    *,
    overwrite: bool,
    total: int | None,
    report: Report,
) -> int:
    """Write memories in the order they were stored, then the links between them.

    Args:
        store: The store.
        part: The exported part.
        target: A path or a file.
        overwrite: Whether to replace a file.
        total: Number of memories before the export, for reports; None without reports.
        report: Gets the numbers so far.

    Returns:
        Number of memories.

    Raises:
        InvalidArgumentError: If a memory is sealed, and sealed ones may not be written, or if all
            memories are of users and none is named; then the target is not touched.
    """
    batch = part.after(store, 0)
    if not batch and part.scope.user_id is None:
        everybody = msgspec.structs.replace(part.scope, all_users=True)
        if part._replace(scope=everybody).after(store, 0, 1):
            raise InvalidArgumentError(f"nothing was exported: {NO_USER}")
    with write_export(
        target, agent_id=part.scope.agent_id, exported_at=part.now, overwrite=overwrite
    ) as writer:
        while batch:
            for _, entry, key, more in batch:
                if entry.is_encrypted and not part.unseal:
                    raise InvalidArgumentError(SEALED)
                writer.write_memory(entry, key, more)
            written = writer.written.memories
            report(written, None if total is None else max(total, written))
            batch = part.after(store, batch[-1].row)
        links = Links(part.scope, part.now, include_deleted=part.include_deleted)
        for linked in store.read(links):
            writer.write_link(linked.link, linked.user_id)
        return writer.written.memories


class Importer:
    """Stores the memories of an export that a memory does not have.

    Args:
        store: The store.
        scope: Lines outside of it are refused.
        add: Stores new entries and returns their number.
        is_model: Whether vectors of a model and length may be stored; other memories are embedded
            again.
    """

    def __init__(
        self,
        store: Store,
        scope: Scope,
        add: Callable[[Sequence[NewEntry]], Awaitable[int]],
        is_model: Callable[[str | None, int], bool],
    ) -> None:
        self._store = store
        self._scope = scope
        self._add = add
        self._is_model = is_model
        self._users: dict[UUID, str | None] = {}

    async def read(self, source: Source, now: datetime, report: Report) -> ImportResult:
        """Check every line, then store in batches; existing memories are skipped.

        Raises:
            ExportFormatError: At the first invalid line; nothing is stored then.
            KeyUnavailableError: If a memory was sealed, and there is no key here; neither then.
        """
        with ExitStack() as stack:
            reader = await run_blocking(
                lambda: stack.enter_context(read_export(source)), self._store
            )
            total = await run_blocking(lambda: sum(1 for _ in self._memories(reader)), self._store)
            done = stored = 0
            memories = self._memories(reader)
            while batch := await run_blocking(lambda: list(islice(memories, BATCH)), self._store):
                stored += await self._store_batch(batch, now)
                done += len(batch)
                report(done, total)
            links = await self._store_links(reader)
            return ImportResult(stored=stored, skipped=done - stored, links=links)

    def _memories(self, reader: ExportReader) -> Iterator[NewEntry]:
        for line, record in reader:
            if isinstance(record, ExportedMemory):
                try:
                    own = self._own(record.entry)
                    check_size(own)  # which must not fail after others were stored
                    if own.is_encrypted:
                        self._store.marked(own)  # the same
                    if reader.version < LINKS_NAME_USERS:
                        self._users[own.id] = own.user_id
                    more = () if own.embedding is None else record.more
                    yield NewEntry(own, record.idempotency_key, more)
                except InvalidArgumentError as error:
                    raise ExportFormatError(line, str(error)) from error

    def _own(self, entry: MemoryEntry) -> MemoryEntry:
        """Return a memory as this agent's, without a vector of another model."""
        own = copy.copy(entry)
        force_setattr(own, "agent_id", self._scope.agent_id)
        if own.embedding is not None and not self._is_model(
            own.embedding_model, own.embedding.size
        ):
            force_setattr(own, "embedding", None)
        if own.embedding is None:
            force_setattr(own, "embedding_model", None)
        return checked_record(own, self._scope)

    async def _store_batch(self, batch: Sequence[NewEntry], now: datetime) -> int:
        fresh = {(new.entry.user_id, new.entry.id): new for new in batch}
        for user_id in {user_id for user_id, _ in fresh}:
            ids = [entry_id for owner, entry_id in fresh if owner == user_id]
            for known in await self._known(user_id, ids, now):
                del fresh[user_id, known]
        return await self._add(list(fresh.values())) if fresh else 0

    async def _known(
        self, user_id: str | None, ids: Sequence[UUID], now: datetime
    ) -> Collection[UUID]:
        """Return those of these ids that a user already has."""
        own = Scope(self._scope.agent_id, user_id)
        found = await run_blocking(
            lambda: self._store.read(EntriesById(own, ids, now, include_deleted=True)), self._store
        )
        return found.keys()

    def _links(self, reader: ExportReader) -> Iterator[StoredLink]:
        """Yield the links with their users; before version 3 with the user of the source memory.

        Then ids were unique within the agent.
        """
        for _, record in reader:
            if isinstance(record, ExportedLink):
                link, user_id = record
                if reader.version < LINKS_NAME_USERS:
                    user_id = self._users.get(link.from_id)
                yield StoredLink(link, self._scope.user_id if user_id is None else user_id)

    async def _store_links(self, reader: ExportReader) -> int:
        links = self._links(reader)
        # As for memories: where no user is named, those of all users may come.
        scope = (
            self._scope if self._scope.user_id is not None else self._scope.narrowed(all_users=True)
        )
        stored = 0
        while batch := await run_blocking(lambda: list(islice(links, BATCH)), self._store):
            stored += await arrived(self._store.write(AddLinks(scope, batch)))
        return stored

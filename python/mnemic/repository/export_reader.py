"""The reader of an export: its records in order, each line checked before the next is read."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mnemic.errors import ExportFormatError
from mnemic.model import validation
from mnemic.model.agent_id import is_same_agent
from mnemic.new_files import file_errors
from mnemic.repository.export_files import numbered_lines, refuse_other_text, seekable
from mnemic.repository.export_format import (
    ExportedLink,
    ExportedMemory,
    ExportFooter,
    ExportHeader,
    ExportRecord,
    parse_header,
    parse_record,
)
from mnemic.repository.export_json import LAST_LINE


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

"""The writer of an export: memories, then links, one line at a time."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from mnemic.arrays import Float32Array
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryEntry, MemoryLink, validation
from mnemic.new_files import writing_errors
from mnemic.repository.export_files import new_export_file, refuse_other_text
from mnemic.repository.export_format import (
    MAX_LINE_BYTES,
    ExportedLink,
    ExportedMemory,
    ExportFooter,
    ExportHeader,
    footer_line,
    header_line,
    link_line,
    memory_line,
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

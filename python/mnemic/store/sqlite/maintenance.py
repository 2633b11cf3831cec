"""Work over a whole file: reading it to compare everything with its checksums, and a backup."""

import os
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final

import apsw

from mnemic.errors import StoreCorruptError, StoreFileError
from mnemic.new_files import file_errors, new_part
from mnemic.reporting.progress import Report, silent
from mnemic.store.row_codec import ENCRYPTED, RowCodec, sealed_ids, vector_of
from mnemic.store.sql.verification import (
    AGENT_ID,
    MAX_PROBLEMS,
    PAGE,
    SqlVerification,
    repaired_bytes,
)
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    NO_SUMS,
    SUM_COLUMNS,
    Sums,
    added,
    check,
    check_links,
    check_vectors,
    damaged,
    entries_of,
)
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.log_mark import LogState, Mark, put_mark
from mnemic.store.sqlite.opening import MEMORY_PATH
from mnemic.store.sqlite.shadow_vectors import check_shadow_vectors
from mnemic.store.sqlite.sql import BY_ROW, MARK, Columns
from mnemic.store.sqlite.sqlite_errors import typed_errors
from mnemic.store.sqlite.vectors import VectorOpener, placed

_PAGE: Final = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
    "WHERE row > ? {} ORDER BY row LIMIT ?"
)
_ROWS: Final = _PAGE.format("")
_WITHOUT_SUMS: Final = _PAGE.format("AND row_sum IS NULL")
_VECTORS: Final = (
    "SELECT entry_row, embedding, model FROM agent_memory_embeddings "
    "WHERE entry_row BETWEEN ? AND ? ORDER BY entry_row, model, part"
)
_LINKS: Final = (
    "SELECT from_row, to_row, type, strength, created_at FROM agent_memory_links "
    "WHERE from_row BETWEEN ? AND ?"
)
_AGENTS: Final = "SELECT agent_id, summed_rows, rows_sum FROM agent_memory_agents"
_PLACED: Final = f"SELECT {SUM_COLUMNS} FROM agent_memory_entries WHERE agent_id = ?"
_SET: Final = "UPDATE agent_memory_agents SET summed_rows = ?, rows_sum = ? WHERE agent_id = ?"


class Verification(SqlVerification):
    """One pass through a file; see `SqlVerification`.

    Args:
        on: At one moment.
        codec: Codec of the entries.
        report: Called periodically with the number of memories so far.
        log_problem: Description of damage to the log, or None.
    """

    _errors = StoreCorruptError, apsw.Error

    def __init__(
        self,
        on: GuardedConnection,
        codec: RowCodec,
        report: Report = silent,
        log_problem: str | None = None,
    ) -> None:
        super().__init__(on, codec, report)
        self._sums: dict[str, Sums] = {}
        if log_problem is not None:
            self._add_problem(log_problem)

    def _pages(self) -> Iterator[list[Columns]]:
        for pragma in ("integrity_check", "foreign_key_check"):
            for row in self._on.fetch(f"PRAGMA {pragma}")[:MAX_PROBLEMS]:
                if row != ("ok",):
                    self._add_problem(f"SQLite's {pragma}: {' '.join(map(str, row))}")
        after = 0
        while page := self._read(_ROWS, after, PAGE):
            yield page
            after = page[-1][0]

    def _read(self, sql: str, *values: int) -> list[Columns]:
        """Return the rows of a statement; none, and a problem, if they cannot be read."""
        found: list[Columns] = []
        self._guarded(lambda: found.extend(self._on.fetch(sql, values)))
        return found

    def _count(self, row: Columns) -> None:
        super()._count(row)
        known = self._sums.get(row[AGENT_ID], NO_SUMS)
        self._sums[row[AGENT_ID]] = known.plus(added([placed(row)]))

    def _check_page(self, page: list[Columns]) -> None:
        first, last = page[0][0], page[-1][0]
        self._without_sums += sum(row[-3] is None for row in page)
        self._check_rows(page)
        vectors, links = self._read(_VECTORS, first, last), self._read(_LINKS, first, last)
        self._vectors += len(vectors)
        self._links += len(links)
        of_rows, from_rows = _by_row(vectors), _by_row(links)
        for row in page:
            self._check_vectors(row, of_rows.get(row[0], []))
            found = from_rows.get(row[0], [])
            if row[-3] is not None and (found or row[-1]):
                self._guarded(partial(check_links, found, {row[0]: row[-1] or 0}), row)

    def _check_rows(self, page: list[Columns]) -> None:
        """Decode the rows of a page; report the damaged ones."""
        plain = [row for row in page if not row[ENCRYPTED]]
        try:
            check(page)
            entries_of(self._codec, plain)
        except StoreCorruptError:
            for row in page:
                self._guarded(partial(check, [row]), row)
            for row in plain:
                self._guarded(partial(entries_of, self._codec, [row]), row)
        for row in page:
            if row[ENCRYPTED]:
                self._if_opened(partial(entries_of, self._codec, [row]), row)

    def _check_vectors(self, row: Columns, found: list[Columns]) -> None:
        of_row, others = _apart(found)
        if of_row or row[-2]:
            self._guarded(partial(_check_vectors_of, row, of_row), row)
            self._if_opened(partial(_open_vectors_of, self._codec, row, of_row), row)
        if others and row[ENCRYPTED]:
            self._if_opened(partial(_open_shadow_vectors_of, self._codec, row, others), row)
        elif others:
            self._guarded(partial(check_shadow_vectors, row[0], others), row)

    def _check_agents(self) -> None:
        known = {agent_id: Sums(*sums) for agent_id, *sums in self._on.fetch(_AGENTS)}
        for agent_id in sorted(known.keys() | self._sums.keys(), key=repr):
            wanted, found = known.get(agent_id, Sums(0, 0)), self._sums.get(agent_id, NO_SUMS)
            if wanted != found:
                what = (
                    f"should have {wanted.rows} memories with checksums, and has {found.rows}: "
                    "some were lost, changed or added"
                )
                self._add_problem(what, agent_id)
        super()._check_agents()


def _by_row(found: list[Columns]) -> dict[int, list[Columns]]:
    """Return vectors or links by their first column, the row."""
    of_rows: dict[int, list[Columns]] = {}
    for each in found:
        of_rows.setdefault(each[0], []).append(each)
    return of_rows


def _apart(vectors: list[Columns]) -> tuple[list[Columns], list[Columns]]:
    """Return the vectors of the agent's own model, and those of others."""
    others = [vector for vector in vectors if str(vector[2]).startswith(MARK)]
    return [vector for vector in vectors if vector not in others] if others else vectors, others


def _check_vectors_of(row: Columns, vectors: list[Columns]) -> None:
    """Compare the vectors of a row with their checksum."""
    if row[-3] is None:
        return
    model = vectors[0][2] if vectors else ""
    try:
        blobs = [found[:2] for found in vectors]
        check_vectors(model, blobs, check([row]).vectors, is_all=True)
    except StoreCorruptError:
        if row[ENCRYPTED]:
            raise damaged(row) from None
        raise


def _open_vectors_of(codec: RowCodec, row: Columns, vectors: list[Columns]) -> None:
    model = vectors[0][2] if vectors else ""
    blobs = [found[:2] for found in vectors]
    opener = VectorOpener(codec, row[AGENT_ID], model, sealed_ids([row]))
    for _, blob in opener.opened(blobs):
        vector_of(blob)


def _open_shadow_vectors_of(codec: RowCodec, row: Columns, vectors: list[Columns]) -> None:
    for model, of_model in groupby(vectors, itemgetter(2)):
        named = [(number, blob, model[len(MARK) :]) for number, blob, _ in of_model]
        _open_vectors_of(codec, row, named)


def add_missing_checksums(on: GuardedConnection, codec: RowCodec, after: int) -> tuple[int, int]:
    """Add checksums to the next rows without, where they can be read.

    Returns:
        Number of the rows that have them now, and the last row that was looked at; 0 is none.
    """
    number, found = 0, on.fetch(_WITHOUT_SUMS, (after, PAGE))
    for row in found:
        try:
            if codec.seals or not row[ENCRYPTED]:
                entries_of(codec, [row])
            number += on.summed_rows.add_missing(on, [row[0]])
        except StoreCorruptError:  # which the report has named
            continue
    return number, found[-1][0] if found else 0


def repair_agents(on: GuardedConnection, codec: RowCodec) -> list[str]:
    """Correct wrong numbers, sums and bytes of memories of agents; return the agents' ids."""
    on.summed_rows.settle(on)  # what earlier writes of its transaction left
    repaired = repaired_bytes(on, codec)
    for agent_id, *known in on.fetch(_AGENTS):
        found = added(on.fetch(_PLACED, (agent_id,)))
        if tuple(known) != found:
            on.run(_SET, (*found, agent_id))
            repaired.add(agent_id)
    return sorted(repaired)


STEPS_PER_REPORT = 2_000
"""Steps of SQLite between two reports: some two hundred rows."""


def backup_to(connections: Connections, target: str, report: Report = silent) -> None:
    """Copy everything, as of one moment, to a new file of mode 0600, and flush it to the disk.

    Other connections read and write meanwhile without waiting; the log grows by their writes and
    cannot be emptied before the copy is complete. The file appears under its name when it is
    complete.

    Args:
        connections: Connections of the memory to copy.
        target: Path of the copy; it must not exist, and its directory must.
        report: Called periodically with the bytes written so far and their expected number.

    Raises:
        StoreFileError: If the path exists or cannot be used.
        StoreFullError: If the disk is full or failing; nothing is left of the copy.
        StoreBusyError: If another process makes a backup to this path at the same time.
    """
    if target == MEMORY_PATH:
        raise StoreFileError(f"{target}: a backup needs a file to go to")
    _check_path(target)
    try:
        with new_part(target) as (descriptor, part):
            _copy(connections, part, target, report)
            with file_errors(target):
                put_mark(descriptor, Mark(LogState.ENDED))
    except FileExistsError:
        raise _exists(target) from None


def _check_path(target: str) -> None:
    try:
        os.path.realpath(target).encode()
        if os.path.lexists(target):
            raise _exists(target)
    except ValueError as error:
        raise StoreFileError(f"{target!r}: it is not a path in UTF-8 ({error})") from error


def _exists(target: str) -> StoreFileError:
    return StoreFileError(f"{target}: something is there already; choose another path")


def _copy(connections: Connections, part: str, target: str, report: Report) -> None:
    with typed_errors(target), connections.copying() as connection:
        if report is silent:
            connection.execute("VACUUM INTO ?", (part,))
            return
        size = _size(connection)

        def look() -> bool:
            report(min(os.stat(part).st_size, size), size)  # noqa: PTH116 - pathlib is slow to import
            return False

        connection.set_progress_handler(look, STEPS_PER_REPORT, id=_copy)
        try:
            connection.execute("VACUUM INTO ?", (part,))
        finally:
            connection.set_progress_handler(None, id=_copy)
        report(size, size)


def _size(connection: apsw.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = (
        int(connection.pragma(name)) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size

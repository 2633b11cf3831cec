"""The write-ahead log: copied into the file, without what was deleted, and taken away at the end.

SQLite overwrites what is deleted (secure_delete). But where it moves rows from one page to another
it leaves their old bytes in the first one, in the space between the list of cells and the cells,
and does not find them when such a row is deleted later: in 4,000 random deletions and changes one
entry stayed readable in the file. That space is part of nothing, so it is zeroed whenever a page is
copied from the log into the file. Only the connections of this module ever copy.
"""

import itertools
import os
import time
from contextlib import suppress

import apsw

from mnemic.store.sqlite.disk_space import DiskSpace, LogIndexSpace
from mnemic.store.sqlite.file_locks import SameFiles
from mnemic.store.sqlite.hardening import bound_schema
from mnemic.store.sqlite.log_mark import (
    COUNTER,
    MARK_OFFSET,
    MARK_SIZE,
    SALTS,
    LogState,
    Mark,
    mark_locked,
    needs_log,
)

COPY_PAGES = 1000
"""Pages in the log from which on a commit copies them into the file; SQLite's default."""

ERASE_MILLISECONDS = 50
"""Milliseconds that emptying the log waits for readers."""

RETRY_SECONDS = 1.0
"""Seconds after a failed attempt to empty the log until a commit repeats it."""

_MAX_WAITS = (0.001, 0.001, 0.001, 0.002, 0.002, 0.003, 0.003, 0.004)
_CELL_LISTS = {2: 12, 5: 12, 10: 8, 13: 8}  # type of tree page: size of its header
_FILE_HEADER = 100
_MAX_PAGES = 2**24  # below, a page that begins with another page's number begins with 0
_MARK_END = MARK_OFFSET + MARK_SIZE
_ENDED = Mark(LogState.ENDED)
_BEGINNING = Mark(LogState.BEGINNING)
_numbers = itertools.count()


class Checkpoints:
    """Copies a file's log into it, on a connection of its own. Not thread-safe.

    Args:
        path: The file, in WAL mode.
        wait: Milliseconds to wait for others' locks.
        same: Compares the file and its log with those that were opened.
        index_space: Reserves disk space for the log's index.

    Attributes:
        space: Reserves disk space for the file and the log.
    """

    def __init__(
        self,
        path: str,
        wait: int = ERASE_MILLISECONDS,
        *,
        same: SameFiles | None = None,
        index_space: LogIndexSpace | None = None,
    ) -> None:
        self._vfs = _Vfs(path)
        try:
            self._connection = apsw.Connection(
                path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs.name
            )
        finally:
            self._vfs.unregister()  # for others; the connection keeps it
        bound_schema(self._connection)
        self._connection.set_busy_timeout(wait)
        self._is_owed = False
        self._next_try = 0.0
        self._same = same
        self._index_space = index_space
        self._marked: bytes | None = None
        self.space = DiskSpace(path)
        try:
            self._look_at_pages()
        except BaseException:
            self._close()
            raise

    def before_commit(self) -> bool:
        """Check whether a transaction may be committed. SQLite's hook: an error undoes it.

        Raises:
            StoreReplacedError: If the file or its log is another file by now.
            StoreFullError: If there is no space for the index of a longer log.
        """
        if self._same is not None:
            self._same.check()
        if self._index_space is not None:
            self._index_space.check()
        if self._marked is None:
            self._vfs.announce_log()
        return False

    def after_commit(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Mark a new log, copy a long one, repeat a failed erasure. SQLite's hook."""
        self._mark()
        if self._index_space is not None:
            self._index_space.take(pages)
        if self._is_owed and time.monotonic() >= self._next_try:
            self._try_to_erase()
        elif pages >= COPY_PAGES:
            self._copy("PASSIVE")  # with its mark, so that the first page is copied with it
        return apsw.SQLITE_OK

    def erase(self) -> bool:
        """Copy the whole log into the file and empty it.

        Returns:
            Whether nothing of earlier deletions is left in the file or its log. If not, later
            commits, and the last process to close the file, try again.

        Raises:
            StoreReplacedError: If the file or its log is another file by now.
        """
        if self._same is not None:
            self._same.check()
        return self._try_to_erase()

    def empty(self) -> bool:
        """Copy the whole log into the file and empty it; return whether that was possible."""
        is_empty = self._copy("TRUNCATE")
        if is_empty:
            self.space.renew()
        return is_empty

    def _try_to_erase(self) -> bool:
        is_erased = self.empty() and self._vfs.is_zeroing
        self._is_owed = not is_erased
        self._next_try = time.monotonic() + RETRY_SECONDS
        return is_erased

    def close(self) -> None:
        """Close the file; if it is open nowhere else, copy and delete its log."""
        try:
            is_safe = self._are_same()
            self._look_at_pages()
        except apsw.Error:  # the file is damaged
            is_safe = False
        if not is_safe:  # nothing is copied blindly, and nothing deleted
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._close()

    def _close(self) -> None:
        with suppress(apsw.Error):  # a failing disk: it is closed, and its log is left
            self._connection.close()

    def _are_same(self) -> bool:
        return self._same is None or self._same.are_same()

    def _mark(self) -> None:
        """Write the name of the current log into the file's mark, if it changed."""
        # A failing disk: it is tried again after the next commit.
        with suppress(apsw.Error, OSError):
            salts = self._vfs.salts()
            # Another program that copies the log takes the mark away.
            if salts and (salts != self._marked or not self._vfs.is_named(salts)):
                self._marked = self._vfs.name_log()

    def _copy(self, how: str) -> bool:
        if not self._are_same():
            return False
        try:
            self._look_at_pages()
            is_busy, _, _ = self._connection.execute(f"PRAGMA wal_checkpoint({how})").get
        except apsw.Error:  # what was committed is safe in the log, and is copied another time
            return False
        return not is_busy

    def _look_at_pages(self) -> None:
        # Elsewhere the first byte of a page identifies its type; with auto_vacuum or 2²⁴ pages not.
        self._vfs.is_zeroing = (
            self._connection.pragma("auto_vacuum") == 0
            and self._connection.pragma("page_count") < _MAX_PAGES
        )


def remove_log(path: str, *, only_if_empty: bool = False, same: SameFiles | None = None) -> None:
    """Copy a log that is no longer used into its file, and delete it.

    If several processes close a file at once, their locks prevent each other, and the log is left
    behind; so this is tried a few times, at random moments. If the file is still open somewhere, it
    fails and takes some 15 ms. Nothing is touched if the file is another file by now.
    """
    for largest in _MAX_WAITS:
        if same is not None and not same.are_same():
            return
        try:
            size = os.stat(f"{path}-wal").st_size  # noqa: PTH116 - pathlib is slow to import
            if only_if_empty and (size or needs_log(path)):
                return
        except OSError:
            return
        time.sleep(largest * os.urandom(1)[0] / 256)
        with suppress(apsw.Error):  # another process may be taking it away right now
            # Without waiting: those who wait for one lock go on at one moment, and meet again.
            Checkpoints(path, wait=0, same=same).close()


def zeroed(page: bytes, offset: int) -> bytes:
    """Return a page with zeros between its cell list and its cells.

    Args:
        page: A whole page of a database without auto_vacuum and below 2²⁴ pages.
        offset: Offset of the page in the file.
    """
    start = _FILE_HEADER if offset == 0 else 0
    header = _CELL_LISTS.get(page[start])
    if header is None:
        return page
    first = start + header + 2 * int.from_bytes(page[start + 3 : start + 5], "big")
    last = int.from_bytes(page[start + 5 : start + 7], "big") or 65536
    if not first < last <= len(page) or page.count(0, first, last) == last - first:
        return page
    return page[:first] + bytes(last - first) + page[last:]


class _Vfs(apsw.VFS):
    def __init__(self, path: str) -> None:
        self.name = f"mnemic-{next(_numbers)}"
        self.path = path
        self.is_zeroing = False
        self._file: _File | None = None
        self._log: _Log | None = None
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            self._file = _File(self, name, flags)
            return self._file
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            self._log = _Log(self, name, flags)
            return self._log
        return apsw.VFSFile("", name, flags)

    def salts(self) -> bytes:
        """Return the salts of the log; empty if the log is empty."""
        return b"" if self._log is None else self._log.xRead(len(SALTS), SALTS.start)

    def announce_log(self) -> None:
        """Mark the file as beginning a log, if it needs none so far."""
        if self._file is not None and self._file.mark() == _ENDED:
            with mark_locked(self.path):
                if self._file.mark() == _ENDED:
                    self._file.write_mark(_BEGINNING)

    def name_log(self) -> bytes:
        """Write the log's salts into the file's mark; return them, empty if the log is empty.

        The log is synced before: another connection may just have begun it, and after a power cut
        the mark would name a log that does not exist.
        """
        with mark_locked(self.path):
            salts = self.salts()
            if salts and self._log is not None:
                self._log.xSync(apsw.SQLITE_SYNC_FULL)
                self._mark(Mark(LogState.USED, salts))
            return salts

    def is_named(self, salts: bytes) -> bool:
        """Return whether the file's mark names a log with these salts."""
        return self._file is None or self._file.mark() == Mark(LogState.USED, salts)

    def forget_log(self) -> None:
        """Remove the log's name from the file's mark, before the log is truncated."""
        if self._file is not None and self._file.mark() is not None:
            self._mark(_BEGINNING)

    def _mark(self, wanted: Mark) -> None:
        """Write a mark into the file and sync it, unless the file has it."""
        if self._file is not None and self._file.mark() != wanted:
            self._file.write_mark(wanted)

    def xSleep(self, microseconds: int) -> int:  # noqa: N802 - SQLite's name
        """Wait for a lock; the inherited method holds the interpreter's lock while it waits."""
        time.sleep(microseconds / 1e6)
        return microseconds

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's
        """Delete a file; empty a log before, as a power cut may restore its name.

        SQLite deletes a log when it was copied and the file is open nowhere else.
        """
        if filename.endswith("-wal"):
            self._end_log(filename)
        super().xDelete(filename, syncdir)

    def _end_log(self, name: str) -> None:
        was_used = self._empty(name)
        is_marked = self._file is not None and self._file.mark() is not None
        if was_used or is_marked:
            self._mark(_ENDED)

    def _empty(self, name: str) -> bool:
        """Truncate a log; return whether it had any content."""
        log = _Log(self, name, [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE, 0])
        try:
            size = log.xFileSize()
            if size:
                self.forget_log()  # a mark never names a log that this program has emptied
                log.truncate_and_sync(0)
        finally:
            log.xClose()
        return size > 0


class _File(apsw.VFSFile):
    def __init__(self, vfs: _Vfs, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        page = zeroed(data, offset) if self._vfs.is_zeroing else data
        if offset:
            super().xWrite(page, offset)
            return
        with mark_locked(self._vfs.path):
            super().xWrite(self._marked(page), offset)

    def mark(self) -> Mark | None:
        """Return the file's mark; None if it has none."""
        return Mark.of_page(self.xRead(_MARK_END, 0))

    def write_mark(self, mark: Mark) -> None:
        """Write a mark, and sync it."""
        counter = self.xRead(COUNTER.stop, 0)[COUNTER]
        super().xWrite(mark.encoded(counter), MARK_OFFSET)
        self.xSync(apsw.SQLITE_SYNC_FULL)

    def _marked(self, page: bytes) -> bytes:
        """Return the first page with the file's current mark; SQLite's copy may be older."""
        mark = self.mark()
        if mark is None:
            return page
        return page[:MARK_OFFSET] + mark.encoded(page[COUNTER]) + page[_MARK_END:]


class _Log(apsw.VFSFile):
    def __init__(self, vfs: _Vfs, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        """Truncate the log, after removing its name from the file's mark.

        SQLite holds the writer lock meanwhile, so no other connection begins the next log in
        between.
        """
        with mark_locked(self._vfs.path):
            self._vfs.forget_log()
            self.truncate_and_sync(newsize)

    def truncate_and_sync(self, size: int) -> None:
        """Truncate and sync; SQLite does not, so a power cut would restore erased data."""
        super().xTruncate(size)
        self.xSync(apsw.SQLITE_SYNC_FULL)

"""The write-ahead log: copied into the file, without what was deleted, and taken away at the end.

SQLite overwrites what is deleted (secure_delete). But where it moves rows from one page to another
it leaves their old bytes in the first one, in the room between the list of cells and the cells, and
does not find them when such a row is deleted later: in 4,000 random deletions and changes one entry
stayed readable in the file. That room is part of nothing, so it is zeroed whenever a page is copied
from the log into the file. Only the connections of this module ever copy.
"""

import itertools
import os
import time
from contextlib import suppress

import apsw

from mnemic.errors import StoreReplacedError
from mnemic.store.same_files import SameFiles

COPY_PAGES = 1000
"""From how many pages in the log on they are copied after a commit; SQLite's own default."""

ERASE_MILLISECONDS = 50
"""How long emptying the log waits for those who still read from it."""

RETRY_SECONDS = 1.0
"""How long after an attempt to empty the log that failed the next commit repeats it."""

_LARGEST_WAITS = (0.001, 0.001, 0.001, 0.002, 0.002, 0.003, 0.003, 0.004)
_CELL_LISTS = {2: 12, 5: 12, 10: 8, 13: 8}  # kind of tree page: size of its header
_FILE_HEADER = 100
_MOST_PAGES = 2**24  # below, a page that begins with another page's number begins with 0
_numbers = itertools.count()


class Checkpoints:
    """Copies a file's log into it, on a connection that does nothing else.

    Not for several threads at once.

    Args:
        path: The file, in WAL mode.
        wait: How many milliseconds to wait for others' locks.
        same: Tells whether the file and its log are still those that were opened.
    """

    def __init__(
        self, path: str, wait: int = ERASE_MILLISECONDS, *, same: SameFiles | None = None
    ) -> None:
        self._vfs = _Vfs()
        try:
            self._connection = apsw.Connection(
                path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs.name
            )
        finally:
            self._vfs.unregister()  # for others; the connection keeps it
        self._connection.set_busy_timeout(wait)
        self._is_owed = False
        self._next_try = 0.0
        self._same = same
        try:
            self._look_at_pages()
        except BaseException:
            self._close()
            raise

    def after_commit(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Copy a log that has grown long; repeat an erasure that failed. SQLite's hook."""
        if self._is_owed and time.monotonic() >= self._next_try:
            self.erase()
        elif pages >= COPY_PAGES:
            self._copy("PASSIVE")
        return apsw.SQLITE_OK

    def erase(self) -> bool:
        """Copy the whole log into the file and empty it.

        Returns:
            Whether nothing of what was deleted before is left in the file or its log. If not, it is
            tried again with later commits and by whoever closes the file last.

        Raises:
            StoreReplacedError: If the file or its log is another one by now.
        """
        is_erased = self._copy("TRUNCATE") and self._vfs.is_zeroing
        self._is_owed = not is_erased
        self._next_try = time.monotonic() + RETRY_SECONDS
        return is_erased

    def close(self) -> None:
        """Close the file; if nobody else has it open, its log is copied and taken away."""
        try:
            self._check_same()
            self._look_at_pages()
        except (apsw.Error, StoreReplacedError):  # nothing is copied blindly, and nothing deleted
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._close()

    def _close(self) -> None:
        with suppress(apsw.Error):  # a failing disk: it is closed, and its log is left
            self._connection.close()

    def _check_same(self) -> None:
        if self._same is not None:
            self._same.check()

    def _copy(self, how: str) -> bool:
        self._check_same()
        try:
            self._look_at_pages()
            is_busy, _, _ = self._connection.execute(f"PRAGMA wal_checkpoint({how})").get
        except apsw.Error:  # what was committed is safe in the log, and is copied another time
            return False
        return not is_busy

    def _look_at_pages(self) -> None:
        # Only here may a page be taken for another: where its first byte is not what it seems.
        self._vfs.is_zeroing = (
            self._connection.pragma("auto_vacuum") == 0
            and self._connection.pragma("page_count") < _MOST_PAGES
        )


def remove_log(path: str, *, only_if_empty: bool = False, same: SameFiles | None = None) -> None:
    """Copy a log that nobody uses any more into its file, and take it away.

    Where several processes close a file at one moment, each is kept from that by the others' locks
    and leaves the log behind; so it is tried a few times, at moments that differ. Where somebody
    still has the file open, that is in vain and takes some 15 ms. Nothing is touched if the file is
    not the same any more.
    """
    for largest in _LARGEST_WAITS:
        if same is not None and not same.are_same():
            return
        try:
            size = os.stat(f"{path}-wal").st_size  # noqa: PTH116 - pathlib is slow to import
            if size and only_if_empty:
                return
        except OSError:
            return
        time.sleep(largest * os.urandom(1)[0] / 256)
        with suppress(apsw.Error):  # another process may be taking it away right now
            # Without waiting: those who wait for one lock go on at one moment, and meet again.
            Checkpoints(path, wait=0, same=same).close()


def zeroed(page: bytes, offset: int) -> bytes:
    """Return a page with zeros between its list of cells and its cells.

    Args:
        page: All of a page of a database without auto_vacuum and below 2²⁴ pages.
        offset: Where it lies in the file.
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
    def __init__(self) -> None:
        self.name = f"mnemic-{next(_numbers)}"
        self.is_zeroing = False
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _File(self, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _Log("", name, flags)
        return apsw.VFSFile("", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's
        """Delete a file; empty a log before, as a power cut may bring back its name."""
        if filename.endswith("-wal"):
            _empty(filename)
        super().xDelete(filename, syncdir)


def _empty(log: str) -> None:
    file = _Log("", log, [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        if file.xFileSize():
            file.xTruncate(0)
    finally:
        file.xClose()


class _File(apsw.VFSFile):
    def __init__(self, vfs: _Vfs, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(zeroed(data, offset) if self._vfs.is_zeroing else data, offset)


class _Log(apsw.VFSFile):
    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        """Truncate and sync; SQLite does not, so a power cut would bring back what was erased."""
        super().xTruncate(newsize)
        self.xSync(apsw.SQLITE_SYNC_FULL)

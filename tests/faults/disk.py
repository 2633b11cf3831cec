"""A disk whose power can be cut: a SQLite VFS that keeps what was not yet synced in memory only.

What is written is seen by every connection of this process and reaches the real file when SQLite
syncs it. At the cut the process ends, and of each unsynced write a random choice of its 512-byte
sectors reaches the file, as on a real disk, which writes when and in which order it likes; places
past the old end that were not reached may hold anything. Names are treated alike: a file that was
made or deleted since its directory was last synced may be there or not.

Not modelled: disks that tear a sector, lose synced data or answer a sync too early, and a renamed
file, which SQLite does not need. The log's shared memory is a real file, of which nothing is ever
synced: whoever looks at the disk after the cut may fill it with rubbish.
"""

import os
import random
import threading
import time
from pathlib import Path

import apsw

SECTOR = 512
POWER_CUT = 99
"""The exit code of a process whose power was cut."""

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_KEPT = _JOURNALS | apsw.SQLITE_OPEN_MAIN_DB


class Disk:
    """The files of one folder: what this process sees of them, and what is on the disk.

    Args:
        folder: Where all files lie; what it holds now is on the disk.
        seed: Of the choices made at the cut.
        cut_after: The power goes at this operation on files, counted from 1.
    """

    def __init__(self, folder, seed, cut_after):
        self.folder = Path(folder)
        self.lock = threading.RLock()
        self.random = random.Random(seed)  # noqa: S311 - not a secret
        self.left = cut_after
        self.seen = {}
        self.unsynced = {}
        self.names = self.names_now()
        self.deleted = {}
        self.vfs = _Vfs(self)

    def step(self):
        self.left -= 1
        if self.left == 0:
            self.cut()

    def names_now(self):
        return {path.name for path in self.folder.iterdir() if path.is_file()}

    def sync_names(self):
        self.names = self.names_now()
        self.deleted.clear()

    def forget(self, path):
        """Take a deleted file away; its name may still come back with what was on the disk."""
        content = Path(path).read_bytes()
        if Path(path).name in self.names and path not in self.deleted:
            self.deleted[path] = self.after_cut(content, self.unsynced.get(path, []))
        self.seen.pop(path, None)
        self.unsynced.pop(path, None)

    def cut(self):
        """End the process, leaving on the disk what was synced and a random part of the rest."""
        with self.lock:
            for path, writes in self.unsynced.items():
                if Path(path).exists():
                    Path(path).write_bytes(self.after_cut(Path(path).read_bytes(), writes))
            self._cut_names()
            os._exit(POWER_CUT)

    def after_cut(self, synced, writes):
        """Return a file's content after the cut; a write of None is a truncation."""
        content, share = bytearray(synced), self.random.choice((0, 0.1, 0.5, 0.9, 1))
        for offset, data in writes:
            if data is None:
                if self.random.random() < share:
                    del content[offset:]
                continue
            for start, sector in _sectors(offset, data):
                if self.random.random() < share:
                    put(content, start, sector)
                elif start >= len(content) and self.random.random() < 0.1:
                    put(content, start, self.random.randbytes(len(sector)))
        return bytes(content)

    def _cut_names(self):
        for name in self.names_now() - self.names:
            if self.random.random() < 0.5:
                (self.folder / name).unlink()
        for path, content in self.deleted.items():
            if self.random.random() < 0.5:
                Path(path).write_bytes(content)


def _sectors(offset, data):
    """Cut a write where the disk's sectors begin."""
    start = 0
    while start < len(data):
        size = SECTOR - (offset + start) % SECTOR
        yield offset + start, data[start : start + size]
        start += size


def put(content, offset, data):
    """Write into a bytearray as into a file: what lies between its end and the offset is zero."""
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class _Vfs(apsw.VFS):
    def __init__(self, disk):
        self.disk = disk
        super().__init__("power-cut", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        if name is None or not flags[0] & _KEPT:
            return apsw.VFSFile("unix", name, flags)
        return _File(self.disk, name, flags)

    def xSleep(self, microseconds):  # noqa: N802
        # The inherited one keeps the interpreter's lock, so that the holder of a lock of SQLite
        # could not go on while another thread waits for it.
        time.sleep(microseconds / 1e6)
        return microseconds

    def xDelete(self, filename, syncdir):  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            if Path(filename).exists():
                self.disk.forget(filename)
            super().xDelete(filename, syncdir)
            if syncdir:
                self.disk.sync_names()


class _File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        self.disk = disk
        self.path = name if isinstance(name, str) else name.filename()
        # SQLite's own rule for when the first sync of a file syncs its directory too.
        self.syncs_names = flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _JOURNALS
        with disk.lock:
            super().__init__("unix", name, flags)
            if self.path not in disk.seen:
                disk.seen[self.path] = bytearray(super().xRead(super().xFileSize(), 0))
                disk.unsynced[self.path] = []

    def xRead(self, amount, offset):  # noqa: N802
        with self.disk.lock:
            return bytes(self.disk.seen[self.path][offset : offset + amount])

    def xFileSize(self):  # noqa: N802
        with self.disk.lock:
            return len(self.disk.seen[self.path])

    def xWrite(self, data, offset):  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            put(self.disk.seen[self.path], offset, data)
            self.disk.unsynced[self.path].append((offset, bytes(data)))

    def xTruncate(self, newsize):  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            del self.disk.seen[self.path][newsize:]
            self.disk.unsynced[self.path].append((newsize, None))

    def xSync(self, _flags):  # noqa: N802
        # The real file need not be synced: only this process ends, not the machine.
        with self.disk.lock:
            self.disk.step()
            for offset, data in self.disk.unsynced[self.path]:
                if data is None:
                    super().xTruncate(offset)
                else:
                    super().xWrite(data, offset)
            self.disk.unsynced[self.path].clear()
            if self.syncs_names:
                self.disk.sync_names()
                self.syncs_names = False
            self.disk.step()

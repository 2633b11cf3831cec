"""A file with one approximate index: its checksum is verified before the library reads a byte.

Layout, little-endian: magic (8 bytes), version of the format (uint32), bytes of the header
(uint32), bytes of the index (uint64), number of positions (uint64), SHA-256 of all else (32 bytes);
the header, JSON; the index as FAISS writes it; the row of each position (int64).
"""

import hashlib
import os
import stat
import struct
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.index.choice import FaissIndex, FaissOptions, faiss_library
from mnemic.new_files import file_errors, new_file

MAGIC: Final = b"mnemicVI"
VERSION: Final = 1

_PREAMBLE: Final = struct.Struct("<8sIIQQ32s")
_SUM_BYTES: Final = 32
_PIECE: Final = 1 << 20
_MAX_HEADER: Final = 1 << 20


class SavedIndexError(Exception):
    """A file has no index that can be used here; it is of no use and can be removed."""


class SavedIndex(NamedTuple):
    """What a file has.

    Attributes:
        held: The index.
        rows: The row of each of its positions, int64, shape (n,).
        label: What the caller gave.
    """

    held: FaissIndex
    rows: NDArray[np.int64]
    label: bytes


class _Header(msgspec.Struct, frozen=True):
    """What shapes an index; options of searches are left out, which may differ."""

    faiss: str
    byte_order: str
    dim: int
    size: int
    kind: str
    links: int
    build_depth: int
    label: bytes

    @classmethod
    def of(cls, options: FaissOptions, dim: int, size: int, label: bytes) -> "_Header":
        return cls(
            faiss=faiss_library().__version__,
            byte_order=sys.byteorder,
            dim=dim,
            size=size,
            kind=options.kind,
            links=options.links,
            build_depth=options.build_depth,
            label=label,
        )


class _Lengths(NamedTuple):
    """The parts of a file: bytes of the header and of the index, and number of positions."""

    header: int
    body: int
    positions: int

    @property
    def total(self) -> int:
        return _PREAMBLE.size + self.header + self.body + 8 * self.positions


def write_index(
    path: str,
    saved: SavedIndex,
    options: FaissOptions,
    dim: int,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Write an index to a new file of mode 0600, which takes the place of an old one when complete.

    Args:
        path: The file.
        saved: The index, its positions and a label.
        options: Its options.
        dim: Dimension of its vectors.
        is_stopped: Called between the pieces of the file; once it is true, nothing is written.

    Returns:
        Whether it was written to its end.

    Raises:
        StoreError: If the file cannot be written; there is no part of it then.
    """
    header = msgspec.json.encode(_Header.of(options, dim, saved.held.size, saved.label))
    try:
        with new_file(path, overwrite=True) as descriptor, file_errors(path):
            _write(descriptor, header, saved, is_stopped)
    except _StoppedError:
        return False
    return True


class _StoppedError(Exception):
    """Writing was stopped."""


def _write(
    descriptor: int, header: bytes, saved: SavedIndex, is_stopped: Callable[[], bool]
) -> None:
    with open(descriptor, "wb", buffering=_PIECE, closefd=False) as file:
        file.write(bytes(_PREAMBLE.size) + header)
        summed = hashlib.sha256(header)
        output = _Output(file, summed.update, is_stopped)
        saved.held.write(output)
        output.check()
        rows = saved.rows.astype("<i8").tobytes()
        summed.update(rows)
        file.write(rows)
        lengths = _Lengths(len(header), output.written, len(saved.rows))
        file.seek(0)
        file.write(_preamble(lengths, summed.digest()))


def _preamble(lengths: _Lengths, summed: bytes) -> bytes:
    """Return the beginning of a file, given the SHA-256 of what follows it."""
    plain = _PREAMBLE.pack(MAGIC, VERSION, *lengths, b"")[:-_SUM_BYTES]
    return plain + hashlib.sha256(plain + summed).digest()


class _Output:
    """Takes what FAISS writes; an error is raised later, for C++ must not see it.

    Attributes:
        written: Number of bytes so far.
    """

    def __init__(
        self, file: BinaryIO, sum_up: Callable[[bytes], None], is_stopped: Callable[[], bool]
    ) -> None:
        self._file = file
        self._sum_up = sum_up
        self._is_stopped = is_stopped
        self._error: BaseException | None = None
        self.written = 0

    def __call__(self, piece: bytes) -> None:
        if self._error is None:
            try:
                self._take(piece)
            except BaseException as error:  # noqa: BLE001 - raised by `check`
                self._error = error

    def _take(self, piece: bytes) -> None:
        if self._is_stopped():
            raise _StoppedError
        self._file.write(piece)
        self._sum_up(piece)
        self.written += len(piece)

    def check(self) -> None:
        """Raise the error, if there was one."""
        if self._error is not None:
            raise self._error


def read_index(
    path: str,
    options: FaissOptions,
    dim: int,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> SavedIndex:
    """Return the index of a file, once all of the file is verified.

    Args:
        path: The file.
        options: The options wanted; those of searches may differ from the file's.
        dim: The dimension wanted.
        is_stopped: Called between the pieces of the file; once it is true, reading ends.

    Raises:
        SavedIndexError: If there is no such file of this user's own, if it is damaged or cut off,
            or if it is of another format, version of FAISS, dimension or kind of index; or if
            reading was stopped.
    """
    try:
        with _opened(path) as file:
            return _read(file, options, dim, is_stopped)
    except OSError as error:
        raise SavedIndexError(f"it cannot be read ({error.strerror})") from error


@contextmanager
def _opened(path: str) -> Generator[BinaryIO, None, None]:
    flags = os.O_RDONLY
    for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):  # it would wait for a pipe
        flags |= getattr(os, name, 0)
    with open(os.open(path, flags), "rb", buffering=_PIECE) as file:  # noqa: PTH123 - no path
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise SavedIndexError("it is no file")
        # Whoever can write it can make checksums too, and FAISS trusts what it reads.
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise SavedIndexError("it is of another user")
        yield file


def _read(
    file: BinaryIO, options: FaissOptions, dim: int, is_stopped: Callable[[], bool]
) -> SavedIndex:
    lengths, header = _verified(file, is_stopped)
    wanted = _Header.of(options, dim, header.size, header.label)
    for name in header.__struct_fields__:
        found, expected = getattr(header, name), getattr(wanted, name)
        if found != expected:
            raise SavedIndexError(f"its {name} is {found!r}, not {expected!r}")
    file.seek(_PREAMBLE.size + lengths.header)
    index = FaissIndex.read(options, dim, _Input(file, lengths.body, is_stopped))
    if index is None or index.size != header.size:
        raise SavedIndexError("FAISS cannot read it")
    file.seek(lengths.total - 8 * lengths.positions)
    rows = np.frombuffer(file.read(8 * lengths.positions), "<i8").astype(np.int64)
    if len(rows) != header.size or bool((rows < 0).any()):
        raise SavedIndexError("its positions are not those of its index")
    return SavedIndex(index, rows, header.label)


def _verified(file: BinaryIO, is_stopped: Callable[[], bool]) -> tuple[_Lengths, _Header]:
    """Return lengths and header of a file whose bytes are those that were written."""
    preamble = file.read(_PREAMBLE.size)
    if len(preamble) < _PREAMBLE.size or not preamble.startswith(MAGIC):
        raise SavedIndexError("it is no index")
    _, version, *numbers, _ = _PREAMBLE.unpack(preamble)
    if version != VERSION:
        raise SavedIndexError(f"its format has version {version}, not {VERSION}")
    lengths = _Lengths(*numbers)
    size = os.fstat(file.fileno()).st_size
    if lengths.total != size or lengths.header > _MAX_HEADER:
        raise SavedIndexError(f"it has {size} bytes, not {lengths.total}")
    header = file.read(lengths.header)
    summed = hashlib.sha256(header)
    while (piece := file.read(_PIECE)) and not is_stopped():
        summed.update(piece)
    if _preamble(lengths, summed.digest()) != preamble:
        raise SavedIndexError("its checksum differs")
    try:
        return lengths, msgspec.json.decode(header, type=_Header)
    except (msgspec.MsgspecError, ValueError) as error:
        raise SavedIndexError("its header is none") from error


class _Input:
    """Gives FAISS the bytes of its part of a file, and no others."""

    def __init__(self, file: BinaryIO, size: int, is_stopped: Callable[[], bool]) -> None:
        self._file = file
        self._left = size
        self._is_stopped = is_stopped

    def __call__(self, size: int) -> bytes:
        if self._is_stopped():
            return b""
        piece = self._file.read(min(size, self._left))
        self._left -= len(piece)
        return piece

"""Files of an export: a new one that appears when it is complete, and any one to read twice."""

import codecs
import io
import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from mnemic.errors import ExportFormatError, InvalidArgumentError
from mnemic.new_files import new_file, writing_errors
from mnemic.reporting.description import described
from mnemic.repository.export_format import MAX_LINE_BYTES


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
    if isinstance(encoding, str) and not _is_utf8(encoding):
        raise InvalidArgumentError(
            f"{what} is opened as {encoding}; open it with encoding='utf-8', or pass the path"
        )


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}


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

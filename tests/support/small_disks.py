"""Small file systems in memory, which tests fill."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.postgres_server import NOBODY


class Disk:
    """A file system, and a file that takes up its space.

    Args:
        folder: Where it is mounted.
    """

    def __init__(self, folder):
        self.folder = folder
        self._rest = folder / "rest"

    def fill(self, free):
        """Take up its space but for some bytes."""
        space = os.statvfs(self.folder)
        with self._rest.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - free)

    def empty(self):
        """Give the space back."""
        self._rest.unlink()


@contextmanager
def small_disk(size):
    """Mount a file system of a number of bytes, which the server's user owns, or skip the test."""
    folder = Path(tempfile.mkdtemp(prefix="mnemic-disk-"))
    try:
        _mount(folder, size)
        try:
            yield Disk(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)  # noqa: S607
    finally:
        folder.rmdir()


def _mount(folder, size):
    owner = f"uid={NOBODY},gid={NOBODY}," if os.getuid() == 0 else ""
    options = f"size={size},{owner}mode=700"
    command = ["mount", "-t", "tmpfs", "-o", options, "mnemic", folder]
    try:
        mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if mounted.returncode:
        pytest.skip(f"this user may not mount a file system: {mounted.stderr.strip()}")

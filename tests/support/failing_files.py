"""New files that cannot be completed."""

import os

from mnemic import new_files
from mnemic._core import NewFile


def fail_to_complete(monkeypatch, errno):
    """Let every new file of this process meet an error when it is put on disk."""

    class Failing:
        def __init__(self, *names, **options):
            self._file = NewFile(*names, **options)

        def commit(self):
            raise OSError(errno, os.strerror(errno))

        def __getattr__(self, name):
            return getattr(self._file, name)

    monkeypatch.setattr(new_files, "NewFile", Failing)

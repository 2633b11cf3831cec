"""The command `mnemic`, run in this process on a file of its own."""

import io

import pytest

from mnemic.cli.main import main


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the file that the command uses."""
    path = tmp_path / "memory.db"
    monkeypatch.setenv("MNEMIC_DB", str(path))
    for name in ("MNEMIC_USER", "MNEMIC_KEY", "MNEMIC_NEW_KEY", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def run(place, capsys, monkeypatch):
    """Run a verb; return its exit code, its output and its errors."""
    monkeypatch.chdir(place.parent)

    def run(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = main([*map(str, arguments)])
        return (code, *capsys.readouterr())

    return run

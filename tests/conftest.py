"""Settings and fixtures of all tests."""

import threading

import pytest

pytest.register_assert_rewrite("tests.faults", "tests.store.contract")


@pytest.fixture
def quiet_threads():
    """Let a worker's failure reach the assertion instead of the thread's own warning."""
    hook = threading.excepthook
    threading.excepthook = lambda _: None
    yield
    threading.excepthook = hook


@pytest.fixture
def path(tmp_path):
    """Return where a file may be made."""
    return tmp_path / "a.db"

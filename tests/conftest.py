"""Settings and fixtures of all tests."""

import threading

import pytest

from tests.support.model_server import model_server
from tests.support.paths import EXAMPLES

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


@pytest.fixture(scope="session")
def running_model_server():
    """Run the local protocol server, with hashed vectors."""
    if not EXAMPLES.is_dir():
        pytest.skip("the examples come with the repository")
    with model_server() as server:
        yield server


@pytest.fixture
def server(running_model_server):
    """Return the local protocol server, without faults and requests."""
    running_model_server.reset()
    return running_model_server

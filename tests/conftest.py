"""Settings and fixtures of all tests."""

import faulthandler
import os
import threading
import time

import pytest

from tests.support.model_server import model_server
from tests.support.paths import EXAMPLES
from tests.support.tiers import LONG_FOLDERS, SEED, TESTS, TIER, is_of_this_run, leaves_out_long

os.environ["TZ"] = "UTC"  # also of child processes; tests of another zone name it
if hasattr(time, "tzset"):
    time.tzset()

pytest.register_assert_rewrite("tests.faults", "tests.store.contract")

FATAL_LOG = os.environ.pop("MNEMIC_FATAL_LOG", None)  # of this process, not of its children
"""A file for the running test and, where the process dies, its threads; see `tools/fatal.py`."""


class FatalLog:
    """Keeps the file: first the running test, then the threads if the process dies."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def pytest_sessionstart(self):
        faulthandler.enable(self._file)  # after pytest's own plugin

    def pytest_runtest_logstart(self, nodeid):
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, f"{nodeid}\n".encode())


class FatalLogs:
    """Names a file for each process of a run in several."""

    def pytest_configure_node(self, node):
        node.workerinput["fatal_log"] = f"{FATAL_LOG}.{node.gateway.id}"


def pytest_report_header():
    """Print what repeats the random tests of this run."""
    return f"tier: {TIER}, seed: {SEED}"


def pytest_ignore_collect(collection_path, config):
    """Leave out the folders of another tier before their modules are imported."""
    is_long = collection_path in {TESTS / name for name in LONG_FOLDERS}
    return True if is_long and leaves_out_long(config) else None


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of another tier."""
    others = [item for item in items if not is_of_this_run(config, item)]
    items[:] = [item for item in items if is_of_this_run(config, item)]
    config.hook.pytest_deselected(items=others)


def pytest_configure(config):
    log = getattr(config, "workerinput", {}).get("fatal_log", FATAL_LOG)
    if log is not None:
        is_in_several = config.getoption("numprocesses", None)
        config.pluginmanager.register(FatalLogs() if is_in_several else FatalLog(log))


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


@pytest.fixture
def threads_named():
    """Return a function that gives the threads of a name that were started in this test."""
    earlier = set(threading.enumerate())
    return lambda part: [
        each for each in threading.enumerate() if part in each.name and each not in earlier
    ]

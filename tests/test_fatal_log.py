"""The report of a test run that died."""

import signal
import subprocess
import sys

import pytest

from tests.support.paths import ROOT
from tests.support.processes import ENVIRONMENT

DYING = """
import os, signal, threading

def dies():
    signal.raise_signal(signal.SIGABRT)

def test_of_a_thread_that_dies():
    thread = threading.Thread(target=dies)
    thread.start()
    thread.join(60)
"""


@pytest.fixture
def dying(tmp_path):
    """Return a file of tests with the settings of all tests."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure\n")
    (tmp_path / "test_dying.py").write_text(DYING)
    return tmp_path / "test_dying.py"


@pytest.mark.parametrize(
    ("options", "code", "worker"), [([], -signal.SIGABRT, ""), (["--numprocesses", "1"], 1, ".gw0")]
)
def test_it_ends_with_the_test_and_the_thread_that_died(dying, tmp_path, options, code, worker):
    log = tmp_path / "fatal.log"
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, dying]
    died = subprocess.run(
        [*run, *options],
        env={**ENVIRONMENT, "MNEMIC_FATAL_LOG": log},
        capture_output=True,
        check=False,
    )
    assert died.returncode == code
    told = subprocess.run(
        [sys.executable, ROOT / "tools" / "fatal.py", f"{log}{worker}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    *_, dead, end = told.split("\n\n")
    assert dead.startswith("Current thread")
    assert "in dies" in dead
    assert "in test_of_a_thread_that_dies" in told
    assert end.startswith("Fatal Python error: Aborted")
    assert end.endswith("The tests died in test_dying.py::test_of_a_thread_that_dies\n")

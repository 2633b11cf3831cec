"""A signal handler that uses memories at any moment of their calls is answered or refused."""

import json
import subprocess
import sys

import pytest

from tests.support.places import KINDS, Places
from tests.support.processes import ENVIRONMENT

SECONDS = 0.25
"""Of each call."""

PATIENT = 6.0
"""Seconds that no call of the handler takes; whoever waits for its own thread gives up later."""


@pytest.mark.parametrize("kind", [":memory:", *KINDS])
def test_a_handler_is_answered_or_refused_and_nothing_it_stored_is_lost(kind, tmp_path):
    with Places("sqlite" if kind == ":memory:" else kind, tmp_path) as places:
        urls = [":memory:", ":memory:"] if kind == ":memory:" else [places.new(), places.new()]
        command = [sys.executable, "-m", "tests.faults.signal_workload", kind, str(SECONDS), *urls]
        done = subprocess.run(
            [*command, tmp_path],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(done.stdout)
    outcomes = {name.rpartition(": ")[2] for name in told["outcomes"]}
    assert outcomes <= {"answered", "refused", "EntryNotFoundError", "InvalidEntryError"}, told
    errors = {name.rpartition(": ")[2] for name in told["errors"]}
    assert errors <= {"EntryNotFoundError", "InvalidEntryError"}, told
    assert told["outcomes"]["answered"]
    assert told["outcomes"]["refused"]
    assert told["slowest"][0] < PATIENT, told["slowest"]
    assert told["notes"]
    assert (told["lost"], told["problems"]) == (0, [])

"""Threads that use everything take locks in the order of docs/project/design.md."""

import json
import subprocess
import sys

import pytest

from tests.support.lock_levels import circle, levels, problems
from tests.support.places import KINDS, Places
from tests.support.processes import ENVIRONMENT

SECONDS = 6

UNUSED = {
    *("Clients._lock", "MiniLmEmbedder._lock", "_Process._making"),  # of parts that are left out
    *("AccessSpacing.lock", "RecallGuard._lock"),
}
"""Locks that the workload does not take."""


def seen_by(kind, folder, seconds=SECONDS, *, of=None):
    """Run the workload in a place of a kind; return what it saw."""
    with Places(of or kind, folder) as places:
        is_shared = kind != ":memory:"
        urls = (places.new(), places.new()) if is_shared else (":memory:", ":memory:")
        command = [sys.executable, "-m", "tests.faults.lock_workload", kind, str(seconds), *urls]
        done = subprocess.run(
            [*command, folder],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def taken():
    return set()


@pytest.mark.parametrize("kind", [":memory:", *KINDS])
def test_locks_are_taken_in_their_order(kind, tmp_path, taken):
    seen = seen_by(kind, tmp_path, of="sqlite" if kind == ":memory:" else None)
    assert seen["failed"] == []
    assert problems(seen) == []
    assert circle(seen) == []
    taken |= set(seen["taken"])


def test_the_workload_takes_every_lock(taken):
    if not taken:
        pytest.skip("the workload was not run")
    assert set(levels()) - taken <= UNUSED


def test_an_inversion_is_found(tmp_path):
    seen = seen_by("inverted", tmp_path, 0, of="sqlite")
    assert problems(seen)[0].startswith("IndexAccesses.moving is taken under IndexAccesses._lock\n")
    assert set(circle(seen)) == {"IndexAccesses.moving", "IndexAccesses._lock"}

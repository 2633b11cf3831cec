"""A memory is used by event loops, threads and forked processes while Ctrl-C and a close come."""

import json
import re
import subprocess
import sys

import pytest

from mnemic import Memory
from tests.support.embedders import WordEmbedder
from tests.support.places import KINDS, Places
from tests.support.processes import ENVIRONMENT
from tests.support.tiers import TIER, seeds

SECONDS = 1.0
CLOSED = re.compile(r"StoreClosedError: |EmbeddingError: .*event loop of the embedder")
INTERRUPTED = re.compile(r"EmbeddingError: .*RuntimeError at _base.py")
"""Ctrl-C in a lock of the standard library, which then cannot be released."""


@pytest.mark.parametrize("kind", ["sqlite"] if TIER == "quick" else KINDS)
@pytest.mark.parametrize("seed", seeds(5))
def test_everybody_is_answered_or_told_that_it_is_closed_and_nothing_acknowledged_is_lost(
    kind, seed, tmp_path
):
    with Places(kind, tmp_path) as places:
        url = places.new()
        # A fork beside threads is what is tested, and what Python 3.12 warns of.
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore::DeprecationWarning"),
                *("-m", "tests.faults.hand_over_workload", str(seed), str(SECONDS), url),
            ],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        told = json.loads(done.stdout)
        with Memory(url, embedder=WordEmbedder()) as memory:
            kept = memory.get_many(told["added"])
            problems = memory.verify().problems
    assert (len(kept), problems) == (len(told["added"]), ())
    assert set(told["children"]) == {"0"}
    assert told["raised"].pop("KeyboardInterrupt")
    others = [error for error in told["raised"] if not CLOSED.match(error)]
    assert [error for error in others if not INTERRUPTED.match(error)] == []
    assert any(error.startswith("StoreClosedError") for error in told["raised"])
    assert "unhandled" not in done.stderr

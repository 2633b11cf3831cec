"""A checkout shows the same as itself, and a fault in it is found."""

import subprocess
import sys

from tests.recordings.comparing import differences
from tests.support.paths import ROOT

DROPS_AN_EVENT = """
from mnemic.events import Events, MemoryStoredEvent

publish = Events.publish

async def publish_others(self, event):
    if not isinstance(event, MemoryStoredEvent):
        await publish(self, event)

Events.publish = publish_others
"""
STEP = {"kind": "step", "call": "memory.add"}
EVENT, METRIC = {"kind": "event", "event": 1}, {"kind": "metric", "value": 1}


def compared(*arguments):
    command = [sys.executable, "-m", "tests.recordings", "compare", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def test_a_checkout_shows_the_same_as_itself_whatever_the_seed_of_hashes():
    found = compared(ROOT, ROOT, "--programs", 6)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "6 programs" in found.stdout
    assert ", 0 lines" not in found.stdout


def test_a_dropped_event_is_the_only_difference_of_a_checkout_without_it(tmp_path):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/mnemic").symlink_to(ROOT / "python/mnemic")
    (tmp_path / "python/sitecustomize.py").write_text(DROPS_AN_EVENT)
    found = compared(ROOT, tmp_path, "--programs", 1)
    assert found.returncode == 1, found.stderr
    of_kinds = [line for line in found.stdout.splitlines() if " programs: " in line]
    assert of_kinds
    assert all(line.endswith("event") for line in of_kinds)
    assert '{"kind": "event", "event": {"": "MemoryStoredEvent"' in found.stdout


def test_a_line_too_many_makes_no_other_line_differ():
    found = list(differences([STEP, EVENT, METRIC], [STEP, EVENT, METRIC, EVENT]))
    assert found == [("memory.add: event", [EVENT], [EVENT, EVENT])]


def test_the_order_of_kinds_is_compared():
    found = list(differences([EVENT, METRIC], [METRIC, EVENT]))
    assert found == [("opening: order", ["step", "event", "metric"], ["step", "metric", "event"])]

"""Recordings are the same from run to run, and show what a program would notice."""

import json
import os
import subprocess
import sys

from tests.recordings.comparing import differences
from tests.support.paths import ROOT

PROGRAMS = ["--programs", "6", "--seed", "3"]

DROPS_AN_EVENT = """
from mnemic.events import Events, MemoryStoredEvent

publish = Events.publish

async def publish_others(self, event):
    if not isinstance(event, MemoryStoredEvent):
        await publish(self, event)

Events.publish = publish_others
"""


def run(*arguments, **environment):
    command = [sys.executable, "-m", "tests.recordings", *map(str, arguments)]
    given = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=given, check=False, capture_output=True, text=True)


def test_recordings_are_the_same_whatever_the_seed_of_hashes(tmp_path):
    outs = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    for out, seed in zip(outs, "17", strict=True):
        run("record", out, *PROGRAMS, PYTHONHASHSEED=seed).check_returncode()
    one, other = (out.read_text() for out in outs)
    assert one == other
    kinds = {json.loads(line)["kind"] for line in one.splitlines()}
    assert kinds >= {"answer", "event", "log", "metric", "embedded", "prompt", "stats"}


def test_a_dropped_event_is_the_only_difference_of_a_checkout_without_it(tmp_path):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/mnemic").symlink_to(ROOT / "python/mnemic")
    (tmp_path / "python/sitecustomize.py").write_text(DROPS_AN_EVENT)
    found = run("compare", ROOT, tmp_path, "--programs", 1)
    assert found.returncode == 1, found.stderr
    of_kinds = [line for line in found.stdout.splitlines() if " programs: " in line]
    assert of_kinds
    assert all(line.endswith("event") for line in of_kinds)
    assert '{"kind": "event", "event": {"": "MemoryStoredEvent"' in found.stdout


def test_a_line_too_many_makes_no_other_line_differ():
    step = {"kind": "step", "call": "memory.add"}
    added = {"kind": "log", "said": "more"}
    before = [step, {"kind": "log", "said": "one"}, {"kind": "metric", "value": 1}]
    after = [*before, added, {"kind": "step", "call": "the end"}]
    logs = before[1:2], [before[1], added]
    assert list(differences([*before, after[-1]], after)) == [("memory.add: log", *logs)]


def test_the_order_of_kinds_is_compared():
    event, metric = {"kind": "event", "event": 1}, {"kind": "metric", "value": 1}
    found = list(differences([event, metric], [metric, event]))
    assert found == [("opening: order", ["step", "event", "metric"], ["step", "metric", "event"])]

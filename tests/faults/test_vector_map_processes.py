"""Files of vector maps among processes and threads."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mnemic import VectorMap
from tests.support.paths import names_in
from tests.support.processes import ENVIRONMENT
from tests.support.threads import run_together
from tests.support.vector_files import answers, map_of, rows_of

LEFT = re.compile(r"\.mnemic-[0-9a-f]{16}-[0-9a-f]+-[0-9a-f]+\.part")

SAVING = """
import itertools, sys
from tests.support.vector_files import map_of

made = {count: map_of(count, 16) for count in (300, 5000)}
for turn in itertools.count():
    made[(300, 5000)[turn % 2]].save(sys.argv[1])
    if turn == 0:
        print("begun", flush=True)
"""


def test_a_process_killed_while_saving_leaves_the_old_file_or_the_new_one_and_no_other(tmp_path):
    path = tmp_path / "map"
    right = [answers(map_of(count, 16)) for count in (300, 5000)]
    numbers = np.random.default_rng(1)
    for _ in range(12):
        command = [sys.executable, "-c", SAVING, str(path)]
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"begun\n"
            time.sleep(numbers.uniform(0, 0.03))
            child.kill()
        assert child.returncode == -signal.SIGKILL
        assert answers(VectorMap.load(path)) in right
        # A file has a name of its own for a moment, or all along where files need names.
        assert all(LEFT.fullmatch(name) for name in set(names_in(tmp_path)) - {"map"})
    map_of(20, 3).save(path)
    assert len(VectorMap.load(path)) == 20
    assert names_in(tmp_path) == ["map"]


SEARCHING = """
import sys, time
from pathlib import Path
from mnemic import VectorMap
from tests.support.vector_files import answers

path = Path(sys.argv[1])
vectors = VectorMap.load(path)
first = answers(vectors)
while not path.with_name("go").exists():
    time.sleep(0.01)
for _ in range(20):
    assert answers(vectors) == first
vectors.upsert([0, 1, 2], vectors.get(vectors.ids()[:3]))
print(len(first), len(vectors.search(vectors.get(0), k=5).ids))
"""


def test_processes_search_one_file_beside_one_that_replaces_it(tmp_path):
    path = tmp_path / "map"
    map_of(3000, 24).save(path)
    command = [sys.executable, "-c", SEARCHING, str(path)]
    children = [
        subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE) for _ in range(2)
    ]
    (tmp_path / "go").touch()
    for turn in range(20):
        map_of(2000 + turn, 24).save(path)
    for child in children:
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 0
        assert out.endswith(b" 5\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_searches_changes_and_saves_its_own_copy(tmp_path):
    program = """
import os, sys
from mnemic import VectorMap
from tests.support.vector_files import answers, map_of, rows_of

path = sys.argv[1]
map_of(9000, 16).save(path)
right, vectors = answers(map_of(9000, 16)), VectorMap.load(path)
child = os.fork()
if child == 0:
    assert answers(vectors) == right
    vectors.remove(vectors.ids()[::2])
    vectors.upsert(range(100, 900), rows_of(800, 16))
    vectors.flush()
    vectors.save(path + ".child")
    os._exit(0 if answers(VectorMap.load(path + ".child")) == answers(vectors) else 3)
assert answers(vectors) == right
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert answers(vectors) == right
vectors.remove(vectors.ids()[1::2])
vectors.flush()
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    subprocess.run([*command, str(tmp_path / "map")], env=ENVIRONMENT, check=True, timeout=60)


def test_threads_that_first_touch_a_file_together_find_the_right_answers(tmp_path):
    path = tmp_path / "map"
    vectors = map_of(9000, 24)
    vectors.save(path)
    right = answers(vectors)
    for _ in range(10):
        loaded, found = VectorMap.load(path), []
        run_together(*[lambda: found.append(answers(loaded))] * 6)  # noqa: B023 - all end here
        assert all(each == right for each in found)


def test_saving_beside_writers_and_searches_keeps_one_state(tmp_path):
    path = tmp_path / "map"
    vectors = VectorMap(8)
    ids = np.arange(500)
    vectors.upsert(ids, np.ones((500, 8)))
    vectors.save(path)

    def write():
        for turn in range(1, 60):
            vectors.upsert(ids, np.full((500, 8), turn) * (-1) ** (ids[:, None] * turn % 2))

    def save():
        for _ in range(20):
            vectors.save(path)
            rows = VectorMap.load(path).get(ids)
            assert len(np.unique(rows[::2], axis=0)) == 1
            assert len(np.unique(rows[1::2], axis=0)) == 1

    def load():
        for _ in range(60):
            assert len(VectorMap.load(path).search(rows_of(1, 8)[0], k=600).ids) == 500

    run_together(write, save, save, load)
    assert names_in(tmp_path) == ["map"]

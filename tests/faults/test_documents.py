"""A process that is killed while it replaces a document leaves the old one or the new one."""

import subprocess
import sys
import time

from mnemic import Memory
from tests.support.processes import ENVIRONMENT
from tests.support.tiers import amount

NAME = "manual.md"
WRITER = """
import sys
from mnemic import Memory
memory = Memory(sys.argv[1], embedder=None)
for version in range(1_000_000):
    parts = [f"# {at}\\n\\nversion {version} of {at}" for at in range(60 - version % 30)]
    memory.add_document("# Same\\n\\nFor ever.\\n\\n" + "\\n\\n".join(parts), name=sys.argv[2])
    print(version, flush=True)
"""


def document(path):
    """Return the version of each part but the first, and how many there are."""
    with Memory(path, embedder=None) as memory:
        assert memory.verify().ok
        entries = sorted(memory.list(limit=100), key=lambda entry: entry.position)
    assert [entry.position for entry in entries] == list(range(len(entries)))
    return {int(entry.content.split()[3]) for entry in entries[1:]}, len(entries) - 1


def test_a_killed_replacement_leaves_one_whole_document(tmp_path):
    for round_ in range(amount(20)):
        path = tmp_path / f"{round_}.db"
        command = [sys.executable, "-c", WRITER, str(path), NAME]
        pipes = {"stdout": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
        with subprocess.Popen(command, **pipes) as writer:
            assert writer.stdout.readline() == "0\n"
            time.sleep(round_ * 0.017)  # in another step of a write each time
            writer.kill()
            told = writer.stdout.read().split()
        versions, size = document(path)
        (version,) = versions
        assert size == 60 - version % 30
        assert version >= max([0, *map(int, told)])

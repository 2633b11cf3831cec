"""The HyDE engine: a turn beside its model and embedder, the same turn again, its start."""

from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.support.memories import StoredVectors
from mnemic import Memory
from mnemic.hyde import HydeConfig, HydeEngine

ROWS = 5_000
WINDOW = ["user: why does the ferry leave before the tide?", "assistant: Let me see."]
CONFIG = HydeConfig(min_similarity=-1.0)  # random vectors are hardly near to any
numbers = count()


class Model:
    """A language model that answers at once, each time with five other hypotheses."""

    async def complete(self, _prompt, *, system=None):
        assert system
        return "\n".join(f"The hypothesis has the number {next(numbers)}" for _ in range(5))


@cache
def path():
    """Return the path of a file of this process alone, in the folder that asv removes."""
    path = Path(mkdtemp(dir=".")) / "notes.db"
    opened(path).close()
    return path


def opened(path):
    embedder = StoredVectors(ROWS)
    memory = Memory(path, embedder=embedder)
    if not memory.count():
        memory.add_many(embedder.entries(ROWS))
    return memory


def engine_of(memory):
    return HydeEngine(memory, memory.embedder, Model(), CONFIG)


@cache
def engine():
    plain = engine_of(opened(path()))
    plain.start()
    assert plain.ready(60)
    return plain


class Hyde(Timed):
    def time_turn(self):
        assert len(engine().retrieve(f"turn {next(numbers)}", WINDOW)) == 10

    def time_kept_turn(self):
        assert engine().retrieve("kept", WINDOW)

    def time_start(self):
        with opened(path()) as memory, engine_of(memory) as started:
            assert started.ready(60)

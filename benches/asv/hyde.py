"""The HyDE engine: a turn beside its model and embedder, the same turn again, its start."""

from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.hyde import WINDOW, Stopwatch, Vectors, checked, engine_of, filled, opened

ROWS = 5_000
numbers = count()


@cache
def engine():
    """Return an engine over a file of this process alone, in the folder that asv removes."""
    stopwatch = Stopwatch()
    memory = filled(Path(mkdtemp(dir=".")) / "notes.db", ROWS, 1, "clustered", stopwatch)
    plain = engine_of(memory, stopwatch).sync
    plain.start()
    assert plain.ready(60)
    return plain


@cache
def stored():
    path = Path(mkdtemp(dir=".")) / "stored.db"
    filled(path, ROWS, 1, "clustered").close()
    return path, Vectors(ROWS, "clustered")


class Hyde(Timed):
    def time_turn(self):
        checked(engine().retrieve(f"turn {next(numbers)}", WINDOW), ROWS)

    def time_kept_turn(self):
        assert engine().retrieve("kept", WINDOW)

    def time_start(self):
        opened(*stored())

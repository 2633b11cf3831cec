"""A turn of a HyDE engine beside its model and embedder, and the same turn again."""

from itertools import count

import pytest

from benches.hyde import WINDOW, Stopwatch, checked, engine_of, filled

ROWS = 10_000


@pytest.mark.parametrize("is_kept", [False, True], ids=["a new turn", "the same turn"])
@pytest.mark.parametrize("users", [1, 10])
def test_a_turn(tmp_path, measure, users, is_kept):
    numbers, stopwatch = count(), Stopwatch()
    with (
        filled(tmp_path / "notes.db", ROWS, users, "clustered", stopwatch) as memory,
        engine_of(memory, stopwatch).sync as engine,
    ):
        assert engine.ready(60)
        checked(engine.retrieve("a turn", WINDOW), ROWS // users)
        group = f"a turn over {ROWS // users:,} memories of a user, {ROWS:,} in all"
        name = "the same turn" if is_kept else "a new turn"
        measure(group, name, lambda at: turn(engine, 0 if is_kept else next(at)), [numbers])


def turn(engine, number):
    return engine.retrieve(f"turn {number}", WINDOW)

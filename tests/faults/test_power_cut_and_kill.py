"""Every acknowledged write outlives its process and the power, and none is there by halves."""

import os
import random

import pytest

from tests.faults.disk import POWER_CUT
from tests.faults.history import History, problems
from tests.faults.playing import player

ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))
LENGTH = 10 if ROUNDS else 6
LIVES = 40
"""How often one file is cut off."""

KILLED = -9


@pytest.fixture(scope="module")
def play():
    """Return a function that plays a round and returns how its process ended."""
    with player() as (begin, end):

        def played(**what):
            begin(**what)
            return end()

        yield played


def life(play, folder, seed, rounds, *, synchronous=None, kill=False):
    """Play rounds on one file, each ended by force; return what was wrong after each."""
    choose, history, found = random.Random(seed), History(), []  # noqa: S311 - not a secret
    folder.mkdir()
    for number in range(rounds):
        log = folder.with_suffix(f".{number}.log")
        early, late = choose.uniform(1, 150), choose.uniform(150, 4000)  # while opening, or later
        how = {"kill_after": None, "cut_after": int(choose.choice((early, late)))}
        if kill:
            how = {"kill_after": choose.uniform(0.01, 0.3), "cut_after": None}
        code = play(
            folder=str(folder),
            log=str(log),
            seed=seed * 1000 + number,
            workers=choose.randint(1, 4),
            operations=1000 if kill else choose.randint(0, 60),
            known=dict(choose.sample(sorted(history.known.items()), min(20, len(history.known)))),
            synchronous=synchronous,
            checkpoint_pages=choose.choice((10, 100, 1000)),
            **how,
        )
        assert code == (KILLED if kill else POWER_CUT), f"seed {seed}, round {number}"
        for path in folder.glob("*-shm"):
            path.write_bytes(choose.randbytes(path.stat().st_size))
        history.read(log)
        left = history.left_in(folder)
        # A process that was killed or cut off leaves no log that seems to be another file's.
        found.append(left + problems(folder / "a.db", history))
        found[-1] += [path.name for path in folder.glob("*.foreign-*")]
    return found


def test_every_acknowledged_write_outlives_a_power_cut_and_none_is_there_by_halves(play, tmp_path):
    for seed in range(6 + ROUNDS // 5):
        found = life(play, tmp_path / f"life{seed}", seed, LENGTH)
        assert found == [[]] * LENGTH, f"seed {seed}"


def test_the_cut_loses_acknowledged_writes_where_commits_are_not_synced(play, tmp_path):
    # The mark of a log syncs the file now and then, so that a life may get by without syncing.
    lost = 0
    for seed in range(LIVES):
        try:
            found = life(play, tmp_path / f"life{seed}", seed, 5, synchronous="OFF")
        except Exception:  # noqa: BLE001 - the file may even be damaged
            lost += 1
        else:
            lost += any(found)
        if lost == 3:
            return
    pytest.fail(f"{lost} of {LIVES} lives lost what was acknowledged; 3 should")


def test_every_acknowledged_write_outlives_a_kill_and_none_is_there_by_halves(play, tmp_path):
    for seed in range(3 + ROUNDS // 5):
        found = life(play, tmp_path / f"life{seed}", seed, LENGTH, kill=True)
        assert found == [[]] * LENGTH, f"seed {seed}"

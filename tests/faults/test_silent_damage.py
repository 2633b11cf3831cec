"""Single bytes changed at random in the file: right answers or a typed error, nothing else."""

import os
import random

import pytest

from mnemic.errors import MnemicError
from mnemic.memory import Memory
from tests.faults.damage import make, tally
from tests.support.embedders import WordEmbedder

SEED = 20260503
DAMAGES = 219 + 20 * int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make(tmp_path_factory.mktemp("whole") / "a.db")


def damaged(data):
    """Return the file with one to eight bytes in a row changed somewhere, so many times."""
    choose = random.Random(SEED)  # noqa: S311 - not a secret
    for _ in range(DAMAGES):
        at, size = choose.randrange(len(data) - 8), choose.choice([1, 1, 2, 8])
        yield data[:at] + choose.randbytes(size) + data[at + size :]


def test_no_damage_gives_a_wrong_answer_without_a_word(tmp_path, whole):
    data, ids, expected = whole
    outcomes = tally(tmp_path / "a.db", damaged(data), ids, expected)
    assert outcomes.keys() <= {"right", "refused"}, outcomes
    assert outcomes["refused"] > DAMAGES // 3


def test_what_is_refused_is_found_by_verify_where_the_file_opens(tmp_path, whole):
    data, _, _ = whole
    path, found = tmp_path / "a.db", 0
    for content in list(damaged(data))[:60]:
        path.write_bytes(content)
        try:
            Memory(path, embedder=WordEmbedder()).close()
        except MnemicError:
            try:
                with Memory(path, embedder=None) as memory:
                    assert not memory.verify().ok
                    found += 1
            except MnemicError:  # not even SQLite can open it
                pass
        for left in tmp_path.glob("a.db*"):
            left.unlink()
    assert found > 5

"""A log that lost commits to damage is told from one whose end was being written."""

import logging
import random

import pytest

from mnemic.memory import Memory
from mnemic.store.sqlite.log_mark import log_problem
from tests.faults.damage import USER, with_log
from tests.support.embedders import WordEmbedder

SEED = 20260504
HEADER, FRAME = 32, 24 + 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return with_log(tmp_path_factory.mktemp("whole") / "a.db")


@pytest.fixture
def problem(tmp_path):
    """Return what is said of a log."""

    def problem_of(log):
        (tmp_path / "b.db-wal").write_bytes(log)
        return log_problem(str(tmp_path / "b.db"))

    return problem_of


def commits(log):
    """Return where the frames that end a transaction begin."""
    frames = range(HEADER, len(log) - FRAME + 1, FRAME)
    return [at for at in frames if any(log[at + 4 : at + 8])]


def flipped(log, at):
    return log[:at] + bytes([log[at] ^ 1]) + log[at + 1 :]


def test_a_damaged_frame_before_the_last_transaction_is_reported(whole, problem):
    _, log, _ = whole
    choose = random.Random(SEED)  # noqa: S311 - not a secret
    *_, before_last, _ = commits(log)
    assert problem(log) is None
    for _ in range(60):
        at = choose.randrange(HEADER + 24, before_last)
        if (at - HEADER) % FRAME >= 24:  # of a page; of a header's fields some end the log there
            assert "is damaged" in problem(flipped(log, at))


def test_a_log_that_was_cut_off_or_whose_last_transaction_is_torn_is_no_damage(whole, problem):
    _, log, _ = whole
    choose = random.Random(SEED)  # noqa: S311 - not a secret
    *_, before_last, last = commits(log)
    for _ in range(60):
        assert problem(log[: choose.randrange(len(log))]) is None
        at = choose.randrange(before_last + FRAME, len(log))
        assert problem(flipped(log, at)) is None
        assert problem(log[:at] + bytes(len(log) - at)) is None
        torn = min(at + 512, len(log))
        assert problem(log[:at] + bytes(torn - at) + log[torn:]) is None
    assert last > before_last


def test_what_is_no_log_has_lost_nothing(problem):
    choose = random.Random(SEED)  # noqa: S311 - not a secret
    for size in (0, 5, 31, 32, 100, 5000):
        assert problem(choose.randbytes(size)) is None


def test_a_damaged_log_is_told_at_opening_and_by_verify(tmp_path, whole, caplog):
    data, log, _ = whole
    path = tmp_path / "a.db"
    path.write_bytes(data)
    path.with_name("a.db-wal").write_bytes(flipped(log, commits(log)[4] + 100))
    with (
        caplog.at_level(logging.WARNING, "mnemic"),
        Memory(path, embedder=WordEmbedder()) as memory,
    ):
        memory.add("written afterwards", user_id=USER)
        (problem,) = memory.verify().problems
    lost = len(commits(log)) - 4
    assert f"of the log is damaged, and at least {lost} commits" in problem.what
    assert problem.what in caplog.text

"""Several processes on one file: nothing is lost, and each sees the others at its next call."""

import json
import os
from contextlib import ExitStack
from pathlib import Path

from mnemic.memory import Memory
from mnemic.store.sqlite.opening import BUSY_MILLISECONDS
from tests.faults.history import History, problems
from tests.faults.playing import child, player
from tests.support.embedders import WordEmbedder

ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))
PROCESSES = 4


def test_processes_with_mixed_loads_lose_nothing_and_agree_in_the_end(tmp_path):
    folder, history, notes = tmp_path / "shared", History(), []
    folder.mkdir()
    logs = [tmp_path / f"{number}.log" for number in range(PROCESSES)]
    with ExitStack() as stack:
        players = [stack.enter_context(player()) for _ in logs]
        for number, (begin, _) in enumerate(players):
            begin(
                folder=str(folder),
                log=str(logs[number]),
                seed=number,
                workers=2,
                operations=40 + 20 * min(ROUNDS, 100),
                known={},
                synchronous=None,
                checkpoint_pages=1000,
                others=PROCESSES,
                kill_after=None,
                cut_after=None,
            )
        assert [end() for _, end in players] == [0] * PROCESSES
    for log in logs:
        history.read(log)
        notes += [json.loads(line) for line in Path(log).read_text().splitlines()]
    assert [note for note in notes if "wrong" in note] == []
    assert max(note["took"] for note in notes if "took" in note) < BUSY_MILLISECONDS / 1000
    assert sum("done" in note for note in notes) > 200
    assert sum("begin" in note for note in notes) == sum("done" in note for note in notes)
    assert problems(folder / "a.db", history) == []


def test_two_processes_see_each_others_writes_and_deletions_turn_by_turn(tmp_path):
    path = tmp_path / "a.db"
    with (
        Memory(path, embedder=WordEmbedder()) as memory,
        child("tests.faults.answering", path) as other,
    ):
        for turn in range(25 + 10 * ROUNDS):
            content = f"question {turn} w{turn}"
            asked = memory.add(content)
            other.stdin.write(f"{content}\n".encode())
            other.stdin.flush()
            answered = other.stdout.readline().decode().strip()
            hits = memory.search(f"answer to {content}", limit=1)
            assert [(str(hit.id), hit.content) for hit in hits] == [
                (answered, f"answer to {content}")
            ]
            memory.delete(asked.id, permanent=True)
            memory.delete(answered, permanent=True)

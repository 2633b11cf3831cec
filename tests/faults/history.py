"""What a file must hold after a workload that ended anyhow: every state that its log allows."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np

from tests.faults.workload import FORGOTTEN, GONE, LIVING, PlainDoor, is_sealed
from tests.store.contract import entries_by_id
from tests.support.embedders import WordEmbedder

_ABSENT = (None, GONE)
_WORD = re.compile(r"(?<= )w\d+(?= )")
"""A word of `Worker`'s texts, whole."""


class History:
    """The states each memory may be in, by what was begun and what was acknowledged.

    Attributes:
        erased: Contents of which nothing may be left, as their deletion said.
    """

    def __init__(self):
        self.possible = {}
        self.groups = []
        self.erased = set()

    def read(self, log):
        """Read the notes of a workload; a last line cut short was not acknowledged."""
        if not Path(log).exists():
            return
        whole, _, _ = Path(log).read_text(errors="replace").rpartition("\n")
        notes = [json.loads(line) for line in whole.splitlines()]
        done = {note["done"]: note for note in notes if "done" in note}
        failed = {note["failed"] for note in notes if "failed" in note}  # and has stored nothing
        for note in notes:
            if "begin" in note and note["begin"] not in failed:
                self._take(note, done.get(note["begin"]))

    def _take(self, note, done):
        is_done = done is not None
        before = {key: self.possible.get(key, {_ABSENT}) for key in note["outcome"]}
        if is_done and done["erased"] is not False:  # None: of a server's tables, not of its files
            self.erased |= {text for states in before.values() for text, _ in states if text}
        for key, state in note["outcome"].items():
            after = {tuple(state)}
            self.possible[key] = after if is_done else before[key] | after
        if not is_done:
            self.groups.append({key: tuple(state) for key, state in note["outcome"].items()})

    def settle(self, actual):
        """Say what is wrong with the states found, and hold to them from now on."""
        wrong = [
            f"{key}: found {actual.get(key, _ABSENT)}, possible {states}"
            for key, states in self.possible.items()
            if actual.get(key, _ABSENT) not in states
        ]
        wrong += [f"{key}: never written" for key in actual.keys() - self.possible.keys()]
        for group in self.groups:
            happened = {actual.get(key, _ABSENT) == state for key, state in group.items()}
            if len(happened) > 1:
                wrong.append(f"half of a call happened: {group}")
        self.groups = []
        self.possible = {key: {actual.get(key, _ABSENT)} for key in self.possible}
        return wrong

    def left_in(self, folder):
        """Return which erased or sealed contents are in a file, by a word that is theirs alone."""
        files = (path for path in Path(folder).rglob("*") if path.is_file())
        return self.left_in_bytes(b"".join(path.read_bytes() for path in files))

    def left_in_bytes(self, data):
        """Return the same for the bytes of a store."""
        words = set(_WORD.findall(data.decode("latin-1")))
        sealed = {
            text
            for key, states in self.possible.items()
            for text, _ in states
            if text and is_sealed(key)
        }
        return [
            f"erased or sealed, and there: {text[:80]}"
            for text in self.erased | sealed
            if text.split()[1] in words
        ]

    @property
    def known(self):
        """What is there, as a worker takes it over."""
        states = ((key, next(iter(states))) for key, states in self.possible.items())
        return {key: state for key, state in states if state != _ABSENT}


def problems(path, history):
    """Open a file, hold it against a history, and return everything that is wrong with it."""
    door = PlainDoor(path)
    try:
        wrong = history.settle(states(door))
        return wrong + inner_problems(door) + write_problems(door)
    finally:
        door.close()


def inner_problems(door):
    """Return what in an open file, or between it and its index, does not agree."""
    living = {key: text for key, (text, state) in states(door).items() if state == LIVING}
    return _file_problems(door) + index_problems(door, living)


def states(door):
    """Return the content and state of every memory that is stored, forgotten or not."""
    with door.store._connections.reading() as connection:
        ids = [str(UUID(bytes=key)) for (key,) in connection.execute(_ALL_IDS)]
    scope = door.view.scope
    keys = [UUID(key) for key in ids]
    found = entries_by_id(door.store, scope, keys, now=datetime.now(UTC), include_deleted=True)
    return {
        str(key): (entry.content, FORGOTTEN if entry.is_forgotten else LIVING)
        for key, entry in found.items()
    }


def _file_problems(door):
    with door.store._connections.reading() as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
        found = [row for row in found if row != ("ok",)]
        found += connection.execute("PRAGMA foreign_key_check").fetchall()
        for check in _CHECKS:
            found += [(check, row) for row in connection.execute(check)]
    return [str(row) for row in found]


_ALL_IDS = "SELECT id FROM agent_memory_entries"
_CHECKS = (
    # Each entry has a vector for each of its parts.
    """
    SELECT row FROM agent_memory_entries AS e WHERE
    (SELECT count(*) = 0 OR count(*) <> max(part) + 1 FROM agent_memory_embeddings
        WHERE entry_row = e.row)
    """,
    # The agent's bytes are those of its contents.
    """
    SELECT used_bytes FROM agent_memory_agents AS a WHERE used_bytes <>
    (SELECT ifnull(sum(octet_length(content)), 0)
     FROM agent_memory_entries WHERE agent_id = a.agent_id)
    """,
    # Changes are numbered without a gap, up to the agent's last.
    """
    SELECT seq FROM agent_memory_agents AS a WHERE
    seq <> (SELECT count(*) FROM agent_memory_changes WHERE agent_id = a.agent_id) OR
    seq <> (SELECT max(seq) FROM agent_memory_changes WHERE agent_id = a.agent_id)
    """,
)


def index_problems(door, living):
    """Hold what searching finds against the texts that are stored, ids and scores."""
    count = door.view.count()
    wrong = [] if count == len(living) else [f"count is {count} of {len(living)}"]
    if not living:
        return wrong
    texts = list(living.values())
    vectors = WordEmbedder().embed(texts).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for at in {0, len(texts) // 2, len(texts) - 1}:
        hits = door.view.search(texts[at], search_type="semantic", limit=len(living) + 5)
        scores = {str(hit.id): hit.score for hit in hits}
        expected = dict(zip(living, vectors @ vectors[at], strict=True))
        wrong += [
            f"{key}: score {scores.get(key)}, expected {expected.get(key)}"
            for key in scores.keys() | expected.keys()
            if abs(scores.get(key, 9) - expected.get(key, -9)) > 1e-5
        ]
        wrong += [
            f"{hit.id}: content differs" for hit in hits if hit.content != living[str(hit.id)]
        ]
    return wrong


def write_problems(door):
    """Write, find, and delete again, leaving nothing behind."""
    added = door.view.add("something written afterwards")
    found = [hit.id for hit in door.view.search("something written afterwards", limit=1)]
    door.view.delete(added.id, permanent=True)
    is_gone = added.id not in {hit.id for hit in door.view.search("something written", limit=5)}
    return [] if found == [added.id] and is_gone else ["what is written afterwards is not found"]

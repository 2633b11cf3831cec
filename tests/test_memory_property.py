"""Random operations on two open memories of one place, against a list of what should be there."""

import tempfile
from datetime import timedelta
from uuid import UUID

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from mnemic.errors import EntryNotFoundError
from mnemic.memory import Memory
from tests.support.clock import NOON
from tests.support.places import Places
from tests.support.tiers import examples

TEXTS = {"near": (1.0, 0.0), "close": (0.9, 0.4), "far": (0.1, 0.9), "opposite": (-1.0, 0.1)}
ORDER = list(TEXTS)  # by similarity to "near", which is the query

users = st.sampled_from([None, "alice", "bob"])
sessions = st.sampled_from([None, "s", "t"])
handles = st.integers(0, 1)


class TableEmbedder:
    model = "table"
    dimensions = 2

    def embed(self, texts):
        return np.array([TEXTS[text] for text in texts], dtype=np.float32)


class TwoMemories(RuleBasedStateMachine):
    kind = "sqlite"

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.places = Places(self.kind, self.folder.name)
        self.url = self.places.new()
        self.memories = [self.open(), self.open()]
        self.living = []
        self.made = 0

    def open(self):
        return Memory(self.url, embedder=TableEmbedder(), **self.places.options)

    def teardown(self):
        for memory in self.memories:
            memory.close()
        self.places.close()
        self.folder.cleanup()

    def inside(self, user, session):
        return [
            entry
            for entry in self.living
            if entry.user_id == user and session in (None, entry.session_id)
        ]

    @rule(at=handles, user=users, session=sessions, texts=st.lists(st.sampled_from(ORDER)),
          days=st.integers(0, 2))  # fmt: skip
    def add(self, at, user, session, texts, days):
        memories = []
        for text in texts:
            self.made += 1
            number = self.made * 7919 % 10007  # so that ids do not grow with time
            time = NOON + timedelta(days=days)
            memories.append({"content": text, "id": UUID(int=number), "created_at": time})
        added = self.memories[at].add_many(memories, user_id=user, session_id=session)
        self.living.extend(added)

    @precondition(lambda self: self.living)
    @rule(at=handles, data=st.data())
    def delete(self, at, data):
        gone = self.living.pop(data.draw(st.integers(0, len(self.living) - 1)))
        self.memories[at].delete(gone.id, user_id=gone.user_id)

    @rule(at=handles, user=users, session=sessions, limit=st.integers(0, 12))
    def search(self, at, user, session, limit):
        found = self.memories[at].search(
            "near", search_type="semantic", user_id=user, session_id=session, limit=limit
        )
        expected = sorted(
            self.inside(user, session),
            key=lambda entry: (ORDER.index(entry.content), -entry.created_at.timestamp(), entry.id),
        )
        assert [hit.entry for hit in found] == expected[:limit]

    @rule(at=handles, user=users, session=sessions)
    def count(self, at, user, session):
        count = self.memories[at].count(user_id=user, session_id=session)
        assert count == len(self.inside(user, session))

    @precondition(lambda self: self.living)
    @rule(at=handles, user=users, data=st.data())
    def get(self, at, user, data):
        entry = data.draw(st.sampled_from(self.living))
        try:
            assert self.memories[at].get(entry.id, user_id=user) == entry
            assert user == entry.user_id
        except EntryNotFoundError:
            assert user != entry.user_id

    @rule(at=handles)
    def reopen(self, at):
        self.memories[at].close()
        self.memories[at] = self.open()


class TwoMemoriesInPostgres(TwoMemories):
    kind = "postgres"


class TwoMemoriesSearchedInPostgres(TwoMemories):
    kind = "postgres-search"


PROFILE = examples(30, stateful_step_count=25)

TestTwoMemories = TwoMemories.TestCase
TestTwoMemoriesInPostgres = TwoMemoriesInPostgres.TestCase
TestTwoMemoriesSearchedInPostgres = TwoMemoriesSearchedInPostgres.TestCase
TestTwoMemories.settings = PROFILE
TestTwoMemoriesInPostgres.settings = examples(10, PROFILE)
TestTwoMemoriesSearchedInPostgres.settings = examples(10, PROFILE)

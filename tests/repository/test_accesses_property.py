"""Accesses of random calls, compared with a plain count of them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.memory import Memory
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.tiers import examples

MEMORIES = 4
EVERYTHING = {"user_id": None, "include_archived": True}


class Counted:
    """A memory, and beside it what became of its entries and how often each was read."""

    def __init__(self, path, embedder):
        self.path, self.embedder, self.clock = path, embedder, Clock()
        self.memory = self.opened()
        self.ids = [self.memory.add(f"m{at}").id for at in range(MEMORIES)]
        self.created = dict.fromkeys(self.ids)
        for entry in self.memory.list().entries:
            self.created[entry.id] = entry.created_at
        self.state = dict.fromkeys(self.ids, "active")
        self.count = dict.fromkeys(self.ids, 0)
        self.last = dict(self.created)

    def opened(self):
        return Memory(self.path, embedder=self.embedder, clock=self.clock)

    def read(self, ids):
        for each in ids:
            self.count[each] += 1
            self.last[each] = max(self.last[each], self.clock.now)

    def of(self, *states):
        return [each for each in self.ids if self.state[each] in states]

    def call(self, what, at):
        self.clock.now += timedelta(hours=1)
        each = self.ids[at]
        getattr(self, f"call_{what}")(each)

    def call_get(self, each):
        if self.state[each] == "active":
            self.memory.get(each)
            self.read([each])

    def call_touch(self, each):
        self.memory.touch([each])
        self.read({each} & set(self.of("active")))

    def call_many(self, _):
        self.memory.touch(self.ids)
        self.read(self.of("active"))

    def call_frequent(self, _):
        self.compare("frequent", self.count, self.of("active"), user_id=None)

    def call_recent(self, _):
        self.compare("recent", self.last, self.of("active"), user_id=None)

    def call_all(self, _):
        self.compare("frequent", self.count, self.of("active", "archived"), **EVERYTHING)

    def compare(self, mode, key, expected, **named):
        found = self.memory.recall(mode=mode, **named)
        ids = [scored.memory.id for scored in found]
        assert sorted(ids) == sorted(expected)
        assert [key[each] for each in ids] == sorted((key[each] for each in ids), reverse=True)
        for scored in found:
            assert scored.memory.access_count == self.count[scored.memory.id]
            last = scored.memory.last_accessed_at or self.created[scored.memory.id]
            assert last == self.last[scored.memory.id]
        self.read(ids)

    def call_raise(self, each):
        if self.state[each] == "active":
            self.memory.update(each, importance=0.9)

    def call_rename(self, each):
        if self.state[each] == "active":
            self.memory.update(each, content=f"{self.clock.now}")

    def call_archive(self, each):
        self.change(each, "active", "archived")

    def call_activate(self, each):
        self.change(each, "archived", "active")

    def change(self, each, before, after):
        if self.state[each] == before:
            self.memory.update(each, status=after)
            self.state[each] = after

    def call_delete(self, each):
        if self.state[each] == "active":
            self.memory.delete(each)
            self.state[each] = "deleted"

    def call_restore(self, each):
        if self.state[each] == "deleted":
            self.memory.restore(each)
            self.state[each] = "active"

    def call_write(self, _):
        run_sync(self.memory.repository.shared.accesses.write())

    def call_other(self, each):
        """Read through another opening, and look at once: own ones that follow hide it a while."""
        run_sync(self.memory.repository.shared.accesses.write())
        with self.opened() as other:
            other.touch([each])
        self.read({each} & set(self.of("active")))
        self.call_all(each)

    def call_reopen(self, _):
        self.memory.close()
        self.memory = self.opened()


CALLS = [name.removeprefix("call_") for name in vars(Counted) if name.startswith("call_")]


@pytest.mark.requirement("C091", "R040")
@examples(40)
@given(
    embedder=st.sampled_from([WordEmbedder(), None]),
    calls=st.lists(
        st.tuples(st.sampled_from(CALLS), st.integers(0, MEMORIES - 1)), min_size=5, max_size=25
    ),
)
def test_orders_and_counts_are_those_of_all_that_was_read(tmp_path_factory, embedder, calls):
    counted = Counted(tmp_path_factory.mktemp("accesses") / "a.db", embedder)
    try:
        for what, at in calls:
            counted.call(what, at)
        counted.call("all", 0)
        counted.call("frequent", 0)
        counted.call("recent", 0)
    finally:
        counted.memory.close()

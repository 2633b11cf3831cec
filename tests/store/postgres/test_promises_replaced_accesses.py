"""A memory stored again has none of the old one's accesses."""

import threading

from mnemic.model import Scope
from mnemic.store import open_store
from mnemic.store.sql.accesses import PendingAccesses
from tests.store.contract import added, one
from tests.support.clock import NOON
from tests.support.entries import numbered

AGENTS = [f"agent {at}" for at in range(8)]
"""Some of them do not share a queue of writes with the accesses."""


def test_accesses_that_are_being_written_are_not_those_of_the_memory_stored_anew(
    database, monkeypatch
):
    store, taken, may_go_on = open_store(database), threading.Event(), threading.Event()
    agents = PendingAccesses.agents

    def slow(accesses):
        found = agents(accesses)
        if found and threading.current_thread() is not replacing:
            taken.set()
            may_go_on.wait(10)
        return found

    monkeypatch.setattr(PendingAccesses, "agents", slow)
    counts = {}
    for agent in AGENTS:
        taken.clear()
        may_go_on.clear()
        again = {"on_conflict": "replace"}
        old, new = numbered(1, agent_id=agent), numbered(1, agent_id=agent, content="again")
        replacing = threading.Thread(target=added, args=(store, agent, [new]), kwargs=again)
        (row,) = added(store, agent, [old]).rows
        store.touch(agent, [row], NOON)
        # What the store's own timer does a second after the access:
        writing = threading.Thread(target=lambda: store.write_accesses().result())
        writing.start()
        assert taken.wait(10)
        replacing.start()
        replacing.join(0.5)  # it may wait for the accesses, or not
        may_go_on.set()
        replacing.join()
        writing.join()
        counts[agent] = one(store, Scope(agent), 1).access_count
    store.close()
    assert counts == dict.fromkeys(AGENTS, 0)

"""The least that is a store: dicts in memory, which carry out the operations of the contract.

It knows nothing of SQL, files and keys. It shows that the contract can be met by what it says.
"""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from mnemic.errors import StoreClosedError, StoreFileError
from mnemic.model import VerifyReport
from mnemic.model.deadline import check_deadline
from mnemic.model.ids import stored_spelling
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.accesses import PendingAccesses
from mnemic.store.changes import COMMITTED
from mnemic.store.futures import failed, succeeded
from mnemic.store.operations import RowsSince
from tests.support.dict_store import operations
from tests.support.dict_store.agent import CODEC, Agent


class DictStore:
    """See `Store`; it lasts until it is closed, and seals, copies and caches nothing."""

    path = "a dict"
    is_remote = searches_vectors = False
    snapshot_folder = None

    def __init__(self):
        self._agents, self._numbers = {}, count(1)
        self.accesses, self._lock = PendingAccesses(), threading.RLock()
        self._executor, self._is_closed = ThreadPoolExecutor(4), False

    def _check_open(self):
        if self._is_closed:
            raise StoreClosedError("the store was closed")

    def _agent(self, name):
        """Return what is kept of an agent, or of one without anything."""
        self._check_open()
        return self._agents.get(name) or Agent(name, self._numbers)

    def read(self, wanted, *, deadline=None):
        with self._lock:
            agent = self._agent(wanted.agent_id)
            if not (isinstance(wanted, RowsSince) and agent.since(wanted.seq) is None):
                check_deadline(deadline)
            return _carry_out(agent, wanted)

    def write(self, wanted):
        with self._lock:
            self._agent(wanted.agent_id)
            if wanted.runs_after_accesses:
                self._write_accesses()
            agent = self._agent(wanted.agent_id).copied()
            before = agent.seq
            try:
                result = _carry_out(agent, wanted)
            except Exception as error:  # noqa: BLE001 - any is the write's result
                return failed(error)
            self._agents[agent.name] = agent
            changed = {(agent.name, agent.log[at].user_id) for at in agent.log if at > before}
        if changed:
            COMMITTED.notify(self, changed)
        return succeeded(result)

    def position(self, agent_id):
        return operations.position(self._agent(agent_id))

    known_position = position

    def latest_position(self, agent_id, **_):
        return self.position(agent_id)

    def stale_since(self, *_):
        return None

    def watch(self, listener):
        COMMITTED.add(self, listener)

    def touch(self, agent_id, rows, now):
        self._agent(agent_id)
        self.accesses.add(agent_id, rows, to_microseconds(now))

    def write_accesses(self):
        self._check_open()
        with self._lock:
            self._write_accesses()
        return succeeded(None)

    def _write_accesses(self):
        flush = self.accesses.flush()
        taken = flush.taken()
        written = {
            name: self._agents[name] for name in self._agents.keys() & {name for name, _ in taken}
        }
        for agent in written.values():
            agent.accesses += 1
        for (name, row), (number, last) in taken.items():
            if name in written:
                written[name].access(row, number, from_microseconds(last))
        flush.ended()

    def stored_agent_id(self, agent_id):
        self._agent(agent_id)
        return stored_spelling(agent_id, list(self._agents))

    def marked(self, entry):
        return CODEC.marked(entry)

    def check_key(self, agent_id):
        self._agent(agent_id)

    def cached_bytes(self, _):
        return 0

    def release(self, _):
        pass

    def locked_snapshots(self, **_):
        raise StoreFileError("a dict keeps no snapshots of indexes")

    def backup(self, target, **_):
        self._check_open()
        raise StoreFileError(f"a dict is not copied to {target}")

    def verify(self, **_):
        self._check_open()
        agents = self._agents.values()
        return VerifyReport(sum(len(agent.entries) for agent in agents), 0, 0, 0)

    def erase(self, *, soon=False):
        self._check_open()
        return succeeded(not soon)

    @property
    def executor(self):
        self._check_open()
        return self._executor

    def close(self):
        self._is_closed = True
        self._executor.shutdown(wait=False)


def _carry_out(agent, wanted):
    """Call the function that is named as the operation is."""
    words = re.findall("[A-Z][a-z]+", type(wanted).__name__)
    return getattr(operations, "_".join(words).lower())(agent, wanted)

"""Mixed writes through both doors, announced before they begin and recorded when acknowledged."""

import asyncio
import json
import os
import random
import time
from datetime import UTC, datetime
from uuid import UUID

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.crypto import Encryption
from mnemic.memory import Memory
from mnemic.model import MemoryEntry, MemoryEntryUpdate
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY

LIVING, FORGOTTEN, GONE = "living", "forgotten", "gone"
USER = "alice"


class Log:
    """Notes that outlive their process, one JSON text a line; several processes may share a log."""

    def __init__(self, path):
        self._descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def note(self, **what):
        os.write(self._descriptor, json.dumps(what).encode() + b"\n")


class PlainDoor:
    """The operations of a workload, through `Memory`."""

    def __init__(self, path):
        self.memory = Memory(path, embedder=WordEmbedder(), encryption=Encryption(KEY))
        self.view = self.memory.scoped(user_id=USER)
        self.store = self.memory._repository._store

    def add(self, entry_id, content):
        self.view.add(content, id=entry_id, sensitive=is_sealed(entry_id))

    def add_many(self, contents):
        self.view.add_many(
            {"id": key, "content": text, "sensitive": is_sealed(key)}
            for key, text in contents.items()
        )

    def update(self, entry_id, content):
        self.view.update(entry_id, content=content)

    def forget(self, entry_id):
        self.view.delete(entry_id)

    def restore(self, entry_id):
        assert self.view.restore(entry_id)

    def erase(self, entry_id):
        return self.view.delete(entry_id, permanent=True)

    def content(self, entry_id):
        return self.view.get(entry_id).content

    def found(self, query):
        return {str(hit.id) for hit in self.view.search(query, limit=20)}

    def close(self):
        self.memory.close()


class AsyncDoor:
    """The same, through `AsyncLongTermMemory` in an event loop of the caller's thread."""

    def __init__(self, path):
        self.loop = asyncio.new_event_loop()
        self.memory = AsyncLongTermMemory(path, embedder=WordEmbedder(), encryption=Encryption(KEY))
        self.store = self.memory._repository._store

    def _run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def add(self, entry_id, content):
        self._run(self.memory.store(entry_of(entry_id, content)))

    def add_many(self, contents):
        entries = [entry_of(*item) for item in contents.items()]
        self._run(self.memory.store_batch(entries))

    def update(self, entry_id, content):
        update = MemoryEntryUpdate(content=content)
        assert self._run(self.memory.update(entry_id, update, user_id=USER))

    def forget(self, entry_id):
        assert self._run(self.memory.forget(entry_id, user_id=USER))

    def restore(self, entry_id):
        assert self._run(self.memory.restore(entry_id, user_id=USER))

    def erase(self, entry_id):
        deleted = self._run(self.memory.forget(entry_id, permanent=True, user_id=USER))
        assert deleted == 1
        return deleted

    def content(self, entry_id):
        return self._run(self.memory.retrieve(entry_id, user_id=USER)).content

    def found(self, query):
        results = self._run(self.memory.search_semantic(query, 20, 0.0, user_id=USER))
        return {str(result.entry.id) for result in results}

    def close(self):
        self._run(self.memory.close())
        self._run(self.loop.shutdown_default_executor())
        self.loop.close()


DOORS = {"plain": PlainDoor, "async": AsyncDoor}


def entry_of(entry_id, content):
    return MemoryEntry(
        id=UUID(entry_id),
        agent_id="default",
        user_id=USER,
        content=content,
        created_at=datetime.now(UTC),
        sensitive=is_sealed(entry_id),
    )


def is_sealed(entry_id):
    """Return whether a memory of a workload is sealed: a third of them are."""
    return UUID(entry_id).int % 3 == 0


class Worker:
    """Does random operations on memories that no other worker touches.

    Args:
        name: Of the worker; its contents name it, and it is the seed of its choices.
        door: What it writes through.
        log: Where it notes what it begins (`begin`) and what was acknowledged (`done`).
        known: Memories it takes over: id to (content, LIVING or FORGOTTEN).
    """

    def __init__(self, name, door, log, known):
        self.name = name
        self.door = door
        self.log = log
        self.random = random.Random(name)  # noqa: S311 - not a secret
        self.known = dict(known)
        self.number = 0

    def run(self, operations):
        for _ in range(operations):
            kind = self.random.choices(*zip(*_KINDS.items(), strict=True))[0]
            getattr(self, f"_{kind}")()

    def _do(self, kind, outcome, act):
        """Announce an operation, do it, and note that it was acknowledged."""
        self.number += 1
        key = f"{self.name}-{self.number}"
        self.log.note(begin=key, kind=kind, outcome=outcome)
        begun = time.monotonic()
        told = act()
        erased = getattr(told, "erased", False)
        self.log.note(done=key, took=time.monotonic() - begun, erased=erased)
        self.known.update({entry_id: tuple(state) for entry_id, state in outcome.items()})

    def _new(self):
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def _text(self):
        # Words of its own, so that no other text is as near; long ones fill the log.
        words = [f"w{self.random.getrandbits(40)}" for _ in range(4)]
        size = self.random.choice((4, 4, 40, 400))
        return " ".join([self.name, *words, *(words[1:2] * size)])

    def _any(self, *states):
        some = [entry_id for entry_id, (_, state) in self.known.items() if state in states]
        return self.random.choice(some) if some else None

    def _add(self):
        entry_id, text = self._new(), self._text()
        self._do("add", {entry_id: (text, LIVING)}, lambda: self.door.add(entry_id, text))

    def _add_many(self):
        texts = {self._new(): self._text() for _ in range(self.random.randint(2, 12))}
        outcome = {entry_id: (text, LIVING) for entry_id, text in texts.items()}
        self._do("add_many", outcome, lambda: self.door.add_many(texts))

    def _update(self):
        entry_id, text = self._any(LIVING), self._text()
        if entry_id:
            outcome = {entry_id: (text, LIVING)}
            self._do("update", outcome, lambda: self.door.update(entry_id, text))

    def _forget(self):
        entry_id = self._any(LIVING)
        if entry_id:
            outcome = {entry_id: (self.known[entry_id][0], FORGOTTEN)}
            self._do("forget", outcome, lambda: self.door.forget(entry_id))

    def _restore(self):
        entry_id = self._any(FORGOTTEN)
        if entry_id:
            outcome = {entry_id: (self.known[entry_id][0], LIVING)}
            self._do("restore", outcome, lambda: self.door.restore(entry_id))

    def _erase(self):
        entry_id = self._any(LIVING, FORGOTTEN)
        if entry_id:
            self._do("erase", {entry_id: (None, GONE)}, lambda: self.door.erase(entry_id))

    def _read(self):
        entry_id = self._any(LIVING)
        if entry_id:
            text = self.known[entry_id][0]
            content = self.door.content(entry_id)
            assert content == text, f"{entry_id}: {content[:80]!r}, not {text[:80]!r}"
            assert self._finds(entry_id, text)

    def _finds(self, entry_id, text):
        return entry_id in self.door.found(text)


_KINDS = {"add": 5, "add_many": 2, "update": 4, "forget": 3, "restore": 2, "erase": 2, "read": 2}
"""How often each operation is chosen."""

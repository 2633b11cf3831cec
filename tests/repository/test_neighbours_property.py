"""Neighbours and versions against a naive twin: an index that follows changes, and a new one."""

from random import Random
from uuid import UUID

import pytest

from mnemic import Memory
from mnemic.errors import MnemicError
from mnemic.index import Hops
from mnemic.model import LinkType, Scope
from mnemic.repository.reading import LineageReader
from tests.support.clock import NOON, SECOND
from tests.support.neighbour_twin import Net

USERS, SESSIONS = ("a", "a", "a", "b", None), (None, None, None, "s", "t")
STRENGTHS = (0.0, 0.25, 0.5, 1.0)
KINDS = [kind for kind in LinkType if kind is not LinkType.SUPERSEDES]
STEPS = {
    "add": 5,
    "supersede": 5,
    "replace": 1,
    "link": 20,
    "unlink": 1,
    "delete": 1,
    "delete permanently": 1,
    "restore": 2,
    "activate": 1,
    "archive": 1,
    "purge": 1,
}


class World:
    def __init__(self, path, random):
        self.random, self.now, self.path = random, NOON, path
        self.ids = {user: [] for user in USERS}
        self.memory = self.opened()
        self.memory._repository.finder._active.load()

    def opened(self):
        return Memory(self.path, embedder=None, clock=lambda: self.now)

    def fields(self):
        random, expiry = self.random, self.random.choice([*[None] * 9, 30 * SECOND])
        return {
            "session_id": random.choice(SESSIONS),
            "expires_at": None if expiry is None else self.now + expiry,
        }

    def step(self):
        random, memory = self.random, self.memory
        self.now += SECOND
        (name,) = random.choices(list(STEPS), STEPS.values())
        user = random.choice(USERS)
        ids, new = self.ids[user], UUID(int=random.getrandbits(100))
        is_known = len(ids) > 1 and random.random() < 0.9
        one, other = random.sample(ids if is_known else [*ids, new, UUID(int=1)], 2)
        text = f"memory {random.randrange(5)}"
        calls = {
            "add": lambda: memory.add({"content": text, "id": new, **self.fields()}, user_id=user),
            "supersede": lambda: memory.add(
                {"content": text, "id": new, "supersedes": other, **self.fields()}, user_id=user
            ),
            "replace": lambda: memory.add_many(
                [{"content": text, "id": one, **self.fields()}], user_id=user, on_conflict="replace"
            ),
            "link": lambda: memory.link(
                one, other, random.choice(KINDS), random.choice(STRENGTHS), user_id=user
            ),
            "unlink": lambda: memory.unlink(one, other, user_id=user),
            "delete": lambda: memory.delete(one, user_id=user),
            "delete permanently": lambda: memory.delete(one, user_id=user, permanent=True),
            "restore": lambda: memory.restore(one, user_id=user),
            "activate": lambda: memory.update(one, status="active", user_id=user),
            "archive": lambda: memory.update(one, status="archived", user_id=user),
            "purge": lambda: memory.purge(expired=True),
        }
        try:
            calls[name]()
        except MnemicError:  # it is not there, or there already
            return
        if name in {"add", "supersede"}:
            ids.append(new)
        if random.random() < 0.5:  # changes are taken in one by one, or several at once
            memory._repository.finder._active.catch_up()

    def check(self, memory):
        random, net = self.random, Net(self.memory._repository._store, "default", self.now)
        user = random.choice(USERS)
        scope = random.choice(
            [
                Scope("default", user),
                Scope("default", user, session_id=random.choice(SESSIONS)),
                Scope("default", all_users=True),
            ]
        )
        hops = Hops(
            random.randint(1, 3),
            tuple(random.choice([0.0, 0.5, 0.7, 0.9]) for _ in LinkType),
            random.random() < 0.5,
            random.choice([1, 3, 100]),
        )
        own = [row for row, entry in net.entries.items() if scope.has(entry)]
        rows = sorted(own if own and random.random() < 0.8 else net.entries)
        count = random.randint(1, 4) if rows else 0
        starts = [
            (random.choice(rows), random.choice([-0.5, 0.25, 0.5, 1.0])) for _ in range(count)
        ]
        found = memory._repository.finder.neighbours(scope, starts, hops)
        given = [(hit.row, hit.score, hit.kind, hit.via_row, hit.depth) for hit in found.hits]
        assert given == net.neighbours(scope, starts, hops)
        assert found.entries == {row: net.entries[row] for row, *_ in given}
        return bool(given)


@pytest.mark.requirement("C117", "C109", "R363", "R391")
@pytest.mark.parametrize("seed", range(8))
def test_neighbours_are_those_of_the_twin(tmp_path, seed):
    world = World(tmp_path / "memory.db", Random(seed))  # noqa: S311 - a program to be repeated
    found = 0
    with world.memory:
        for _ in range(160):
            world.step()
            found += world.check(world.memory)
        with world.opened() as other:
            for _ in range(40):
                found += world.check(other)
    assert found > 10


@pytest.mark.requirement("C109")
@pytest.mark.parametrize("seed", range(4))
def test_versions_are_those_of_the_twin(tmp_path, seed):
    world = World(tmp_path / "memory.db", Random(seed))  # noqa: S311 - a program to be repeated
    found = 0
    with world.memory:
        for _ in range(150):
            world.step()
            net = Net(world.memory._repository._store, "default", world.now)
            session = world.random.choice(SESSIONS)
            for scope in (
                Scope("default", "a", session_id=session),
                Scope("default", all_users=True),
            ):
                most = world.random.randint(0, 3)
                entries = [entry for entry in net.entries.values() if scope.has(entry)]
                lineages = LineageReader(world.memory._repository.shared).lineages(
                    scope, entries, most
                )
                assert [lineage.head for lineage in lineages] == entries
                for lineage in lineages:
                    versions = net.versions(scope, lineage.head)[:most]
                    assert list(lineage.versions) == versions[::-1]
                    found += len(versions)
    assert found > 10

"""1,000 random operations on this service and on the kit's own in memory."""

import random

import pytest
from adk import event, found, run, session
from google.adk.memory import InMemoryMemoryService
from google_adk_mnemic import MnemicMemoryService

from mnemic import Memory

if not hasattr(InMemoryMemoryService, "add_events_to_memory"):
    pytest.skip("this version's service takes no events", allow_module_level=True)

TEXT = """anchor basil candle desert engine falcon garden hammer island jacket kettle lantern
marble needle orchid pepper quartz ribbon saddle timber umbrella violin walnut xylophone yogurt
zipper almond bottle cactus dolphin elbow fabric guitar harbour iguana jungle kitten lemon mirror
napkin oyster pencil rabbit spider tunnel velvet window yellow zebra 机场 вокзал"""
WORDS = TEXT.split()
SCOPES = [("app", "a"), ("app", "b"), ("app/a", "a"), ("app", "a/a"), ("ap", "p/a"), ("App", "a")]
STEPS = 1_000
MOST = 10
"""How many the kit's service returns at most."""


class Twins:
    """The same calls to both; sessions grow, as those of the kit do."""

    def __init__(self, ours, seed):
        self.ours, self.theirs = ours, InMemoryMemoryService()
        self.random = random.Random(seed)  # noqa: S311 - the same operations each time
        self.sessions = {}
        self.deleted = set()

    async def both(self, name, *arguments, **fields):
        await getattr(self.theirs, name)(*arguments, **fields)
        await getattr(self.ours, name)(*arguments, **fields)

    async def step(self, at, compare):
        scope = dict(zip(("app_name", "user_id"), self.random.choice(SCOPES), strict=True))
        key = (*scope.values(), self.random.randrange(2))
        events = self.sessions.setdefault(key, [])
        match self.random.choices(("grow", "events", "delete", "search"), (3, 2, 1, 5))[0]:
            case "grow":
                events += [self.new(f"{at}-{part}") for part in range(self.random.randrange(4))]
                where = {"app": key[0], "user": key[1], "key": f"s{key[2]}"}
                await self.both("add_session_to_memory", session(*events, **where))
            case "events" if events:
                some = self.random.choices(events, k=2)
                own = self.random.choice((f"s{key[2]}", None))
                await self.both("add_events_to_memory", **scope, events=some, session_id=own)
            case "delete" if events and hasattr(self.theirs, "delete_memory"):
                gone = self.random.choice(events).id
                await self.both("delete_memory", **scope, memory_id=gone)
                self.deleted.add(gone)
            case "search":
                query = " ".join(self.random.sample(WORDS, self.random.randint(1, 3)))
                names = {"app": key[0], "user": key[1]}
                known = await found(self.theirs, query, **names)
                compare(known, await found(self.ours, query, **names), key)

    def new(self, key):
        text = " ".join(self.random.sample(WORDS, self.random.randint(1, 8)))
        return event(key, text, self.random.choice(("user", "bot")), 1.7e9 + len(key))

    def present(self, scope):
        stored = {each.id for key, has in self.sessions.items() if key[:2] == scope for each in has}
        return stored - self.deleted


def ids(memories):
    return {memory.id for memory in memories}


async def play(ours, seed, share):
    """Play all steps; return how many that the other found by words were found and were missed."""
    twins = Twins(ours, seed)
    found_by_words, missed = 0, 0

    def compare(known, answer, key):
        nonlocal found_by_words, missed
        assert ids(answer) <= twins.present(key[:2])
        given = {memory.id: (memory.content, memory.author) for memory in known}
        assert all(given.get(each.id, of(each)) == of(each) for each in answer)
        if len(known) < MOST:  # otherwise it has left out others that fit as well
            found_by_words += len(given)
            missed += len(given.keys() - ids(answer))

    for at in range(STEPS):
        await twins.step(at, compare)
    assert found_by_words > STEPS / 2
    assert missed <= (1 - share) * found_by_words


def of(memory):
    return memory.content, memory.author


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("embedder", ["minilm", None])
def test_all_that_is_found_by_words_is_found_and_nothing_of_others(tmp_path, seed, embedder):
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        run(play(MnemicMemoryService(memory, limit=STEPS), seed, share=1))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("limit", "share"), [(2 * MOST, 1), (MOST, 0.95)])
def test_all_of_it_is_among_twice_as_many_and_nearly_all_among_as_many(
    tmp_path, seed, limit, share
):
    with Memory(tmp_path / "memory.db") as memory:
        run(play(MnemicMemoryService(memory, limit=limit), seed, share))

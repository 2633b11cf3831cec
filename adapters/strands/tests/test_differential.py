"""1,000 random operations on this store and on the one in one JSON file."""

import random
from collections import Counter

import pytest
from listed import run
from strands_mnemic import MnemicMemoryStore

from mnemic import Memory

vended = pytest.importorskip("strands.vended_memory_stores.test_memory_store")

TEXT = """anchor basil candle desert engine falcon garden hammer island jacket kettle lantern
marble needle orchid pepper quartz ribbon saddle timber umbrella violin walnut xylophone yogurt
zipper almond bottle cactus dolphin elbow fabric guitar harbour iguana jungle kitten lemon mirror"""
WORDS = TEXT.split()
NAMES = "notes", "facts", "notes/facts"
STEPS = 1_000
MOST = 10


async def play(memory, folder, seed, limit):
    """Return how many memories were found by words, and how many of them were missed."""
    chosen = random.Random(seed)  # noqa: S311 - the same operations each time
    ours = {name: MnemicMemoryStore(memory, name=name) for name in NAMES}
    theirs = {
        name: vended.TestMemoryStore(name=name, path=str(folder / f"{at}.json"))
        for at, name in enumerate(NAMES)
    }
    added = {name: {} for name in NAMES}
    counts = Counter()
    for at in range(STEPS):
        name = chosen.choice(NAMES)
        if chosen.random() < 0.5:
            known = added[name]
            text = " ".join(chosen.sample(WORDS, chosen.randint(1, 8)))
            if known and chosen.random() < 0.2:
                text = chosen.choice(list(known))
            metadata = known.setdefault(text, chosen.choice([None, {}, {"step": at, "of": [name]}]))
            spaced = f" {text}\n" if chosen.random() < 0.1 else text
            await theirs[name].add(spaced, metadata)
            await ours[name].add(spaced, metadata)
        else:
            query = " ".join(chosen.sample(WORDS, chosen.randint(1, 3)))
            by_words = contents(await theirs[name].search(query, {"max_search_results": STEPS}))
            answer = contents(await ours[name].search(query, {"max_search_results": limit}))
            assert (
                answer.items() <= {text: data or {} for text, data in added[name].items()}.items()
            )
            if len(by_words) < MOST:
                counts["found"] += len(by_words)
                counts["missed"] += len(by_words.keys() - answer.keys())
    for name in NAMES:
        assert await ours[name].scoped.count() == len(added[name])
    return counts["found"], counts["missed"]


def contents(entries):
    """Return the metadata that were given, by text."""
    return {
        entry.content.strip(): {
            key: value for key, value in entry.metadata.items() if not key.startswith("_")
        }
        for entry in entries
    }


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("embedder", "limit"), [(None, STEPS), ("minilm", STEPS), ("minilm", 20)])
def test_all_that_is_found_by_words_is_found_and_nothing_of_others(tmp_path, seed, embedder, limit):
    with Memory(tmp_path / "memory.db", embedder=embedder) as memory:
        found, missed = run(play(memory, tmp_path, seed, limit))
    assert found > STEPS / 2
    assert missed == 0


@pytest.mark.parametrize("seed", range(2))
def test_nearly_all_of_it_is_among_the_first_ten(tmp_path, seed):
    with Memory(tmp_path / "memory.db") as memory:
        found, missed = run(play(memory, tmp_path, seed, MOST))
    assert missed < 0.05 * found

"""Time of an audit, and of the guard against recall loops: `python -m benches.audit [--rows N]`.

A memory in this process holds N sentences with vectors, of one user; every hundredth text is stored
twice, and every hundredth vector again with little noise. Prints the seconds of audits without and
with near duplicates, after checking their counts, and before that the microseconds by which
`on_recalled` makes a search and an addition longer, the latter in turns with a memory without it.
"""

import argparse
import statistics
from itertools import cycle

import numpy as np

from benches.datasets import real_texts, rows_of, unit
from benches.environment import machine, title
from benches.timing import interleave, timed
from mnemic import Memory

DIM = 384
BATCH = 5000
GUARDED = 10_000
ROUNDS = 40


def texts_of(count):
    """Return sentences, each with its number."""
    return [f"{number} {text}" for number, text in zip(range(count), cycle(real_texts()))]


def filled(memory, count, dim=DIM):
    """Store sentences; return the numbers of exact and of near duplicates among them."""
    texts = texts_of(count)
    vectors = rows_of("real", count, dim)
    repeated = range(0, count, 100)
    noise = np.random.default_rng(0).standard_normal((len(repeated), dim)).astype(np.float32)
    near = unit(vectors[list(repeated)] + 0.01 * noise)
    extra = [texts[number] for number in repeated]
    again = [f"again {text}" for text in extra]
    all_texts = [*texts, *extra, *again]
    all_vectors = np.concatenate([vectors, vectors[list(repeated)], near])
    for begin in range(0, len(all_texts), BATCH):
        memory.add_many(
            all_texts[begin : begin + BATCH],
            embeddings=all_vectors[begin : begin + BATCH],
            user_id="ann",
        )
    return len(extra), len(again)


def audits(count):
    with Memory(":memory:", embedder=None) as memory:
        exact, near = filled(memory, count)
        for floor in (None, 0.95):
            seconds, found = timed(lambda floor=floor: memory.audit(user_id="ann", near=floor))
            assert found.exact_duplicates == exact
            assert floor is None or found.near_duplicates >= near
            print(f"audit of {found.memories} memories, near={floor}: {seconds:.1f} s")


def guards():
    """Print what `on_recalled` costs a search for ten memories, and an addition."""
    memories = {mode: Memory(":memory:", embedder=None, on_recalled=mode) for mode in MODES}
    for memory in memories.values():
        memory.add_many(texts_of(GUARDED), user_id="ann")
        memory.search("the", user_id="ann", limit=256)
    hits = memories["flag"].search("the", user_id="ann", limit=10)
    found = {place: hit.entry for place, hit in enumerate(hits)}
    note = memories["flag"].repository.note_returned
    noted = [timed(note, found)[0] for _ in range(20_000)]
    print(f"noting {len(found)} memories: {statistics.median(noted) * 1e6:.1f} µs a search")
    adds = {
        mode: lambda word, memory=memory: memory.add(
            f"a new text about {word}, of some twelve words, as many memories have",
            user_id="ann",
        )
        for mode, memory in memories.items()
    }
    taken = interleave(adds, [text.split()[1] for text in texts_of(50)], ROUNDS, 25)
    print(f"add: {taken['store']:.0f} µs, and {taken['flag'] - taken['store']:.0f} more")
    for memory in memories.values():
        memory.close()


MODES = ("store", "flag")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    print(title(machine()))
    guards()
    audits(given.rows)

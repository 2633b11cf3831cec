"""What sealing costs: microseconds a record, and what a memory takes longer where all is sealed.

    python -m benches.sealing [--records N] [--memories N]

Records of 300 bytes, about an entry with its content and metadata, and of 1,536 bytes, a vector of
384 dimensions. Medians of `ROUNDS` rounds over all records, in one thread, with AES-256-GCM of the
library cryptography; beside them the bare calls of the library, with nonces and associated data
made before. Once with the batch functions, once with a call for each record.

Then two files with the same memories, one of them sealed, are opened without snapshots, searched
and added to in turns; the answers must be equal. Last, the sealed one is given other keys. With
`--memories 0` the records alone are measured.
"""

import argparse
import os
import statistics
import tempfile
import time
import uuid

import numpy as np
from cryptography import __version__
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from benches.timing import timed
from mnemic import Encryption, Memory, as_embedder
from mnemic.crypto import Sealer, new_salt

ROUNDS = 5
SIZES = {"entry": 300, "vector": 1536}
USER = "alice"
DIMENSIONS = 384
BATCH = 2000
SEARCHES = 400
DATA_BYTES = 71  # associated data of an entry of the agent "default"


class Case:
    """Records of one size, their ids, and a sealer."""

    def __init__(self, size, records):
        self.plain = [os.urandom(size) for _ in range(records)]
        self.ids = [uuid.uuid4().bytes for _ in range(records)]
        self.sealer = Sealer(Encryption(os.urandom(32)).master_key(), "default", new_salt())

    def batches(self):
        sealer, ids = self.sealer, self.ids
        sealed_in, sealed = timed(sealer.seal_many, self.plain, ids, "entry")
        opened_in, opened = timed(sealer.open_many, sealed, ids, "entry")
        assert opened == self.plain
        return sealed_in, opened_in

    def singles(self):
        seal, open_ = self.sealer.seal, self.sealer.open
        pairs = list(zip(self.plain, self.ids, strict=True))
        sealed_in, sealed = timed(lambda: [seal(*pair, "entry") for pair in pairs])
        pairs = list(zip(sealed, self.ids, strict=True))
        opened_in, opened = timed(lambda: [open_(*pair, "entry") for pair in pairs])
        assert opened == self.plain
        return sealed_in, opened_in

    def library(self):
        cipher, nonce, data = AESGCM(bytes(32)), bytes(12), bytes(DATA_BYTES)
        encrypt, decrypt = cipher.encrypt, cipher.decrypt
        sealed_in, sealed = timed(lambda: [encrypt(nonce, one, data) for one in self.plain])
        opened_in, opened = timed(lambda: [decrypt(nonce, one, data) for one in sealed])
        assert opened == self.plain
        return sealed_in, opened_in


def measure(case, records):
    """Return the median microseconds a record to seal and to open, by the way it is done."""
    ways = {"batch": case.batches, "one by one": case.singles, "library": case.library}
    rounds = [{name: way() for name, way in ways.items()} for _ in range(ROUNDS)]
    return {
        name: [
            statistics.median(taken[name][at] for taken in rounds) / records * 1e6 for at in (0, 1)
        ]
        for name in ways
    }


def hashes(records):
    """Return the microseconds of a keyed fingerprint of a short text."""
    sealer = Case(0, 1).sealer
    texts = [f"The ferry of {number} leaves at ten past every hour." for number in range(records)]
    taken = [timed(sealer.fingerprints, texts) for _ in range(ROUNDS)]
    assert all(len(made) == records for _, made in taken)
    return statistics.median(seconds for seconds, _ in taken) / records * 1e6


class Memories:
    """Two files with the same memories, one of them sealed; they take turns.

    Args:
        folder: Where the files are made.
        number: Number of memories of one user, with vectors of 384 dimensions.
    """

    def __init__(self, folder, number):
        self.number = number
        self.key = os.urandom(32)
        self.paths = {"plain": f"{folder}/plain.db", "sealed": f"{folder}/sealed.db"}
        random = np.random.default_rng(23)
        self.queries = random.standard_normal((SEARCHES, DIMENSIONS)).astype(np.float32)
        for kind in self.paths:
            random = np.random.default_rng(42)
            with self.opened(kind) as memory:
                for first in range(0, number, BATCH):
                    texts = [text_of(at) for at in range(first, min(number, first + BATCH))]
                    vectors = random.standard_normal((len(texts), DIMENSIONS)).astype(np.float32)
                    memory.add_many(texts, user_id=USER, embeddings=list(vectors))

    def opened(self, kind, key=None):
        encryption = None
        if kind == "sealed":
            encryption = Encryption(key or self.key, encrypt_all=True)
        return Memory(self.paths[kind], embedder=EMBEDDER, snapshots=False, encryption=encryption)

    def opening(self):
        """Return the median seconds until the first answer, by kind."""
        taken = {kind: [] for kind in self.paths}
        for kind in [*self.paths] * ROUNDS:
            begun = time.perf_counter()
            with self.opened(kind) as memory:
                assert len(memory.search("topic", user_id=USER, limit=10)) == 10
                taken[kind].append(time.perf_counter() - begun)
        return {kind: statistics.median(seconds) for kind, seconds in taken.items()}

    def searching(self):
        """Return the median milliseconds of a hybrid search for a given vector, by kind."""
        taken = {kind: [] for kind in self.paths}
        with self.opened("plain") as plain, self.opened("sealed") as sealed:
            for at, query in enumerate(self.queries):
                answers = []
                for kind, memory in (("plain", plain), ("sealed", sealed)):
                    seconds, found = timed(search_once, memory, text_of(at), query)
                    taken[kind].append(1000 * seconds)
                    answers.append([(hit.content, hit.score) for hit in found])
                assert answers[0] == answers[1]
        return {kind: statistics.median(seconds) for kind, seconds in taken.items()}

    def adding(self):
        """Return the median microseconds of a durable addition with a given vector, by kind."""
        taken = {kind: [] for kind in self.paths}
        with self.opened("plain") as plain, self.opened("sealed") as sealed:
            for at, vector in enumerate(self.queries):
                for kind, memory in (("plain", plain), ("sealed", sealed)):
                    text = text_of(self.number + at)
                    seconds, _ = timed(add_once, memory, text, vector)
                    taken[kind].append(1e6 * seconds)
        return {kind: statistics.median(each) for kind, each in taken.items()}

    def rotating(self):
        """Return the memories a second that another key is given to, the median of rounds."""
        rates = []
        with self.opened("sealed") as memory:
            for _ in range(ROUNDS):
                seconds, number = timed(memory.rotate_key, os.urandom(32))
                rates.append(number / seconds)
            assert memory.verify().ok
        return statistics.median(rates)


def embed(texts):
    return np.ones((len(texts), DIMENSIONS), np.float32)


EMBEDDER = as_embedder(embed, model="ones")


def text_of(number):
    return (
        f"Memory {number} is about the topic {number % 97} and a few other words of {number % 7}."
    )


def search_once(memory, text, vector):
    return memory.search(text, vector=vector, user_id=USER, limit=10)


def add_once(memory, text, vector):
    return memory.add(text, user_id=USER, embedding=vector)


def memories(number):
    """Print what sealing costs a memory."""
    with tempfile.TemporaryDirectory() as folder:
        both = Memories(folder, number)
        print(f"{number:,} memories of one user, {DIMENSIONS} dimensions: plain / sealed")
        opening = both.opening()
        ratio = opening["sealed"] / opening["plain"]
        print(f"opened and searched     {shown(opening, '.2f')} s, {ratio:.2f} x")
        print(f"hybrid search, p50      {shown(both.searching(), '.3f')} ms")
        adding = both.adding()
        more = adding["sealed"] - adding["plain"]
        print(f"durable add, p50        {shown(adding, '.0f')} µs, {more:+.0f} µs")
        print(f"rotate_key              {both.rotating():,.0f} memories/s")


def shown(figures, form):
    return " / ".join(format(figures[kind], form) for kind in ("plain", "sealed"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--memories", type=int, default=100_000)
    given = parser.parse_args()
    records = given.records
    print(f"{records:,} records, cryptography {__version__}; µs a record: seal / open")
    for name, size in SIZES.items():
        for way, (seal, open_) in measure(Case(size, records), records).items():
            print(f"{name:7} {size:5} bytes  {way:11} {seal:5.2f} / {open_:5.2f}")
    print(f"keyed fingerprint: {hashes(records):.2f}")
    if given.memories:
        memories(given.memories)


if __name__ == "__main__":
    main()

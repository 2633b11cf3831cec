"""Times of the storage beside CrewAI's default, LanceDB: `python -m crewai_times`."""

import random
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord
from crewai_mnemic import MnemicStorage

RECORDS, BATCH, DIMENSIONS, ROUNDS = 5000, 100, 384, 100


def records(draw):
    return [
        MemoryRecord(
            content=f"memory {at} of the crew",
            scope=f"/crew/agent/{at % 20}",
            categories=[f"category {at % 7}"],
            metadata={"n": at % 100},
            embedding=vector(draw),
        )
        for at in range(RECORDS)
    ]


def vector(draw):
    return [draw.gauss(0, 1) for _ in range(DIMENSIONS)]


def median(call, rounds=ROUNDS):
    """Milliseconds of a call."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return 1000 * statistics.median(spent)


def measured(storage):
    draw = random.Random(0)  # noqa: S311 - the same each time
    made = records(draw)
    started = time.perf_counter()
    for at in range(0, RECORDS, BATCH):
        storage.save(made[at : at + BATCH])
    yield f"save {RECORDS:,}, {BATCH} a call", 1000 * (time.perf_counter() - started)
    queries = [vector(draw) for _ in range(ROUNDS)]
    storage.search(queries[0])  # what is loaded by the first one
    each, scoped, tagged = iter(queries), iter(queries), iter(queries)
    yield "search", median(lambda: storage.search(next(each)))
    yield (
        "search in a scope",
        median(lambda: storage.search(next(scoped), scope_prefix="/crew/agent/7")),
    )
    yield (
        "search by category",
        median(lambda: storage.search(next(tagged), categories=["category 3"])),
    )
    yield (
        "save one",
        median(lambda: storage.save([made[0].model_copy(update={"id": str(time.time())})])),
    )
    yield "scope info", median(lambda: storage.get_scope_info("/crew"), 20)
    yield "delete one", median(lambda: storage.delete(record_ids=[made.pop().id]), 50)


def main():
    with TemporaryDirectory() as folder:
        ours = dict(measured(MnemicStorage(Path(folder, "mnemic.db"))))
        theirs = dict(measured(LanceDBStorage(path=Path(folder, "lancedb"))))
    print(f"{'milliseconds':<24}{'mnemic':>10}{'LanceDB':>10}")
    for name, spent in ours.items():
        print(f"{name:<24}{spent:>10.2f}{theirs[name]:>10.2f}")


if __name__ == "__main__":
    main()

"""The same calls to the storage and to CrewAI's own: equal answers.

Lists are compared as sets: CrewAI's were not newest first before 1.15.
"""

import math
import random
from datetime import datetime, timedelta

import pytest
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord
from crewai_mnemic import MnemicStorage

SCOPES = ["/crew", "/crew/agent/one", "/crew/agent/two", "/flow", "/flow/x"]
CATEGORIES = ["plan", "fact", "risk"]
START = datetime(2026, 1, 1)  # noqa: DTZ001 - CrewAI's times have no zone


def unit(draw):
    """Of unit vectors the nearest are those with the largest cosines."""
    vector = [draw.gauss(0, 1) for _ in range(8)]
    length = math.hypot(*vector)
    return [x / length for x in vector]


def a_record(draw, number):
    return MemoryRecord(
        id=f"record {number}",
        content=f"content {number}",
        scope=draw.choice(SCOPES),
        categories=draw.sample(CATEGORIES, draw.randint(0, 2)),
        metadata={"n": draw.randint(0, 2)},
        importance=draw.random(),
        created_at=START + timedelta(minutes=number),
        embedding=unit(draw),
    )


def answers(storage, draw):
    """Every read, with arguments by the same draw."""
    scope = draw.choice([None, "/", *SCOPES])
    named = {"scope_prefix": scope, "limit": 1000}
    filters = [{}, {"categories": [draw.choice(CATEGORIES)]}, {"metadata_filter": {"n": 1}}]
    searched = [
        [each.id for each, _ in storage.search(query, **named, **conditions)]
        for query, conditions in ((unit(draw), conditions) for conditions in filters)
    ]
    info = storage.get_scope_info(scope or "/")
    return (
        searched,
        sorted(each.id for each in storage.list_records(scope, limit=1000)),
        (info.record_count, sorted(info.categories), info.oldest_record, info.newest_record),
        (info.child_scopes, storage.list_scopes(scope or "/")),
        (storage.list_categories(scope), storage.count(scope)),
    )


@pytest.mark.parametrize("seed", range(3))
def test_reads_agree_after_each_write(tmp_path, seed):
    ours = MnemicStorage(tmp_path / "ours.db")
    theirs = LanceDBStorage(path=tmp_path / "theirs", compact_every=0)
    draw = random.Random(seed)  # noqa: S311 - the same each time
    written = 0
    for step in range(30):
        kind = draw.choice(["save", "save", "update", "delete ids", "delete category", "reset"])
        if kind == "save" or written == 0:
            records = [a_record(draw, written + at) for at in range(draw.randint(1, 6))]
            written += len(records)
            ours.save(records)
            theirs.save(records)
        elif kind == "update":
            known = ours.list_records(limit=1000)
            if known:
                old = draw.choice(known)
                new = old.model_copy(update={"content": f"again {step}", "embedding": unit(draw)})
                ours.update(new)
                theirs.update(new)
        elif kind == "delete ids":
            ids = [f"record {draw.randrange(written)}" for _ in range(3)]
            assert ours.delete(record_ids=ids) == theirs.delete(record_ids=ids)
        elif kind == "delete category":
            named = {"scope_prefix": draw.choice(SCOPES), "categories": [draw.choice(CATEGORIES)]}
            assert ours.delete(**named) == theirs.delete(**named)
        else:
            scope = draw.choice(SCOPES[1:])
            ours.reset(scope)
            theirs.reset(scope)
        same = draw.getstate()
        answered = answers(ours, draw)
        draw.setstate(same)
        assert answered == answers(theirs, draw)
    ours.close()

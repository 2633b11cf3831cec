"""The verification of a whole file: what it finds, repairs and tells."""

from uuid import UUID

import apsw
import pytest

from mnemic.errors import ReadOnlyError, StoreCorruptError
from tests.store.sqlite.test_checksums import path
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder

__all__ = ["path"]


ALICE = {"user_id": "alice"}


def run(path, sql, *values):
    connection = apsw.Connection(str(path))
    try:
        connection.pragma("foreign_keys", value=False)
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM agent_memory_entries WHERE row = 2",
        "DELETE FROM agent_memory_embeddings WHERE entry_row = 2",
        "DELETE FROM agent_memory_links",
        "UPDATE agent_memory_entries SET row = 7 WHERE row = 3",
        "UPDATE agent_memory_embeddings SET entry_row = 9 WHERE entry_row = 2",
        "UPDATE agent_memory_embeddings SET model = 'other' WHERE entry_row = 2",
        "UPDATE agent_memory_links SET strength = 0.25",
        "UPDATE agent_memory_links SET to_row = 3",
        "UPDATE agent_memory_agents SET rows_sum = rows_sum + 1",
        "UPDATE agent_memory_agents SET summed_rows = 2",
        "UPDATE agent_memory_agents SET used_bytes = 5",
    ],
)
def test_lost_and_changed_rows_vectors_and_links_show(path, damage):
    run(path, damage)
    if "used_bytes" not in damage:
        with pytest.raises(StoreCorruptError):
            opened(path)
    with opened(path, embedder=None) as memory:
        assert not memory.verify().ok


def test_repair_takes_what_is_left_for_all_there_is_after_saying_what_is_missing(path):
    run(path, "DELETE FROM agent_memory_entries WHERE row = 3")
    run(path, "DELETE FROM agent_memory_embeddings WHERE entry_row = 3")
    with opened(path, embedder=None) as memory:
        report = memory.verify(repair=True)
        assert not report.ok
        assert report.repaired_agents == ("default",)
        assert [problem.what for problem in report.problems[-2:]] == [
            "has 22 bytes of content, and 31 were counted",
            "has 22 bytes of content of user 'alice', and 31 were counted",
        ]
        assert memory.verify().problems == ()
    with opened(path) as memory:
        assert memory.count(**ALICE) == 2


def test_an_index_that_leads_elsewhere_is_found(path):
    content = path.read_bytes()
    key = UUID(int=2).bytes
    places = [at for at in range(len(content)) if content.startswith(key, at)]
    found = 0
    for place in places:
        path.write_bytes(content[:place] + UUID(int=8).bytes + content[place + 16 :])
        with opened(path, embedder=None, read_only=True) as memory:
            is_found = not memory.verify().ok
        if is_found:
            with pytest.raises(StoreCorruptError, match="restore a backup"):
                opened(path, embedder=WordEmbedder())
        found += is_found
    assert found >= 3  # the row and two indexes; changes only tell what to read again


def test_verify_tells_how_far_it_is_and_needs_writing_for_repair_alone(path):
    told = []
    with opened(path, read_only=True, embedder=None) as memory:
        assert memory.verify(progress=told.append).ok
        with pytest.raises(ReadOnlyError):
            memory.verify(repair=True)
    assert told == [3]

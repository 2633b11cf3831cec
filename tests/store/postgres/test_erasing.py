"""What a deletion for good says of the server's files, and the documented way to empty them."""

import asyncio
import re

import psycopg
import pytest

from mnemic import AsyncMemory, Memory
from tests.support.embedders import WordEmbedder
from tests.support.paths import ROOT

DELETED = "xylophone"
PAGE = (ROOT / "docs" / "how-to" / "postgresql.md").read_text()


def documented():
    """Return the statements that the page tells an operator to run."""
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    return [one.strip() for one in block.split(";") if one.strip()]


def files_with(server, text, folder="base"):
    """Return the files of the server's tables that have a text."""
    paths = (server._data / folder).rglob("*")
    return [path for path in paths if path.is_file() and text.encode() in path.read_bytes()]


def test_a_deletion_for_good_says_that_the_store_cannot_know_and_what_to_do(database):
    with Memory(database, embedder=WordEmbedder()) as memory:
        one = memory.add("an apple", user_id="ann")
        assert memory.delete(one.id, user_id="ann").erased is False  # it can be restored
        for deleted in (
            memory.delete(one.id, permanent=True, user_id="ann"),
            memory.delete_all(permanent=True, user_id="ann"),
            memory.purge(user_id="ann"),
        ):
            assert deleted.erased is None
            assert "VACUUM FULL" in deleted.hint
            assert deleted.to_dict()["erased"] is None
        assert memory.erase_pending() is None


@pytest.mark.requirement("C210")
def test_the_documented_loop_ends(database):
    with Memory(database, embedder=None) as memory:
        memory.add("an apple", user_id="ana")
        page = (ROOT / "docs" / "how-to" / "delete-a-user.md").read_text()
        (loop,) = re.findall(r"```python\n(import time\n.*?)```", page, re.DOTALL)
        deleted = memory.delete_all(user_id="ana", permanent=True)
        names = {"memory": memory, "deleted": deleted}
        exec(loop, names)  # noqa: S102 - the page's
        assert names["deleted"].erased is None


def test_the_awaited_door_says_the_same(database):
    async def said():
        async with AsyncMemory(database, embedder=None) as memory:
            await memory.add("an apple")
            deleted = await memory.delete_all(permanent=True)
            return deleted.erased, await memory.erase_pending()

    assert asyncio.run(said()) == (None, None)


def test_after_the_documented_statements_no_table_has_what_was_deleted(server):
    url = server.new_database()
    with Memory(url, embedder=WordEmbedder()) as memory:
        texts = [f"{DELETED}{at % 7} is the word" for at in range(300)]
        memory.add_many(texts, user_id="ann")
        kept = memory.add("an apple", user_id="bob")
        with psycopg.connect(url, autocommit=True) as operator:
            operator.execute("ANALYZE")
            operator.execute("CHECKPOINT")
            assert files_with(server, DELETED)
            memory.delete_all(user_id="ann", permanent=True)
            operator.execute("VACUUM")
            operator.execute("CHECKPOINT")
            assert files_with(server, DELETED)  # statistics, and pages that are not used again yet
            for statement in documented():
                operator.execute(statement)
        assert files_with(server, DELETED) == []
        assert [entry.id for entry in memory.list(user_id="bob")] == [kept.id]
        assert memory.search("apple", user_id="bob")
        assert memory.verify().ok

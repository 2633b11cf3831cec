"""Plans that the server makes before a table has statistics."""

import psycopg
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.store.postgres.session import Session
from tests.support.embedders import WordEmbedder
from tests.support.places import Places


@pytest.fixture(params=["postgres", "postgres-policies"])
def places(request):
    with Places(request.param) as empty:
        yield empty


@pytest.fixture
def statements(monkeypatch):
    """Return the statements that are run from now on."""
    found, fetch = {}, Session.fetch

    def noting(self, sql, values=()):
        found[sql] = None
        return fetch(self, sql, values)

    monkeypatch.setattr(Session, "fetch", noting)
    return found


def generic_plan(connection, sql):
    """Return the lines of the plan that a prepared statement gets for all values."""
    parts = sql.replace("?", "%s").replace("%%", "%").replace("pgvector.", "public.").split("%s")
    numbered = "".join(f"{part}${at}" for at, part in enumerate(parts[:-1], 1)) + parts[-1]
    return [line for (line,) in connection.execute(f"EXPLAIN (GENERIC_PLAN) {numbered}").fetchall()]


def test_missing_vectors_are_looked_up_row_by_row(places, statements):
    """A join may compare each row with every other, for one page of a filling."""
    url = places.new()
    memory = places.opened(url=url, embedder=WordEmbedder(dimensions=8))
    first = memory.add_many([f"tea number{at}" for at in range(20)])[0]
    memory.add_many([MemoryEntry("tea again", id=first.id)], on_conflict="replace")
    memory.search("tea number1")
    statements.clear()
    memory.reembed(WordEmbedder(dimensions=8, model="other"))
    memory.close()
    with Memory(url, embedder=None, **places.options) as reader:
        reader.add("without a vector")
    places.opened(url=url, embedder=WordEmbedder(dimensions=8, model="other")).search("without")
    looking = [sql for sql in statements if "LIMIT 1) IS NULL" in sql]
    assert len(looking) > 1
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('mnemic.agents', '*', false)")
        for sql in looking:
            plan = generic_plan(connection, sql)
            assert any("SubPlan" in line for line in plan)
            assert not [line for line in plan if "Join" in line or "Nested Loop" in line]

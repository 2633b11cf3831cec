"""No error of PostgreSQL that quotes a row is chained to one of the memory."""

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import StoreError
from tests.support.silence import said_by

TEXT = "zqsecret diary"
REFUSED_ROWS = "ALTER TABLE mnemic.agent_memory_entries ADD CHECK (content = '') NOT VALID"
REFUSED_CHANGES = """
    CREATE FUNCTION mnemic.quote() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION '%', OLD.content; END$$;
    CREATE TRIGGER quote BEFORE UPDATE OR DELETE ON mnemic.agent_memory_entries
    FOR EACH ROW EXECUTE FUNCTION mnemic.quote()
"""
CALLS = {
    "add": (REFUSED_ROWS, lambda memory, _: memory.add(TEXT)),
    "add many": (REFUSED_ROWS, lambda memory, _: memory.add_many([TEXT] * 40)),
    "update": (REFUSED_ROWS, lambda memory, one: memory.update(one, content=TEXT)),
    "delete": (REFUSED_CHANGES, lambda memory, one: memory.delete(one)),
    "delete permanently": (REFUSED_CHANGES, lambda memory, one: memory.delete(one, permanent=True)),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_postgresql_quotes_is_not_in_an_error_nor_in_what_it_is_chained_to(call, database):
    wrong, do = CALLS[call]
    with Memory(database, embedder=None) as memory:
        one = memory.add(TEXT)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(wrong)
        with pytest.raises(StoreError) as raised:
            do(memory, one.id)
    assert not [said for said in said_by(raised.value) if "zqsecret" in said]

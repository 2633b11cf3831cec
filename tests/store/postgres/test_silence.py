"""Neither errors nor reads of a damaged database tell the content of a memory."""

import itertools

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import StoreError
from tests.promises.test_content_silence import (
    check_that_nothing_is_told,
    ear,  # noqa: F401 - a fixture
)
from tests.support.places import Places
from tests.support.silence import opened, said_by

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


UPDATE = "UPDATE mnemic.agent_memory_entries SET "
WRONG_IN_POSTGRES = {
    "tags": UPDATE + """tags = '{"zqtail": 1}'""",
    "tag": UPDATE + """tags = '["zqtail", 7]'""",
    "metadata": UPDATE + """metadata = '["zqtail"]'""",
    "number": UPDATE + """metadata = '{"zqtail": 1e999}'""",
    "type": UPDATE + "memory_type = 99, type_name = 'zqtail'",
    "time": UPDATE + "created_at = 4611686018427387904",
    "vectors": "UPDATE mnemic.agent_memory_embeddings SET embedding = '[1]'",
    "no column": "ALTER TABLE mnemic.agent_memory_entries DROP COLUMN category",
}
"""Statements after which PostgreSQL gives what cannot be read."""


@pytest.mark.parametrize(
    ("wrong", "search_in"), [*zip(WRONG_IN_POSTGRES, itertools.cycle(("database", "memory")))]
)
def test_what_is_read_of_a_damaged_database_is_not_told(wrong, search_in, tmp_path, ear):  # noqa: F811
    with Places("postgres") as places:
        url = places.new()
        with opened(Memory, tmp_path, ear, kind="postgres", url=url) as world:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(WRONG_IN_POSTGRES[wrong])
            ear.take()
            check_that_nothing_is_told(ear, world, url, search_in=search_in)

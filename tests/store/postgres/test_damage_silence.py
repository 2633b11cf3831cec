"""What is read of a damaged database is told to nobody."""

import itertools

import psycopg
import pytest

from mnemic import Memory
from tests.promises.test_content_silence import (
    check_that_nothing_is_told,
    ear,  # noqa: F401 - a fixture
)
from tests.support.places import Places
from tests.support.silence import opened

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

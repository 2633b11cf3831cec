"""Places of every kind are empty, and memories in them work as the kind says."""

import psycopg
import pytest

from tests.support.embedders import WordEmbedder
from tests.support.places import IN_POSTGRES, KINDS, Places

AGENTS = "SELECT count(*) FROM mnemic.agent_memory_agents"


@pytest.mark.parametrize("kind", KINDS)
def test_a_place_that_is_used_again_is_empty(kind):
    for _ in range(2):
        with Places(kind) as places:
            memory = places.opened(embedder=WordEmbedder())
            assert memory.count() == 0
            memory.link(memory.add("tea").id, memory.add("more tea").id)
            assert memory.index.create() == (kind in IN_POSTGRES)


@pytest.mark.parametrize("kind", KINDS)
def test_two_places_of_one_kind_have_nothing_in_common(kind):
    with Places(kind) as places:
        one, other = (places.opened(embedder=None) for _ in range(2))
        one.add("tea")
        assert (one.count(), other.count()) == (1, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
def test_searches_run_where_the_kind_says(kind, search_type):
    with Places(kind) as places, places.opened(embedder=WordEmbedder()) as memory:
        memory.add("tea")
        found = memory.search("tea", search_type=search_type)
        assert found.searched_in == ("database" if kind == "postgres-search" else "memory")


def test_policies_keep_agents_apart_where_the_kind_says():
    with Places("postgres-policies") as places:
        url = places.new()
        places.opened("aide", url=url, embedder=None).add("tea")
        with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.UndefinedObject):
            connection.execute(AGENTS)

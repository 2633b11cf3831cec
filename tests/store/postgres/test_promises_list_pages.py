"""The pages of one user's list have every memory once."""

import pytest

from tests.support.places import KINDS, Places


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("user", [None, "ann"])
def test_the_pages_of_a_users_list_have_every_memory_once(kind, user):
    with Places(kind) as places, places.opened(embedder=None) as memory:
        added = memory.add_many(["one", "two", "three"], user_id=user)
        first = memory.list(limit=1, user_id=user)
        second = memory.list(limit=2, user_id=user, cursor=first.cursor)
        assert [entry.id for entry in (*first, *second)] == [entry.id for entry in added[::-1]]

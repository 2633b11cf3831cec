"""`Memory` without the embedding: the time of a search of one user's memories."""

import pytest

from benches.memory import StoredVectors, check_answers
from mnemic import Memory


@pytest.fixture(scope="module", params=[5_000, 100_000])
def memory(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "search.db"
    embedder = StoredVectors(request.param)
    with Memory(path, embedder=embedder) as opened:
        for first in range(0, request.param, 10_000):
            numbers = range(first, min(request.param, first + 10_000))
            opened.add_many(
                {"content": f"memory {number}", "user_id": f"user{number % 10}"}
                for number in numbers
            )
        check_answers(opened, embedder, request.param)
        yield opened, request.param


def test_a_search_of_one_user(memory, measure):
    opened, count = memory
    queries = [f"query {number}" for number in range(400)]
    measure(
        "Memory.search without the embedding",
        f"10 of a user's {count // 10:,} among {count:,}",
        lambda query: opened.search(query, user_id="user3"),
        queries,
    )

"""Sealed memories are embedded again by another model, and stay sealed."""

import numpy as np
import pytest

from mnemic import Encryption, Memory, as_embedder
from mnemic.errors import KeyUnavailableError
from mnemic.model import Scope
from mnemic.store.operations import AddShadowVectors, CountToEmbed, EntriesByRow, RowsToEmbed
from tests.support.keys import KEY, OTHER_KEY
from tests.support.places import STORES, Places


def vectors(texts, size, seed):
    random = np.random.default_rng(seed)
    table = random.standard_normal((256, size)).astype(np.float32)
    return np.stack([table[list(text.encode())].sum(0) for text in texts])


OLD = as_embedder(lambda texts: vectors(texts, 16, 1), model="old")
NEW = as_embedder(lambda texts: vectors(texts, 24, 2), model="new")


@pytest.fixture(params=STORES)
def place(request, tmp_path):
    """Return the address of an empty file, or of a database."""
    with Places(request.param, tmp_path) as places:
        yield places.new()


def opened(place, embedder=OLD, key=KEY, **options):
    encryption = None if key is None else Encryption(key)
    return Memory(place, embedder=embedder, encryption=encryption, **options)


def filled(memory):
    memory.add("a red sofa", user_id="ann", sensitive=True)
    memory.add("a blue chair", user_id="ann")
    memory.add("", user_id="ann", metadata={"number": 1}, sensitive=True)
    return memory


def nearest(memory, text):
    return memory.search(text, user_id="ann", search_type="semantic", limit=1)[0].content


def test_sealed_memories_are_found_by_the_new_model(place):
    with filled(opened(place)) as memory:
        report = memory.reembed(NEW)
        assert (report.failed, report.is_complete) == ((), True)
        assert nearest(memory, "a red sofa") == "a red sofa"
    with opened(place, NEW) as memory:
        assert nearest(memory, "a red sofa") == "a red sofa"
        assert nearest(memory, "a blue chair") == "a blue chair"
        assert memory.verify().ok
        assert memory.list(user_id="ann", filters={"sensitive": True})[0].is_encrypted


def test_a_key_is_changed_between_the_filling_of_vectors_and_their_change(place):
    with filled(opened(place)) as memory:
        store = memory.repository._store
        rows = store.read(RowsToEmbed("default", ("new", 24), 0, 10))
        found = store.read(
            EntriesByRow(
                Scope("default", all_users=True),
                rows,
                now=memory.repository.now(),
            )
        )
        fresh = {row: vectors([found[row].content], 24, 2) for row in rows}
        store.write(AddShadowVectors("default", "new", found, fresh)).result()
        assert store.read(CountToEmbed("default", ("new", 24))).missing == 0
        assert memory.verify().ok
        memory.rotate_key(OTHER_KEY)
        assert memory.verify().ok
        assert memory.reembed(NEW).is_complete
        assert nearest(memory, "a red sofa") == "a red sofa"
    with opened(place, NEW, OTHER_KEY) as memory:
        assert nearest(memory, "a red sofa") == "a red sofa"
        assert memory.verify().ok


def test_without_the_key_nothing_is_embedded_again(place):
    filled(opened(place)).close()
    with opened(place, key=None) as memory, pytest.raises(KeyUnavailableError, match="sealed"):
        memory.reembed(NEW)
    with opened(place) as memory:
        assert nearest(memory, "a red sofa") == "a red sofa"

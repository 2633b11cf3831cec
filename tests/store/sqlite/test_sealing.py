"""Sealed entries in a file: damage that its checksums tell."""

import pytest

from mnemic.errors import SealBrokenError
from tests.store.contract import AGENT, one, paged
from tests.store.sealing.places import SECRET, FilePlace, problems, sealed_and_plain


@pytest.fixture
def place(tmp_path):
    made = FilePlace(tmp_path)
    sealed_and_plain(made)
    yield made
    made.drop()


@pytest.mark.requirement("C145", "C179")
@pytest.mark.parametrize("right_sums", [False, True], ids=["wrong sums", "right sums"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", bytes(15) + b"\x09"),
        ("project_id", "other"),
        ("session_id", "other"),
        ("importance", 0.25),
        ("fingerprint", bytes(16)),
    ],
)
def test_other_columns_changed_are_noticed_by_their_checksum(place, name, value, right_sums):
    """With right sums, those that are not sealed are what they seem, and show nothing of others."""
    place.put(name, value, 1)
    if right_sums:
        place.make_sums_right()
    store, number = place.open(), 9 if name == "id" else 1
    if right_sums and name != "id":
        assert one(store, AGENT, number).content == f"{SECRET} 1"
        return
    with pytest.raises(SealBrokenError):
        one(store, AGENT, number)
    assert paged(store) == [2, 3, 4]


def test_a_vector_missing_of_a_sealed_entry_is_noticed(place):
    place.run("DELETE FROM agent_memory_embeddings WHERE entry_row = 1")
    assert problems(place.open())

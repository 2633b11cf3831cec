"""The places in which memories are sealed."""

import pytest

from tests.store.sealing.places import PLACES


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    """Return an empty place of each kind."""
    made = PLACES[request.param](tmp_path)
    yield made
    made.drop()


@pytest.fixture
def store(place):
    """Return a store with a key."""
    return place.open()

"""Places in which a promise is kept."""

import pytest

from tests.support.places import KINDS, Places


@pytest.fixture(params=KINDS)
def places(request):
    """Return empty places of each kind; a test may name some with `indirect=True`."""
    with Places(request.param) as empty:
        yield empty


@pytest.fixture(params=KINDS)
def files(request, tmp_path):
    """Return the same, but each place may be opened again: SQLite's are files."""
    with Places(request.param, tmp_path) as empty:
        yield empty

from datetime import timedelta

import pytest

from mnemic import Memory
from tests.support.clock import Clock


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None, clock=Clock(step=timedelta(minutes=1))) as memory:
        yield memory

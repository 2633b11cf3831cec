"""Fixtures of the tests of HyDE."""

import threading

import pytest


@pytest.fixture
def threads_named():
    """Return a function that gives the threads of a name that were started in this test."""
    earlier = set(threading.enumerate())
    return lambda part: [
        each for each in threading.enumerate() if part in each.name and each not in earlier
    ]

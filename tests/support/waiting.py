"""Waiting for what another thread does."""

import time


def until(is_so, patience=60.0):
    """Wait until something is so, and fail if it is not so in time."""
    end = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)

"""Tests that are coroutine functions."""

import asyncio
import functools


def run(test):
    """Make a test of a coroutine function."""

    @functools.wraps(test)
    def runs(**given):
        asyncio.run(test(**given))

    return runs

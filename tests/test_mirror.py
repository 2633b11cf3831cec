"""Tests mirror modules: most modules have a file of tests by their own name."""

from tests.support.mirror import own_tests

LEAST_SHARE = 0.6
"""The other modules are small, or tested through those that use them."""


def test_most_modules_have_tests_by_their_own_names():
    found = own_tests()
    missing = [module for module, tests in found.items() if not tests.exists()]
    assert "python/mnemic/memory.py" in found.keys() - missing
    assert len(missing) <= (1 - LEAST_SHARE) * len(found), missing

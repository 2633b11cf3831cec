"""Stands in for packages that the pages name and the tests do not need, where they are missing."""

import importlib.util

from tests.support import pandas_stand_in


def put(monkeypatch):
    """Let the pages import what is not installed."""
    if importlib.util.find_spec("pandas") is None:
        pandas_stand_in.put(monkeypatch)

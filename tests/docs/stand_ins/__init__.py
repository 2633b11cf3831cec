"""Stands in for packages that the pages use and the tests do not need.

Type checkers of the pages find the modules of this folder too (`make types`).
"""

from importlib.util import find_spec
from pathlib import Path

from tests.support import pandas_stand_in


def put(monkeypatch):
    """Let the pages import what is not installed."""
    if find_spec("pandas") is None:
        pandas_stand_in.put(monkeypatch)
    monkeypatch.syspath_prepend(Path(__file__).parent)

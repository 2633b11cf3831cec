"""Filters in SQL, on a real file."""

from tests.store.sqlite.conftest import search

__all__ = ["search"]

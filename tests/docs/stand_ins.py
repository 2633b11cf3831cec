"""Stands in for packages that the pages name and the tests do not need, where they are missing."""


def put(_monkeypatch):
    """Nothing yet."""

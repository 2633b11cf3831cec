"""Indexes: caches of a store for search, which can be rebuilt at any time."""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

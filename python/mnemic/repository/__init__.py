"""The verbs of a memory over one store, one embedder and one index."""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

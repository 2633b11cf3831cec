"""The context of one language model call: items within a budget of tokens."""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

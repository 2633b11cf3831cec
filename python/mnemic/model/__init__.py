"""Records shared by all parts of the package, and the rules for their fields."""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

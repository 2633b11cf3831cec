"""Types of arguments, for annotations: interfaces that a program implements, options, aliases.

Records, results and enums are in `mnemic`, errors in `mnemic.errors`, events in `mnemic.events`.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""The retrieval policy: from a message to a bounded block of memories for a prompt.

`RetrievalPolicy` runs all steps in their order; each step is also a function of its own.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

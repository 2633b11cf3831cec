"""Sealing: keys of agents, the format of sealed fields, detection of sensitive texts.

Nothing here imports the library `cryptography`, an extra, before a key is used.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""What code between mnemic and a framework needs, which cannot choose the texts it is given.

`query_text` and `storable_text` make texts that no call refuses for their characters, `named_id`
ids of any names. A class with methods to be awaited gets plain ones by `sync_method`.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""Vectors by number or by string, without memories; and the index of a memory's vectors.

`VectorMap` and `StringVectorMap` search vectors that a program gives them. `FaissOptions` and
`IndexPool` are options of a memory's index, which `memory.index` describes.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""The events of a memory, to subscribe to with `memory.events.subscribe(kind, listener)`.

Each is a frozen record. `Events` describes subscription, order and failing listeners.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""Long-term memory for AI agents, inside their own process.

The interfaces, records, results and enums are here. `mnemic.errors` has the errors, `mnemic.events`
the events, `mnemic.annotations` the types of arguments, for annotations, `mnemic.policy` the
retrieval policy: from a message to a block for a prompt, and `mnemic.hyde` the HyDE engine: the
memories of a turn by hypotheses of a language model.
"""

from mnemic.lazy_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""Rankings by the documented weights of the services."""

from mnemic.model import Ranking, Weights

WEIGHTED_RELEVANCE = Ranking(
    weights=Weights(relevance=0.6, recency=0.2, importance=0.15, access=0.05)
)
"""The retrieval service's."""
RECALL = Ranking(weights=Weights(relevance=0.6, salience=0.4))
"""Those of recall."""

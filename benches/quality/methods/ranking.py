"""Order of rows by score."""

from __future__ import annotations

import numpy as np


def best_first(scores: np.ndarray, limit: int) -> list[int]:
    """Rows of the `limit` largest scores, best first, ties to the earlier row."""
    return np.argsort(-scores, kind="stable")[:limit].tolist()


def reciprocal_ranks(
    scores: np.ndarray, ranked: np.ndarray | None = None, k: int = 60
) -> np.ndarray:
    """Return 1 / (k + rank) of each row, ranks from 1, and 0 for rows that are not `ranked`."""
    places = np.empty(len(scores))
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    shares = 1 / (k + places)
    return shares if ranked is None else np.where(ranked, shares, 0)

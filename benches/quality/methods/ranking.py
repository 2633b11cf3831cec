"""Order of rows by score."""

from __future__ import annotations

import numpy as np


def best_first(scores: np.ndarray, limit: int) -> list[int]:
    """Rows of the `limit` largest scores, best first, ties to the earlier row."""
    return np.argsort(-scores, kind="stable")[:limit].tolist()

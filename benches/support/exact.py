"""The right answers, by brute force in float64, and how much of them a system found."""

import numpy as np

K = 10
AT_ONCE = 10_000
# More than K, so that the order of nearly equal rows is decided below.
CANDIDATES = 4 * K


def best_ids(rows, queries, ids=None, k=K):
    """Return each query's best ids, shape (m, k): float64 score descending, then id ascending."""
    ids = np.arange(len(rows)) if ids is None else np.sort(ids)
    queries = queries.astype(np.float64)
    scores, found = np.empty((len(queries), 0)), np.empty((len(queries), 0), np.int64)
    for first in range(0, len(ids), AT_ONCE):
        some = ids[first : first + AT_ONCE]
        scores = np.hstack([scores, queries @ rows[some].T.astype(np.float64)])
        found = np.hstack([found, np.broadcast_to(some, (len(queries), len(some)))])
        kept = np.argsort(-scores, axis=1, kind="stable")[:, :CANDIDATES]
        scores, found = (np.take_along_axis(array, kept, axis=1) for array in (scores, found))
    return np.stack(
        [ranked(rows, query, some)[:k] for query, some in zip(queries, found, strict=True)]
    )


def ranked(rows, query, ids):
    """Sort ids by scores that are added in one order, so that equal rows score the same."""
    scores = (rows[ids].astype(np.float64) * query).sum(axis=1)
    return ids[np.lexsort((ids, -scores))]


def recall(found, right):
    """Return the share of the right ids that was found, over all queries."""
    pairs = zip(np.asarray(found).tolist(), right.tolist(), strict=True)
    return sum(len(set(some) & set(best)) for some, best in pairs) / right.size

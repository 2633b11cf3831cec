"""A query that only some rows may answer, beside peers that filter before they rank."""

import numpy as np
import pytest

from benches.exact import K, best_ids, recall

SHARES = (0.01, 0.1, 0.5)


@pytest.fixture(params=SHARES, ids=lambda share: f"{share:.0%}")
def allowed(request, case):
    count = len(case.rows)
    random = np.random.default_rng(2)
    return np.sort(random.choice(count, int(request.param * count), replace=False))


def mnemic(case, allowed):
    selection = case.mnemic.vectors.select(allowed)
    return lambda query: case.mnemic.vectors.search(query, k=K, allow=selection).ids


def numpy_take(case, allowed):
    def search(query):
        scores = case.rows[allowed] @ query
        best = np.argpartition(scores, len(scores) - K)[len(scores) - K :]
        return allowed[best[np.argsort(-scores[best])]]

    return search


def faiss_bitmap(case, allowed):
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(case.rows.shape[1])
    index.add(case.rows)
    bits = np.zeros(len(case.rows), np.uint8)
    bits[allowed] = 1
    selector = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
    parameters = faiss.SearchParameters(sel=selector)
    return lambda query: index.search(query[None], K, params=parameters)[1][0]


@pytest.mark.parametrize("system", [mnemic, numpy_take, faiss_bitmap])
def test_a_selection(case, allowed, system, measure):
    search = system(case, allowed)
    right = best_ids(case.rows, case.queries, allowed)
    found = recall([search(query) for query in case.queries], right)
    assert found >= (1 if system is mnemic else 0.99)
    group = f"{case.name}, {len(allowed):,} allowed"
    name = system.__name__.replace("_", " ")
    measure(group, name, search, case.queries, recall=found)

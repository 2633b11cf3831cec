"""mnemic and its peers behind one interface: built from rows, for one query or several, one thread.

The approximate one stores its long builds in target/.
"""

import importlib
import os
from functools import cache
from zlib import crc32

import numpy as np

from benches.support.datasets import CACHE, report
from benches.support.exact import K
from mnemic import VectorMap

INDEXES = CACHE / "indexes"


class System:
    module = "numpy"
    exact = True


class Mnemic(System):
    name = "mnemic"

    def __init__(self, rows):
        self.vectors = VectorMap(rows.shape[1], metric="inner_product")
        self.vectors.replace(np.arange(len(rows)), rows)
        self.vectors.flush()

    def search(self, query):
        return self.vectors.search(query, k=K).ids

    batch = search


class Numpy(System):
    name = "numpy"

    def __init__(self, rows):
        self.rows = rows

    def search(self, query):
        scores = self.rows @ query
        best = np.argpartition(scores, len(scores) - K)[len(scores) - K :]
        return best[np.argsort(-scores[best])]

    def batch(self, queries):
        scores = queries @ self.rows.T
        best = np.argpartition(scores, scores.shape[1] - K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)


class FaissFlat(System):
    name = "faiss IndexFlatIP"
    module = "faiss"

    def __init__(self, rows):
        self.faiss = importlib.import_module("faiss")
        self.faiss.omp_set_num_threads(1)
        self.index = self.faiss.IndexFlatIP(rows.shape[1])
        self.index.add(rows)

    def search(self, query):
        return self.index.search(query[None], K)[1][0]

    def batch(self, queries):
        return self.index.search(queries, K)[1]


class FaissFlatBlas(FaissFlat):
    """IndexFlatIP set to multiply matrices for small batches too, its fastest way."""

    name = "faiss IndexFlatIP, threshold 20"

    def batch(self, queries):
        before = self.faiss.cvar.distance_compute_blas_threshold
        self.faiss.cvar.distance_compute_blas_threshold = 20
        try:
            return super().batch(queries)
        finally:
            self.faiss.cvar.distance_compute_blas_threshold = before


class FaissRefined(FaissFlat):
    """A byte a component, and the floats of the best 4 k.

    One range for all components: 1.6 times as fast as a range each, and the same recall.
    """

    name = "faiss SQ8, re-ranked"
    exact = False

    def __init__(self, rows):
        self.faiss = importlib.import_module("faiss")
        self.faiss.omp_set_num_threads(1)
        kind = self.faiss.ScalarQuantizer.QT_8bit_uniform
        metric = self.faiss.METRIC_INNER_PRODUCT
        self.codes = self.faiss.IndexScalarQuantizer(rows.shape[1], kind, metric)
        self.index = self.faiss.IndexRefineFlat(self.codes)
        self.index.train(rows)
        self.index.add(rows)
        self.index.k_factor = 4


class Usearch(System):
    """Exact search of floats: by an index for one query, by the function `search` for several.

    Either is the faster one there, by two to five times. The index's graph is not used, and is
    the smallest that there is.
    """

    name = "usearch f32"
    module = "usearch.index"
    dtype = "f32"

    def __init__(self, rows):
        self.usearch = importlib.import_module(self.module)
        self.metric = self.usearch.MetricKind.IP
        self.rows = self.converted(rows)
        self.index = self.usearch.Index(
            ndim=rows.shape[1],
            metric=self.metric,
            dtype=self.dtype,
            connectivity=2,
            expansion_add=1,
        )
        self.index.add(np.arange(len(rows)), self.rows, threads=1)

    def converted(self, vectors):
        return vectors

    def search(self, query):
        return self.index.search(self.converted(query), K, exact=True, threads=1).keys

    def batch(self, queries):
        queries = self.converted(queries)
        found = self.usearch.search(self.rows, queries, K, self.metric, exact=True, threads=1)
        return found.keys


class UsearchBytes(Usearch):
    """A byte a component, and scores by bytes; the range is that of the rows.

    usearch's own conversion has the range of -1 to 1, a sixth of which real rows use.
    """

    name = "usearch i8"
    dtype = "i8"
    exact = False

    def converted(self, vectors):
        return np.rint(vectors * (127 / np.abs(vectors).max())).astype(np.int8)


class Hnswlib(System):
    """A graph with M = 16 and ef_construction = 200, searched with ef = 128."""

    name = "hnswlib ef 128"
    module = "hnswlib"
    exact = False

    def __init__(self, rows):
        count, dim = rows.shape
        path = INDEXES / f"{type(self).__name__}-{count}-{dim}-{crc32(rows):08x}"
        self.index = importlib.import_module("hnswlib").Index(space="ip", dim=dim)
        if path.exists():
            self.index.load_index(str(path), max_elements=count)
        else:
            self.build(rows)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.index.save_index(str(path))
        self.index.set_ef(128)

    def build(self, rows):
        report(f"building a graph of {len(rows):,} rows")
        self.index.init_index(max_elements=len(rows), ef_construction=200, M=16, random_seed=1)
        self.index.add_items(rows, np.arange(len(rows)), num_threads=os.cpu_count())

    def search(self, query):
        return self.batch(query)[0]

    def batch(self, queries):
        return self.index.knn_query(queries, K, num_threads=1)[0]


# Peers that read every row. Those that read codes alone are not exact.
SCANS = (Numpy, FaissFlat, FaissRefined, Usearch, UsearchBytes)
BATCH_SCANS = (*SCANS, FaissFlatBlas)


def installed(systems):
    """Return the systems whose module can be imported here."""
    return [system for system in systems if is_installed(system.module)]


@cache
def is_installed(module):
    """Try to import a module; print once which system is left out without it, and why."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError) as error:
        report(f"left out, since it does not run here: {module} ({error})")
        return False
    return True

"""mnemic and its peers behind one interface: built from rows, for one query or several, one thread.

A system has `name`, `exact`, `settings` (best recall last) and `setting`, the one it is measured
with by default. The approximate ones store their long builds in target/.
"""

import importlib
import os
import sys
from functools import cache
from zlib import crc32

import numpy as np

from benches.datasets import CACHE
from benches.exact import K
from mnemic import VectorMap

INDEXES = CACHE / "indexes"


class System:
    module = "numpy"
    exact = True
    settings = (None,)
    setting = None

    def tune(self, setting):
        """Trade recall for time; systems without settings have nothing to do."""

    def label(self, setting):
        return self.name if setting is None else f"{self.name} {setting}"


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


class UsearchExact(System):
    name = "usearch exact"
    module = "usearch.index"

    def __init__(self, rows):
        self.usearch = importlib.import_module("usearch.index")
        self.rows = rows

    def search(self, query):
        return self.batch(query[None]).reshape(-1)

    def batch(self, queries):
        kind = self.usearch.MetricKind.IP
        found = self.usearch.search(self.rows, queries, K, kind, exact=True, threads=1)
        return found.keys.astype(np.int64)


class Graph(System):
    """HNSW with M = 16 and ef_construction = 200; the setting is ef."""

    exact = False
    settings = (16, 32, 64, 128, 256, 512)
    setting = 128

    def __init__(self, rows):
        path = place(self, rows)
        self.index = self.open(rows, path) if path.exists() else self.build_in(rows, path)
        self.tune(self.setting)

    def build_in(self, rows, path):
        report(f"building {self.name} for {len(rows):,} rows")
        index = self.build(rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.save(index, path)
        return index

    def label(self, setting):
        return f"{self.name} ef {setting}"


class Hnswlib(Graph):
    name = "hnswlib"
    module = "hnswlib"

    def empty(self, rows):
        index = importlib.import_module("hnswlib").Index(space="ip", dim=rows.shape[1])
        index.set_num_threads(1)
        return index

    def build(self, rows):
        index = self.empty(rows)
        index.init_index(max_elements=len(rows), ef_construction=200, M=16, random_seed=1)
        index.add_items(rows, np.arange(len(rows)), num_threads=os.cpu_count())
        return index

    def save(self, index, path):
        index.save_index(str(path))

    def open(self, rows, path):
        index = self.empty(rows)
        index.load_index(str(path), max_elements=len(rows))
        return index

    def tune(self, setting):
        self.index.set_ef(setting)

    def search(self, query):
        return self.index.knn_query(query, K, num_threads=1)[0][0]

    def batch(self, queries):
        return self.index.knn_query(queries, K, num_threads=1)[0]


class Usearch(Graph):
    name = "usearch HNSW"
    module = "usearch.index"

    def empty(self, rows):
        index = importlib.import_module("usearch.index").Index
        return index(
            ndim=rows.shape[1], metric="ip", dtype="f32", connectivity=16, expansion_add=200
        )

    def build(self, rows):
        index = self.empty(rows)
        index.add(np.arange(len(rows)), rows, threads=os.cpu_count())
        return index

    def save(self, index, path):
        index.save(str(path))

    def open(self, rows, path):
        index = self.empty(rows)
        index.load(str(path))
        return index

    def tune(self, setting):
        self.index.expansion_search = setting

    def search(self, query):
        return self.index.search(query, K, threads=1).keys.astype(np.int64)

    batch = search


class Turbovec(System):
    """Four bits a component, calibrated; the setting is how many are scored again by floats."""

    name = "turbovec 4-bit"
    module = "turbovec"
    exact = False
    settings = (0, 20, 40, 100, 200)
    setting = 0

    def __init__(self, rows):
        self.rows, self.again = rows, self.setting
        sample = np.random.default_rng(0).choice(len(rows), min(len(rows), 1024), replace=False)
        self.index = importlib.import_module("turbovec").TurboQuantIndex(rows.shape[1], 4)
        self.index.calibrate(rows[sample])
        self.index.add(rows)
        self.index.prepare()

    def tune(self, setting):
        self.again = setting

    def label(self, setting):
        return f"{self.name} + re-score {setting}" if setting else self.name

    def search(self, query):
        found = self.index.search(query[None], max(K, self.again))[1][0].astype(np.int64)
        return self.scored_again(query, found) if self.again else found

    def batch(self, queries):
        found = self.index.search(queries, max(K, self.again))[1].astype(np.int64)
        if not self.again:
            return found
        return np.stack([self.scored_again(*each) for each in zip(queries, found, strict=True)])

    def scored_again(self, query, found):
        return found[np.argsort(-(self.rows[found] @ query))[:K]]


class TurbovecRescored(Turbovec):
    setting = 40


class Scann(System):
    """A tree of partitions, 4-bit codes, floats for the last; the setting is both last numbers.

    The sizes follow the project's guidance: no tree below 20,000 rows, else about as many
    leaves as the square root of the rows times two.
    """

    name = "ScaNN"
    module = "scann"
    exact = False
    settings = ((5, 30), (10, 50), (20, 100), (50, 150), (100, 300), (300, 1000))
    setting = (20, 100)

    def __init__(self, rows):
        scann = importlib.import_module("scann").scann_ops_pybind
        folder = place(self, rows)
        if folder.exists():
            self.searcher = scann.load_searcher(str(folder))
        else:
            report(f"building {self.name} for {len(rows):,} rows")
            self.searcher = self.build(scann.builder(rows, K, "dot_product"), len(rows))
            folder.mkdir(parents=True)
            self.searcher.serialize(str(folder), relative_path=True)
        self.searcher.set_num_threads(1)
        self.tune(self.setting)

    def build(self, builder, count):
        if count >= 20_000:
            leaves = int(2 * count**0.5)
            builder = builder.tree(
                num_leaves=leaves, num_leaves_to_search=20, training_sample_size=min(count, 250_000)
            )
        coded = builder.score_ah(2, anisotropic_quantization_threshold=0.2)
        return coded.reorder(100).build()

    def tune(self, setting):
        self.leaves, self.again = setting

    def label(self, setting):
        return "{} {} + re-score {}".format(self.name, *setting)

    def search(self, query):
        return self.searcher.search(query, K, self.again, self.leaves)[0].astype(np.int64)

    def batch(self, queries):
        found = self.searcher.search_batched(queries, K, self.again, self.leaves)[0]
        return found.astype(np.int64)


EXACT = (Mnemic, Numpy, FaissFlat, UsearchExact)
EXACT_BATCHES = (Mnemic, Numpy, FaissFlat, FaissFlatBlas, UsearchExact)
APPROXIMATE = (Hnswlib, Usearch, Turbovec, TurbovecRescored, Scann)


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


def place(system, rows):
    """Return the path of a built index: a name for these very rows."""
    count, dim = rows.shape
    return INDEXES / f"{type(system).__name__}-{count}-{dim}-{crc32(rows):08x}"


def report(line):
    print(line, file=sys.stderr, flush=True)

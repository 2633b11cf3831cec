"""The kinds of FAISS indexes: how each is made, trained, searched and emptied."""

import mmap
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnemic.description import described
from mnemic.errors import InvalidArgumentError, MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

FaissKind: TypeAlias = Literal["hnsw", "flat", "ivfpq"]
"""The kind of an index of FAISS: see `FaissOptions`."""
KINDS: Final = ("hnsw", "flat", "ivfpq")

_CELLS_PER_ROOT: Final = 4
"""Cells of an inverted file: so many times the square root of the trained vectors."""

_TRAINED_PER_CELL: Final = 39
"""Vectors for each cell that FAISS's k-means wants at least."""

_BYTES_OF_LINK: Final = 4

_PIECE: Final = 1 << 20
"""Bytes that are written or read at once."""

_ROOM: Final = 4 << 20
_ADDED: Final = 4
_BYTES_OF_HIT: Final = 64
"""Bytes that FAISS may take for a call, for each hit, and for each byte of what is added."""

_BITS: Final = 8
"""Bits of a product quantizer's code for each part of a vector."""


def faiss_library() -> "ModuleType":
    """Return the library.

    Raises:
        MissingExtraError: If it is not installed, or cannot be loaded.
    """
    try:
        import faiss  # noqa: PLC0415 - an extra, imported on first use
    except ImportError as error:
        raise MissingExtraError(
            "an approximate index needs FAISS; python -m pip install 'mnemic[faiss]'"
        ) from error
    except Exception as error:  # of a build that does not fit numpy or the processor
        raise MissingExtraError(
            f"FAISS is installed, and cannot be loaded ({type(error).__name__}); python -m pip "
            "install --force-reinstall 'mnemic[faiss]'"
        ) from error
    return faiss


class FaissOptions(NamedTuple):
    """The options of an approximate index of vectors by FAISS.

    Attributes:
        kind: "hnsw", a graph (Malkov and Yashunin, 2018) of vectors in half precision; "flat", all
            vectors; "ivfpq", an inverted file of product-quantized vectors (Jégou, Douze and
            Schmid, 2011).
        links: Links of a vector in each layer of a graph but the lowest, which has twice as many.
        build_depth: Candidates that the construction of a graph considers (efConstruction).
        search_depth: Candidates that its search considers at least (efSearch).
        trained: Vectors that an inverted file is trained with.
        code_bytes: Bytes of a product-quantized vector; a divisor of the dimension.
        probes: Cells of an inverted file that a search visits.
        threads: Threads that build the index together, in the background.
    """

    kind: FaissKind = "hnsw"
    links: int = 32
    build_depth: int = 80
    search_depth: int = 112
    trained: int = 100_000
    code_bytes: int = 48
    probes: int = 32
    threads: int = 1


def checked_options(options: FaissOptions) -> FaissOptions:
    """Return valid options.

    Raises:
        InvalidArgumentError: If the kind is unknown, or a number too small or too large.
    """
    if options.kind not in KINDS:
        raise InvalidArgumentError(
            f"FaissOptions.kind must be one of {', '.join(KINDS)}, got {described(options.kind)}"
        )
    for name, (least, most) in _BOUNDS.items():
        value = getattr(options, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidArgumentError(
                f"FaissOptions.{name} must be a whole number from {least:,} to {most:,}, got "
                f"{described(value)}"
            )
    return options


_BOUNDS: Final = {
    "links": (2, 512),  # a graph of 1,024 links has more bytes of links than of most vectors
    "build_depth": (1, 10_000),
    "search_depth": (1, 100_000),
    "trained": (2**_BITS, 10_000_000),  # a quantizer has so many codes
    "code_bytes": (1, 4096),
    "probes": (1, 65_536),
    "threads": (1, 256),
}


class FaissIndex:
    """One index of FAISS, whose vectors have the positions in which they were added.

    Args:
        options: The options.
        dim: Dimension of the vectors, which are of length 1, or null.
    """

    def __init__(self, options: FaissOptions, dim: int) -> None:
        self._faiss = faiss_library()
        self._options = options
        self._dim = dim
        self._index: Any = None if options.kind == "ivfpq" else self._made()
        self._coarse: Any = None

    def _made(self) -> Any:
        faiss, options = self._faiss, self._options
        if options.kind == "flat":
            return faiss.IndexFlatIP(self._dim)
        half = faiss.ScalarQuantizer.QT_fp16
        graph = faiss.IndexHNSWSQ(self._dim, half, options.links, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = options.build_depth
        return graph

    @property
    def needs_training(self) -> bool:
        """Whether vectors have to be given to `train` before any is added."""
        return self._index is None

    def train(self, vectors: NDArray[np.float32]) -> None:
        """Train an inverted file with a sample of its vectors."""
        faiss, options = self._faiss, self._options
        cells = max(
            1, min(int(_CELLS_PER_ROOT * len(vectors) ** 0.5), len(vectors) // _TRAINED_PER_CELL)
        )
        parts = _divisor(self._dim, options.code_bytes)
        coarse = faiss.IndexFlatIP(self._dim)
        index = faiss.IndexIVFPQ(coarse, self._dim, cells, parts, _BITS, faiss.METRIC_INNER_PRODUCT)
        for clustering in (index.cp, index.pq.cp):  # it would warn on stderr of few vectors
            clustering.min_points_per_centroid = 1
        index.train(vectors)
        self._index, self._coarse = index, coarse  # FAISS holds no reference to the latter

    @property
    def size(self) -> int:
        """Number of vectors in it, those at vacant positions included unless discarded."""
        return 0 if self._index is None else int(self._index.ntotal)

    def write(self, output: Callable[[bytes], object]) -> None:
        """Write all of it in pieces, to a function that raises nothing."""
        self._faiss.write_index(self._index, self._faiss.PyCallbackIOWriter(output, _PIECE))

    @classmethod
    def read(
        cls, options: FaissOptions, dim: int, give: Callable[[int], bytes]
    ) -> "FaissIndex | None":
        """Return the index that `write` has written; None if it is none of this kind.

        Args:
            options: The options.
            dim: The dimension.
            give: Returns at most so many next bytes. They must be verified: FAISS trusts them.
        """
        faiss = faiss_library()
        try:
            found = faiss.read_index(faiss.PyCallbackIOReader(give, _PIECE))
        except RuntimeError:  # of FAISS
            return None
        kinds = {"hnsw": faiss.IndexHNSWSQ, "flat": faiss.IndexFlatIP, "ivfpq": faiss.IndexIVFPQ}
        is_wanted = isinstance(found, kinds[options.kind]) and found.d == dim
        if not is_wanted or found.metric_type != faiss.METRIC_INNER_PRODUCT:
            return None
        read = cls(options, dim)
        read._index = found
        return read

    @contextmanager
    def own_threads(self) -> Generator[None, None, None]:
        """Use own threads in a thread that is not the index's."""
        before = self._faiss.omp_get_max_threads()
        self.use_own_threads()
        try:
            yield
        finally:
            self._faiss.omp_set_num_threads(before)

    def use_own_threads(self) -> None:
        """Have FAISS use as many threads as the options say for what the calling thread asks."""
        self._faiss.omp_set_num_threads(self._options.threads)  # OpenMP has a number for each

    def disown(self) -> None:
        """Free nothing, ever: another process was at work on it when this one was forked off."""
        for part in (self._index, self._coarse):
            if part is not None:
                part.this.own(False)  # noqa: FBT003 - an argument of SWIG
        # Another thread may have had its lock; without it nothing asks whether to go on.
        self._faiss.InterruptCallback.clear_instance()

    def add(self, vectors: NDArray[np.float32], first: int) -> None:
        """Add vectors at the next positions, of which this is the first."""
        self._require_room(_ADDED * vectors.nbytes)
        if self._options.kind == "ivfpq":  # it would number on from the vectors that are left
            self._index.add_with_ids(vectors, np.arange(first, first + len(vectors)))
        else:
            self._index.add(vectors)

    def discard(self, positions: NDArray[np.int64]) -> bool:
        """Take vectors out; return False if they stay, and their positions have to be ignored."""
        if self._options.kind != "ivfpq" or self._index is None:
            return False
        self._index.remove_ids(self._faiss.IDSelectorBatch(positions))
        return True

    def vectors(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return vectors as they are kept; not those of an inverted file."""
        found: NDArray[np.float32] = self._index.reconstruct_batch(positions)
        return found

    def search(
        self, queries: NDArray[np.float32], k: int, selector: Any, share: float
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return inner products and positions, -1 for none, each of shape (m, k).

        Args:
            queries: Shape (m, dim), of length 1, or null.
            k: Number of positions.
            selector: FAISS's selector of positions; None for all.
            share: The share of positions that it selects.
        """
        faiss, options = self._faiss, self._options
        self._require_room(_BYTES_OF_HIT * k * len(queries))
        if options.kind == "hnsw":
            depth = int(max(k, options.search_depth) / max(share, 1 / 8))
            parameters = faiss.SearchParametersHNSW(efSearch=depth, sel=selector)
        elif options.kind == "ivfpq":
            probes = int(options.probes / max(share, 1 / 8))
            parameters = faiss.SearchParametersIVF(nprobe=probes, sel=selector)
        else:
            parameters = faiss.SearchParameters(sel=selector)
        # One at a time: several would be shared out to threads, of which each keeps a team.
        found = [
            self._index.search(query, k, params=parameters) for query in queries[:, np.newaxis]
        ]
        scores, positions = zip(*found, strict=True)
        return np.concatenate(scores), np.concatenate(positions)

    def _require_room(self, further: int) -> None:
        """Raise MemoryError if there is little memory: C++ ends the process where it finds none."""
        try:
            mmap.mmap(-1, _ROOM + further + self._index.ntotal).close()  # a byte marks each visited
        except OSError as error:
            raise MemoryError("there is too little memory for FAISS") from error

    def nbytes(self, size: int) -> int:
        """Return the bytes of so many vectors, roughly."""
        options = self._options
        if options.kind == "ivfpq":
            return size * (options.code_bytes + 8)
        if options.kind == "hnsw":
            return size * (2 * self._dim + 2 * options.links * _BYTES_OF_LINK)
        return size * 4 * self._dim


def _divisor(dim: int, wanted: int) -> int:
    """Return the largest divisor of a dimension that is at most a wanted number."""
    return next(parts for parts in range(min(dim, wanted), 0, -1) if dim % parts == 0)

"""Which index finds memories: an exact one, or one of FAISS by its options, and its parts."""

import mmap
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.errors import InvalidArgumentError, MissingExtraError, MnemicError
from mnemic.index.base import (
    CandidateSource,
    InitialVectors,
    SourceChoice,
)
from mnemic.reporting.description import must_be

if TYPE_CHECKING:
    from types import ModuleType


FaissKind: TypeAlias = Literal["hnsw", "flat"]
"""The kind of an index of FAISS: see `FaissOptions`."""
KINDS: Final = ("hnsw", "flat")

_BYTES_OF_LINK: Final = 4

_PIECE: Final = 1 << 20
"""Bytes that are written or read at once."""

_BYTES_OF_CALL: Final = 4 << 20
_ADDED: Final = 4
_BYTES_OF_HIT: Final = 64
"""Bytes that FAISS may take for a call, for each hit, and for each byte of what is added."""


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
            vectors, which are compared.
        links: Links of a vector in each layer of a graph but the lowest, which has twice as many.
        build_depth: Candidates that the construction of a graph considers (efConstruction).
        search_depth: Candidates that its search considers at least (efSearch).
        threads: Threads that build the index together, in the background.
    """

    kind: FaissKind = "hnsw"
    links: int = 32
    build_depth: int = 80
    search_depth: int = 112
    threads: int = 1


def checked_options(options: FaissOptions) -> FaissOptions:
    """Return valid options.

    Raises:
        InvalidArgumentError: If the kind is unknown, or a number too small or too large.
    """
    if options.kind not in KINDS:
        raise must_be("FaissOptions.kind", f"one of {', '.join(KINDS)}", options.kind)
    for name, (least, most) in _BOUNDS.items():
        value = getattr(options, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise must_be(
                f"FaissOptions.{name}", f"a whole number from {least:,} to {most:,}", value
            )
    return options


_BOUNDS: Final = {
    "links": (2, 512),  # a graph of 1,024 links has more bytes of links than of most vectors
    "build_depth": (1, 10_000),
    "search_depth": (1, 100_000),
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
        self.options = options
        self.dim = dim
        self._index: Any = self._made()

    def _made(self) -> Any:
        faiss, options = self._faiss, self.options
        if options.kind == "flat":
            return faiss.IndexFlatIP(self.dim)
        half = faiss.ScalarQuantizer.QT_fp16
        graph = faiss.IndexHNSWSQ(self.dim, half, options.links, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = options.build_depth
        return graph

    @property
    def size(self) -> int:
        """Number of vectors in it, those at vacant positions included."""
        return int(self._index.ntotal)

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
        kinds = {"hnsw": faiss.IndexHNSWSQ, "flat": faiss.IndexFlatIP}
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
        self._faiss.omp_set_num_threads(self.options.threads)  # OpenMP has a number for each

    def disown(self) -> None:
        """Free nothing, ever: another process was at work on it when this one was forked off."""
        self._index.this.own(False)  # noqa: FBT003 - an argument of SWIG
        # Another thread may have had its lock; without it nothing asks whether to go on.
        self._faiss.InterruptCallback.clear_instance()

    def add(self, vectors: Float32Array) -> None:
        """Add vectors at the next positions."""
        self.require_memory(_ADDED * vectors.nbytes)
        self._index.add(vectors)

    def vectors(self, positions: Int64Array) -> Float32Array:
        """Return vectors as they are kept."""
        found: Float32Array = self._index.reconstruct_batch(positions)
        return found

    def search(
        self, queries: Float32Array, k: int, selector: Any, share: float
    ) -> tuple[Float32Array, Int64Array]:
        """Return inner products and positions, -1 for none, each of shape (m, k).

        Args:
            queries: Shape (m, dim), of length 1, or null.
            k: Number of positions.
            selector: FAISS's selector of positions; None for all.
            share: The share of positions that it selects.
        """
        faiss, options = self._faiss, self.options
        self.require_memory(_BYTES_OF_HIT * k * len(queries))
        if options.kind == "hnsw":
            depth = int(max(k, options.search_depth) / max(share, 1 / 8))
            parameters = faiss.SearchParametersHNSW(efSearch=depth, sel=selector)
        else:
            parameters = faiss.SearchParameters(sel=selector)
        # One at a time: several would be shared out to threads, of which each keeps a team.
        found = [
            self._index.search(query, k, params=parameters) for query in queries[:, np.newaxis]
        ]
        scores, positions = zip(*found, strict=True)
        return np.concatenate(scores), np.concatenate(positions)

    def require_memory(self, further: int = 0) -> None:
        """Raise MemoryError if there is little memory: C++ ends the process where it finds none."""
        try:
            mmap.mmap(
                -1, _BYTES_OF_CALL + further + self._index.ntotal
            ).close()  # a byte marks each visited
        except OSError as error:
            raise MemoryError("there is too little memory for FAISS") from error

    def nbytes(self, size: int) -> int:
        """Return the bytes of so many vectors, roughly."""
        if self.options.kind == "hnsw":
            return size * (2 * self.dim + 2 * self.options.links * _BYTES_OF_LINK)
        return size * 4 * self.dim


IndexChoice: TypeAlias = Literal["exact", "faiss", "auto"] | FaissOptions
"""All memories compared; an approximate index, with options of its own; or the latter above
`AUTO_LIMIT` memories."""

AUTO_LIMIT: Final = 2_000_000
"""Memories of an agent above which `"auto"` uses an approximate index: an exact search compares so
many in some 15 ms."""

_NAMES: Final = ("exact", "faiss", "auto")


def checked_index(index: object) -> IndexChoice:
    """Return a valid choice.

    Raises:
        InvalidArgumentError: If it is none.
        MissingExtraError: If it needs FAISS, which is not installed.
    """
    if isinstance(index, FaissOptions):
        faiss_library()
        return checked_options(index)
    if not isinstance(index, str) or index not in _NAMES:
        raise must_be("index", f"one of {', '.join(_NAMES)}, or FaissOptions", index)
    if index == "faiss":
        faiss_library()
    return cast("IndexChoice", index)


def source_choice(choice: IndexChoice, count: Callable[[], int]) -> SourceChoice | None:
    """Return what chooses the candidate sources of a new index; None for none at all.

    Args:
        choice: The choice.
        count: Returns the number of memories.
    """
    if choice == "exact":
        return None
    sources = FaissSources(choice if isinstance(choice, FaissOptions) else FaissOptions())
    if choice == "auto":
        return lambda: sources if count() > AUTO_LIMIT else None
    return lambda: sources


class FaissSources:
    """Makes candidate sources by FAISS; see `SourceFactory`.

    Args:
        options: Their options.
    """

    def __init__(self, options: FaissOptions) -> None:
        self.options = options

    def __call__(self, dim: int, beginning: InitialVectors | None = None) -> CandidateSource:
        """Return a source of vectors of a dimension.

        Args:
            dim: The dimension.
            beginning: The vectors that it has before any change; None for none.

        Raises:
            InvalidArgumentError: If FAISS has no such index.
        """
        from mnemic.index.faiss_source import FaissSource  # noqa: PLC0415 - most memories need none

        try:
            return FaissSource(dim, self.options, beginning)
        except (MnemicError, MemoryError):
            raise
        except Exception as error:  # FAISS raises many kinds
            raise InvalidArgumentError(
                f"FAISS makes no index of {dim} dimensions by {self.options} "
                f"({type(error).__name__})"
            ) from error

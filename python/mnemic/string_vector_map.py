"""`StringVectorMap`: a `VectorMap` whose ids are strings.

Each string has a number, which is the id of its vector in a map of numbers. Numbers ascend in the
order in which strings came, and none is given twice, so a number that a search found means one
string or, if that was removed meanwhile, nothing.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar, final, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic._core import VectorMap
from mnemic.arrays import ArrayLike
from mnemic.errors import (
    ArrayTypeError,
    DuplicateIdError,
    InvalidArgumentError,
    UnknownIdError,
    VectorFileDamagedError,
)
from mnemic.reporting.description import described, quoted
from mnemic.reporting.habits import VECTOR_MAP, AnswersHabits
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.locks import Lock

_T = TypeVar("_T")
_Ids: TypeAlias = str | Iterable[str]

_LABEL_VERSION = 1
_NO_HIT = -1
_NUMBERS_END = 1 << 62
_TRIES = 8
"""Readings beside changes, before one waits for the lock of the writers."""

_SHOWN_HITS = 5


class _Label(msgspec.Struct, frozen=True, array_like=True, tag="mnemic.ids"):
    """The label of a file: the strings of its rows, in the order of their numbers."""

    version: int
    ids: list[str]


class _ConcurrentChangeError(Exception):
    """The strings changed while a call read them."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StringHits:
    """The result of a search, best first: two arrays, which unpack as `ids, scores = hits`.

    Pairs are `zip(hits.ids, hits.scores)`. Hits are true if there is any. As `Hits`, they have
    neither a length nor items of their own.

    Attributes:
        ids: Strings in an array of objects, shape (n,) with n = min(k, matches); for a batch
            (m, k), padded with None.
        scores: Same shape as `ids`; padded with -inf.
        counts: Number of hits of each query of a batch, shape (m,); None for a single query.
    """

    ids: NDArray[np.object_]
    scores: NDArray[np.float64]
    counts: NDArray[np.int64] | None = None

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Whether a place of `ids` holds a hit; same shape. All do for a single query."""
        if self.counts is None:
            return np.ones(self.ids.shape, np.bool_)
        places: NDArray[np.bool_] = np.arange(self.ids.shape[1]) < self.counts[:, None]
        return places

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.ids, self.scores))

    def __bool__(self) -> bool:
        return self.ids.size > 0 if self.counts is None else bool(self.counts.any())

    def __len__(self) -> NoReturn:
        raise TypeError(
            "StringHits have no length: they are two arrays; write `ids, scores = hits`, "
            "`hits.ids[0]`, `len(hits.ids)`, or `for id, score in zip(hits.ids, hits.scores)`"
        )

    def __repr__(self) -> str:
        if self.counts is not None:
            queries, k = self.ids.shape
            return f"StringHits({queries} queries, k={k})"
        pairs = zip(self.ids[:_SHOWN_HITS], self.scores[:_SHOWN_HITS], strict=True)
        shown = [f"{quoted(each)}: {score:.3f}" for each, score in pairs]
        more = ["…"] if len(self.ids) > _SHOWN_HITS else []
        noun = "hit" if len(self.ids) == 1 else "hits"
        return f"StringHits({len(self.ids)} {noun}, {{{', '.join(shown + more)}}})"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StringRangeHits:
    """The result of a range search: three arrays, which unpack as `limits, ids, scores = hits`.

    The hits of query `i`, best first, are `ids[limits[i]:limits[i + 1]]` with
    `scores[limits[i]:limits[i + 1]]`, as in FAISS.

    Attributes:
        limits: Where the hits of each query begin, and at last where they end, shape (m + 1,).
        ids: Strings of all hits in an array of objects, shape (limits[-1],).
        scores: Their scores, same shape.
    """

    limits: NDArray[np.int64]
    ids: NDArray[np.object_]
    scores: NDArray[np.float64]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.limits, self.ids, self.scores))

    def __repr__(self) -> str:
        return f"StringRangeHits({len(self.limits) - 1} queries, {len(self.ids)} hits)"


class StringVectorMap(AnswersHabits):
    """Vectors by string, searched exactly: a `VectorMap` whose ids are strings.

    Calls, scores and errors are those of `VectorMap`; of equal scores the id that was stored
    earlier comes first. Thread-safe: every change is one whole call to readers, and writers, a
    save and a pickle among them, wait for each other.

    Args:
        dim: Components of a vector, 1 to 32,768.
        metric: "cosine" scales rows and queries to unit length in float32 (the zero vector stays
            zero); "inner_product" takes them as they are.

    Raises:
        InvalidArgumentError: If `dim` or `metric` is out of range.
        KernelUnavailableError: If `MNEMIC_KERNEL` cannot be had.
    """

    _habits: ClassVar[Mapping[str, str]] = VECTOR_MAP

    @checks_arguments
    def __init__(self, dim: int, *, metric: str = "cosine") -> None:
        self._adopt(VectorMap(dim, metric=metric), [])

    def _adopt(self, vectors: VectorMap, ids: list[str]) -> None:
        """Begin with these rows, whose ids are in the order of their numbers."""
        numbers = vectors.ids().tolist()
        self._map = vectors
        self._lock = Lock()  # of writers
        self._next = numbers[-1] + 1 if numbers else 0
        # Both have all rows of the map, and others while it changes.
        self._numbers = dict(zip(ids, numbers, strict=True))
        self._ids: dict[int, str | None] = dict(zip(numbers, ids, strict=True))
        self._ids[_NO_HIT] = None
        self._version = 0  # of `_numbers`

    @classmethod
    def from_rows(cls, ids: _Ids, vectors: ArrayLike, /, metric: str = "cosine") -> Self:
        """Make a map of these rows.

        Args:
            ids: n strings, each once.
            vectors: Shape (n, dim); their last axis is the map's dimension.
            metric: "cosine" or "inner_product".

        Raises:
            ArrayTypeError: If `vectors` has not two axes.
            InvalidArgumentError: As `replace`, and if `metric` is out of range.
        """
        given = _distinct(ids)
        made = cls.__new__(cls)
        cls._adopt(made, VectorMap.from_rows(np.arange(len(given)), vectors, metric), given)
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Open a file of `save`, as `VectorMap.load` does; the ids are read at once.

        Args:
            path: The file.

        Raises:
            VectorFileError: If the file cannot be read.
            VectorFileDamagedError: If it is damaged, of another kind or version, or of a
                `VectorMap`, which has no strings.
        """
        vectors = VectorMap.load(path)
        ids = _decoded(vectors.label)
        numbers = vectors.ids()
        if len(ids) != len(numbers) or len(set(ids)) != len(ids):
            raise VectorFileDamagedError("the saved file's ids are not those of its vectors")
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < _NUMBERS_END:
            raise VectorFileDamagedError("the saved file has vectors of another kind of map")
        made = cls.__new__(cls)
        cls._adopt(made, vectors, ids)
        return made

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write the map to a file, as `VectorMap.save` does; changes wait for its end.

        `VectorMap.load` opens the file too, with numbers in place of strings.

        Args:
            path: The file.

        Raises:
            VectorFileError: If the file cannot be written; an earlier one is unchanged.
        """
        with self._lock:
            label = msgspec.msgpack.encode(_Label(_LABEL_VERSION, self._stored()))
            self._map.save(path, label=label)

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            rows = self._map.get(self._map.ids())
            return type(self).from_rows, (self._stored(), rows, self.metric)

    @property
    def dim(self) -> int:
        """Components of a vector."""
        return self._map.dim

    @property
    def metric(self) -> str:
        """How vectors are compared: "cosine" or "inner_product"."""
        return self._map.metric

    @property
    def nbytes(self) -> int:
        """Bytes held, without the strings; see `VectorMap.nbytes`."""
        return self._map.nbytes

    def __len__(self) -> int:
        return len(self._map)

    def __contains__(self, id: object, /) -> bool:  # noqa: A002 - as in the core
        number = self._numbers.get(id) if isinstance(id, str) else None
        return number is not None and number in self._map

    def __repr__(self) -> str:
        return f"<StringVectorMap dim={self.dim} metric={self.metric} rows={len(self)}>"

    def ids(self) -> list[str]:
        """Return all ids, in the order in which they were stored first."""
        return self._read(self._stored)

    def upsert(self, ids: _Ids, vectors: ArrayLike, /) -> None:
        """Insert or overwrite rows. Arguments and errors are those of `replace`."""
        given = _distinct(ids)
        with self._lock, self._numbered(given) as numbers:
            self._map.upsert(numbers, vectors)

    def replace(self, ids: _Ids, vectors: ArrayLike, /) -> None:
        """Replace the whole content in one swap.

        Args:
            ids: n strings, each once; a string alone is one id.
            vectors: Shape (n, dim), float32; other float and integer dtypes are converted.

        Raises:
            ArrayTypeError: If `vectors` is not an array of numbers, or an id not a string.
            InvalidArgumentError: If an id has lone surrogates, which no file can hold.
            DimensionMismatchError: If the last axis is not `dim`.
            CountMismatchError: If the lengths differ.
            DuplicateIdError: If an id is given twice.
            NonFiniteVectorError: If a vector holds NaN or infinity.
        """
        given = _distinct(ids)
        with self._lock:
            with self._numbered(given) as numbers:
                self._map.replace(numbers, vectors)
            kept = set(given)
            self._forget([each for each in self._numbers if each not in kept])

    def remove(self, ids: _Ids, /) -> int:
        """Remove rows and return their number. Unknown ids are ignored.

        Args:
            ids: Strings in any order; a string alone is one id.
        """
        given = _strings(ids)
        with self._lock:
            known = [each for each in dict.fromkeys(given) if each in self._numbers]
            count = self._map.remove(self._found(known))
            self._forget(known)
            return count

    @overload
    def get(  # type: ignore[overload-overlap] # pyright: ignore[reportOverlappingOverload]
        self, ids: str, /
    ) -> NDArray[np.float32] | None: ...
    @overload
    def get(self, ids: Iterable[str], /) -> NDArray[np.float32]: ...
    def get(self, ids: _Ids, /) -> NDArray[np.float32] | None:
        """Return stored rows: under "cosine" the float32-normalised ones.

        Args:
            ids: One id, or n of them.

        Returns:
            For one id its row, shape (dim,), or None if it is missing; else shape (n, dim).

        Raises:
            UnknownIdError: If one of several ids has no row.
        """
        if isinstance(ids, str):
            number = self._numbers.get(ids)
            return None if number is None else self._map.get(number)
        given = _strings(ids)

        def rows() -> NDArray[np.float32]:
            unknown = next((each for each in given if each not in self), None)
            if unknown is not None:
                raise UnknownIdError(f"id {quoted(unknown)} has no row")
            try:
                return self._map.get(self._found(given))
            except UnknownIdError:
                raise _ConcurrentChangeError from None

        return self._read(rows)

    def flush(self) -> None:
        """Finish background maintenance; see `VectorMap.flush`."""
        self._map.flush()

    @checks_arguments
    def search(
        self,
        query: ArrayLike,
        /,
        k: int = 10,
        *,
        allow: _Ids | None = None,
        min_score: float | None = None,
        weight: float = 1.0,
        prior: Mapping[str, float] | None = None,
        combine: str | None = None,
        threads: int = 1,
    ) -> StringHits:
        """Find the `k` rows with the largest score, exactly; see `VectorMap.search`.

        Args:
            query: Shape (dim,) or (m, dim).
            k: Largest number of hits; 0 gives an empty answer.
            allow: Ids that may be hits; None allows all. Unknown ids match nothing.
            min_score: Smallest score of a hit, inclusive; None allows all.
            weight: Factor of the similarity, from 0 to 1e30.
            prior: Summand of each id's score, kept as float32; None adds nothing. Unknown ids
                are ignored, and others have 0.
            combine: None answers each query by itself; "max" gives one answer in which each row
                counts with the largest of its similarities to the queries.
            threads: Threads that share the scan, at least 1.
        """
        search = partial(
            self._map.search,
            query,
            k=k,
            min_score=min_score,
            weight=weight,
            combine=combine,
            threads=threads,
        )

        def hits(**among: Any) -> StringHits:
            found = search(**among)
            return StringHits(self._strings_of(found.ids), found.scores, found.counts)

        return self._read_among(allow, prior, hits)

    @checks_arguments
    def range_search(
        self,
        query: ArrayLike,
        /,
        *,
        min_score: float,
        allow: _Ids | None = None,
        weight: float = 1.0,
        prior: Mapping[str, float] | None = None,
    ) -> StringRangeHits:
        """Find all rows that score at least `min_score`; see `VectorMap.range_search`.

        Args:
            query: Shape (dim,), which counts as one query, or (m, dim).
            min_score: Smallest score of a hit, inclusive.
            allow: As in `search`.
            weight: As in `search`.
            prior: As in `search`.

        Raises:
            OutOfMemoryError: If the hits do not fit memory.
        """
        search = partial(self._map.range_search, query, min_score=min_score, weight=weight)

        def hits(**among: Any) -> StringRangeHits:
            found = search(**among)
            return StringRangeHits(found.limits, self._strings_of(found.ids), found.scores)

        return self._read_among(allow, prior, hits)

    @checks_arguments
    def count(
        self,
        query: ArrayLike,
        /,
        *,
        min_score: float,
        allow: _Ids | None = None,
        weight: float = 1.0,
        prior: Mapping[str, float] | None = None,
    ) -> Any:
        """Count the rows that score at least `min_score`; see `VectorMap.count`.

        Args:
            query: Shape (dim,) or (m, dim).
            min_score: Smallest score of a row that counts, inclusive.
            allow: As in `search`.
            weight: As in `search`.
            prior: As in `search`.

        Returns:
            An int; for queries of shape (m, dim) int64 counts of shape (m,).
        """
        count = partial(self._map.count, query, min_score=min_score, weight=weight)
        return self._read_among(allow, prior, count)

    def _read(self, read: Callable[[], _T]) -> _T:
        """Read one state: again if it changed meanwhile, at last with no writer beside."""
        for _ in range(_TRIES):
            try:
                return read()
            except _ConcurrentChangeError:
                continue
        with self._lock:
            return read()

    def _read_among(
        self,
        allow: _Ids | None,
        prior: Mapping[str, float] | None,
        read: Callable[..., _T],
    ) -> _T:
        """Read with `allow` and `prior` of numbers in place of strings, all of one state."""
        allowed = None if allow is None else _strings(allow)
        priors = None if prior is None else _pairs(prior)

        def reading() -> _T:
            version = self._version
            numbers = None if allowed is None else self._found(allowed)
            values = None
            if priors is not None:
                ids = priors[0]
                # Unknown ids get numbers that no row has.
                beyond = zip(ids, range(_NO_HIT - 1, _NO_HIT - 1 - len(ids), -1), strict=True)
                known = [self._numbers.get(each, other) for each, other in beyond]
                values = self._map.prior(known, priors[1])
            found = read(allow=numbers, prior=values)
            if version != self._version and (allowed or priors):
                raise _ConcurrentChangeError
            return found

        return self._read(reading)

    def _found(self, ids: list[str]) -> NDArray[np.int64]:
        """The numbers of the ids that have one."""
        numbers = (self._numbers.get(each) for each in ids)
        return np.array([each for each in numbers if each is not None], np.int64)

    def _strings_of(self, numbers: NDArray[np.int64]) -> NDArray[np.object_]:
        strings = np.empty(numbers.size, np.object_)
        try:
            strings[:] = [self._ids[each] for each in numbers.ravel().tolist()]
        except KeyError:
            raise _ConcurrentChangeError from None
        return strings.reshape(numbers.shape)

    def _stored(self) -> list[str]:
        stored: list[str] = self._strings_of(self._map.ids()).tolist()
        return stored

    @contextmanager
    def _numbered(self, ids: list[str]) -> Generator[NDArray[np.int64], None, None]:
        """The numbers of ids whose rows the block stores; new ones are forgotten if it does not."""
        new = [each for each in ids if each not in self._numbers]
        for each in new:
            number, self._next = self._next, self._next + 1
            self._ids[number] = each
            self._numbers[each] = number
        self._version += bool(new)
        try:
            yield self._found(ids)
        except BaseException:
            self._forget([each for each in new if each not in self])
            raise

    def _forget(self, ids: list[str]) -> None:
        """Forget ids that have no row any more."""
        for each in ids:
            del self._ids[self._numbers.pop(each)]
        self._version += bool(ids)


def _strings(ids: _Ids) -> list[str]:
    """Return ids as plain strings; a string alone is one id."""
    wrong: object = ids
    try:
        given = [ids] if isinstance(ids, str) else list(ids)
        wrong = next((each for each in given if not isinstance(each, str)), None)
        return [str.__str__(each) for each in given]
    except TypeError:
        raise ArrayTypeError(f"ids must be strings, found {described(wrong)}") from None


def _pairs(prior: Mapping[str, float]) -> tuple[list[str], list[float]]:
    if not isinstance(prior, Mapping):
        raise ArrayTypeError(f"prior must map ids to numbers, found {described(prior)}")
    return _strings(prior), list(prior.values())


def _distinct(ids: _Ids) -> list[str]:
    """Return ids to store: each once, and fit for a file."""
    given = _strings(ids)
    seen: set[str] = set()
    for each in given:
        if each in seen:
            raise DuplicateIdError(f"id {quoted(each)} is given twice")
        seen.add(each)
    try:
        "".join(given).encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError("an id has lone surrogates, which UTF-8 cannot hold") from None
    return given


def _decoded(label: bytes) -> list[str]:
    try:
        read = msgspec.msgpack.decode(label, type=_Label)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise VectorFileDamagedError(
            "the saved file has no strings as ids; open it with VectorMap.load"
        ) from None
    if read.version != _LABEL_VERSION:
        raise VectorFileDamagedError("the saved file's ids are of another version of mnemic")
    return read.ids

"""Keeps the vectors of the texts that an embedder saw last, in memory.

`repository/query_cache.py` keeps whole queries of one memory, apart for each user. This cache lies
in front of the embedder, so that it serves every memory and service that embeds with it.
"""

import secrets
import sys
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np

from mnemic.arrays import Array, Float32Array
from mnemic.embed.adapting import AdaptedEmbedder, as_embedder
from mnemic.embed.base import AnyEmbedder, checked_texts
from mnemic.embed.functions import Steps, is_awaitable, run
from mnemic.errors import EmbedderResultError
from mnemic.model.validation import whole
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.single_flight import AbandonedError, Bounds, Flight, SingleFlightCache
from mnemic.threads.sync_bridge import arrived

MAX_BYTES: Final = 64 * 2**20
"""Bytes of kept vectors, unless a cache is made with another number: 40,000 of 384 dimensions."""

LARGEST_SHARE: Final = 16
"""A vector that takes more than 1/n of the budget is not kept."""

_ENTRY_BYTES: Final = 128
"""Bytes of an entry of an `OrderedDict` beside its key and value, measured by `tracemalloc`."""

_DIGEST_BYTES: Final = 16
_MATRIX: Final = 2
_DOCUMENT, _QUERY = b"document", b"query"

_Key: TypeAlias = bytes
_Embed: TypeAlias = Callable[[Sequence[str]], Array | Awaitable[Array]]


class CachedEmbedder(AdaptedEmbedder):
    """Embeds with another embedder, and keeps the vectors of the texts used last.

    It has the wrapped embedder's model, dimensions, limits, floors and languages, and is accepted
    wherever that one is. Vectors are kept by model, side (memories or queries) and text; of the
    text a keyed hash is kept in place of the text, by a random key that never leaves the object.
    Concurrent calls with one text embed it once. Nothing is kept of a text that fails.

    Thread-safe. An embedder whose `embed` is a coroutine function stays one.

    The vectors are shared by everyone who embeds with the object: a user who measures times may
    find out whether a text was embedded lately. Where that matters, each user has a cache.

    Args:
        embedder: An embedder in any of the forms of `as_embedder`.
        max_bytes: Maximum bytes of kept vectors, overheads included; 0 keeps none.
        model: Name of the model; None for the embedder's own.

    Raises:
        InvalidArgumentError: If it has no known form, or `max_bytes` is below 0.
    """

    @checks_arguments
    def __init__(
        self, embedder: AnyEmbedder, *, max_bytes: int = MAX_BYTES, model: str | None = None
    ) -> None:
        inner = as_embedder(embedder, model=model)
        vars(self).update(vars(inner))
        self._inner = inner
        most = whole("max_bytes", max_bytes, minimum=0)
        bounds = Bounds(bytes=most, entry_bytes=most // LARGEST_SHARE)
        self._cache = SingleFlightCache[_Key, bytes](bounds, _size, is_kept=_is_finite)
        self._hash_key = secrets.token_bytes(32)
        self._is_awaited: bool | None = None

    def embed(self, texts: Sequence[str], /) -> Array | Awaitable[Array]:
        """Embed documents, or return their kept vectors.

        Args:
            texts: The documents.

        Returns:
            float32, shape (len(texts), dimensions), in the order of `texts`; an awaitable of it
            where the embedder's function is a coroutine function, and a vector is not kept.

        Raises:
            EmbedderResultError: If vectors of another form were returned.
        """
        return run(self._vectors(checked_texts(texts), _DOCUMENT, self._inner.embed))

    def embed_queries(self, texts: Sequence[str], /) -> Array | Awaitable[Array]:
        """Embed queries; otherwise like `embed`.

        Args:
            texts: The queries.
        """
        if not self.has_queries:
            return self.embed(texts)
        return run(self._vectors(checked_texts(texts), _QUERY, self._inner.embed_queries))

    def keeps(self, texts: Sequence[str], /, *, queries: bool) -> bool:
        """Return whether the vectors of all texts are kept; that counts as no use of them.

        Args:
            texts: The texts.
            queries: Whether they are queries, not documents.
        """
        side = _QUERY if queries and self.has_queries else _DOCUMENT
        return all(self._cache.peek(self._key(text, side)) is not None for text in texts)

    def joins(self, texts: Sequence[str], /, *, queries: bool) -> bool:
        """Return whether a call with these texts is joined with concurrent ones.

        Args:
            texts: The texts; kept vectors wait for no call.
            queries: Whether they are queries, not documents.
        """
        return super().joins(texts, queries=queries) and not self.keeps(texts, queries=queries)

    @property
    def hits(self) -> int:
        """Number of texts that the embedder was not called for."""
        return self._cache.hits

    @property
    def misses(self) -> int:
        """Number of texts that the embedder was called for."""
        return self._cache.misses

    @property
    def used_bytes(self) -> int:
        """Bytes in use, overheads included."""
        return self._cache.used_bytes

    def __len__(self) -> int:
        return len(self._cache)

    def __bool__(self) -> bool:
        return True

    def clear(self) -> None:
        """Drop all vectors; those of running calls are not kept either."""
        self._cache.clear()

    def forget(self, texts: Iterable[str]) -> int:
        """Drop the vectors of texts, as memories and as queries.

        Vectors of running calls are not kept either.

        Args:
            texts: The texts.

        Returns:
            Number of dropped vectors.
        """
        given = checked_texts(texts)
        return self._cache.drop([self._key(text, side) for text in given for side in _SIDES])

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, vectors={len(self)})"

    def _key(self, text: str, side: bytes) -> _Key:
        digest = blake2b(key=self._hash_key, digest_size=_DIGEST_BYTES, person=side)
        digest.update(self.model.encode() + b"\0")
        digest.update(text.encode())
        return digest.digest()

    def _vectors(self, texts: list[str], side: bytes, embed: _Embed) -> Steps[Array]:
        keys = [self._key(text, side) for text in texts]
        found, own, awaited = self._cache.claim(keys, blocks=not self._is_awaited)
        by_key: dict[Hashable, str] = {}
        if own or awaited:
            by_key.update(zip(keys, texts, strict=True))
        if own:
            try:
                vectors = yield from self._embedded([by_key[each.key] for each in own], embed)
            except BaseException as error:
                self._cache.fail(own, error if len(own) == 1 else None)
                raise
            blobs = [vector.tobytes() for vector in vectors]
            self._cache.settle(own, blobs)
            found.update(zip((each.key for each in own), blobs, strict=True))
        for flight in awaited:
            try:
                found[flight.key] = yield from self._arrived(flight)
            except AbandonedError:
                (vector,) = yield from self._embedded([by_key[flight.key]], embed)
                found[flight.key] = vector.tobytes()
        return _stacked([found[key] for key in keys], self.dimensions)

    def _embedded(self, texts: list[str], embed: _Embed) -> Steps[Float32Array]:
        returned = embed(texts)
        self._is_awaited = is_awaitable(returned)
        if is_awaitable(returned):
            returned = yield returned
        with np.errstate(over="ignore"):  # infinite ones are refused by the caller
            vectors = np.array(returned, dtype="<f4")
        if vectors.ndim != _MATRIX or len(vectors) != len(texts) or not vectors.size:
            raise EmbedderResultError(
                f"it returned shape {vectors.shape} for {len(texts)} texts; it should be "
                f"{(len(texts), self.dimensions or 'dimensions')}"
            )
        return vectors

    def _arrived(self, flight: Flight[bytes]) -> Steps[bytes]:
        if not self._is_awaited:
            return flight.result()
        blob: bytes = yield arrived(flight)
        return blob


_SIDES: Final = (_DOCUMENT, _QUERY)


def _size(key: _Key, blob: bytes) -> int:
    return sys.getsizeof(key) + sys.getsizeof(blob) + _ENTRY_BYTES


def _is_finite(blob: bytes) -> bool:
    return bool(np.isfinite(np.frombuffer(blob, dtype="<f4")).all())


def _stacked(blobs: list[bytes], dimensions: int | None) -> Float32Array:
    if not blobs:
        return np.empty((0, dimensions or 0), dtype=np.float32)
    if len(set(map(len, blobs))) > 1:
        lengths = sorted({len(blob) // 4 for blob in blobs})
        raise EmbedderResultError(f"it returned vectors of different lengths: {lengths}")
    joined = bytearray().join(blobs)  # which the caller may write to
    return np.frombuffer(joined, dtype="<f4").reshape(len(blobs), -1)

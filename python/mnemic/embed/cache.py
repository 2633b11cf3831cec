"""Keeps the vectors of the texts that an embedder saw last, in memory.

`repository/query_cache.py` keeps whole queries of one memory, apart for each user. This cache lies
in front of the embedder, so that it serves every memory and service that embeds with it.
"""

import asyncio
import os
import secrets
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from threading import get_ident
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from mnemic.arrays import Array, Float32Array
from mnemic.embed.adapting import AdaptedEmbedder, as_embedder
from mnemic.embed.base import AnyEmbedder, checked_texts
from mnemic.embed.functions import Steps, is_awaitable, run
from mnemic.errors import EmbedderResultError
from mnemic.model.validation import whole
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.locks import InnerLock

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
        self._cache = _VectorCache(whole("max_bytes", max_bytes, minimum=0))
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
        return all(self._cache.has(self._key(text, side)) for text in texts)

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
        here = None if self._is_awaited else get_ident()
        claim = self._cache.claim(keys, may_wait=self._may_wait, here=here)
        blobs, by_key = claim.found, dict(zip(keys, texts, strict=True))
        if claim.own:
            try:
                own = yield from self._embedded([by_key[key] for key in claim.own], embed)
            except BaseException as error:
                self._cache.release(claim.own, error)
                raise
            blobs |= self._cache.settle(claim.own, own)
        for key, arrival in claim.awaited.items():
            blob = yield from self._arrived(arrival)
            if blob is None:
                (vector,) = yield from self._embedded([by_key[key]], embed)
                blob = vector.tobytes()
            blobs[key] = blob
        return _stacked([blobs[key] for key in keys], self.dimensions)

    @property
    def _may_wait(self) -> bool:
        """Whether a call may wait for another one.

        Before the first call has returned an embedder that is awaited cannot be recognised. Waiting
        for one in its own event loop would never end.
        """
        return self._is_awaited is not None or not _runs_loop()

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

    def _arrived(self, arrival: Future[bytes | None]) -> Steps[bytes | None]:
        if not self._is_awaited:
            return arrival.result()
        blob: bytes | None = yield _awaited(arrival)
        return blob


_SIDES: Final = (_DOCUMENT, _QUERY)


class _Arrival(Future[bytes | None]):
    """The vector of a key that a call embeds.

    Attributes:
        thread: The thread of that call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.thread = get_ident()


class _Claim(NamedTuple):
    """The distinct keys of a call.

    Attributes:
        found: Kept vectors.
        own: Keys that this call has to embed, for others too.
        awaited: Keys that another call embeds: their vectors, or None if that call was cancelled or
            failed by another text.
    """

    found: dict[_Key, bytes]
    own: list[_Key]
    awaited: dict[_Key, "_Arrival"]


class _VectorCache:
    """Vectors by key, least recently used first out, and the keys that calls are embedding.

    Args:
        max_bytes: Maximum bytes.

    Attributes:
        hits: Number of texts without a call.
        misses: Number of texts with one.
        used_bytes: Bytes in use.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._begin()

    def _begin(self) -> None:
        """Begin empty: in a forked process no thread ends the calls of the first one."""
        self._process = os.getpid()
        self._lock = InnerLock()
        self._vectors: OrderedDict[_Key, bytes] = OrderedDict()
        self._running: dict[_Key, _Arrival] = {}
        self.used_bytes = self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._vectors)

    def has(self, key: _Key) -> bool:
        """Return whether a vector is kept."""
        return key in self._vectors

    def claim(self, keys: Sequence[_Key], *, may_wait: bool, here: int | None = None) -> _Claim:
        """Return kept vectors; the other keys are embedded by this call or by a running one.

        Args:
            keys: The keys.
            may_wait: Whether the call may wait for another one.
            here: The thread whose own calls it does not wait for: a signal handler interrupted one.
        """
        if os.getpid() != self._process:
            self._begin()
        claim = _Claim({}, [], {})
        with self._lock:
            for key in dict.fromkeys(keys):
                self._claim_one(key, claim, may_wait=may_wait, here=here)
            self.misses += len(claim.own)
            self.hits += len(keys) - len(claim.own)
        return claim

    def _claim_one(self, key: _Key, claim: _Claim, *, may_wait: bool, here: int | None) -> None:
        blob = self._vectors.get(key)
        if blob is not None:
            self._vectors.move_to_end(key)
            claim.found[key] = blob
        elif may_wait and key in self._running and self._running[key].thread != here:
            claim.awaited[key] = self._running[key]
        else:
            claim.own.append(key)
            self._running.setdefault(key, _Arrival())

    def settle(self, keys: Sequence[_Key], vectors: Float32Array) -> dict[_Key, bytes]:
        """Keep the vectors of claimed keys, except those that were dropped meanwhile.

        Returns:
            The bytes of each.
        """
        blobs = {key: vector.tobytes() for key, vector in zip(keys, vectors, strict=True)}
        is_sound = [bool(np.isfinite(vector).all()) for vector in vectors]
        with self._lock:
            arrivals = [self._running.pop(key, None) for key in keys]
            for key, arrival, is_kept in zip(keys, arrivals, is_sound, strict=True):
                if arrival is not None and is_kept:
                    self._put(key, blobs[key])
        for key, arrival in zip(keys, arrivals, strict=True):
            _give(arrival, blobs[key])
        return blobs

    def release(self, keys: Sequence[_Key], error: BaseException) -> None:
        """Give up claimed keys; calls that wait for the only text of a call fail with it."""
        with self._lock:
            arrivals = [self._running.pop(key, None) for key in keys]
        for arrival in arrivals:
            _give(arrival, error if len(keys) == 1 and isinstance(error, Exception) else None)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._vectors.clear()
            self.used_bytes = 0
            arrivals = list(self._running.values())
            self._running.clear()
        _give_up(arrivals)

    def drop(self, keys: Sequence[_Key]) -> int:
        """Drop vectors; return their number."""
        with self._lock:
            before = len(self._vectors)
            for key in keys:
                self._drop(key)
            arrivals = [self._running.pop(key, None) for key in keys]
            number = before - len(self._vectors)
        _give_up(arrivals)
        return number

    def _put(self, key: _Key, blob: bytes) -> None:
        size = _size(key, blob)
        if size * LARGEST_SHARE > self._max_bytes:
            return
        self._drop(key)
        self._vectors[key] = blob
        self.used_bytes += size
        while self.used_bytes > self._max_bytes:
            self._drop(next(iter(self._vectors)))

    def _drop(self, key: _Key) -> None:
        blob = self._vectors.pop(key, None)
        if blob is not None:
            self.used_bytes -= _size(key, blob)


def _size(key: _Key, blob: bytes) -> int:
    return sys.getsizeof(key) + sys.getsizeof(blob) + _ENTRY_BYTES


def _give_up(arrivals: Iterable[Future[bytes | None] | None]) -> None:
    """Let the calls that wait for dropped keys embed for themselves."""
    for arrival in arrivals:
        _give(arrival, None)


def _give(arrival: Future[bytes | None] | None, result: bytes | BaseException | None) -> None:
    if arrival is None or arrival.done():  # its key was dropped meanwhile
        return
    if isinstance(result, BaseException):
        arrival.set_exception(result)
    else:
        arrival.set_result(result)


async def _awaited(arrival: Future[bytes | None]) -> bytes | None:
    # Shielded: a cancelled caller does not cancel the call of others.
    return await asyncio.shield(asyncio.wrap_future(arrival))


def _runs_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _stacked(blobs: list[bytes], dimensions: int | None) -> Float32Array:
    if not blobs:
        return np.empty((0, dimensions or 0), dtype=np.float32)
    if len(set(map(len, blobs))) > 1:
        lengths = sorted({len(blob) // 4 for blob in blobs})
        raise EmbedderResultError(f"it returned vectors of different lengths: {lengths}")
    joined = bytearray().join(blobs)  # which the caller may write to
    return np.frombuffer(joined, dtype="<f4").reshape(len(blobs), -1)

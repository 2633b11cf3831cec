"""Wraps an embedder: its results are checked and counted."""

import threading
import time
from collections.abc import Callable, Collection
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mnemic._core import Coverage
from mnemic.description import described, failure
from mnemic.embed.adapting import as_embedder, is_complete
from mnemic.embed.batches import BatchedCalls
from mnemic.embed.chunking import Chunker
from mnemic.embed.event_loop import EventLoopThread
from mnemic.embed.floors import score_floors
from mnemic.embed.functions import is_awaitable
from mnemic.errors import (
    EmbedderResultError,
    EmbeddingError,
    InvalidArgumentError,
    MissingExtraError,
    MnemicError,
)
from mnemic.sync_bridge import HasExecutor, run_blocking, runs_sync

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder, Embedder

Result = TypeVar("Result")


class ValidatedEmbedder:
    """Embeds with another embedder, refuses invalid results, and counts.

    Attributes:
        embedder: The wrapped embedder.
        model: Name of its model.
        dimensions: Length of each vector; None until it is known.
        score_floors: The cosines of `Search.evidence` by search type; None where it has none.
        coverage: The languages whose texts its vectors can compare; None for any.
        embedded: Number of texts and chunks embedded so far.
        seconds: Total duration.
        on_embedded: Called with the milliseconds of each call.
        successes: Number of calls with a valid result.

    Args:
        given: An embedder in any of the forms of `as_embedder`.
        on_embedded: As above.
        model: Name of the model; None for the embedder's own.

    Raises:
        InvalidArgumentError: If it has another form, or a member is invalid.
    """

    def __init__(
        self,
        given: "AnyEmbedder",
        on_embedded: Callable[[float], object] | None = None,
        *,
        model: str | None = None,
    ) -> None:
        adapted = as_embedder(given, model=model)
        self.on_embedded = on_embedded
        self.embedder = cast("Embedder", given if is_complete(given) and not model else adapted)
        self.model = adapted.model
        self.dimensions = adapted.dimensions
        self.coverage = _coverage(adapted.languages)
        self.score_floors = score_floors(adapted)
        self._adapted = adapted
        self._is_ours = type(adapted.given).__module__.partition(".")[0] == "mnemic"
        self._chunker = Chunker(adapted.max_tokens, adapted.characters_seen)
        self.embedded = 0
        self.seconds = 0.0
        self.successes = 0
        self._counting = threading.Lock()
        self._loop = EventLoopThread()
        self._documents = self._calls(adapted.embed)
        self._queries = self._calls(adapted.embed_queries) if adapted.has_queries else None

    @property
    def average_ms(self) -> float:
        """Mean milliseconds per text, 0 before any."""
        return self.seconds * 1000 / self.embedded if self.embedded else 0.0

    def learn(self, dimensions: int) -> int:
        """Take the length of vectors, if it is not known yet; return the known one."""
        with self._counting:
            if self.dimensions is None:
                self.dimensions = dimensions
            return self.dimensions

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return float32 vectors, shape (len(texts), dimensions).

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        if not texts:
            return np.empty((0, self.dimensions or 0), dtype=np.float32)
        return self._documents.embed(texts)

    def embed_chunked(self, texts: list[str]) -> list[NDArray[np.float32]]:
        """Return for each text the vectors of its chunks, shape (chunks, dimensions).

        A text that fits the embedder's input is one chunk.

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        return self._chunked(texts, self._documents)

    def embed_queries(self, texts: list[str]) -> list[NDArray[np.float32]]:
        """Return the vectors of queries; otherwise like `embed_chunked`."""
        return self._chunked(texts, self._queries or self._documents)

    @property
    def joins_queries(self) -> bool:
        """Whether the queries of concurrent searches are embedded by one call."""
        return (self._queries or self._documents).can_join

    async def embed_awaited(
        self, texts: list[str], threads: HasExecutor
    ) -> list[NDArray[np.float32]]:
        """Return what `embed_chunked` does; in an event loop no thread waits for another call.

        Args:
            texts: The texts.
            threads: Has a thread for the embedder.
        """
        if runs_sync() or not self._documents.joins(texts) or not self._chunker.all_fit(texts):
            return await run_blocking(lambda: self.embed_chunked(texts), threads)
        vectors = await self._documents.joiner.awaited(texts, threads.executor)
        return [vectors[at : at + 1] for at in range(len(texts))]

    def _calls(self, embed: Callable[[list[str]], object]) -> BatchedCalls:
        adapted = self._adapted
        return BatchedCalls(
            lambda texts: self._call(embed, texts),
            adapted.batch_size,
            lambda: adapted.join_calls and adapted.takes_many,
        )

    def _chunked(self, texts: list[str], side: BatchedCalls) -> list[NDArray[np.float32]]:
        if not texts:
            return []
        split = self._split(texts)
        vectors = side.embed([chunk for chunks in split for chunk in chunks])
        ends = list(accumulate(len(chunks) for chunks in split))
        return [vectors[end - len(chunks) : end] for end, chunks in zip(ends, split, strict=True)]

    def embed_contents(self, contents: list[str]) -> list[NDArray[np.float32]]:
        """Return the same of contents; zeros for an empty one, which has no meaning."""
        texts = [text for text in contents if text]
        rest = iter(self.embed_chunked(texts))
        if len(texts) == len(contents):
            return list(rest)
        empty = np.zeros((1, self.learned_dimensions()), dtype=np.float32)
        return [next(rest) if text else empty for text in contents]

    def learned_dimensions(self) -> int:
        """Return the length of each vector; a text is embedded where it is not known yet.

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        if self.dimensions is not None:
            return self.dimensions
        return int(self.embed(["the length of a vector"]).shape[1])

    def covers(self, text: str) -> bool:
        """Return whether a text is in a language of the embedder, by its script."""
        return self.coverage is None or self.coverage.covers(text)

    def _call(self, embed: Callable[[list[str]], object], texts: list[str]) -> NDArray[np.float32]:
        """Return the vectors of one call of the embedder, checked and counted."""
        begun = time.perf_counter()
        vectors = self._run(lambda: _as_float32(self._awaited(embed(texts))))
        took = time.perf_counter() - begun
        with self._counting:  # several threads embed at once
            self.embedded += len(texts)
            self.seconds += took
        if self.on_embedded is not None:
            self.on_embedded(took * 1000)
        self._check_vectors(vectors, len(texts))
        with self._counting:
            self.successes += 1
        return vectors

    def _awaited(self, made: object) -> object:
        return self._loop.run(made) if is_awaitable(made) else made

    @property
    def has_loop(self) -> bool:
        """Whether an event loop runs for a coroutine embedder."""
        return self._loop.is_running

    def close(self) -> None:
        """Cancel running calls of a coroutine embedder, and end its event loop. May be repeated."""
        self._loop.close()

    def _split(self, texts: list[str]) -> list[list[str]]:
        return self._run(lambda: [self._chunker.chunks(text) for text in texts])

    def _run(self, work: Callable[[], Result]) -> Result:
        """Return the embedder's result, or raise an error that quotes nothing of the embedder's."""
        try:
            return work()
        except EmbedderResultError as error:  # it holds nothing of a text
            raise EmbedderResultError(f"the embedder {self.model!r}: {error}") from None
        except Exception as error:
            if isinstance(error, MnemicError if self._is_ours else MissingExtraError):
                raise
            kind = failure(error)
        # Raised out here, so that it is not chained to the error, which may quote the text.
        failed = EmbeddingError(f"the embedder {self.model!r} failed: {kind}")
        failed.kind = kind
        raise failed

    def _check_vectors(self, vectors: NDArray[np.float32], count: int) -> None:
        dimensions = self.dimensions
        if dimensions is None and vectors.ndim == 2 and vectors.size:  # noqa: PLR2004 - a matrix
            dimensions = self.learn(vectors.shape[1])
        if vectors.shape != (count, dimensions):
            raise EmbedderResultError(
                f"the embedder {self.model!r} returned shape {vectors.shape} for "
                f"{count} texts; it should be {(count, dimensions or 'dimensions')}"
            )
        if not np.isfinite(vectors).all():
            raise EmbedderResultError(f"the embedder {self.model!r} returned NaN or infinity")


def _as_float32(given: object) -> NDArray[np.float32]:
    if type(given) is np.ndarray and given.dtype == np.float32:
        return given
    with np.errstate(over="ignore"):  # what overflows is refused later
        return np.asarray(given, dtype=np.float32)


def _coverage(languages: object) -> Coverage | None:
    if languages is None:
        return None
    if isinstance(languages, Collection) and not isinstance(languages, str | bytes):
        codes = [code for code in languages if isinstance(code, str) and code.isascii()]
        if codes and len(codes) == len(languages):
            return Coverage(codes)
    raise InvalidArgumentError(
        "the embedder's languages must be a set of ISO 639-1 codes, as {'en', 'de'}, or None, "
        f"got {described(languages)}"
    )

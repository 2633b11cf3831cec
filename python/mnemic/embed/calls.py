"""Calls an embedder, checks its results, and counts."""

import time
from collections.abc import Callable
from typing import TypeVar

from mnemic.arrays import Float32Array, np
from mnemic.embed.adapting import AdaptedEmbedder
from mnemic.embed.functions import is_awaitable
from mnemic.errors import EmbedderResultError, EmbeddingError, MissingExtraError, MnemicError
from mnemic.model.validation import MAX_DIMENSIONS
from mnemic.reporting.description import failure
from mnemic.reporting.reasons import why
from mnemic.threads.event_loop_thread import EventLoopThread, LoopEndedError
from mnemic.threads.locks import InnerLock
from mnemic.threads.sync_bridge import runs_sync

Result = TypeVar("Result")


class CheckedCalls:
    """Calls an embedder, refuses invalid results, and counts.

    Args:
        adapted: The embedder.

    Attributes:
        model: Name of its model.
        embedded: Number of texts and chunks embedded so far.
        seconds: Total duration.
        on_embedded: Called with the milliseconds of each call.
        successes: Number of calls with a valid result.
        loop: Runs coroutines.
    """

    def __init__(self, adapted: AdaptedEmbedder) -> None:
        self._adapted = adapted
        self._is_ours = type(adapted.given).__module__.partition(".")[0] == "mnemic"
        self.model = adapted.model
        self.embedded = 0
        self.seconds = 0.0
        self.successes = 0
        self.on_embedded: Callable[[float], object] | None = None
        self.loop = EventLoopThread()
        self._counting = InnerLock()

    @property
    def dimensions(self) -> int | None:
        """Length of each vector; None until it is known."""
        return self._adapted.dimensions

    def learn(self, dimensions: int) -> int:
        """Take the length of vectors, if it is not known yet; return the known one."""
        with self._counting:
            known = self._adapted.dimensions or dimensions
            self._adapted.dimensions = known
            return known

    def call(self, embed: Callable[[list[str]], object], texts: list[str]) -> Float32Array:
        """Return the vectors of one call of the embedder, checked and counted."""
        begun = time.perf_counter()
        vectors = self.run(lambda: _as_float32(self._awaited(embed(texts))))
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
        return self.loop.run(made) if is_awaitable(made) else made

    def run(self, work: Callable[[], Result]) -> Result:
        """Return the embedder's result, or raise an error that quotes nothing of the embedder's.

        What would end a program, such as SystemExit, is raised in the thread of the caller alone:
        in another one it would end that, or the event loop that waits.
        """
        try:
            return work()
        except EmbedderResultError as error:  # it holds nothing of a text
            raise EmbedderResultError(f"the embedder {self.model!r}: {error}") from None
        except BaseException as error:
            if isinstance(error, MnemicError if self._is_ours else MissingExtraError):
                raise
            if runs_sync() and not isinstance(error, Exception):
                raise
            if isinstance(error, LoopEndedError):
                kind, reason = str(error), ""
            else:
                kind, reason = failure(error), why(error)
        # Raised out here, so that it is not chained to the error, which may quote the text.
        failed = EmbeddingError(f"the embedder {self.model!r} failed: {kind}{reason}")
        failed.kind = kind
        raise failed

    def _check_vectors(self, vectors: Float32Array, count: int) -> None:
        dimensions = self.dimensions
        if vectors.ndim == 2 and vectors.shape[1] > MAX_DIMENSIONS:  # noqa: PLR2004 - a matrix
            raise EmbedderResultError(
                f"the embedder {self.model!r} returned vectors of {vectors.shape[1]} dimensions; "
                f"at most {MAX_DIMENSIONS} fit"
            )
        if dimensions is None and vectors.ndim == 2 and vectors.size:  # noqa: PLR2004 - a matrix
            dimensions = self.learn(vectors.shape[1])
        if vectors.shape != (count, dimensions):
            raise EmbedderResultError(
                f"the embedder {self.model!r} returned shape {vectors.shape} for "
                f"{count} texts; it should be {(count, dimensions or 'dimensions')}"
            )
        if not np.isfinite(vectors).all():
            raise EmbedderResultError(f"the embedder {self.model!r} returned NaN or infinity")


def _as_float32(given: object) -> Float32Array:
    """Return a copy: some embedders write the vectors of each call to the same array."""
    if type(given) is np.ndarray and given.dtype == np.float32:
        return given.copy()
    with np.errstate(over="ignore"):  # what overflows is refused later
        return np.array(given, dtype=np.float32)

"""Wraps an embedder: its results are checked and counted."""

import threading
import time
from collections.abc import Awaitable, Callable, Collection
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from mnemic._core import Coverage
from mnemic.description import described, failure
from mnemic.embed.chunking import Chunker
from mnemic.embed.event_loop import EventLoopThread
from mnemic.embed.floors import score_floors
from mnemic.errors import (
    EmbeddingError,
    InvalidArgumentError,
    MissingExtraError,
    MnemicError,
)
from mnemic.model.validation import name

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

Result = TypeVar("Result")


class ValidatedEmbedder:
    """Embeds with another embedder, refuses invalid results, and counts.

    Attributes:
        embedder: The wrapped embedder.
        model: Name of its model.
        dimensions: Length of each vector.
        score_floors: The cosines of `Search.evidence` by search type; None where it has none.
        coverage: The languages whose texts its vectors can compare; None for any.
        embedded: Number of texts and chunks embedded so far.
        seconds: Total duration.
        on_embedded: Called with the milliseconds of each call.
        successes: Number of calls with a valid result.

    Args:
        given: Anything with `model`, `dimensions` and `embed(texts)`.
        on_embedded: As above.

    Raises:
        InvalidArgumentError: If a member is missing or invalid.
    """

    def __init__(
        self, given: "Embedder", on_embedded: Callable[[float], object] | None = None
    ) -> None:
        _check(given)
        self.on_embedded = on_embedded
        self.embedder = given
        self.model = given.model
        self.dimensions = given.dimensions
        self.coverage = _coverage(getattr(given, "languages", None))
        self.score_floors = score_floors(given)
        self._is_ours = type(given).__module__.partition(".")[0] == "mnemic"
        self._chunker = Chunker(
            getattr(given, "max_tokens", None), getattr(given, "characters_seen", None)
        )
        self.embedded = 0
        self.seconds = 0.0
        self.successes = 0
        self._counting = threading.Lock()
        self._loop = EventLoopThread()

    @property
    def average_ms(self) -> float:
        """Mean milliseconds per text, 0 before any."""
        return self.seconds * 1000 / self.embedded if self.embedded else 0.0

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return float32 vectors, shape (len(texts), dimensions).

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        begun = time.perf_counter()
        vectors = self._run(lambda: _as_float32(self._call_embedder(texts)))
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

    def embed_chunked(self, texts: list[str]) -> list[NDArray[np.float32]]:
        """Return for each text the vectors of its chunks, shape (chunks, dimensions).

        A text that fits the embedder's input is one chunk.

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        split = self._split(texts)
        vectors = self.embed([chunk for chunks in split for chunk in chunks])
        ends = list(accumulate(len(chunks) for chunks in split))
        return [vectors[end - len(chunks) : end] for end, chunks in zip(ends, split, strict=True)]

    def embed_contents(self, contents: list[str]) -> list[NDArray[np.float32]]:
        """Return the same of contents; zeros for an empty one, which has no meaning."""
        vectors = self.embed_chunked([text for text in contents if text])
        empty = np.zeros((1, self.dimensions), dtype=np.float32)
        rest = iter(vectors)
        return [next(rest) if text else empty for text in contents]

    def covers(self, text: str) -> bool:
        """Return whether a text is in a language of the embedder, by its script."""
        return self.coverage is None or self.coverage.covers(text)

    def _call_embedder(self, texts: list[str]) -> object:
        """Return the embedder's result, awaited if it is awaitable."""
        made: object = self.embedder.embed(texts)
        if type(made) is not np.ndarray and isinstance(made, Awaitable):
            return self._loop.run(made)
        return made

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
        except Exception as error:
            if isinstance(error, MnemicError if self._is_ours else MissingExtraError):
                raise
            kind = failure(error)
        # Raised out here, so that it is not chained to the error, which may quote the text.
        failed = EmbeddingError(f"the embedder {self.model!r} failed: {kind}")
        failed.kind = kind
        raise failed

    def _check_vectors(self, vectors: NDArray[np.float32], count: int) -> None:
        if vectors.shape != (count, self.dimensions):
            raise EmbeddingError(
                f"the embedder {self.model!r} returned shape {vectors.shape} for "
                f"{count} texts; it should be {(count, self.dimensions)}"
            )
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"the embedder {self.model!r} returned NaN or infinity")


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


def _check(embedder: object) -> None:
    model, dimensions = getattr(embedder, "model", None), getattr(embedder, "dimensions", None)
    if (
        not isinstance(dimensions, int)
        or dimensions < 1
        or not callable(getattr(embedder, "embed", None))
    ):
        raise InvalidArgumentError(
            "embedder must have a model (a name), dimensions (an int of at least 1) and "
            f"embed(texts), or be 'minilm' or None; got {described(embedder)}"
        )
    max_tokens = getattr(embedder, "max_tokens", None)
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
        raise InvalidArgumentError(
            "the embedder's max_tokens must be an int of at least 1 or None, got "
            f"{described(max_tokens)}"
        )
    name("the embedder's model", model)

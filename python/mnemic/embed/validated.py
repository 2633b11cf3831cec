"""Wraps an embedder: its results are checked and counted."""

from collections.abc import Callable, Collection
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from mnemic._core import Coverage
from mnemic.arrays import Float32Array, np
from mnemic.embed.adapting import AdaptedEmbedder, as_embedder, is_complete
from mnemic.embed.batches import BatchedCalls
from mnemic.embed.calls import CheckedCalls
from mnemic.embed.chunking import Chunker
from mnemic.embed.floors import score_floors
from mnemic.errors import InvalidArgumentError
from mnemic.reporting.description import described
from mnemic.threads.sync_bridge import HasExecutor, run_blocking, runs_sync

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder, Embedder


class ValidatedEmbedder:
    """Embeds with another embedder, refuses invalid results, and counts.

    Attributes:
        embedder: The wrapped embedder.
        model: Name of its model.
        score_floors: The cosines of `Search.evidence` by search type; None where it has none.
        coverage: The languages whose texts its vectors can compare; None for any.
        languages: Their codes, in order; None for any.

    Args:
        given: An embedder in any of the forms of `as_embedder`.
        on_embedded: Called with the milliseconds of each call.
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
        self.embedder = cast("Embedder", given if is_complete(given) and not model else adapted)
        self.model = adapted.model
        self.languages = _language_codes(adapted.languages)
        self.coverage = None if self.languages is None else Coverage(self.languages)
        self.score_floors = score_floors(adapted)
        self._adapted = adapted
        self._chunker = Chunker(adapted.max_tokens, adapted.characters_seen)
        # What it refers to does not refer to this object: a memory that is never closed is
        # collected with its last reference.
        self._calls = CheckedCalls(adapted)
        self._calls.on_embedded = on_embedded
        self._documents = _batched(self._calls, adapted, queries=False)
        self._queries = (
            _batched(self._calls, adapted, queries=True) if adapted.has_queries else None
        )

    @property
    def given(self) -> object:
        """The embedder as it was given."""
        return self._adapted.given

    @property
    def dimensions(self) -> int | None:
        """Length of each vector; None until it is known."""
        return self._calls.dimensions

    def learn(self, dimensions: int) -> int:
        """Take the length of vectors, if it is not known yet; return the known one."""
        return self._calls.learn(dimensions)

    def report_to(self, on_embedded: Callable[[float], object]) -> None:
        """Call a function with the milliseconds of each call from now on."""
        self._calls.on_embedded = on_embedded

    @property
    def embedded(self) -> int:
        """Number of texts and chunks embedded so far."""
        return self._calls.embedded

    @property
    def successes(self) -> int:
        """Number of calls with a valid result."""
        return self._calls.successes

    @property
    def average_ms(self) -> float:
        """Mean milliseconds per text, 0 before any."""
        return self._calls.seconds * 1000 / self.embedded if self.embedded else 0.0

    def embed(self, texts: list[str]) -> Float32Array:
        """Return float32 vectors, shape (len(texts), dimensions).

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        if not texts:
            return np.empty((0, self.dimensions or 0), dtype=np.float32)
        return self._documents.embed(texts)

    def embed_chunked(self, texts: list[str]) -> list[Float32Array]:
        """Return for each text the vectors of its chunks, shape (chunks, dimensions).

        A text that fits the embedder's input is one chunk.

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        return self._chunked(texts, self._documents)

    def embed_queries(self, texts: list[str]) -> list[Float32Array]:
        """Return the vectors of queries; otherwise like `embed_chunked`."""
        return self._chunked(texts, self._queries or self._documents)

    @property
    def joins_queries(self) -> bool:
        """Whether the queries of concurrent searches are embedded by one call."""
        return (self._queries or self._documents).can_join

    async def embed_awaited(self, texts: list[str], threads: HasExecutor) -> list[Float32Array]:
        """Return what `embed_chunked` does; in an event loop no thread waits for another call.

        Args:
            texts: The texts.
            threads: Has a thread for the embedder.
        """
        if runs_sync() or not self._documents.joins(texts) or not self._chunker.all_fit(texts):
            return await run_blocking(lambda: self.embed_chunked(texts), threads)
        vectors = await self._documents.joiner.awaited(texts, threads.executor)
        return [vectors[at : at + 1] for at in range(len(texts))]

    def _chunked(self, texts: list[str], side: BatchedCalls) -> list[Float32Array]:
        if not texts:
            return []
        if len(texts) == 1 and self._chunker.all_fit(texts):  # a query, most often
            return [side.embed(texts)]
        split = self._split(texts)
        vectors = side.embed([chunk for chunks in split for chunk in chunks])
        ends = list(accumulate(len(chunks) for chunks in split))
        return [vectors[end - len(chunks) : end] for end, chunks in zip(ends, split, strict=True)]

    def embed_contents(self, contents: list[str]) -> list[Float32Array]:
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

    def are_chunked(self, texts: list[str]) -> list[bool]:
        """Return whether each text is longer than the embedder sees at once."""
        if self._chunker.all_fit(texts):
            return [False] * len(texts)
        return [len(chunks) > 1 for chunks in self._split(texts)]

    def covers(self, text: str) -> bool:
        """Return whether a text is in a language of the embedder, by its script."""
        return self.coverage is None or self.coverage.covers(text)

    @property
    def has_loop(self) -> bool:
        """Whether an event loop runs for a coroutine embedder."""
        return self._calls.loop.is_running

    def close(self) -> None:
        """Cancel running calls of a coroutine embedder, and end its event loop. May be repeated."""
        self._calls.loop.close()

    def _split(self, texts: list[str]) -> list[list[str]]:
        return self._calls.run(lambda: [self._chunker.chunks(text) for text in texts])


def _batched(calls: CheckedCalls, adapted: AdaptedEmbedder, *, queries: bool) -> BatchedCalls:
    embed = adapted.embed_queries if queries else adapted.embed
    return BatchedCalls(
        lambda texts: calls.call(embed, texts),
        adapted.batch_size,
        lambda: adapted.join_calls and adapted.takes_many,
        lambda texts: adapted.keeps(texts, queries=queries),
    )


def _language_codes(languages: object) -> tuple[str, ...] | None:
    if languages is None:
        return None
    if isinstance(languages, Collection) and not isinstance(languages, str | bytes):
        codes = [code for code in languages if isinstance(code, str) and code.isascii()]
        if codes and len(codes) == len(languages):
            return tuple(sorted(codes))
    raise InvalidArgumentError(
        "the embedder's languages must be a set of ISO 639-1 codes, as {'en', 'de'}, or None, "
        f"got {described(languages)}"
    )

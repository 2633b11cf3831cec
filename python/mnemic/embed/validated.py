"""Wraps an embedder: its results are checked and counted, its calls limited, its floors known."""

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import accumulate
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, cast

from mnemic._core import Coverage
from mnemic.arrays import Float32Array, np
from mnemic.embed.adapting import AdaptedEmbedder, as_embedder, is_complete
from mnemic.embed.base import DEADLINE
from mnemic.embed.chunking import Chunker
from mnemic.embed.functions import is_awaitable
from mnemic.embed.joining import CallJoiner
from mnemic.errors import (
    DeadlineExceededError,
    EmbedderResultError,
    EmbeddingError,
    InvalidArgumentError,
    MissingExtraError,
    MnemicError,
)
from mnemic.model.deadline import seconds_left
from mnemic.model.search import CosineScale
from mnemic.model.validation import MAX_DIMENSIONS
from mnemic.reporting.description import described, failure
from mnemic.reporting.reasons import why
from mnemic.threads.event_loop_thread import EventLoopThread, LoopEndedError
from mnemic.threads.locks import InnerLock
from mnemic.threads.sync_bridge import HasExecutor, run_blocking, runs_sync
from mnemic.threads.waited_future import result_until, started

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder, Embedder


HYBRID_STEP = 0.22
"""A hybrid floor is above `similarity_floor` by this share of the cosines above it.

The default embedder's calibrated floors are this far apart: where no memory has a word of the
query, more similarity is needed.
"""

HYBRID_PLACE = 0.25
"""The learned hybrid floor's place among the cosines from the mean of unrelated memories up to 1.

It refuses at most one question in eighty of any of five sets; see docs/project/lab/scale.md.
"""

FEW_MEMORIES_FLOOR = 0.35
"""The hybrid floor of memories too few for a scale.

It refuses nonsense where unrelated texts have cosines near 0, and nothing where they have .7.
"""

_TYPES = ("hybrid", "semantic")


def score_floors(embedder: object) -> dict[str, float | None]:
    """Return an embedder's floors by search type; None where it has none.

    Raises:
        InvalidArgumentError: If its `score_floors` are no numbers by search type.
    """
    given = _checked_floors(getattr(embedder, "score_floors", None))
    floor: float | None = getattr(embedder, "similarity_floor", None)
    derived = {
        "hybrid": None if floor is None else floor + HYBRID_STEP * (1 - floor),
        "semantic": floor,
    }
    return {name: given.get(name, derived[name]) for name in _TYPES}


def learned_floor(scale: CosineScale | None) -> float:
    """Return the floor of a hybrid search on the scale of the memories; None is that of few."""
    if scale is None:
        return FEW_MEMORIES_FLOOR
    return scale.mean + HYBRID_PLACE * (1 - scale.mean)


def _checked_floors(floors: object) -> dict[str, float]:
    if floors is None:
        return {}
    read = {name: _floor(floors[name]) for name in floors} if isinstance(floors, Mapping) else {}
    checked = {name: floor for name, floor in read.items() if name in _TYPES and floor is not None}
    if isinstance(floors, Mapping) and len(checked) == len(floors):
        return checked
    raise InvalidArgumentError(
        "the embedder's score_floors must be a dict with cosines for 'hybrid' and 'semantic', "
        f"or None, got {described(floors)}"
    )


def _floor(given: object) -> float | None:
    """Return a cosine that can be a floor; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if -1 <= given < 1 else None


MAX_CALLS = 8
"""Calls with a time limit that run at once, hanging ones included; others wait until one of them
ends or their own deadline passes."""


class CheckedCalls:
    """Calls an embedder, refuses invalid results, and counts.

    Args:
        adapted: The embedder.

    Attributes:
        model: Name of its model.
        embedded: Number of texts and chunks embedded so far.
        seconds: Total duration.
        on_embedded: Called after each call, with its milliseconds as `latency_ms`.
        successes: Number of calls with a valid result.
        loop: Runs coroutines.
        slots: One for each call with a time limit that may begin.
    """

    def __init__(self, adapted: AdaptedEmbedder) -> None:
        self._adapted = adapted
        self._is_ours = type(adapted.given).__module__.partition(".")[0] == "mnemic"
        self.model = adapted.model
        self.embedded = 0
        self.seconds = 0.0
        self.successes = 0
        self.on_embedded: Callable[[Mapping[str, float]], object] | None = None
        self.loop = EventLoopThread()
        self._counting = InnerLock()
        # No semaphore, which is Python: a KeyboardInterrupt in it leaves its lock locked forever.
        self.slots: SimpleQueue[None] = SimpleQueue()
        for _ in range(MAX_CALLS):
            self.slots.put(None)

    @property
    def average_ms(self) -> float:
        """Mean milliseconds per text, 0 before any."""
        return self.seconds * 1000 / self.embedded if self.embedded else 0.0

    def learn(self, dimensions: int) -> None:
        """Take the length of vectors, if it is not known yet."""
        with self._counting:
            self._adapted.dimensions = self._adapted.dimensions or dimensions

    def call(self, embed: Callable[[list[str]], object], texts: list[str]) -> Float32Array:
        """Return the vectors of one call of the embedder, checked and counted."""
        vectors: Float32Array | EmbeddingError
        begun, fault = time.perf_counter(), None
        try:
            returned = embed(texts)
            if type(returned) is not np.ndarray and is_awaitable(returned):
                returned = self.loop.run(returned)
            # A copy: some embedders write the vectors of each call to the same array.
            if type(returned) is np.ndarray and returned.dtype == np.float32:
                vectors = returned.copy()
            else:
                with np.errstate(over="ignore"):  # what overflows is refused later
                    vectors = np.array(returned, dtype=np.float32)
        except BaseException as error:  # noqa: BLE001 - what is not refused is raised again
            vectors = self.failure_of(error)
        if isinstance(vectors, EmbeddingError):  # raised out here, so that nothing is chained to it
            raise vectors
        took = time.perf_counter() - begun
        shape = (len(texts), self._adapted.dimensions)
        if vectors.shape != shape or not np.isfinite(vectors).all():
            fault = self._fault_of(vectors, len(texts))
        with self._counting:  # several threads embed at once
            self.embedded += len(texts)
            self.seconds += took
            self.successes += fault is None
        if self.on_embedded is not None:
            self.on_embedded({"latency_ms": took * 1000})
        if fault is not None:
            raise EmbedderResultError(f"the embedder {self.model!r} returned {fault}")
        return vectors

    def failure_of(self, error: BaseException) -> EmbeddingError:
        """Return an error for one of the embedder's, of which it quotes nothing; or raise that.

        What would end a program, such as SystemExit, is raised in the thread of the caller alone:
        in another one it would end that, or the event loop that waits.
        """
        if isinstance(error, EmbedderResultError):  # it holds nothing of a text
            return EmbedderResultError(f"the embedder {self.model!r}: {error}")
        if isinstance(error, MnemicError if self._is_ours else MissingExtraError):
            raise error
        if runs_sync() and not isinstance(error, Exception):
            raise error
        if isinstance(error, LoopEndedError):
            kind, reason = str(error), ""
        else:
            kind, reason = failure(error), why(error)
        failed = EmbeddingError(f"the embedder {self.model!r} failed: {kind}{reason}")
        failed.kind = kind
        return failed

    def _fault_of(self, vectors: Float32Array, count: int) -> str | None:
        """Describe invalid vectors; their length is learned if it is not known yet."""
        length = vectors.shape[1] if vectors.ndim == 2 else 0  # noqa: PLR2004 - a matrix
        if length > MAX_DIMENSIONS:
            return f"vectors of {length} dimensions; at most {MAX_DIMENSIONS} fit"
        if vectors.size and length:
            self.learn(length)
        wanted = (count, self._adapted.dimensions or "dimensions")
        if vectors.shape != wanted:
            return f"shape {vectors.shape} for {count} texts; it should be {wanted}"
        return None if np.isfinite(vectors).all() else "NaN or infinity"


class ValidatedEmbedder:
    """Embeds with another embedder, refuses invalid results, and counts.

    Attributes:
        embedder: The wrapped embedder.
        model: Name of its model.
        similarity_floor: The cosine below which two texts are most likely unrelated, or None.
        score_floors: The cosines of `Search.evidence` by search type; None where it has none.
        calls: Calls it, and counts.
        is_calibrated: Whether its cosines count as they are in a ranking: it names floors of both
            kinds.
        coverage: The languages whose texts its vectors can compare; None for any.
        languages: Their codes, in order; None for any.

    Args:
        given: An embedder in any of the forms of `as_embedder`.
        model: Name of the model; None for the embedder's own.

    Raises:
        InvalidArgumentError: If it has another form, or a member is invalid.
    """

    def __init__(
        self,
        given: "AnyEmbedder",
        *,
        model: str | None = None,
    ) -> None:
        adapted = as_embedder(given, model=model)
        self.embedder = cast("Embedder", given if is_complete(given) and not model else adapted)
        self.model = adapted.model
        self.languages = _language_codes(adapted.languages)
        self.coverage = None if self.languages is None else Coverage(self.languages)
        self.similarity_floor = adapted.similarity_floor
        self.score_floors = score_floors(adapted)
        self.is_calibrated = bool(adapted.score_floors) and self.similarity_floor is not None
        self._adapted = adapted
        self._chunker = Chunker(adapted.max_tokens, adapted.characters_seen)
        # What it refers to does not refer to this object: a memory that is never closed is
        # collected with its last reference.
        self.calls = CheckedCalls(adapted)
        self._documents = _joiner(self.calls, adapted, queries=False)
        self._queries = self._documents
        if adapted.has_queries:
            self._queries = _joiner(self.calls, adapted, queries=True)

    @property
    def given(self) -> object:
        """The embedder as it was given."""
        return self._adapted.given

    @property
    def keeps_deadlines(self) -> bool:
        """Whether the embedder gives up at `mnemic.embed.base.DEADLINE` by itself."""
        # No embedder around it: callers that share a call, joined or of a cache, have deadlines of
        # their own, and what a subclass or a proxy does beside the call may take any time.
        adapted, given = self._adapted, self._adapted.given
        is_direct = type(adapted) is AdaptedEmbedder and hasattr(type(given), "keeps_deadlines")
        return is_direct and not adapted.join_calls and bool(getattr(given, "keeps_deadlines", 0))

    @property
    def dimensions(self) -> int | None:
        """Length of each vector; None until it is known."""
        return self._adapted.dimensions

    def embed(self, texts: list[str]) -> Float32Array:
        """Return float32 vectors, shape (len(texts), dimensions).

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        if not texts:
            return np.empty((0, self.dimensions or 0), dtype=np.float32)
        return self._documents.embed(texts)

    def embed_chunked(self, texts: list[str], *, queries: bool = False) -> list[Float32Array]:
        """Return for each text the vectors of its chunks, shape (chunks, dimensions).

        A text that fits the embedder's input is one chunk.

        Args:
            texts: The texts.
            queries: Whether they are queries, not documents.

        Raises:
            EmbeddingError: If the embedder fails or returns an invalid result.
        """
        side = self._queries if queries else self._documents
        if not texts:
            return []
        if len(texts) == 1 and self._chunker.is_short(texts[0]):  # a query, most often
            return [side.embed(texts)]
        split = self._split(texts)
        vectors = side.embed([chunk for chunks in split for chunk in chunks])
        ends = list(accumulate(map(len, split)))
        return [vectors[end - len(chunks) : end] for end, chunks in zip(ends, split, strict=True)]

    def queries_until(self, texts: list[str], deadline: float | None) -> list[Float32Array]:
        """Return what `embed_chunked` does of queries, and give up at a deadline.

        An embedder that does not keep deadlines itself is called in another thread; a call that is
        given up runs on there, and its result is dropped.

        Args:
            texts: The queries.
            deadline: In seconds of `time.monotonic()`; without one the embedder is called at once,
                in this thread.

        Raises:
            DeadlineExceededError: If the deadline passes.
            EmbeddingError: If the embedder fails.
        """
        if deadline is None or self.keeps_deadlines:
            before = DEADLINE.set(deadline)
            try:
                return self.embed_chunked(texts, queries=True)
            finally:
                DEADLINE.reset(before)
        try:
            self.calls.slots.get(timeout=seconds_left(deadline))
        except Empty:
            raise DeadlineExceededError from None
        return result_until(started(lambda: self._queries_in_slot(texts)), deadline)

    def _queries_in_slot(self, texts: list[str]) -> list[Float32Array]:
        try:
            return self.embed_chunked(texts, queries=True)
        finally:
            self.calls.slots.put(None)

    def chunk_span(self, text: str, number: int) -> tuple[int, int] | None:
        """Return where one of several chunks starts and ends; None without it, or if that fails."""
        try:
            return self._chunker.span(text, number)
        except Exception:  # noqa: BLE001 - of the embedder's own function
            return None

    @property
    def joins_queries(self) -> bool:
        """Whether the queries of concurrent searches are embedded by one call."""
        return self._adapted.join_calls and self._adapted.takes_many

    async def embed_awaited(self, texts: list[str], threads: HasExecutor) -> list[Float32Array]:
        """Return what `embed_chunked` does; in an event loop no thread waits for another call.

        Args:
            texts: The texts.
            threads: Has a thread for the embedder.
        """
        if runs_sync():
            return self.embed_chunked(texts)
        if not (self._documents.joins(texts) and self._chunker.all_fit(texts)):
            return await run_blocking(lambda: self.embed_chunked(texts), threads)
        vectors = await self._documents.awaited(texts, threads)
        return [vectors[at : at + 1] for at in range(len(texts))]

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

    def close(self) -> None:
        """Cancel running calls of a coroutine embedder, and end its event loop. May be repeated."""
        self.calls.loop.close()

    def _split(self, texts: list[str]) -> list[list[str]]:
        try:
            return [self._chunker.chunks(text) for text in texts]
        except BaseException as error:  # noqa: BLE001 - as in `CheckedCalls.call`
            failed = self.calls.failure_of(error)
        raise failed


def _joiner(calls: CheckedCalls, adapted: AdaptedEmbedder, *, queries: bool) -> CallJoiner:
    embed = adapted.embed_queries if queries else adapted.embed
    joins = partial(adapted.joins, queries=queries)
    return CallJoiner(partial(calls.call, embed), adapted.batch_size, joins)


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

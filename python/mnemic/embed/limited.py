"""Embedding of a query within a time limit: a hanging embedder is not waited for."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mnemic.arrays import Float32Array
from mnemic.errors import DeadlineExceededError
from mnemic.model.deadline import seconds_left
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.waited_future import WaitedFuture

if TYPE_CHECKING:
    from mnemic.embed.validated import ValidatedEmbedder

Result = TypeVar("Result")
Vectors: TypeAlias = list[Float32Array]

MAX_CALLS = 8
"""Calls with a time limit that run at once, hanging ones included; others wait until one of them
ends or their own deadline passes."""


_deadline: ContextVar[float | None] = ContextVar("mnemic_embedding_deadline", default=None)


def embedding_deadline() -> float | None:
    """Return the deadline of the call that an embedder with `keeps_deadlines` answers."""
    return _deadline.get()


class LimitedEmbedding:
    """Embeds queries, and gives up at a deadline.

    An embedder that does not keep deadlines itself is called in another thread; a call that is
    given up runs on there, and its result is dropped.

    Args:
        embedder: Gives the vectors of the chunks of each text.
    """

    def __init__(self, embedder: "ValidatedEmbedder") -> None:
        self._embedder = embedder
        # No semaphore, which is Python: a KeyboardInterrupt in it leaves its lock locked forever.
        self._slots: SimpleQueue[None] = SimpleQueue()
        for _ in range(MAX_CALLS):
            self._slots.put(None)

    def __call__(self, texts: list[str], deadline: float | None) -> Vectors:
        """Return the vectors of the chunks of each text.

        Args:
            texts: The texts.
            deadline: In seconds of `time.monotonic()`; without one the embedder is called at once,
                in this thread.

        Raises:
            DeadlineExceededError: If the deadline passes.
            EmbeddingError: If the embedder fails.
        """
        if deadline is None or self._embedder.keeps_deadlines:
            before = _deadline.set(deadline)
            try:
                return self._embedder.embed_chunked(texts, queries=True)
            finally:
                _deadline.reset(before)
        try:
            self._slots.get(timeout=seconds_left(deadline))
        except Empty:
            raise DeadlineExceededError from None
        return result_until(started(lambda: self._embed(texts)), deadline)

    def _embed(self, texts: list[str]) -> Vectors:
        try:
            return self._embedder.embed_chunked(texts, queries=True)
        finally:
            self._slots.put(None)


def started(work: Callable[[], Result]) -> Future[Result]:
    """Begin work in a thread of its own, which nothing waits for at the end of the program."""
    made: Future[Result] = WaitedFuture()
    context = copy_context()
    try:
        start_thread(thread_of("embed", context.run, _run, work, made))
    except RuntimeError:  # no thread to be had
        _run(work, made)
    return made


def _run(work: Callable[[], Result], made: Future[Result]) -> None:
    try:
        made.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
        made.set_exception(error)


def result_until(made: Future[Result], deadline: float) -> Result:
    """Return the result of started work; the work goes on where the deadline passes.

    Raises:
        DeadlineExceededError: If the deadline passes.
    """
    if not wait([made], seconds_left(deadline)).done:
        raise DeadlineExceededError
    return made.result()

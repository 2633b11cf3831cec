"""Embedding of a query within a time limit: a hanging embedder is not waited for."""

import threading
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.model.deadline import exceeded, seconds_left

Vectors: TypeAlias = list[NDArray[np.float32]]

MAX_CALLS = 8
"""Calls with a time limit that run at once, hanging ones included; others wait until one of them
ends or their own deadline passes."""


class LimitedEmbedding:
    """Calls an embedder in threads of its own, and gives up at a deadline.

    A call that is given up runs on in its thread; its result is dropped.

    Args:
        embedder: Gives the vectors of the chunks of each text.
    """

    def __init__(self, embedder: ValidatedEmbedder) -> None:
        self._embedder = embedder
        self._slots = threading.BoundedSemaphore(MAX_CALLS)

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
        if deadline is None:
            return self._embedder.embed_chunked(texts)
        if not self._slots.acquire(timeout=seconds_left(deadline)):
            raise exceeded(deadline)
        made: Future[Vectors] = Future()
        context = copy_context()
        try:
            threading.Thread(
                target=context.run, args=(self._run, texts, made), name="mnemic-embed", daemon=True
            ).start()
        except RuntimeError:  # no thread to be had
            self._run(texts, made)
        if not wait([made], seconds_left(deadline)).done:
            raise exceeded(deadline)
        return made.result()

    def _run(self, texts: list[str], made: "Future[Vectors]") -> None:
        try:
            made.set_result(self._embedder.embed_chunked(texts))
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            made.set_exception(error)
        finally:
            self._slots.release()

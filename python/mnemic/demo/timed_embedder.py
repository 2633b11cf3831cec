"""The time that an embedder takes, beside all else."""

import time
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mnemic.embed.base import Embedder


class TimedEmbedder:
    """Adds up the seconds of an embedder; its other members are those of the embedder."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        """Return a member that only some embedders have, such as `max_tokens`."""
        if name == "_embedder":  # of an object that is not complete yet
            raise AttributeError(name)
        return getattr(self._embedder, name)

    def embed(
        self, texts: Sequence[str], /
    ) -> "NDArray[np.floating[Any]] | Awaitable[NDArray[np.floating[Any]]]":
        """Return one vector for each text; a coroutine's time is not added up."""
        start = time.perf_counter()
        vectors = self._embedder.embed(texts)
        self.seconds += time.perf_counter() - start
        return vectors

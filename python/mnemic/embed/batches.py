"""One side of an embedder, documents or queries: its calls, split and joined."""

from collections.abc import Callable

from mnemic.arrays import Float32Array, np
from mnemic.embed.joining import CallJoiner

FEW_TEXTS = 16
"""Maximum number of texts of a call that is joined with others."""

JOINED_TEXTS = 256
"""Maximum number of texts of a joined call, where the embedder names no size."""


class BatchedCalls:
    """Embeds any number of texts by calls of the right size.

    Args:
        embed: Embeds texts by one call.
        batch_size: Maximum number of texts of one call; None for no maximum.
        can_join: Returns whether concurrent calls with few texts become one.
        is_kept: Returns whether the vectors of texts need no call, so that they wait for none.

    Attributes:
        joiner: Joins them.
    """

    def __init__(
        self,
        embed: Callable[[list[str]], Float32Array],
        batch_size: int | None,
        can_join: Callable[[], bool],
        is_kept: Callable[[list[str]], bool] = lambda _: False,
    ) -> None:
        self._embed = embed
        self._batch_size = batch_size
        self._can_join = can_join
        self._is_kept = is_kept
        self.joiner = CallJoiner(embed, batch_size or JOINED_TEXTS)

    @property
    def can_join(self) -> bool:
        """Whether concurrent calls with few texts become one."""
        return self._can_join()

    def joins(self, texts: list[str]) -> bool:
        """Return whether a call with these texts is joined with others."""
        most = min(FEW_TEXTS, self._batch_size or FEW_TEXTS)
        return 0 < len(texts) <= most and self._can_join() and not self._is_kept(texts)

    def embed(self, texts: list[str]) -> Float32Array:
        """Return the vectors of texts, at least one; a failing call fails all."""
        if self.joins(texts):
            return self.joiner(texts)
        size = self._batch_size or len(texts)
        batches = [texts[at : at + size] for at in range(0, len(texts), size)]
        vectors = [self._embed(batch) for batch in batches]
        return vectors[0] if len(vectors) == 1 else np.concatenate(vectors)

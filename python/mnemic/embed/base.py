"""What every embedder is, and the checks they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np

from mnemic.errors import EmbeddingError, InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT_TOLERANCE = 1e-3
"""How far from 1 the length of an embedder's vector may be; half-precision services come near."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors whose inner products say how related the texts are.

    Any object with these members will do; nothing has to be inherited. `embed` is called from
    worker threads, possibly from several at once.
    """

    @property
    def model(self) -> str:
        """Name stored with every vector; vectors of different models are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Number of tokens of a text that its vector can see."""
        ...

    @property
    def similarity_floor(self) -> float | None:
        """Cosine below which two texts are most likely unrelated; None if not calibrated (C151)."""
        ...

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Embed each text by itself, whatever else is in `texts` (C184).

        Returns:
            Shape (len(texts), dimensions), float32, rows of unit length in the order of `texts`.
        """
        ...


class EmbeddingBatch(NamedTuple):
    """Vectors, and which of their texts were too long to be seen whole."""

    vectors: NDArray[np.float32]
    """Shape (n, dimensions), rows of unit length."""

    truncated: NDArray[np.bool_]
    """Shape (n,): whether the end of the text was left out."""

    @property
    def truncated_count(self) -> int:
        """Number of texts that were cut."""
        return int(np.count_nonzero(self.truncated))


def checked_texts(texts: object, /) -> list[str]:
    """Return `texts` as a list.

    Raises:
        InvalidArgumentError: If it is one string instead of a sequence of them, or an item is not
            a string, or holds half of a surrogate pair and so is no text.
    """
    if isinstance(texts, str | bytes):
        raise InvalidArgumentError("texts must be a sequence of strings, not one string: [text]")
    if not isinstance(texts, Iterable):
        raise InvalidArgumentError(f"texts must be a sequence of strings, not {_type(texts)}")
    return [_checked_text(position, text) for position, text in enumerate(texts)]


def checked_vectors(vectors: object, /, *, count: int, dimensions: int) -> NDArray[np.float32]:
    """Return an embedder's answer as contiguous float32, or say what is wrong with it.

    Raises:
        EmbeddingError: If the shape is not (count, dimensions), or a row is not finite or not of
            unit length.
    """
    try:
        with np.errstate(over="ignore"):  # what overflows float32 is refused below
            checked = np.ascontiguousarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError("the embedder did not return an array of numbers") from error
    if checked.shape != (count, dimensions):
        raise EmbeddingError(
            f"the embedder returned shape {checked.shape}, expected {(count, dimensions)}"
        )
    lengths = _lengths(checked)
    unit = np.isclose(lengths, 1.0, rtol=0.0, atol=UNIT_TOLERANCE)  # false for NaN
    if not np.all(unit):
        row = int(np.argmin(unit))
        raise EmbeddingError(f"vector {row} has length {lengths[row]:.4g}, expected 1")
    return checked


def _lengths(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    squares = np.square(vectors, dtype=np.float64)
    return np.sqrt(cast("NDArray[np.float64]", squares.sum(axis=1)))


def _checked_text(position: int, text: object) -> str:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"texts[{position}] must be a string, not {_type(text)}")
    if not _is_unicode(text):
        raise InvalidArgumentError(f"texts[{position}] holds half of a surrogate pair")
    return text


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _type(value: object) -> str:
    return type(value).__name__

"""The choice of an index of vectors: exact, approximate, or by the number of memories."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from mnemic.errors import InvalidArgumentError, MnemicError
from mnemic.index.base import (
    CandidateSource,
    InitialVectors,
    SourceChoice,
)
from mnemic.index.faiss_kinds import FaissOptions, checked_options, faiss_library
from mnemic.reporting.description import described

IndexChoice: TypeAlias = Literal["exact", "faiss", "auto"] | FaissOptions
"""All memories compared; an approximate index, with options of its own; or the latter above
`AUTO_LIMIT` memories."""

AUTO_LIMIT: Final = 2_000_000
"""Memories of an agent above which `"auto"` uses an approximate index: an exact search compares so
many in some 15 ms."""

_NAMES: Final = ("exact", "faiss", "auto")


def checked_index(index: object) -> IndexChoice:
    """Return a valid choice.

    Raises:
        InvalidArgumentError: If it is none.
        MissingExtraError: If it needs FAISS, which is not installed.
    """
    if isinstance(index, FaissOptions):
        faiss_library()
        return checked_options(index)
    if not isinstance(index, str) or index not in _NAMES:
        raise InvalidArgumentError(
            f"index must be one of {', '.join(_NAMES)}, or FaissOptions, got {described(index)}"
        )
    if index == "faiss":
        faiss_library()
    return cast("IndexChoice", index)


def source_choice(choice: IndexChoice, count: Callable[[], int]) -> SourceChoice | None:
    """Return what chooses the candidate sources of a new index; None for none at all.

    Args:
        choice: The choice.
        count: Returns the number of memories.
    """
    if choice == "exact":
        return None
    sources = FaissSources(choice if isinstance(choice, FaissOptions) else FaissOptions())
    if choice == "auto":
        return lambda: sources if count() > AUTO_LIMIT else None
    return lambda: sources


class FaissSources(NamedTuple):
    """Makes candidate sources by FAISS; see `SourceFactory`.

    Args:
        options: Their options.
    """

    options: FaissOptions

    def __call__(self, dim: int, beginning: InitialVectors | None = None) -> CandidateSource:
        """Return a source of vectors of a dimension.

        Args:
            dim: The dimension.
            beginning: The vectors that it has before any change; None for none.

        Raises:
            InvalidArgumentError: If FAISS has no such index.
        """
        from mnemic.index.faiss_source import FaissSource  # noqa: PLC0415 - most memories need none

        try:
            return FaissSource(dim, self.options, beginning)
        except (MnemicError, MemoryError):
            raise
        except Exception as error:  # FAISS raises many kinds
            raise InvalidArgumentError(
                f"FAISS makes no index of {dim} dimensions by {self.options} "
                f"({type(error).__name__})"
            ) from error

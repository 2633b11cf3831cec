"""The choice of an index of vectors: exact, approximate, or by the number of memories."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, TypeAlias, cast

from mnemic.description import described
from mnemic.errors import InvalidArgumentError, MnemicError
from mnemic.index.candidates import CandidateSource, SourceFactory
from mnemic.index.faiss_kinds import FaissOptions, checked_options, faiss_library

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
    if index not in _NAMES:
        raise InvalidArgumentError(
            f"index must be one of {', '.join(_NAMES)}, or FaissOptions, got {described(index)}"
        )
    if index == "faiss":
        faiss_library()
    return cast("IndexChoice", index)


def source_factory(choice: IndexChoice, count: Callable[[], int]) -> SourceFactory | None:
    """Return what makes the candidate source of an index; None for none.

    Args:
        choice: The choice.
        count: Returns the number of memories.
    """
    if choice == "exact":
        return None
    options = choice if isinstance(choice, FaissOptions) else FaissOptions()
    make = partial(_source, options)
    return make if choice != "auto" else lambda dim: make(dim) if count() > AUTO_LIMIT else None


def _source(options: FaissOptions, dim: int) -> CandidateSource:
    """Make an empty source.

    Raises:
        InvalidArgumentError: If FAISS has no such index.
    """
    from mnemic.index.faiss_source import FaissSource  # noqa: PLC0415 - most memories need none

    try:
        return FaissSource(dim, options)
    except (MnemicError, MemoryError):
        raise
    except Exception as error:  # FAISS raises many kinds
        raise InvalidArgumentError(
            f"FAISS makes no index of {dim} dimensions by {options} ({type(error).__name__})"
        ) from error

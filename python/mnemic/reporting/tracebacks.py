"""Tracebacks of errors that a caller's own line mends: they end at the verb that was called.

Nothing here runs before a call has failed.
"""

import os
import sys
from collections.abc import Iterator
from types import CodeType, TracebackType

from mnemic import errors

WHOLE = "MNEMIC_DEBUG"
"""Environment variable that keeps tracebacks whole, for work on mnemic itself."""

CALLERS = (
    errors.InvalidArgumentError,
    errors.ArrayTypeError,
    errors.UnknownIdError,
    errors.EntryNotFoundError,
    errors.AmbiguousIdError,
    errors.VersionConflictError,
    errors.DuplicateEntryError,
    errors.ReadOnlyError,
    errors.StoreClosedError,
    errors.StoreFileError,
    errors.MissingExtraError,
    errors.EmbedderRequiredError,
    errors.EmbeddingError,
)
"""Errors whose messages say what the caller has to change: how mnemic came upon it adds nothing.

Others, such as those of a damaged file, keep their tracebacks for a report.
"""

_OUR_PACKAGES = ("mnemic", "mnemic_files")


def end_at_verb(error: BaseException, verb: CodeType | None = None) -> None:
    """Cut the inner frames off an error of the caller's, and off those that it is chained to.

    One that passed through a function of the caller's, such as an embedder, keeps them: the line to
    change may be in there.

    Args:
        error: An error that is being raised; of another kind it is left as it is.
        verb: Code of the function that was called; None keeps the outermost frame.
    """
    if not isinstance(error, CALLERS) or os.environ.get(WHOLE, "0") not in ("", "0"):
        return
    outermost = error.__traceback__
    if outermost is None or not all(map(_is_ours, _frames(outermost))):
        return
    kept = next((at for at in _frames(outermost) if at.tb_frame.f_code is verb), outermost)
    kept.tb_next = None
    error.__traceback__ = kept
    for earlier in _chained(error):
        if all(map(_is_ours, _frames(earlier.__traceback__))):
            earlier.__traceback__ = None


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_ours(at: TracebackType) -> bool:
    """Return whether a frame is of mnemic, or of Python's library, such as a thread's."""
    package = str(at.tb_frame.f_globals.get("__name__")).partition(".")[0]
    return package in _OUR_PACKAGES or package in sys.stdlib_module_names


def _chained(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that an error came of, each once."""
    seen = {id(error)}
    earlier = error.__cause__ or error.__context__
    while earlier is not None and id(earlier) not in seen:
        seen.add(id(earlier))
        yield earlier
        earlier = earlier.__cause__ or earlier.__context__

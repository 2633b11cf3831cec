"""The ranges of a retrieval's options: those that are accepted, and those that are recommended.

Every check, error and warning about an option's range reads them here.
"""

import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, get_args

from mnemic.context.interleaving import RATIO, InterleavingStrategy
from mnemic.model.ranges import Range, check_choice
from mnemic.model.ranking import SEARCH_TYPES
from mnemic.model.validation import MAX_QUERY_LENGTH
from mnemic.reporting.description import must_be, quoted

if TYPE_CHECKING:
    from types import FrameType

AUTO = "auto"
"""The `min_score` that the embedder's own floors decide."""

MAX_CACHE_TTL = 60.0
"""Largest age of a payload that is returned again, in seconds."""

MAX_TIMEOUT = 3600.0


class OutsideRecommendedWarning(UserWarning):
    """An option is accepted, and outside the range in which retrieval is known to work well."""


RANGES: Mapping[str, Range] = {
    "top_k": Range(1, 20, (6, 10), is_whole=True, may_be_none=True),
    "clip_sentences": Range(1, 5, (1, 2), is_whole=True, may_be_none=True),
    "max_tokens": Range(100, 3000, (100, 1500), is_whole=True),
    "min_score": Range(0, 1, word=AUTO),
    "ratio": RATIO,
    "near_duplicates": Range(0, 1, may_be_none=True),
    "session_boost": Range(1, 2),
    "timeout": Range(0, MAX_TIMEOUT, may_be_none=True, unit="seconds"),
    "max_query_length": Range(1, MAX_QUERY_LENGTH, is_whole=True),
    "cache_ttl": Range(0, MAX_CACHE_TTL, unit="seconds"),
}
"""Ranges by option."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "search_type": SEARCH_TYPES,
    "strategy": get_args(InterleavingStrategy),
}
"""Words by option."""

FLAGS = frozenset({"same_session_only", "include_sensitive", "enable_redaction"})
"""Options that are True or False."""


def checked(path: str, given: object) -> object:
    """Return the value of an option in its final form.

    Args:
        path: The path of the option, such as "retrieval.top_k"; its last part names the range.
        given: The value.

    Raises:
        InvalidArgumentError: If it is out of range; the message has path, value and range.
    """
    name = path.rpartition(".")[2]
    if name in RANGES:
        return RANGES[name].checked(path, given)
    if name in FLAGS and not isinstance(given, bool):
        raise must_be(path, "True or False", given, show=quoted)
    words = CHOICES.get(name)
    if words is not None:
        check_choice(path, given, words)
    return given


def warn_outside_recommended(options: Iterable[tuple[str, object]]) -> None:
    """Warn once about all options outside their recommended ranges.

    Args:
        options: Paths and checked values.
    """
    found = [(RANGES.get(path.rpartition(".")[2]), path, value) for path, value in options]
    advice = [range_.advice(path, value) for range_, path, value in found if range_ is not None]
    sentences = [sentence for sentence in advice if sentence is not None]
    if sentences:
        warnings.warn("; ".join(sentences), OutsideRecommendedWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """Return the stack level of the first frame outside the package, as `warnings.warn` counts."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - Python 3.12 has skip_file_prefixes
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("mnemic."):
        frame, level = frame.f_back, level + 1
    return level

"""RetrievalConfig: the options of a retrieval policy, checked, and their ranges.

Every check, error and warning about an option's range reads them here.
"""

import sys
import warnings
from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args

import msgspec
from msgspec.structs import force_setattr

from mnemic.context.budget import RATIO, InterleavingStrategy, check_ratio
from mnemic.context.prompt_block import PromptBlock
from mnemic.context.redaction import Redaction
from mnemic.model import validation
from mnemic.model.ranking import SEARCH_TYPES, SearchType
from mnemic.model.validation import MAX_QUERY_LENGTH, Range, check_choice
from mnemic.records import NamedFields
from mnemic.records.options import OptionsRecord, converted, fields_of
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


class RetrievalConfig(OptionsRecord, frozen=True, kw_only=True, metaclass=NamedFields):
    r"""Configuration of a retrieval policy.

    By default a block takes the best memories that its tokens allow; `INTERLEAVED` is the other
    preset. Values outside the recommended ranges are accepted with an `OutsideRecommendedWarning`.

    Example:
        >>> from mnemic.policy import RetrievalConfig
        >>> RetrievalConfig.from_toml("topK = 6\nsearchType = 'keyword'").top_k
        6

    Attributes:
        top_k: Memories in a payload at most, 1 to 20; 6 to 10 is recommended. None: as many as the
            tokens allow.
        clip_sentences: First sentences of each memory, 1 to 5; 1 to 2 is recommended. None: whole
            memories, and of one that is longer than its share of the tokens the sentences that
            have most words of the message.
        max_tokens: Tokens of the whole prompt block, 100 to 3,000; at most 1,500 is recommended.
        search_type: "hybrid", "semantic" or "keyword". Without an embedder a hybrid search is one
            by keywords.
        min_score: Minimum score of a memory, 0 to 1, inclusive. "auto" lets the floors of the
            embedder, or those learned from the memories, decide whether any memory answers the
            message, and then leaves none out.
        redaction: What is replaced in the texts; nothing unless enabled.
        strategy: The order: "score_first" and "recency_first" put the best or the newest memories
            first; "alternate" puts both in turns.
        ratio: Share of the places for the first list, 0 to 1; None gives it all of them. With
            "alternate" it is 0.5 or None.
        near_duplicates: Similarity from which on two texts count as the same, 0 to 1; None compares
            exactly.
        same_session_only: Whether only memories of the request's session are found.
        session_boost: Factor of the scores of memories of the request's session, 1 to 2; 1 is off.
            Boosted scores are at most 1. Memories are ranked by them as far as any may still rise,
            up to the best 256; from there on those of the session are ranked among themselves.
        timeout: Seconds that a search may take; None is no limit.
        max_query_length: Longest message that is searched for, in characters, 1 to 10,000.
        include_sensitive: Whether sensitive memories are found too.
        cache_ttl: Seconds for which a payload is returned again for an identical request, 0 to 60;
            0 turns that off.
        block: Form of the prompt block.

    Raises:
        InvalidArgumentError: If an option is out of range; the message has the range.
    """

    top_k: int | None = None
    clip_sentences: int | None = None
    max_tokens: int = 1500
    search_type: SearchType = "hybrid"
    min_score: float | Literal["auto"] = "auto"
    redaction: Redaction = Redaction()
    strategy: InterleavingStrategy = "score_first"
    ratio: float | None = None
    near_duplicates: float | None = None
    same_session_only: bool = False
    session_boost: float = 1.0
    timeout: float | None = 0.5
    max_query_length: int = 4000
    include_sensitive: bool = False
    cache_ttl: float = 60.0
    block: PromptBlock = PromptBlock()

    _records: ClassVar[dict[str, type[msgspec.Struct]]] = {
        "redaction": Redaction,
        "block": PromptBlock,
    }

    def __post_init__(self) -> None:
        """Check every option."""
        self._check()
        warn_outside_recommended((name, getattr(self, name)) for name in self.__struct_fields__)

    def _check(self) -> None:
        for name in self.__struct_fields__:
            force_setattr(self, name, checked(name, getattr(self, name)))
        for name, kind in self._records.items():
            given = getattr(self, name)
            validation.of_kind(name, kind, f"a {kind.__name__}", given)
        check_ratio("ratio", self.strategy, self.ratio)

    def overridden(self, **options: Any) -> Self:
        """Return a copy with other values of some options, checked, without a further warning."""
        other = copy(self)
        for name, value in options.items():
            force_setattr(other, name, value)
        other._check()  # noqa: SLF001 - of the same class
        return other

    @classmethod
    def from_dict(cls, options: object) -> Self:
        """Return a configuration from a mapping; missing options are as by default.

        Args:
            options: Names in snake_case or camelCase, values of plain types; `redaction` and
                `block` are mappings too.

        Raises:
            InvalidArgumentError: If an option is unknown or out of range; the message has its path.
        """
        fields = fields_of(cls, options)
        for name, kind in cls._records.items():
            if name in fields:
                fields[name] = converted(kind, fields[name], name)
        return cls(**fields)


INTERLEAVED: Final = RetrievalConfig(
    top_k=8,
    clip_sentences=2,
    strategy="alternate",
    block=PromptBlock(score_label="confidence", time_zone="UTC"),
)
"""The best and newest memories in turns: eight of two sentences, facts with a score, in UTC."""

"""RetrievalConfig: the options of a retrieval policy, checked."""

from copy import copy
from typing import Any, ClassVar, Final, Literal, Self

import msgspec
from msgspec.structs import force_setattr

from mnemic.context.interleaving import InterleavingStrategy, check_ratio
from mnemic.context.prompt_block import PromptBlock
from mnemic.context.redaction import Redaction
from mnemic.model import validation
from mnemic.model.named_fields import NamedFields
from mnemic.model.ranking import SearchType
from mnemic.policy.ranges import checked, warn_outside_recommended
from mnemic.records.options import OptionsRecord, converted, fields_of


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

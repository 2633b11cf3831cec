"""Requests and results of the memory retriever, ranges of time, and salience."""

import enum
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypedDict,
    get_args,
)
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic._core import salience_parts
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.deadline import OnTimeout, TimeLimit
from mnemic.model.entry import MemoryEntry, MemoryType
from mnemic.model.filter import Expression, Field, Op, Test, parse_times
from mnemic.model.hit import Hit, Passage
from mnemic.model.ranking import Salience
from mnemic.model.results import WrittenEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.records import Listing, NamedFields, Record
from mnemic.reporting.description import must_be, quoted


class TimeRange(NamedTuple):
    """A range of creation times.

    Attributes:
        start: Its begin, inclusive; None is the earliest time.
        end: Its end; None is the latest time.
        includes_end: Whether the end is inclusive.
    """

    start: datetime | None = None
    end: datetime | None = None
    includes_end: bool = False

    @classmethod
    def parse(cls, since: object, until: object) -> Self:
        """Return the range of the times given to a search, without its end.

        Raises:
            FilterError: If a value is not a time; the message names it.
        """
        times = {
            test.op: test.value
            for test in parse_times(since, until)
            if isinstance(test, Test) and isinstance(test.value, datetime)
        }
        return cls(times.get(Op.GTE), times.get(Op.LT))

    @property
    def tests(self) -> tuple[Expression, ...]:
        """The tests of a memory in the range."""
        created_at = Field("created_at")
        before = Op.LTE if self.includes_end else Op.LT
        given = ((Op.GTE, self.start), (before, self.end))
        return tuple(Test(created_at, op, time) for op, time in given if time is not None)

    def check_order(self) -> None:
        """Check that the range does not end before it begins."""
        if self.start is not None and self.end is not None and self.start > self.end:
            raise InvalidArgumentError(
                "the range ends before it begins: "
                f"from {self.start.isoformat()} to {self.end.isoformat()}"
            )


ANY_TIME = TimeRange()
"""The range of all times."""


CONTRADICTION_CONFIDENCE = 0.6
"""Default minimum confidence of a contradiction: by cross-validation on unseen folds, four of five
judgements above it are right; see docs/explain/contradictions.md."""


class RecallMode(enum.Enum):
    """Order of recalled memories."""

    RELEVANT = "relevant"
    """By similarity and salience."""
    RECENT = "recent"
    """Last accessed first; a memory without accesses counts from its creation."""
    IMPORTANT = "important"
    """The most salient."""
    TEMPORAL = "temporal"
    """Memories of a time range, for `recall_temporal`."""
    FREQUENT = "frequent"
    """Most accesses first."""

    @classmethod
    def parse(cls, given: object) -> "RecallMode":
        """Return a mode given as itself or by name.

        Args:
            given: A mode, or its name.
        """
        return validation.choice("mode", cls, given)


class MemoryKind(enum.Enum):
    """Kind of memory; each stands for several types."""

    SEMANTIC = "SEMANTIC"
    EPISODIC = "EPISODIC"
    PROCEDURAL = "PROCEDURAL"

    @property
    def types(self) -> tuple[MemoryType, ...]:
        """The types of memories of this kind."""
        return tuple(each for each in MemoryType if each.kind == self.value)


def parse_types(given: object) -> tuple[MemoryType, ...]:
    """Return the types named by a kind, a type, or the name of either."""
    named = _kind_or_type(given)
    return named.types if isinstance(named, MemoryKind) else (named,)


def _kind_or_type(given: object) -> MemoryKind | MemoryType:
    if isinstance(given, str) and given.upper() in MemoryKind.__members__:
        return MemoryKind[given.upper()]
    return given if isinstance(given, MemoryKind) else MemoryType.parse(given)


if TYPE_CHECKING:
    TypeFilter: TypeAlias = MemoryType | MemoryKind | str | None
else:
    TypeFilter = Any  # msgspec decodes no union of an enum and a text; the constructor parses both


ProjectScope: TypeAlias = Literal["all", "strict"]
"""Memories that a recall without a project includes: all, or those without a project alone."""
_PROJECT_SCOPES: tuple[str, ...] = get_args(ProjectScope)


class RecallTypeFields(TypedDict, total=False):
    """The fields of `RecallOptions` that every recall takes as keyword arguments."""

    all_users: bool
    min_salience: float
    project_id: str | None
    with_total: bool
    project_scope: ProjectScope
    include_archived: bool
    include_superseded: bool
    timeout: float | None
    on_timeout: OnTimeout


class RecallFields(RecallTypeFields, total=False):
    """Those fields, and the type, of a recall that is not by type already."""

    type_filter: TypeFilter


class AllRecallFields(RecallFields, total=False):
    """All fields of `RecallOptions`."""

    user_id: str | None
    max_results: int
    limit: int
    mode: RecallMode | str


class RecallOptions(Record, frozen=True, kw_only=True, metaclass=NamedFields):
    """Options of a recall.

    Attributes:
        user_id: The user; None is the memories without a user.
        all_users: All users; then no user can be named.
        max_results: Maximum number of results, 1 to 1,000.
        limit: The same, under the name that it has everywhere; one of both can be given.
        type_filter: Only this type or kind; a name is converted.
        min_salience: Minimum static score, 0 to 1, in every mode.
        mode: The order.
        project_id: Only this project; None is all projects and none.
        with_total: Whether to count all matches; otherwise `total_matches` is the number of
            results, which is faster.
        project_scope: With "strict", project_id None means memories without a project only.
        include_archived: Whether to include archived memories.
        include_superseded: Whether to include superseded memories.
        timeout: Seconds that a recall may take; None is no limit. A judge of contradictions that is
            not mnemic's own is not interrupted.
        on_timeout: Whether a recall that is not done in time raises DeadlineExceededError
            ("raise"), or returns what is complete, marked as `partial` ("partial").

    Raises:
        InvalidArgumentError: If a field is out of range.
    """

    _aliases: ClassVar[Mapping[str, str]] = {"limit": "max_results"}

    user_id: str | None
    all_users: bool = False
    max_results: int = 10
    if TYPE_CHECKING:
        limit: int = 10
    else:

        @property
        def limit(self) -> int:
            """The maximum number of results."""
            return self.max_results

    type_filter: TypeFilter = None
    min_salience: float = 0.0
    mode: RecallMode = RecallMode.RELEVANT
    project_id: str | None = None
    project_scope: ProjectScope = "all"
    with_total: bool = True
    include_archived: bool = False
    include_superseded: bool = False
    timeout: float | None = None
    on_timeout: OnTimeout = "raise"

    @property
    def time_limit(self) -> TimeLimit:
        """The limit of a recall that begins now."""
        return TimeLimit.after(self.timeout, self.on_timeout)

    def __post_init__(self) -> None:
        """Check every field and convert it to its final form."""
        for name in ("user_id", "project_id"):
            validation.optional_name(name, getattr(self, name))
        for name in ("all_users", "include_archived", "include_superseded", "with_total"):
            validation.flag(name, getattr(self, name))
        validation.word("project_scope", self.project_scope, _PROJECT_SCOPES)
        validation.limit("max_results", self.max_results)
        if self.type_filter is not None:
            force_setattr(self, "type_filter", _kind_or_type(self.type_filter))
        validation.fraction("min_salience", self.min_salience)
        force_setattr(self, "mode", RecallMode.parse(self.mode))
        TimeLimit.after(self.timeout, self.on_timeout)


class MemoryRetrieverOptions(Record, frozen=True, kw_only=True, metaclass=NamedFields):
    """Ranking options of a retriever.

    Attributes:
        similarity_weight: Weight of the similarity in relevant recall, 0 to 1.
        salience_weight: Weight of the static score.
        min_similarity: Minimum cosine in relevant recall and for a topic; None is the embedder's
            own floor, or the one that is learned from the memories.
        candidate_multiplier: Number of candidates of an approximate index, as a multiple of the
            limit; an exact index ranks every memory and ignores it.
        track_access: Whether recalled memories count as accessed.
        access_interval: After an access that counts, further accesses of the memory within this
            interval do not count; of concurrent recalls one counts. A number is seconds.
        salience: Weights of the static score.
    """

    similarity_weight: float = 0.6
    salience_weight: float = 0.4
    min_similarity: float | None = None
    candidate_multiplier: int = 3
    track_access: bool = True
    access_interval: timedelta = timedelta()
    salience: Salience = Salience()

    def __post_init__(self) -> None:
        """Check every field."""
        for name in ("similarity_weight", "salience_weight"):
            validation.fraction(name, getattr(self, name))
        if not self.similarity_weight + self.salience_weight:
            raise InvalidArgumentError("the weights add up to 0; at least one must be above it")
        if self.min_similarity is not None:
            validation.fraction("min_similarity", self.min_similarity)
        validation.whole("candidate_multiplier", self.candidate_multiplier, minimum=2)
        validation.flag("track_access", self.track_access)
        force_setattr(self, "access_interval", _interval(self.access_interval))
        if not isinstance(self.salience, Salience):
            raise must_be("salience", "a mnemic.model.Salience", self.salience)


class ScoredMemory(Hit, frozen=True):
    """A recalled memory.

    Attributes:
        entry: Its state before this recall, without its embedding.
        score: From 0 to 1; its meaning depends on the mode.
        match_reason: The parts of the score, in words; `repr` hides it for a sensitive memory, as a
            judge of contradictions may quote.
        passage: The sentences of a long memory that the query is about, as those of a `SearchHit`;
            None where no query chose the memory.
    """

    match_reason: str
    passage: Passage | None = None

    @property
    def memory(self) -> MemoryEntry:
        """The entry, under its documented name."""
        return self.entry

    def _hidden_fields(self) -> frozenset[str]:
        return frozenset({"match_reason"} if self.entry.hides_content else ())


class MemoryRecallResult(Listing[ScoredMemory], frozen=True):
    """The result of a recall. Iterating gives its memories.

    Attributes:
        memories: In the order of the mode.
        total_matches: Number of matches, regardless of the limit.
        query_time: Duration of the recall.
        partial: Whether the timeout passed, so that better memories may be missing.
        approximate: Whether an approximate index chose the memories that were ranked: better ones
            may be missing.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
        hint: A sentence about the cause of an empty result, if one is likely; else None.
    """

    _items_field: ClassVar[str] = "memories"
    _entry_fields: ClassVar[tuple[str, ...]] = MemoryEntry.__struct_fields__
    _hit_fields: ClassVar[tuple[str, ...]] = ("score", "match_reason")
    _total_field: ClassVar[str] = "total_matches"
    _marks: ClassVar[tuple[str, ...]] = ("partial", "approximate", "stale_since", "hint")

    memories: tuple[ScoredMemory, ...]
    total_matches: int
    query_time: timedelta
    partial: bool = False
    approximate: bool = False
    stale_since: datetime | None = None
    hint: str | None = None


class CheckedEntry(WrittenEntry, frozen=True, kw_only=True, eq=False):
    """A memory that was stored, with what it contradicts and what it repeats.

    Attributes:
        contradictions: Memories of its scope that it contradicts, the surest first.
        repeats: Id of the memory that it repeats, returned lately; None without one, and unless
            the memory is opened with `on_recalled="flag"`.
    """

    contradictions: tuple[ScoredMemory, ...] = ()
    repeats: UUID | None = None

    def __repr__(self) -> str:
        repeats = "" if self.repeats is None else f", repeats={str(self.repeats)!r}"
        shown = f"{super().__repr__()[:-1]}, contradictions={len(self.contradictions)}"
        return f"{shown}{repeats})"

    @classmethod
    def of(
        cls,
        entry: MemoryEntry,
        contradictions: tuple[ScoredMemory, ...] = (),
        repeats: UUID | None = None,
    ) -> Self:
        """Return an entry, checked before, with what it contradicts and what it repeats."""
        fields = {name: getattr(entry, name) for name in MemoryEntry.__struct_fields__}
        evicted = entry.evicted
        return cls(**fields, evicted_ids=evicted, contradictions=contradictions, repeats=repeats)


_RELEVANCE_SHARE = 0.30


class SalienceWeights(Record, frozen=True, metaclass=NamedFields):
    """Weights of the parts of a salience; their sum must be 1.

    Attributes:
        recency: Of the time since the last access.
        frequency: Of the number of accesses.
        importance: Of the memory's importance.
        relevance: Of the similarity to the query.
    """

    recency: float = 0.25
    frequency: float = 0.20
    importance: float = 0.25
    relevance: float = _RELEVANCE_SHARE

    def __post_init__(self) -> None:
        """Check the weights."""
        for name in self.__struct_fields__:
            validation.fraction(name, getattr(self, name))
        total = self.recency + self.frequency + self.importance + self.relevance
        if abs(total - 1) > 0.001:  # noqa: PLR2004 - the documented tolerance
            raise InvalidArgumentError(f"the weights must add up to 1, and add up to {total:g}")

    @classmethod
    def of(cls, salience: Salience) -> Self:
        """Return the weights of a `Salience` together with the default share of the relevance."""
        total = salience.recency + salience.frequency + salience.importance
        if not total:
            return cls(0.0, 0.0, 0.0, 1.0)
        share = (1 - _RELEVANCE_SHARE) / total
        return cls(
            salience.recency * share, salience.frequency * share, salience.importance * share
        )


RECENCY_FOCUSED = SalienceWeights(0.40, 0.15, 0.20, 0.25)
"""Weights by which the last access counts most."""

RELEVANCE_FOCUSED = SalienceWeights(0.15, 0.15, 0.20, 0.50)
"""Weights by which the query counts most."""


class ReinforcementReason(enum.Enum):
    """Reason to raise a memory's importance."""

    EXPLICIT_USER_CONFIRMATION = "explicit_user_confirmation"
    SUCCESSFUL_APPLICATION = "successful_application"
    REPEATED_ACCESS = "repeated_access"
    USER_CORRECTION = "user_correction"

    @classmethod
    def parse(cls, given: object) -> "ReinforcementReason":
        """Return a reason given as itself or by name.

        Args:
            given: A reason, or its name.
        """
        return validation.choice("reason", cls, given)


_BOOSTS = {
    ReinforcementReason.EXPLICIT_USER_CONFIRMATION: 0.3,
    ReinforcementReason.SUCCESSFUL_APPLICATION: 0.2,
    ReinforcementReason.REPEATED_ACCESS: 0.1,
    ReinforcementReason.USER_CORRECTION: 0.25,
}


class SalienceOptions(Record, frozen=True, kw_only=True, metaclass=NamedFields):
    """Scales of salience.

    Attributes:
        half_life_days: Half-life of recency after the last access.
        frequency_max_count: Number of accesses with frequency 1.
        default_relevance: Relevance without a query.
        boosts: Increase of the importance for each reason of reinforcement, by name.
    """

    half_life_days: float = 7.0
    frequency_max_count: int = 100
    default_relevance: float = 0.5
    boosts: dict[str, float] = msgspec.field(
        default_factory=lambda: {reason.value: boost for reason, boost in _BOOSTS.items()}
    )

    def __post_init__(self) -> None:
        """Check the scales."""
        days = self.half_life_days
        if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days < math.inf:
            raise must_be("half_life_days", "a positive number", days, show=quoted)
        validation.whole("frequency_max_count", self.frequency_max_count, minimum=1)
        validation.fraction("default_relevance", self.default_relevance)
        if not isinstance(self.boosts, dict):
            raise must_be("boosts", "a dict", self.boosts)
        force_setattr(self, "boosts", dict(self.boosts))
        for reason, boost in self.boosts.items():
            ReinforcementReason.parse(reason)
            validation.fraction(f"boosts[{quoted(reason)}]", boost)


class SalienceBreakdown(Record, frozen=True, kw_only=True):
    """Parts of a memory's salience, each from 0 to 1.

    Attributes:
        recency: Halves every half-life after the last access.
        frequency: min(1, ln(n + 1) / ln(max + 1)) for n accesses.
        importance: The importance.
        relevance: Cosine with the query, or the default without one.
        final_score: Weighted sum of the parts, from 0 to 1.
        weights: The weights.
        static_score: The score that recall uses whatever the query: the weighted mean of recency,
            frequency and importance by the retriever's own `Salience`, even if other weights or
            scales were given.
    """

    recency: float
    frequency: float
    importance: float
    relevance: float
    final_score: float
    weights: SalienceWeights
    static_score: float


class _Parts(NamedTuple):
    recency: float
    frequency: float
    mean: float


def salience_of(
    entry: MemoryEntry,
    now: datetime,
    *,
    relevance: float | None = None,
    weights: SalienceWeights | None = None,
    options: SalienceOptions | None = None,
    salience: Salience | None = None,
) -> SalienceBreakdown:
    """Return a memory's salience at a time; it is never stored.

    Args:
        entry: The memory.
        now: The time.
        relevance: Cosine with a query, negative ones count as 0; None without a query.
        weights: Weights of the parts; those of `salience` and the relevance unless given.
        options: The scales; those of `salience` unless given.
        salience: Weights of the static score; the default ones unless given.
    """
    own = Salience() if salience is None else salience
    shares = SalienceWeights.of(own) if weights is None else weights
    ranked = _parts(entry, now, own)
    shown = ranked if options is None else _parts(entry, now, _scaled(own, options))
    default = (options or SalienceOptions()).default_relevance
    given = default if relevance is None else min(1.0, max(0.0, relevance))
    total = (
        shares.recency * shown.recency
        + shares.frequency * shown.frequency
        + shares.importance * entry.importance
        + shares.relevance * given
    )
    return SalienceBreakdown(
        recency=shown.recency,
        frequency=shown.frequency,
        importance=entry.importance,
        relevance=given,
        final_score=min(1.0, max(0.0, total)),
        weights=shares,
        static_score=ranked.mean,
    )


def static_score_of(entry: MemoryEntry, now: datetime, salience: Salience) -> float:
    """Return the weighted mean of a memory's recency, frequency and importance."""
    return _parts(entry, now, salience).mean


def _parts(entry: MemoryEntry, now: datetime, salience: Salience) -> _Parts:
    """Return the parts of a memory's static score as the index computes them, to the last bit."""
    last = entry.last_accessed_at
    return _Parts(
        *salience_parts(
            salience,
            created_at=to_microseconds(entry.created_at),
            last_accessed_at=None if last is None else to_microseconds(last),
            access_count=entry.access_count,
            importance=entry.importance,
            now=to_microseconds(now),
        )
    )


def _scaled(salience: Salience, options: SalienceOptions) -> Salience:
    return msgspec.structs.replace(
        salience,
        half_life_days=options.half_life_days,
        frequency_max_count=options.frequency_max_count,
    )


def _interval(given: object) -> timedelta:
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < math.inf:
        given = timedelta(seconds=min(given, timedelta.max // timedelta(seconds=1)))
    if not isinstance(given, timedelta) or given < timedelta():
        raise must_be("access_interval", "a timedelta or seconds, not negative", given, show=quoted)
    return given

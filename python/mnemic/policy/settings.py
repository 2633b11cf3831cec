"""AdminMemorySettings: options that override the configuration of a program."""

from typing import ClassVar, Literal, TypeVar

import msgspec
from msgspec.structs import force_setattr

from mnemic.context.interleaving import InterleavingStrategy
from mnemic.context.redaction import Redaction
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.named_fields import NamedFields
from mnemic.model.ranking import SearchType
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.ranges import check_ratio, checked, warn_outside_recommended
from mnemic.records import Record
from mnemic.records.options import OptionsRecord, fields_of
from mnemic.reporting.description import must_be

Part = TypeVar("Part", bound="_Part")


class _Part(Record, frozen=True, kw_only=True):
    """A part of the settings; options that are None leave the configuration's."""

    _path: ClassVar[str]

    def _check_options(self) -> None:
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        for name, value in given.items():
            if value is not None:
                force_setattr(self, name, checked(f"{self._path}.{name}", value))
        warn_outside_recommended((f"{self._path}.{name}", value) for name, value in given.items())


class RetrievalSettings(_Part, frozen=True, kw_only=True, metaclass=NamedFields):
    """An administrator's settings of the search; None leaves the configuration's.

    Attributes:
        top_k: 1 to 20; see `RetrievalConfig`, also for those that follow.
        clip_sentences: 1 to 5.
        max_tokens: 100 to 3,000.
        search_type: "hybrid", "semantic" or "keyword".
        min_score: 0 to 1, or "auto".
        enable_redaction: Whether texts are redacted.
        custom_redaction_patterns: Regular expressions, or names of known patterns, which are added
            to those of the configuration.

    Raises:
        InvalidArgumentError: If an option is out of range, or a pattern is refused.
    """

    _path: ClassVar[str] = "retrieval"

    top_k: int | None = None
    clip_sentences: int | None = None
    max_tokens: int | None = None
    search_type: SearchType | None = None
    min_score: float | Literal["auto"] | None = None
    enable_redaction: bool | None = None
    custom_redaction_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every option, and compile the patterns."""
        self._check_options()
        path = f"{self._path}.custom_redaction_patterns"
        given: object = self.custom_redaction_patterns  # null in JSON is none
        patterns = () if given is None else tuple(validation.items(path, given))
        for at, pattern in enumerate(patterns):
            if not isinstance(pattern, str):
                raise must_be(f"{path}[{at}]", "a regular expression as a str", pattern)
        force_setattr(self, "custom_redaction_patterns", patterns)
        if patterns:
            try:
                Redaction(patterns=patterns)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{path}: {error}") from error

    def redaction(self, given: Redaction) -> Redaction:
        """Return the redaction of a configuration with these settings."""
        is_enabled = given.enabled if self.enable_redaction is None else self.enable_redaction
        new = tuple(each for each in self.custom_redaction_patterns if each not in given.patterns)
        if is_enabled == given.enabled and not new:
            return given
        patterns = (*given.patterns, *new)
        return msgspec.structs.replace(given, enabled=is_enabled, patterns=patterns)


class InterleavingSettings(_Part, frozen=True, kw_only=True, metaclass=NamedFields):
    """An administrator's settings of the order; None leaves the configuration's.

    Attributes:
        strategy: "alternate", "score_first" or "recency_first".
        ratio: Share of the places for the first list, 0 to 1. A strategy without a ratio replaces
            the configuration's ratio too.

    Raises:
        InvalidArgumentError: If an option is out of range.
    """

    _path: ClassVar[str] = "interleaving"

    strategy: InterleavingStrategy | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        """Check both options."""
        self._check_options()
        check_ratio(f"{self._path}.ratio", self.strategy, self.ratio)


class AdminMemorySettings(OptionsRecord, frozen=True, kw_only=True, metaclass=NamedFields):
    """An administrator's settings, which override the configuration of a program.

    Example:
        >>> from mnemic.policy import AdminMemorySettings, RetrievalConfig
        >>> settings = AdminMemorySettings.from_dict({"retrieval": {"topK": 6}})
        >>> settings.applied_to(RetrievalConfig()).top_k
        6

    Attributes:
        retrieval: Settings of the search; a mapping is converted.
        interleaving: Settings of the order; a mapping is converted.

    Raises:
        InvalidArgumentError: If a setting is unknown or out of range; the message has its path,
            such as `retrieval.top_k`, and the range.
    """

    retrieval: RetrievalSettings = RetrievalSettings()
    interleaving: InterleavingSettings = InterleavingSettings()

    def __post_init__(self) -> None:
        """Convert mappings."""
        force_setattr(self, "retrieval", _part(RetrievalSettings, self.retrieval))
        force_setattr(self, "interleaving", _part(InterleavingSettings, self.interleaving))

    def applied_to(self, config: RetrievalConfig) -> RetrievalConfig:
        """Return a configuration with these settings in place of its own.

        Args:
            config: The configuration; it is not changed.

        Raises:
            InvalidArgumentError: If a ratio does not go with the strategy of the other one.
        """
        retrieval, interleaving = self.retrieval, self.interleaving
        names = (name for name in RetrievalSettings.__struct_fields__ if name in _SHARED)
        given = {name: getattr(retrieval, name) for name in names}
        options = {name: value for name, value in given.items() if value is not None}
        if interleaving.strategy is not None:
            options |= {"strategy": interleaving.strategy, "ratio": interleaving.ratio}
        elif interleaving.ratio is not None:
            check_ratio("interleaving.ratio", config.strategy, interleaving.ratio)
            options["ratio"] = interleaving.ratio
        redaction = retrieval.redaction(config.redaction)
        return config.overridden(redaction=redaction, **options)


_SHARED = frozenset(RetrievalConfig.__struct_fields__)


def _part(kind: type[Part], given: object) -> Part:
    return given if isinstance(given, kind) else kind(**fields_of(kind, given, kind._path))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - of this module

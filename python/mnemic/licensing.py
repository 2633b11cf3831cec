"""License tiers, their features, and their storage quotas."""

from types import MappingProxyType
from typing import NamedTuple, Protocol, cast

from mnemic.errors import InvalidArgumentError, LicenseRestrictionError
from mnemic.records import NumberedEnum, Record
from mnemic.reporting.description import must_be, quoted


class LicenseTier(NumberedEnum, noun="tier"):
    """License tiers, lowest first; each includes the features of the lower ones."""

    CORE = "core", 0
    WRITER_PRO = "writer_pro", 1
    TEAMS = "teams", 2
    ENTERPRISE = "enterprise", 3

    @property
    def label(self) -> str:
        """Name of the tier in messages, such as "WriterPro"."""
        return "".join(part.capitalize() for part in self.name.split("_"))


_MEGABYTE = 1024 * 1024

STORAGE_LIMITS = MappingProxyType(
    {
        LicenseTier.CORE: 0,
        LicenseTier.WRITER_PRO: 100 * _MEGABYTE,
        LicenseTier.TEAMS: 1024 * _MEGABYTE,
        LicenseTier.ENTERPRISE: None,
    }
)
"""Maximum bytes of content of an agent; None is no limit."""

LONG_TERM = "Agents.Memory.LongTerm"
SEMANTIC_RETRIEVAL = "Agents.Memory.SemanticRetrieval"
RETRIEVER = "Agents.Memory.Retriever"
CONTEXT_WINDOW_ADVANCED = "Agents.Memory.ContextWindow.Advanced"

_CORE, _WRITER_PRO, _TEAMS = LicenseTier.CORE, LicenseTier.WRITER_PRO, LicenseTier.TEAMS

AGENT_FEATURES = MappingProxyType(
    {
        "Agents.Memory.Working": _CORE,
        LONG_TERM: _WRITER_PRO,
        "Agents.Memory.ContextWindow": _CORE,
        CONTEXT_WINDOW_ADVANCED: _TEAMS,
        SEMANTIC_RETRIEVAL: _TEAMS,
        "Agents.Memory.Persistence": _WRITER_PRO,
        "Agents.Memory.Inspector": _WRITER_PRO,
        "Agents.Memory.Inspector.Edit": _TEAMS,
    }
)
"""The lowest tier of each feature of long-term memory and retrieval."""

RECALL_FEATURES = MappingProxyType(
    {
        "Agents.Memory.Model": _WRITER_PRO,
        "Agents.Memory.Storage": _WRITER_PRO,
        "Agents.Memory.Encoder": _WRITER_PRO,
        "Agents.Memory.Salience": _WRITER_PRO,
        RETRIEVER: _WRITER_PRO,
        "Agents.Memory.Fabric": _WRITER_PRO,
        "Agents.Memory.Capture": _WRITER_PRO,
        "Agents.Memory.Consolidator": _TEAMS,
        "Agents.Memory.Metrics": _TEAMS,
    }
)
"""The lowest tier of each feature of the recall modes."""

_FEATURES = {**AGENT_FEATURES, **RECALL_FEATURES}
_PREFIX = "FeatureFlags."


class Need(NamedTuple):
    """A feature that a call needs.

    Attributes:
        key: The feature's.
        message: What is said where it is lacking; `{tier}` is the lowest tier that includes it.
    """

    key: str
    message: str


STORING = Need(LONG_TERM, "Upgrade to {tier} for persistent memory")
SEARCHING_BY_MEANING = Need(SEMANTIC_RETRIEVAL, "Semantic search requires {tier} tier or higher")
RETRIEVING_BY_MEANING = Need(
    SEMANTIC_RETRIEVAL, "Upgrade to {tier} for intelligent memory retrieval"
)
RECALLING = Need(RETRIEVER, "Upgrade to {tier} for memory recall")


class Quota(NamedTuple):
    """How many bytes of content an agent may store.

    Attributes:
        limit: Bytes of content in UTF-8.
        tier: The name of the license tier that sets the limit; None where no tier does.
    """

    limit: int
    tier: str | None = None


class LicensePolicy(Protocol):
    """Decides what a host lets its user do; see `DocumentedLicenses` for one."""

    @property
    def quota(self) -> Quota | None:
        """The storage limit of the user's license; None is no limit."""
        ...

    def require(self, *needs: Need) -> None:
        """Raise LicenseRestrictionError if a call's needs are not licensed.

        Args:
            needs: The features that a call needs.
        """
        ...


class DocumentedLicenses(Record, frozen=True):
    """The documented features, messages and quotas of a license tier.

    Attributes:
        tier: The tier of the host's user.
    """

    tier: LicenseTier

    def __post_init__(self) -> None:
        """Check the tier."""
        if not isinstance(self.tier, LicenseTier):
            raise must_be("tier", "a LicenseTier", self.tier, show=quoted)

    @property
    def storage_limit(self) -> int | None:
        """Bytes of content that an agent may store; None is no limit."""
        return STORAGE_LIMITS[self.tier]

    @property
    def quota(self) -> Quota | None:
        """The limit with the name of its tier; None is no limit."""
        limit = self.storage_limit
        return None if limit is None else Quota(limit, self.tier.label)

    def has_feature(self, key: str) -> bool:
        """Return whether the tier includes a feature; the key's prefix may be left out.

        Args:
            key: Key of the feature, with or without the prefix `FeatureFlags.`.

        Raises:
            InvalidArgumentError: If there is no feature of this key.
        """
        return required_tier(key) <= self.tier

    def require(self, *needs: Need) -> None:
        """Refuse a call whose needs the tier does not include.

        Raises:
            LicenseRestrictionError: With the message of the need that only the highest tier
                includes, so that the tier it names allows the whole call.
        """
        lacking = [need for need in needs if not self.has_feature(need.key)]
        if lacking:
            need = max(lacking, key=lambda lacked: required_tier(lacked.key))
            tier = required_tier(need.key).label
            message = need.message.format(tier=tier)
            raise LicenseRestrictionError(message, need.key, tier, self.tier.label)


def checked_policy(given: object) -> LicensePolicy | None:
    """Return the license policy that a caller gave; None checks nothing.

    Raises:
        InvalidArgumentError: If it is no policy.
    """
    is_policy = callable(getattr(given, "require", None)) and isinstance(
        getattr(given, "quota", ""), Quota | None
    )
    if given is None or is_policy:
        return cast("LicensePolicy | None", given)
    raise InvalidArgumentError(
        "license must be a policy such as mnemic.compat.DocumentedLicenses(tier), with require() "
        f"and a mnemic.licensing.Quota or None as its quota, or None; got {quoted(given)}"
    )


def required_tier(key: str) -> LicenseTier:
    """Return the lowest tier that includes a feature; the key's prefix is optional.

    Raises:
        InvalidArgumentError: If there is no feature with this key.
    """
    tier = _FEATURES.get(key.removeprefix(_PREFIX)) if isinstance(key, str) else None
    if tier is None:
        raise InvalidArgumentError(
            f"feature key {quoted(key)} is unknown; known are {', '.join(sorted(_FEATURES))}"
        )
    return tier

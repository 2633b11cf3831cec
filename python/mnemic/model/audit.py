"""Records of an audit: what of an agent's memories may need attention."""

from datetime import timedelta
from typing import Final, Literal, NamedTuple, TypeAlias, get_args
from uuid import UUID

import msgspec

from mnemic.records import Record

AuditKind: TypeAlias = Literal[
    "exact_duplicates",
    "near_duplicates",
    "stale",
    "never_accessed",
    "sealed",
    "unembedded",
    "superseded",
    "expired",
    "oversized",
    "secrets",
    "unscanned",
]
"""What an audit counts; the names of the counts of `MemoryAudit`."""

AUDIT_KINDS: Final[tuple[AuditKind, ...]] = get_args(AuditKind)


class AuditFinding(Record, frozen=True, kw_only=True):
    """A memory that an audit found.

    Attributes:
        id: Its id.
        user_id: Its user; None for a memory without one.
        repeats: Of a duplicate, the id of the earlier memory that it repeats.
        similarity: Of a near duplicate, the cosine of both; None where their texts were compared.
        patterns: Of a secret, the names of the patterns that match, in the order they were given;
            a regular expression without a name is its own.
    """

    id: UUID
    user_id: str | None = None
    repeats: UUID | None = None
    similarity: float | None = None
    patterns: tuple[str, ...] = ()


class MemoryAudit(Record, frozen=True, kw_only=True):
    """What of the memories of a scope may need attention.

    A memory may count in several ways. Active memories are those that a search can find.

    Attributes:
        memories: Active memories.
        stored: Memories in any state, deleted ones that can be restored included.
        exact_duplicates: Active memories whose text an earlier one of the same user has, apart from
            case, width, white space and the punctuation around it.
        near_duplicates: Other active memories that are about the same as an earlier one of the same
            user; see `Memory.audit`.
        stale: Active memories that were neither made, changed nor accessed for a time.
        never_accessed: Active memories that were never accessed.
        sealed: Memories in any state that are sealed; without their key they are in no other count,
            and in no finding.
        unembedded: Active memories without a vector.
        superseded: Memories replaced by a newer one, neither deleted nor expired.
        expired: Memories past their `expires_at` that were not deleted before.
        oversized: Active memories with a long content.
        secrets: Memories in any state, stored in plain text, in which a pattern matches.
        unscanned: Memories with a text that took the patterns too long: it may hold secrets.
        secrets_by_pattern: The number of these memories by the name of each pattern that matches
            any.
        findings: The memories of each kind that has any, in the order they were stored, as many as
            requested; empty unless ids were requested.
        hint: A sentence about the cause of an audit of nothing, if one is likely; else None.
    """

    memories: int = 0
    stored: int = 0
    exact_duplicates: int = 0
    near_duplicates: int = 0
    stale: int = 0
    never_accessed: int = 0
    sealed: int = 0
    unembedded: int = 0
    superseded: int = 0
    expired: int = 0
    oversized: int = 0
    secrets: int = 0
    unscanned: int = 0
    secrets_by_pattern: dict[str, int] = msgspec.field(default_factory=dict)
    findings: dict[AuditKind, tuple[AuditFinding, ...]] = msgspec.field(default_factory=dict)
    hint: str | None = None

    def ids(self, kind: AuditKind) -> tuple[UUID, ...]:
        """Return the ids of the findings of a kind, in the order the memories were stored.

        Args:
            kind: Name of a count, such as "exact_duplicates".
        """
        return tuple(finding.id for finding in self.findings.get(kind, ()))


class AuditRequest(NamedTuple):
    """A checked request for an audit.

    Attributes:
        near: Smallest similarity of near duplicates, 0 to 1; None looks for none.
        stale_after: Time without change and access after which a memory is stale.
        max_bytes: Bytes of UTF-8 beyond which a content is oversized; None for those that the
            embedder does not see at once.
        limit: Maximum number of findings of each kind; 0 for counts alone.
        deadline: In seconds of `time.monotonic()`; None is no limit.
    """

    near: float | None
    stale_after: timedelta
    max_bytes: int | None
    limit: int
    deadline: float | None

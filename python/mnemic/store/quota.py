"""Quotas: the maximum of an agent's contents and entries and of a user's, deleted ones included."""

from typing import Final, Literal, NamedTuple

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota
from mnemic.model import Scope
from mnemic.protocols import UserLimit


class EntryLimits(NamedTuple):
    """Budgets of entries, and what becomes of a write that exceeds a quota or a budget.

    Attributes:
        entries: Maximum number of entries of the agent, in any state; None is no limit.
        user_entries: Maximum number of entries of each user, and of the entries without a user.
        evicts: Whether entries are deleted permanently for it, the least important first; see
            `Eviction`. Otherwise it is refused.
    """

    entries: int | None = None
    user_entries: UserLimit | None = None
    evicts: bool = False


NO_ENTRY_LIMITS: Final = EntryLimits()
"""No budgets, and nothing is deleted."""


class Quotas(NamedTuple):
    """The quotas of a write.

    Attributes:
        agent: Maximum bytes of content of the agent; None is no limit.
        user: Maximum bytes of content of each user, and of the entries without a user.
        entry_limits: Budgets of entries, and whether a write may delete others.
    """

    agent: Quota | None = None
    user: UserLimit | None = None
    entry_limits: EntryLimits = NO_ENTRY_LIMITS


NO_QUOTAS: Final = Quotas()


def limit_of(limit: UserLimit | None, user_id: str | None) -> int | None:
    """Return the limit of a user; None is no limit."""
    return limit(user_id) if callable(limit) else limit


def check_quota(quota: Quota | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents do not fit; less always fits.

    Args:
        quota: The limit; None is none.
        used: Bytes used before.
        size: Bytes to be added.
    """
    if quota is not None and size > 0 and used + size > quota.limit:
        raise StorageQuotaExceededError(used, quota.limit, quota.tier, added=size)


def check_entries(limit: int, scope: Scope, stored: int, number: int) -> None:
    """Raise StorageQuotaExceededError if further entries do not fit.

    Args:
        limit: Maximum number of entries.
        scope: Whose: the agent's or a user's.
        stored: Number of entries before.
        number: Number of entries to be added.
    """
    if stored + number > limit:
        quota: Literal["agent", "user"] = "agent" if scope.all_users else "user"
        raise StorageQuotaExceededError(
            stored, limit, None, quota, scope.user_id, added=number, unit="entries"
        )


def check_user_quota(quota: UserLimit | None, user_id: str | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents of a user do not fit.

    Args:
        quota: Maximum bytes; None is no limit.
        user_id: The user; None is the entries without a user.
        used: Bytes that the user's contents took before.
        size: Bytes to be added.
    """
    limit = limit_of(quota, user_id) if size > 0 else None
    if limit is not None and used + size > limit:
        raise StorageQuotaExceededError(used, limit, quota="user", user_id=user_id, added=size)

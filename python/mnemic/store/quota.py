"""Quotas: the maximum bytes of an agent's contents and of a user's, deleted entries included."""

from typing import Final, NamedTuple

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota


class Quotas(NamedTuple):
    """The quotas of a write.

    Attributes:
        agent: Maximum bytes of content of the agent; None is no limit.
        user: Maximum bytes of content of each user, and of the entries without a user.
    """

    agent: Quota | None = None
    user: int | None = None


NO_QUOTAS: Final = Quotas()


def check_quota(quota: Quota | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents do not fit; less always fits.

    Args:
        quota: The limit; None is none.
        used: Bytes used before.
        size: Bytes to be added.
    """
    if quota is not None and size > 0 and used + size > quota.limit:
        raise StorageQuotaExceededError(used, quota.limit, quota.tier)


def check_user_quota(limit: int | None, user_id: str | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents of a user do not fit.

    Args:
        limit: Maximum bytes; None is no limit.
        user_id: The user; None is the entries without a user.
        used: Bytes that the user's contents took before.
        size: Bytes to be added.
    """
    if limit is not None and size > 0 and used + size > limit:
        raise StorageQuotaExceededError(used, limit, quota="user", user_id=user_id)

"""The quota: the maximum bytes of an agent's contents, deleted entries included."""

from mnemic.errors import StorageQuotaExceededError
from mnemic.licensing import Quota


def check_quota(quota: Quota | None, used: int, size: int) -> None:
    """Raise StorageQuotaExceededError if further contents do not fit; less always fits.

    Args:
        quota: The limit; None is none.
        used: Bytes used before.
        size: Bytes to be added.
    """
    if quota is not None and size > 0 and used + size > quota.limit:
        raise StorageQuotaExceededError(used, quota.limit, quota.tier)

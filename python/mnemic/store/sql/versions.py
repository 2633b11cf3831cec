"""Versions of the tables."""

from mnemic.errors import InvalidArgumentError
from mnemic.reporting.description import quoted


def checked_version(version: int | None, newest: int) -> int:
    """Return a version of the tables, the newest for None.

    Raises:
        InvalidArgumentError: If there is no such version.
    """
    if version is None:
        return newest
    if type(version) is not int or not 0 <= version <= newest:
        raise InvalidArgumentError(
            f"version must be None or a whole number from 0 to {newest}, the newest; "
            f"got {quoted(str(version))}"
        )
    return version

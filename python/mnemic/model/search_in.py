"""Where searches run."""

from typing import Final, Literal, TypeAlias, cast, get_args

from mnemic.errors import InvalidArgumentError
from mnemic.reporting.description import quoted

SearchIn: TypeAlias = Literal["auto", "memory", "database"]
"""In the index in memory, in the database, or wherever it costs less."""
_SEARCH_IN: Final[tuple[str, ...]] = get_args(SearchIn)


def checked_search_in(search_in: object) -> SearchIn:
    """Return a valid place of searches."""
    if search_in not in _SEARCH_IN:
        raise InvalidArgumentError(
            f"search_in must be one of {', '.join(_SEARCH_IN)}, got {quoted(search_in)}"
        )
    return cast("SearchIn", search_in)

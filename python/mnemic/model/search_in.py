"""Where searches run."""

from typing import Final, Literal, TypeAlias, get_args

SearchIn: TypeAlias = Literal["auto", "memory", "database"]
"""In the index in memory, in the database, or wherever it costs less."""
SEARCH_INS: Final[tuple[str, ...]] = get_args(SearchIn)

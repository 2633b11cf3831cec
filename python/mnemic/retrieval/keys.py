"""Keys of cached results: everything that determines them."""

from collections.abc import Hashable
from operator import attrgetter
from typing import NamedTuple

from mnemic.model import Expression, MemoryQuery, MemorySortOrder, Scope
from mnemic.model.canonical_filter import canonical
from mnemic.model.filter import references
from mnemic.reporting.description import hidden

_BY_ACCESSES = (MemorySortOrder.ACCESSED_DESCENDING, MemorySortOrder.ACCESS_COUNT_DESCENDING)


class UserScope(NamedTuple):
    """The agent and user of a cached result."""

    agent_id: str
    user_id: str | None
    all_users: bool


class Key(NamedTuple):
    """Everything that determines a result.

    Attributes:
        scope: Agent and user.
        revision: Number of the last change of their memories.
        question: Everything else. Equal questions have equal results.
    """

    scope: UserScope
    revision: int
    question: Hashable

    def __repr__(self) -> str:
        return f"Key({self.scope!r}, {self.revision}, {hidden(self.question)})"


def key_of(scope: Scope, query: MemoryQuery, expression: Expression, revision: int) -> Key:
    """Return the key of a query's result, given its parsed filter."""
    question = (
        scope.project_id,
        scope.session_id,
        canonical(expression),
        frozenset(query.exclude_ids),
        *_deciding(query),
        query.offset,
        query.order,
        query.includes_forgotten,
    )
    return Key(UserScope(scope.agent_id, scope.user_id, scope.all_users), revision, question)


def depends_on_accesses(query: MemoryQuery, expression: Expression) -> bool:
    """Return whether accesses determine the memories of a result, or their order.

    Accesses are not changes and in no revision. If they only weigh in the score, a result may be as
    old as its time to live.
    """
    return query.order in _BY_ACCESSES or references(expression, "access_count", "last_accessed_at")


_deciding = attrgetter(
    *(
        name
        for name in MemoryQuery.__struct_fields__
        if name not in ("filters", "exclude_ids", "use_cache", "cache_ttl", "sort_by")
    )
)
"""Returns the fields of a query that determine its result by themselves."""

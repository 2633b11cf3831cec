"""What an answer is kept under: all that decides it."""

from collections.abc import Hashable, Iterator
from operator import attrgetter
from typing import NamedTuple

from mnemic.model import (
    All,
    AnyOf,
    Expression,
    MemoryQuery,
    MemorySortOrder,
    Not,
    Scope,
    Test,
    references,
)

_BY_ACCESSES = (MemorySortOrder.ACCESSED_DESCENDING, MemorySortOrder.ACCESS_COUNT_DESCENDING)


class UserScope(NamedTuple):
    """Whose memories answers are made of."""

    agent_id: str
    user_id: str | None
    all_users: bool


class Key(NamedTuple):
    """All that decides an answer.

    Attributes:
        wall: Whose memories it is made of.
        revision: The number of the last change of these.
        question: Everything else. Equal questions have equal answers.
    """

    scope: UserScope
    revision: int
    question: Hashable


def key_of(scope: Scope, query: MemoryQuery, expression: Expression, revision: int) -> Key:
    """Return the key of a query's answer, given the tree of its filter."""
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
    """Return whether accesses decide which memories an answer has, or their order.

    Accesses are no changes and in no revision. Where they only weigh in the score, an answer may be
    as old as its time to live.
    """
    return query.order in _BY_ACCESSES or references(expression, "access_count", "last_accessed_at")


def canonical(expression: Expression) -> str:
    """Return a text that is equal for filters whose parts differ in order or nesting alone.

    Values of different types stay apart: True, 1 and 1.0 are equal to Python and not to a filter.
    """
    if isinstance(expression, Test):
        return f"{expression.field.name}{expression.field.path} {_shown(expression)}"
    if isinstance(expression, Not):
        return f"not({canonical(expression.part)})"
    kind = type(expression)
    parts = sorted(set(_parts(expression, kind)))
    return parts[0] if len(parts) == 1 else f"{kind.__name__}({', '.join(parts)})"


def _shown(test: Test) -> str:
    value = test.value
    shown = sorted({repr(item) for item in value}) if isinstance(value, tuple) else repr(value)
    return f"{test.op.value} {shown}"


def _parts(joined: All | AnyOf, kind: type[All | AnyOf]) -> Iterator[str]:
    """Give the parts, and in place of a part of the same kind the parts of that."""
    for part in joined.parts:
        if isinstance(part, kind):
            yield from _parts(part, kind)
        else:
            yield canonical(part)


_deciding = attrgetter(
    *(
        name
        for name in MemoryQuery.__struct_fields__
        if name not in ("filters", "exclude_ids", "use_cache", "cache_ttl", "sort_by")
    )
)
"""Gives the fields that decide an answer by themselves."""

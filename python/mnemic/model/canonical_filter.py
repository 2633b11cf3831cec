"""The canonical text of a filter, for keys of caches."""

from collections.abc import Iterator

from mnemic.model.filter import All, AnyOf, Expression, Not, Op, Test


def canonical(expression: Expression) -> str:
    """Return a text that is equal for filters whose parts differ in order or nesting alone.

    Values of different types differ: True, 1 and 1.0 are equal in Python but not in a filter.
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
    if isinstance(value, tuple) and test.op in _OF_SETS:
        return f"{test.op.value} {sorted({repr(item) for item in value})}"
    return f"{test.op.value} {value!r}"


_OF_SETS = frozenset({Op.IN, Op.NIN, Op.ANY, Op.ALL})
"""Operators for which the order of their values has no meaning; that of an equal list has."""


def _parts(joined: All | AnyOf, kind: type[All | AnyOf]) -> Iterator[str]:
    """Yield the parts, with parts of the same kind replaced by their parts."""
    for part in joined.parts:
        if isinstance(part, kind):
            yield from _parts(part, kind)
        else:
            yield canonical(part)

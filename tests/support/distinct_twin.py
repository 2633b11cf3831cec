"""Distinct values by hand: what the index and every store are compared with."""

from collections import Counter

from mnemic.records import NumberedEnum


def distinct(entries, field, prefix=None):
    """Return key and number of entries of each value of a field, in the order of the values.

    Args:
        entries: The entries.
        field: A name, or a path that begins with "metadata".
        prefix: Only texts that begin with it.
    """
    counted = Counter(
        frozen
        for entry in entries
        for frozen in {key(value) for value in values_of(entry, field) if begins(value, prefix)}
    )
    return sorted(counted.items())


def values_of(entry, field):
    if field == "tags":
        return entry.tags
    if isinstance(field, str):
        value = getattr(entry, field)
    else:
        value = entry.metadata
        for name in field[1:]:
            value = value.get(name) if isinstance(value, dict) else None
    return [] if value is None else [value]


def begins(value, prefix):
    return prefix is None or (isinstance(value, str) and value.startswith(prefix))


def key(value):
    """Return a key that orders values and is equal for equal ones; True is not 1."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int | float | NumberedEnum):
        return (2, value)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, list | tuple):
        return (4, tuple(map(key, value)))
    return (5, tuple(sorted((name, key(inner)) for name, inner in value.items())))


def keys_of(found):
    """Return `DistinctValue` records as the twin has them."""
    return [(key(one.value), one.count) for one in found]

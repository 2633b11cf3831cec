"""Units of measurement: their dimensions and factors, and the symbols of currencies."""

from decimal import Decimal

from mnemic.contradictions import vocabulary
from mnemic.contradictions.words import stem


def _units() -> dict[str, tuple[str, Decimal]]:
    units: dict[str, tuple[str, Decimal]] = {}
    for line in vocabulary.UNITS.strip().splitlines():
        head, names = line.split(": ")
        dimension, factor = head.split()
        for name in names.split(", "):
            units[name] = dimension, Decimal(factor)
            if len(name) > 3:  # noqa: PLR2004 - "has" is no plural of ha
                units[name + "s"] = dimension, Decimal(factor)
            units[" ".join(stem(part) for part in name.split())] = dimension, Decimal(factor)
    return units


UNITS = _units()
SYMBOLS = frozenset("€$£¥")

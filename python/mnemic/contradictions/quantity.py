"""A quantity of a text, and whether two of them can be the same."""

from decimal import Context, Decimal

from mnemic.contradictions import vocabulary
from mnemic.contradictions.lexicon import stem

EXACT = Context(prec=60, traps=[])
"""Decimal context of quantities, independent of the caller's own."""
_HEDGED = Decimal("0.15")  # how far "about 30" reaches
_TINY = Decimal("1e-9")
_INFINITE = Decimal("Infinity")
_ROUNDED = Decimal("0.005")  # conversions are rounded


def _units() -> dict[str, tuple[str, Decimal]]:
    units: dict[str, tuple[str, Decimal]] = {}
    for unit, names in vocabulary.entries("units"):
        dimension, factor = unit.split()
        for name in names:
            plural = name + "s" if len(name) > 3 else name  # noqa: PLR2004 - "has" is no plural
            base = " ".join(stem(part) for part in name.split())
            units |= dict.fromkeys((name, plural, base), (dimension, Decimal(factor)))
    return units


UNITS = _units()
"""Dimension of each unit of measurement, and its factor to the base unit."""
SYMBOLS = frozenset("€$£¥")
"""Symbols of currencies, which stand before the number."""


class Quantity:
    """A number or a moment in a text.

    Attributes:
        kind: Kind of quantity, such as "length", "count", "clock", "weekday", "date".
        low: Lowest value, in the unit of its kind (metres, grams, seconds, minutes of the day).
        high: Highest value; equal to `low` unless a range was given.
        bound: "upper" or "lower" if the text names a limit, else empty.
        is_hedged: Whether the text has "about".
        is_label: Whether the number names a thing: room 12.
        nouns: Keys of the counted or labelled things.
        per: The dimension that it is a rate of, or empty.
        fields: Year, month and day of a date, None where not named.
        start: Position of its first token.
        end: Position after its last token.
        text: As the text has it.
    """

    __slots__ = (
        "bound", "end", "fields", "high", "is_hedged", "is_label", "kind", "low", "nouns", "per",
        "start", "text",
    )  # fmt: skip

    def __init__(
        self, kind: str, low: Decimal | int, high: Decimal | int, start: int, end: int
    ) -> None:
        self.kind = kind
        self.low = Decimal(low)
        self.high = Decimal(high)
        self.start = start
        self.end = end
        self.bound = ""
        self.is_hedged = False
        self.is_label = False
        self.nouns: frozenset[str] = frozenset()
        self.per = ""
        self.fields: tuple[int | None, int | None, int | None] = (None, None, None)
        self.text = ""


def agree(one: Quantity, other: Quantity) -> bool:
    """Return whether two quantities of one kind can be the same."""
    if one.kind == "date":
        return _dates_agree(one, other)
    if one.kind == "clock":
        return not {one.low, one.high}.isdisjoint((other.low, other.high))
    if one.kind in {"weekday", "rank", "version"}:
        return one.low == other.low
    slack = _HEDGED if one.is_hedged or other.is_hedged else _ROUNDED
    if one.kind == "count" and slack == _ROUNDED:
        slack = Decimal(0)
    return _measures_agree(one, other, slack)


def _measures_agree(one: Quantity, other: Quantity, slack: Decimal) -> bool:
    near = abs(one.low - other.low) <= slack * max(abs(one.low), abs(other.low)) + _TINY
    if one.bound == other.bound:
        if one.bound:
            return near
        return near or (one.low <= other.high * (1 + slack) and other.low <= one.high * (1 + slack))
    slack = _ROUNDED
    low_end, high_end = _span(one)
    other_low, other_high = _span(other)
    return low_end <= other_high * (1 + slack) and other_low <= high_end * (1 + slack)


def _span(quantity: Quantity) -> tuple[Decimal, Decimal]:
    if quantity.bound == "upper":
        return -_INFINITE, quantity.high
    if quantity.bound == "lower":
        return quantity.low, _INFINITE
    return quantity.low, quantity.high


def _dates_agree(one: Quantity, other: Quantity) -> bool:
    (year, month, day), (other_year, other_month, other_day) = one.fields, other.fields
    if year is not None and other_year is not None and year != other_year:
        return False
    if month is not None and other_month is not None and month != other_month:
        return False
    if day is None or other_day is None:
        return True
    return (one.low <= other.high and other.low <= one.high) or day == other_day

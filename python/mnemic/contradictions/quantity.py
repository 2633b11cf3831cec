"""Quantities, when two of them agree, and the numerals that they are read from."""

from decimal import Context, Decimal

import msgspec

from mnemic.contradictions import vocabulary
from mnemic.contradictions.tokens import Token
from mnemic.contradictions.vocabulary import stem

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


class Quantity(msgspec.Struct, eq=False, gc=False):
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

    kind: str
    low: Decimal
    high: Decimal
    start: int
    end: int
    bound: str = ""
    is_hedged: bool = False
    is_label: bool = False
    nouns: frozenset[str] = frozenset()
    per: str = ""
    fields: tuple[int | None, int | None, int | None] = (None, None, None)
    text: str = ""


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


MAX_DIGITS = 30
"""A number of more digits is ignored."""
_LARGEST = Decimal(10) ** MAX_DIGITS

_SMALL = vocabulary.LISTS["numbers"]
_TENS = vocabulary.listed("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = vocabulary.LISTS["ordinals"]
VALUES = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * (place + 2) for place, word in enumerate(_TENS)
}
MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "k": 1000}
RANKS = {word: value for value, word in enumerate(_ORDINALS)}
FRACTIONS = {
    "half": Decimal("0.5"),
    "third": Decimal(1) / 3,
    "quarter": Decimal("0.25"),
    "fifth": Decimal("0.2"),
    "tenth": Decimal("0.1"),
}
DASH = "\u2013"
TIMES = {"once": 1, "twice": 2, "thrice": 3}


class NumeralReader:
    """Reads the value of a numeral at a position.

    Attributes:
        tokens: The tokens.
        texts: Their texts.
        size: Their number.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.texts = [token.text for token in tokens]
        self.size = len(tokens)

    def at(self, position: int) -> str:
        """Return the text at a position; empty outside the list."""
        return self.texts[position] if 0 <= position < self.size else ""

    def _value(self, position: int) -> tuple[Decimal | None, int]:
        """Return the value of a numeral and the position after it: 1,250, a dozen, thirty."""
        text = self.at(position)
        token = self.tokens[position]
        if token.kind == "number":
            number = decimal(text)
            if number is None:
                return None, position
            value, end = number, position + 1
        elif text in VALUES:
            value, end = Decimal(VALUES[text]), position + 1
            following = self.at(end + (self.at(end) == "-"))
            if text in _TENS and 0 < VALUES.get(following, 0) < 10:  # noqa: PLR2004 - thirty-four
                end += 1 + (self.at(end) == "-")
                value += VALUES[following]
        elif text in {"a", "an"}:
            return self._after_article(position)
        elif text in {"half", "quarter"}:
            return self._fraction(Decimal(1), position)
        elif text in MULTIPLES and text != "k":
            value, end = Decimal(1), position
        else:
            return None, position
        return self._enlarged(value, end)

    def _enlarged(self, value: Decimal, end: int) -> tuple[Decimal, int]:
        while self.at(end) in MULTIPLES:
            value = min(value * MULTIPLES[self.at(end)], _LARGEST)
            end += 1
            if self.at(end) == "and" and self.at(end + 1) in VALUES:
                end += 1
            if self.at(end) in VALUES and value >= 100:  # noqa: PLR2004 - two hundred and five
                value += VALUES[self.at(end)]
                end += 1
        following = self.at(end).removesuffix("s")
        if following in FRACTIONS:
            return self._fraction(value, end)
        if self.at(end) == "and" and self.at(end + 1) == "a" and self.at(end + 2) == "half":
            return value + FRACTIONS["half"], end + 3
        return value, end

    def _after_article(self, position: int) -> tuple[Decimal | None, int]:
        following = self.at(position + 1)
        if following in MULTIPLES and following != "k":
            return self._enlarged(Decimal(1), position + 1)
        if following == "dozen":
            return Decimal(12), position + 2
        if following in {"half", "quarter", "third"} and self.at(position + 2) not in {
            "past",
            "to",
        }:
            return self._fraction(Decimal(1), position + 1)
        if following in UNITS and not self._is_rate(position) and UNITS[following][0] == "duration":
            return Decimal(1), position + 1
        return None, position

    def _is_rate(self, position: int) -> bool:
        """Return whether an article means "per": 3 euros a week, twice a day."""
        before = self.tokens[position - 1] if position else None
        return before is not None and (
            before.text in UNITS
            or before.kind in {"number", "unit"}
            or before.text in TIMES
            or before.text in VALUES
            or before.text in {"time", "times"}
            or not before.lexeme.is_stop
        )

    def _fraction(self, value: Decimal, position: int) -> tuple[Decimal, int]:
        value *= FRACTIONS[self.at(position).removesuffix("s")]
        end = position + 1
        if self.at(end) == "of" and self.at(end + 1) in {"a", "an"}:
            return value, end + 2
        if self.at(end) in {"a", "an"}:
            return value, end + 1
        return value, end


def integer(text: str) -> int | None:
    """Return the value of decimal digits; None if they are none, or too many."""
    return int(text) if len(text) <= MAX_DIGITS and text.isdecimal() else None


def decimal(text: str) -> Decimal | None:
    """Return the value of a number with commas; None if it has too many digits."""
    digits = text.replace(",", "")
    return Decimal(digits) if len(digits) <= MAX_DIGITS else None


def is_number(text: str) -> bool:
    """Return whether a text is a number, with or without commas."""
    return text.replace(",", "").replace(".", "", 1).isdecimal()

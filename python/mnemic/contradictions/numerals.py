"""Numerals in a list of tokens: digits, number words, fractions, multiples."""

from decimal import Decimal

from mnemic.contradictions import vocabulary
from mnemic.contradictions.quantity import UNITS
from mnemic.contradictions.tokens import Token

MAX_DIGITS = 30
"""A number of more digits is ignored."""
_LARGEST = Decimal(10) ** MAX_DIGITS

_SMALL = vocabulary.listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_TENS = vocabulary.listed("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = vocabulary.listed(
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
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

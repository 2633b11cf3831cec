"""Quantities of a text: numbers with their units and what they count, dates and times."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import islice, zip_longest

from mnemic.contradictions import vocabulary
from mnemic.contradictions.measures import MeasureReader
from mnemic.contradictions.moments import HOUR, MONTHS, NOON, RECENT_YEAR, WEEKDAYS, MomentReader
from mnemic.contradictions.numerals import (
    FRACTIONS,
    MAX_DIGITS,
    MULTIPLES,
    RANKS,
    TIMES,
    VALUES,
    integer,
)
from mnemic.contradictions.quantity import SYMBOLS, UNITS, Quantity
from mnemic.contradictions.tokens import Token

MAX_QUANTITIES = 64
"""Maximum number of quantities of one text; later ones are ignored."""
_MAX_VERSION_PARTS = 8

_BEFORE_YEARS = vocabulary.words(
    "in since until till of by from before after year for and to end early late"
)
_STARTS = frozenset(
    {"a", "an", *NOON, *VALUES, *MULTIPLES, *RANKS, *FRACTIONS, *TIMES, *MONTHS, *WEEKDAYS}
) | {f"{name}s" for name in WEEKDAYS}


class QuantityReader(MomentReader, MeasureReader):
    """Reads the tokens once, from left to right."""

    def read(self) -> Iterator[Quantity]:
        """Yield the quantities in order."""
        position = 0
        while position < self.size:
            if self.tokens[position].kind == "word" and self.texts[position] not in _STARTS:
                position += 1
                continue
            found = self._moment(position) or self._number(position)
            if found is None:
                position += 1
                continue
            found.text = " ".join(self.texts[found.start : found.end])
            yield found
            position = max(found.end, position + 1)

    def _number(self, position: int) -> Quantity | None:
        """Return what a number measures, counts or names."""
        token = self.tokens[position]
        text = token.text
        if token.kind == "version":
            return self._version(position)
        if token.kind == "ordinal" or (text in RANKS and position):
            return self._rank(position)
        if text in TIMES:
            return self._measured(Decimal(TIMES[text]), position, position + 1, "times")
        return self._plain_number(position)

    def _plain_number(self, position: int) -> Quantity | None:
        value, end = self._value(position)
        if value is None:
            return None
        if self._is_clock(position, end, value):
            return self._clock(int(value * HOUR), position, end)
        if self._is_year(position, end):
            return self._date(int(value), None, None, position, end)
        return self._with_range(value, position, end)

    def _version(self, position: int) -> Quantity | None:
        parts = self.at(position).removeprefix("v").split(".")[:_MAX_VERSION_PARTS]
        if any(len(part) > MAX_DIGITS for part in parts):
            return None
        value = sum(Decimal(part).scaleb(-3 * place) for place, part in enumerate(parts))
        found = Quantity("version", value, value, position, position + 1)
        found.nouns = frozenset({self.tokens[position - 1].lexeme.key}) if position else frozenset()
        return found

    def _rank(self, position: int) -> Quantity | None:
        text = self.at(position)
        is_spelled = text in RANKS
        rank = RANKS[text] if is_spelled else integer(text.rstrip("stndrh"))
        if rank is None:
            return None
        found = Quantity("rank", rank, rank, position, position + 1)
        found.nouns = self._nouns_after(position + 1)
        if not found.nouns and not is_spelled and self.at(position - 1) in {"the", "on"}:
            found.kind, found.fields = "date", (None, None, rank)
        return found

    def _is_year(self, position: int, end: int) -> bool:
        if end != position + 1 or self._year(position) is None:
            return False
        if self.at(position - 1) in SYMBOLS or self.at(end) in UNITS or self._labels(position):
            return False
        if self.at(position - 1) in _BEFORE_YEARS:
            return True
        is_last = end >= self.size or self.tokens[end].kind == "mark"
        return is_last and int(self.at(position)) >= RECENT_YEAR


def quantities_of(tokens: list[Token]) -> list[Quantity]:
    """Return the first `MAX_QUANTITIES` numbers, dates and times of a text in order."""
    found = list(islice(QuantityReader(tokens).read(), MAX_QUANTITIES))
    # A number that turned out to be the day of a month is read twice: only the date counts.
    return [
        quantity
        for quantity, following in zip_longest(found, found[1:])
        if following is None or following.start >= quantity.end
    ]

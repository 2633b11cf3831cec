"""Quantities of a text: numbers with units, what they count, and their limits; dates and times."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import islice, zip_longest

from mnemic.contradictions import vocabulary
from mnemic.contradictions.moments import HOUR, MONTHS, NOON, RECENT_YEAR, WEEKDAYS, MomentReader
from mnemic.contradictions.quantity import (
    DASH,
    FRACTIONS,
    MAX_DIGITS,
    MULTIPLES,
    RANKS,
    SYMBOLS,
    TIMES,
    UNITS,
    VALUES,
    Quantity,
    decimal,
    integer,
    is_number,
)
from mnemic.contradictions.tokens import Token
from mnemic.contradictions.vocabulary import stem

_HEDGES = vocabulary.PARTS["hedges"]
_UPPER = frozenset({"at most", "up", "under", "below", "less", "fewer", "maximum", "within", "max"})
_LOWER = vocabulary.PARTS["lower limits"]
_LIMIT_WORDS = vocabulary.words("than to of a of at the is mark")
_PER_WORDS = frozenset({"per", "a", "an", "each", "every", "/"})
_AGE_VERBS = frozenset({"turn", "turned", "turns", "aged", "age"})
_AGE_WORDS = frozenset({"is", "am", "m"})
_OLDEST = 120
_YEAR = Decimal(31557600)

MAX_QUANTITIES = 64
"""Maximum number of quantities of one text; later ones are ignored."""
_MAX_VERSION_PARTS = 8

_BEFORE_YEARS = vocabulary.PARTS["before years"]
_STARTS = frozenset(
    {"a", "an", *NOON, *VALUES, *MULTIPLES, *RANKS, *FRACTIONS, *TIMES, *MONTHS, *WEEKDAYS}
) | {f"{name}s" for name in WEEKDAYS}


class QuantityReader(MomentReader):
    """Reads tokens once, from left to right: moments, and what numbers measure, count or name."""

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
        value = sum(
            (Decimal(part).scaleb(-3 * place) for place, part in enumerate(parts)), Decimal()
        )
        found = Quantity("version", value, value, position, position + 1)
        found.nouns = frozenset({self.tokens[position - 1].lexeme.key}) if position else frozenset()
        return found

    def _rank(self, position: int) -> Quantity | None:
        text = self.at(position)
        is_spelled = text in RANKS
        rank = RANKS[text] if is_spelled else integer(text.rstrip("stndrh"))
        if rank is None:
            return None
        at = Decimal(rank)
        found = Quantity("rank", at, at, position, position + 1)
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

    def _with_range(self, value: Decimal, position: int, end: int) -> Quantity:
        start = position
        second = None
        joiner = self.at(end)
        before = self.at(position - 1)
        if joiner in {"-", DASH, "to"} or (joiner == "and" and before == "between"):
            second, second_end = self._value(end + 1) if end + 1 < self.size else (None, end)
            if second is not None and second >= value:
                end = second_end
            else:
                second = None
        found = self._measured(value, start, end, "")
        if second is not None:
            ratio = found.high / value if value else Decimal(1)
            found.high = second * ratio
        return found

    def _measured(self, value: Decimal, start: int, end: int, kind: str) -> Quantity:
        """Return a quantity with its unit, or with what it counts."""
        found = Quantity(kind or "count", value, value, start, end)
        end += self.at(end) == "-"
        factor = Decimal(1)
        symbol = self.at(start - 1)
        if symbol in SYMBOLS:
            found.kind, factor = UNITS[symbol]
            found.start -= 1
        elif not kind:
            name, size = self._unit(end)
            if size:
                found.kind, factor = UNITS[name]
                end += size
            else:
                self._count(found, end)
        if found.kind == "duration" and self.at(end) == "old":
            found.kind = "age"
            factor /= _YEAR
        if found.kind == "temperature":
            self._temperature(found, factor, end)
        else:
            found.low = found.high = value * factor
        found.end = max(end, found.end)
        self._owner(found, symbol)
        if found.kind == "duration" and not found.per:
            self._add_smaller(found)
        self._per(found)
        self._limits(found)
        return found

    def _owner(self, found: Quantity, symbol: str) -> None:
        """Note what a measure belongs to, and whether a count is a share or a part."""
        before = self.at(found.start - 1)
        if before in _AGE_VERBS and found.kind in {"count", "age"}:
            found.kind = "age"
            found.nouns = frozenset()
        elif found.kind != "count":
            if before == "of" and symbol not in SYMBOLS:
                found.nouns = self._noun_before(found.start - 2)
        elif self.at(found.start) in {"half", "a"} and found.low < 1:
            found.kind = "share"
        elif self.at(found.end) == "of" and self.at(found.end + 1) in {"us", "them", "you"}:
            found.nouns = frozenset({stem("people")})
        elif self.at(found.end) == "of" and not found.nouns:
            found.kind = "part"  # two of the customers

    def _unit(self, position: int) -> tuple[str, int]:
        pair = f"{self.at(position)} {self.at(position + 1)}"
        if pair in UNITS:
            return pair, 2
        text = self.at(position)
        if text in UNITS:
            return text, 1
        return "", 0

    def _temperature(self, found: Quantity, factor: Decimal, end: int) -> None:
        if self.at(end) in {"f", "fahrenheit"} or self.at(end - 1) in {"fahrenheit", "°f"}:
            found.low = (found.low - 32) / Decimal("1.8")
        elif factor == 3:  # noqa: PLR2004 - the third scale of the table
            found.low -= Decimal("273.15")
        found.high = found.low

    def _add_smaller(self, found: Quantity) -> None:
        """Add up what is named in two units: an hour and 30 minutes."""
        position = found.end + (self.at(found.end) == "and")
        if position >= self.size or self.tokens[position].kind != "number":
            return
        name, size = self._unit(position + 1)
        if not size or UNITS[name][0] != "duration" or UNITS[name][1] >= found.low:
            return
        smaller = decimal(self.at(position))
        if smaller is None:
            return
        found.low += smaller * UNITS[name][1]
        found.high = found.low
        found.end = position + 1 + size

    def _count(self, found: Quantity, end: int) -> None:
        label = self._labels(found.start)
        if label:
            found.is_label = True
            found.nouns = frozenset({label})
            return
        if self.at(end) in {"time", "times"}:
            found.kind = "times"
            found.end = end + 1
            return
        found.nouns = self._nouns_after(end)
        is_ended = end >= self.size or self.tokens[end].kind == "mark"
        is_person = self.at(found.start - 2) in {"i", "he", "she"} or (
            found.start > 1 and self.tokens[found.start - 2].is_capital
        )
        if (
            is_ended
            and is_person
            and self.at(found.start - 1) in _AGE_WORDS
            and 1 <= found.low < _OLDEST
        ):
            found.kind = "age"

    def _noun_before(self, position: int) -> frozenset[str]:
        """Return the noun that a measure belongs to: a break of 30 minutes."""
        if position < 0 or self.tokens[position].kind != "word":
            return frozenset()
        token = self.tokens[position]
        if token.lexeme.is_stop or token.text in vocabulary.MEASURE_NOUNS:
            return frozenset()
        return frozenset({token.lexeme.key})

    def _labels(self, position: int) -> str:
        """Return the noun that a number follows and names: room 12, Python 3."""
        if position == 0 or not (
            self.tokens[position].kind == "number" or self._ends_name(position)
        ):
            return ""
        before = self.tokens[position - 1]
        if before.kind != "word" or before.lexeme.is_stop or before.lexeme.is_first_person:
            return ""
        if before.text in _HEDGES or before.text in _UPPER or before.text in _LOWER:
            return ""
        if before.lexeme.is_verb and not before.is_capital:
            return ""
        return before.lexeme.key

    def _ends_name(self, position: int) -> bool:
        """Return whether a spelled number has no noun after it: chapter four of the manual."""
        following = self.tokens[position + 1] if position + 1 < self.size else None
        return self.at(position) in VALUES and (
            following is None or following.kind == "mark" or following.lexeme.is_stop
        )

    def _nouns_after(self, position: int) -> frozenset[str]:
        nouns: set[str] = set()
        for place in range(position, min(position + 3, self.size)):
            token = self.tokens[place]
            if token.kind != "word" or (
                token.lexeme.is_stop and token.text not in {"times", "time"}
            ):
                break
            if token.lexeme.is_verb and nouns:
                break
            nouns.add(token.lexeme.key)
        return frozenset(nouns)

    def _per(self, found: Quantity) -> None:
        """Divide by what a rate is of: 120 euros a year."""
        position = found.end
        if found.kind == "count":
            position += len(found.nouns)
        if self.at(position) in _PER_WORDS:
            name = self.at(position + 1)
            if is_number(name):  # 7 litres per 100 km
                name = self.at(position + 2)
            unit = UNITS.get(name)
            if unit is not None:
                found.per = unit[0]
                found.low /= unit[1]
                found.high /= unit[1]

    def _limits(self, found: Quantity) -> None:
        position = found.start - 1
        for _ in range(3):
            text = self.at(position)
            if text in _HEDGES:
                found.is_hedged = True
                if text not in {"little", "just"}:
                    break
            elif text in _UPPER or text in _LOWER:
                is_upper = text in _UPPER
                if self.at(position - 1) in {"no", "not"}:
                    is_upper = not is_upper
                found.bound = "upper" if is_upper else "lower"
            elif text not in _LIMIT_WORDS:
                break
            position -= 1


def quantities_of(tokens: list[Token]) -> list[Quantity]:
    """Return the first `MAX_QUANTITIES` numbers, dates and times of a text in order."""
    found = list(islice(QuantityReader(tokens).read(), MAX_QUANTITIES))
    # A number that turned out to be the day of a month is read twice: only the date counts.
    return [
        quantity
        for quantity, following in zip_longest(found, found[1:])
        if following is None or following.start >= quantity.end
    ]

"""Numbers with their units and what they count, dates and times, in a list of tokens."""

from collections.abc import Iterator
from decimal import Context, Decimal
from itertools import islice, zip_longest

from mnemic.contradictions import vocabulary
from mnemic.contradictions.words import Token, stem

MAX_DIGITS = 30
"""A number of more digits is ignored."""
MAX_QUANTITIES = 64
"""Maximum number of quantities of one text; later ones are ignored."""
EXACT = Context(prec=60, traps=[])
"""Decimal context of quantities, independent of the caller's own."""
_LARGEST = Decimal(10) ** MAX_DIGITS
_MAX_VERSION_PARTS = 8

_SMALL = vocabulary.listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_TENS = vocabulary.listed("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = vocabulary.listed(
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * (place + 2) for place, word in enumerate(_TENS)
}
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "k": 1000}
_RANKS = {word: value for value, word in enumerate(_ORDINALS)}
_FRACTIONS = {
    "half": Decimal("0.5"),
    "third": Decimal(1) / 3,
    "quarter": Decimal("0.25"),
    "fifth": Decimal("0.2"),
    "tenth": Decimal("0.1"),
}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_WEEKDAYS = {
    name: place
    for place, name in enumerate(
        vocabulary.listed("monday tuesday wednesday thursday friday saturday sunday")
    )
}
_MONTHS = {
    name: place + 1
    for place, name in enumerate(
        vocabulary.listed(
            "january february march april may june july august september october november december"
        )
    )
} | {"jan": 1, "feb": 2, "apr": 4, "aug": 8, "sept": 9, "oct": 10, "nov": 11, "dec": 12}
_AMBIGUOUS_MONTHS = frozenset({"may", "march"})
_NOON = {"noon": 720, "midday": 720, "midnight": 0}
_HEDGES = vocabulary.words(
    "about around roughly approximately nearly almost some circa ca little just approx"
)
_UPPER = frozenset({"at most", "up", "under", "below", "less", "fewer", "maximum", "within", "max"})
_LOWER = frozenset(
    {
        "at least",
        "more",
        "over",
        "above",
        "minimum",
        "exceed",
        "exceeds",
        "exceeded",
        "beyond",
        "passed",
        "topped",
        "upwards",
    }
)
_LIMIT_WORDS = vocabulary.words("than to of a of at the is mark")
_PER_WORDS = frozenset({"per", "a", "an", "each", "every", "/"})
_DASH = "\u2013"
_AGE_VERBS = frozenset({"turn", "turned", "turns", "aged", "age"})
_AGE_WORDS = frozenset({"is", "am", "m"})
_OLDEST = 120
_YEAR = Decimal(31557600)
_HOUR, _DAY = 60, 24 * 60
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_RECENT = 1900


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


_UNITS = _units()
_SYMBOLS = frozenset("€$£¥")


_STARTS = frozenset(
    {"a", "an", *_NOON, *_VALUES, *_MULTIPLES, *_RANKS, *_FRACTIONS, *_TIMES, *_MONTHS, *_WEEKDAYS}
) | {f"{name}s" for name in _WEEKDAYS}


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


class _Reader:
    """Goes through the tokens once, from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.texts = [token.text for token in tokens]
        self.size = len(tokens)

    def at(self, position: int) -> str:
        return self.texts[position] if 0 <= position < self.size else ""

    def read(self) -> Iterator[Quantity]:
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

    # Moments

    def _moment(self, position: int) -> Quantity | None:
        token = self.tokens[position]
        text = token.text
        if token.kind in {"word", "rest"}:
            singular = text.removesuffix("s")
            if singular in _WEEKDAYS:
                day = _WEEKDAYS[singular]
                return Quantity("weekday", day, day, position, position + 1)
            if text in _MONTHS:
                return self._month(position)
            return self._spoken_clock(position)
        if token.kind == "iso":
            year, month, day = (int(part) for part in text.split("-"))
            return self._date(year, month, day, position, position + 1)
        if token.kind == "clock":
            hour, minute = (int(part) for part in text.replace(".", ":").split(":"))
            return self._clock(hour * _HOUR + minute, position, position + 1)
        return None

    def _month(self, position: int) -> Quantity | None:
        month = _MONTHS[self.at(position)]
        start, end, day, last_day = position, position + 1, None, None
        joined = self.at(end) in {"to", "-", _DASH, "until", "and"} and self.at(end + 1) in _MONTHS
        if joined and self._day(position - 1) is None:
            return self._date(None, None, None, position, position + 3)  # a season, not a day
        before = position - 1
        if self.at(before) == "of":
            before -= 1
        day = self._day(before)
        if day is not None:
            start = before
            if self.at(before - 1) in {"to", "-", _DASH} and (first := self._day(before - 2)):
                start, last_day, day = before - 2, day, first
        else:
            day = self._day(end)
            end += day is not None
        if (
            self.texts[position] in _AMBIGUOUS_MONTHS
            and day is None
            and not self._is_month(position)
        ):
            return None
        if self.at(end) == "," and self._year(end + 1):
            end += 1
        year = self._year(end)
        end += year is not None
        found = self._date(year, month, day, start, end)
        if last_day is not None:
            found.high = Decimal(last_day)
        return found

    def _is_month(self, position: int) -> bool:
        token, before = self.tokens[position], self.at(position - 1)
        return token.is_capital and (
            before
            in {
                "in",
                "of",
                "since",
                "until",
                "till",
                "by",
                "early",
                "mid",
                "late",
                "next",
                "last",
                "this",
                "from",
                "for",
                "to",
                "-",
                "every",
                "and",
            }
            or self._year(position + 1) is not None
        )

    def _day(self, position: int) -> int | None:
        text = self.at(position)
        value = _integer(text.rstrip("stndrh")) or _RANKS.get(text, 0)
        return value if 1 <= value <= 31 else None  # noqa: PLR2004 - days of a month

    def _year(self, position: int) -> int | None:
        text = self.at(position)
        if len(text) == 4 and text.isdecimal() and _FIRST_YEAR <= int(text) <= _LAST_YEAR:  # noqa: PLR2004
            return int(text)
        return None

    def _date(
        self, year: int | None, month: int | None, day: int | None, start: int, end: int
    ) -> Quantity:
        found = Quantity("date", day or 0, day or 0, start, end)
        found.fields = year, month, day
        return found

    def _spoken_clock(self, position: int) -> Quantity | None:
        text = self.at(position)
        if text in _NOON:
            return Quantity("clock", _NOON[text], _NOON[text], position, position + 1)
        if text not in {"half", "quarter"} or self.at(position + 1) not in {"past", "to"}:
            return None
        minutes = 30 if text == "half" else 15
        hour = _VALUES.get(self.at(position + 2)) or _integer(self.at(position + 2))
        if hour is None:
            return None
        sign = 1 if self.at(position + 1) == "past" else -1
        return self._clock(hour * _HOUR + sign * minutes, position, position + 3)

    def _clock(self, minutes: int, start: int, end: int) -> Quantity:
        """Resolve am and pm; without either, both times of day up to 12:59 are meant."""
        is_spelled = self.tokens[start].kind == "clock"
        half = self._half_of_day(end)
        if self.at(end) in {"am", "pm", "a", "p", "o'clock", "h", "o"}:
            end += 1
        low = high = minutes % _DAY
        if half == "pm" and minutes < 12 * _HOUR:
            low = high = minutes + 12 * _HOUR
        elif half == "am" and 12 * _HOUR <= minutes < 13 * _HOUR:
            low = high = minutes - 12 * _HOUR
        elif not half and _HOUR <= minutes < 13 * _HOUR and not is_spelled:
            high = (minutes + 12 * _HOUR) % _DAY  # the two meanings, not a range
        found = Quantity("clock", low, high, start, end)
        found.bound = "upper" if self.at(start - 1) in {"by", "before"} else ""
        return found

    def _half_of_day(self, position: int) -> str:
        for place in range(position, min(position + 5, self.size)):
            text = self.texts[place]
            if text in {"am", "a.m", "morning"}:
                return "am"
            if text in {"pm", "p.m", "afternoon", "evening", "night", "tonight"}:
                return "pm"
            if text not in {"in", "the", "at", "o'clock", "o", "clock", "on", "same"}:
                break
        return ""

    # Numbers

    def _number(self, position: int) -> Quantity | None:
        """Return what a number measures, counts or names."""
        token = self.tokens[position]
        text = token.text
        if token.kind == "version":
            return self._version(position)
        if token.kind == "ordinal" or (text in _RANKS and position):
            return self._rank(position)
        if text in _TIMES:
            return self._measured(Decimal(_TIMES[text]), position, position + 1, "times")
        return self._plain_number(position)

    def _plain_number(self, position: int) -> Quantity | None:
        value, end = self._value(position)
        if value is None:
            return None
        if self._is_clock(position, end, value):
            return self._clock(int(value * _HOUR), position, end)
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
        is_spelled = text in _RANKS
        rank = _RANKS[text] if is_spelled else _integer(text.rstrip("stndrh"))
        if rank is None:
            return None
        found = Quantity("rank", rank, rank, position, position + 1)
        found.nouns = self._nouns_after(position + 1)
        if not found.nouns and not is_spelled and self.at(position - 1) in {"the", "on"}:
            found.kind, found.fields = "date", (None, None, rank)
        return found

    def _value(self, position: int) -> tuple[Decimal | None, int]:
        """Return the value of a numeral and the position after it: 1,250, a dozen, thirty."""
        text = self.at(position)
        token = self.tokens[position]
        if token.kind == "number":
            number = _decimal(text)
            if number is None:
                return None, position
            value, end = number, position + 1
        elif text in _VALUES:
            value, end = Decimal(_VALUES[text]), position + 1
            following = self.at(end + (self.at(end) == "-"))
            if text in _TENS and 0 < _VALUES.get(following, 0) < 10:  # noqa: PLR2004 - thirty-four
                end += 1 + (self.at(end) == "-")
                value += _VALUES[following]
        elif text in {"a", "an"}:
            return self._after_article(position)
        elif text in {"half", "quarter"}:
            return self._fraction(Decimal(1), position)
        elif text in _MULTIPLES and text != "k":
            value, end = Decimal(1), position
        else:
            return None, position
        return self._enlarged(value, end)

    def _enlarged(self, value: Decimal, end: int) -> tuple[Decimal, int]:
        while self.at(end) in _MULTIPLES:
            value = min(value * _MULTIPLES[self.at(end)], _LARGEST)
            end += 1
            if self.at(end) == "and" and self.at(end + 1) in _VALUES:
                end += 1
            if self.at(end) in _VALUES and value >= 100:  # noqa: PLR2004 - two hundred and five
                value += _VALUES[self.at(end)]
                end += 1
        following = self.at(end).removesuffix("s")
        if following in _FRACTIONS:
            return self._fraction(value, end)
        if self.at(end) == "and" and self.at(end + 1) == "a" and self.at(end + 2) == "half":
            return value + _FRACTIONS["half"], end + 3
        return value, end

    def _after_article(self, position: int) -> tuple[Decimal | None, int]:
        following = self.at(position + 1)
        if following in _MULTIPLES and following != "k":
            return self._enlarged(Decimal(1), position + 1)
        if following == "dozen":
            return Decimal(12), position + 2
        if following in {"half", "quarter", "third"} and self.at(position + 2) not in {
            "past",
            "to",
        }:
            return self._fraction(Decimal(1), position + 1)
        if (
            following in _UNITS
            and not self._is_rate(position)
            and _UNITS[following][0] == "duration"
        ):
            return Decimal(1), position + 1
        return None, position

    def _is_rate(self, position: int) -> bool:
        """Return whether an article means "per": 3 euros a week, twice a day."""
        before = self.tokens[position - 1] if position else None
        return before is not None and (
            before.text in _UNITS
            or before.kind in {"number", "unit"}
            or before.text in _TIMES
            or before.text in _VALUES
            or before.text in {"time", "times"}
            or not before.lexeme.is_stop
        )

    def _fraction(self, value: Decimal, position: int) -> tuple[Decimal, int]:
        value *= _FRACTIONS[self.at(position).removesuffix("s")]
        end = position + 1
        if self.at(end) == "of" and self.at(end + 1) in {"a", "an"}:
            return value, end + 2
        if self.at(end) in {"a", "an"}:
            return value, end + 1
        return value, end

    def _is_clock(self, position: int, end: int, value: Decimal) -> bool:
        following, before = self.at(end), self.at(position - 1)
        if value != int(value) or not 0 <= value <= 24:  # noqa: PLR2004 - hours
            return False
        if following in {"am", "pm", "o'clock"} or (
            following == "o" and self.at(end + 1) == "clock"
        ):
            return True
        if before not in {"at", "by", "until", "till", "before", "after", "past", "from"}:
            return False
        if before == "from" and self.at(position - 2) not in {"open", "is", "are", "hours"}:
            return False
        is_ended = (
            end >= self.size or self.tokens[end].kind == "mark" or self.tokens[end].lexeme.is_stop
        )
        return is_ended and following not in {"-", "%"} and following not in _UNITS

    def _is_year(self, position: int, end: int) -> bool:
        if end != position + 1 or self._year(position) is None:
            return False
        if self.at(position - 1) in _SYMBOLS or self.at(end) in _UNITS or self._labels(position):
            return False
        if self.at(position - 1) in {
            "in",
            "since",
            "until",
            "till",
            "of",
            "by",
            "from",
            "before",
            "after",
            "year",
            "for",
            "and",
            "to",
            "end",
            "early",
            "late",
        }:
            return True
        is_last = end >= self.size or self.tokens[end].kind == "mark"
        return is_last and int(self.at(position)) >= _RECENT

    def _with_range(self, value: Decimal, position: int, end: int) -> Quantity:
        start = position
        second = None
        joiner = self.at(end)
        before = self.at(position - 1)
        if joiner in {"-", _DASH, "to"} or (joiner == "and" and before == "between"):
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
        if symbol in _SYMBOLS:
            found.kind, factor = _UNITS[symbol]
            found.start -= 1
        elif not kind:
            name, size = self._unit(end)
            if size:
                found.kind, factor = _UNITS[name]
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
            if before == "of" and symbol not in _SYMBOLS:
                found.nouns = self._noun_before(found.start - 2)
        elif self.at(found.start) in {"half", "a"} and found.low < 1:
            found.kind = "share"
        elif self.at(found.end) == "of" and self.at(found.end + 1) in {"us", "them", "you"}:
            found.nouns = frozenset({stem("people")})
        elif self.at(found.end) == "of" and not found.nouns:
            found.kind = "part"  # two of the customers

    def _unit(self, position: int) -> tuple[str, int]:
        pair = f"{self.at(position)} {self.at(position + 1)}"
        if pair in _UNITS:
            return pair, 2
        text = self.at(position)
        if text in _UNITS:
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
        if not size or _UNITS[name][0] != "duration" or _UNITS[name][1] >= found.low:
            return
        smaller = _decimal(self.at(position))
        if smaller is None:
            return
        found.low += smaller * _UNITS[name][1]
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
        return self.at(position) in _VALUES and (
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
            if _is_number(name):  # 7 litres per 100 km
                name = self.at(position + 2)
            unit = _UNITS.get(name)
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


def _integer(text: str) -> int | None:
    return int(text) if len(text) <= MAX_DIGITS and text.isdecimal() else None


def _decimal(text: str) -> Decimal | None:
    digits = text.replace(",", "")
    return Decimal(digits) if len(digits) <= MAX_DIGITS else None


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).isdecimal()


def quantities_of(tokens: list[Token]) -> list[Quantity]:
    """Return the first `MAX_QUANTITIES` numbers, dates and times of a text in order."""
    found = list(islice(_Reader(tokens).read(), MAX_QUANTITIES))
    # A number that turned out to be the day of a month is read twice: only the date counts.
    return [
        quantity
        for quantity, following in zip_longest(found, found[1:])
        if following is None or following.start >= quantity.end
    ]


_HEDGED = Decimal("0.15")  # how far "about 30" reaches
_TINY = Decimal("1e-9")
_INFINITE = Decimal("Infinity")
_ROUNDED = Decimal("0.005")  # conversions are rounded


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

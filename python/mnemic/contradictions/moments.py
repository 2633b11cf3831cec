"""Moments in a list of tokens: dates, days of the week, times of day."""

from decimal import Decimal

from mnemic.contradictions import vocabulary
from mnemic.contradictions.quantity import (
    DASH,
    RANKS,
    UNITS,
    VALUES,
    NumeralReader,
    Quantity,
    integer,
)

WEEKDAYS = {name: place for place, name in enumerate(vocabulary.LISTS["weekdays"])}
_SHORT = {"jan": 1, "feb": 2, "apr": 4, "aug": 8, "sept": 9, "oct": 10, "nov": 11, "dec": 12}
MONTHS = _SHORT | {m: n for n, m in enumerate(vocabulary.LISTS["months"], start=1)}
_AMBIGUOUS_MONTHS = frozenset({"may", "march"})
NOON = {"noon": 720, "midday": 720, "midnight": 0}
_BEFORE_MONTHS = vocabulary.PARTS["before months"]
HOUR, _DAY = 60, 24 * 60
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
RECENT_YEAR = 1900


class MomentReader(NumeralReader):
    """Reads a date or a time of day at a position."""

    def _moment(self, position: int) -> Quantity | None:
        token = self.tokens[position]
        text = token.text
        if token.kind in {"word", "rest"}:
            singular = text.removesuffix("s")
            if singular in WEEKDAYS:
                weekday = Decimal(WEEKDAYS[singular])
                return Quantity("weekday", weekday, weekday, position, position + 1)
            if text in MONTHS:
                return self._month(position)
            return self._spoken_clock(position)
        if token.kind == "iso":
            year, month, day = (int(part) for part in text.split("-"))
            return self._date(year, month, day, position, position + 1)
        if token.kind == "clock":
            hour, minute = (int(part) for part in text.replace(".", ":").split(":"))
            return self._clock(hour * HOUR + minute, position, position + 1)
        return None

    def _month(self, position: int) -> Quantity | None:
        month = MONTHS[self.at(position)]
        start, end, day, last_day = position, position + 1, None, None
        joined = self.at(end) in {"to", "-", DASH, "until", "and"} and self.at(end + 1) in MONTHS
        if joined and self._day(position - 1) is None:
            return self._date(None, None, None, position, position + 3)  # a season, not a day
        before = position - 1
        if self.at(before) == "of":
            before -= 1
        day = self._day(before)
        if day is not None:
            start = before
            if self.at(before - 1) in {"to", "-", DASH} and (first := self._day(before - 2)):
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
            before in _BEFORE_MONTHS or self._year(position + 1) is not None
        )

    def _day(self, position: int) -> int | None:
        text = self.at(position)
        value = integer(text.rstrip("stndrh")) or RANKS.get(text, 0)
        return value if 1 <= value <= 31 else None  # noqa: PLR2004 - days of a month

    def _year(self, position: int) -> int | None:
        text = self.at(position)
        if len(text) == 4 and text.isdecimal() and _FIRST_YEAR <= int(text) <= _LAST_YEAR:  # noqa: PLR2004
            return int(text)
        return None

    def _date(
        self, year: int | None, month: int | None, day: int | None, start: int, end: int
    ) -> Quantity:
        at = Decimal(day or 0)
        found = Quantity("date", at, at, start, end)
        found.fields = year, month, day
        return found

    def _spoken_clock(self, position: int) -> Quantity | None:
        text = self.at(position)
        if text in NOON:
            at = Decimal(NOON[text])
            return Quantity("clock", at, at, position, position + 1)
        if text not in {"half", "quarter"} or self.at(position + 1) not in {"past", "to"}:
            return None
        minutes = 30 if text == "half" else 15
        hour = VALUES.get(self.at(position + 2)) or integer(self.at(position + 2))
        if hour is None:
            return None
        sign = 1 if self.at(position + 1) == "past" else -1
        return self._clock(hour * HOUR + sign * minutes, position, position + 3)

    def _clock(self, minutes: int, start: int, end: int) -> Quantity:
        """Resolve am and pm; without either, both times of day up to 12:59 are meant."""
        is_spelled = self.tokens[start].kind == "clock"
        half = self._half_of_day(end)
        if self.at(end) in {"am", "pm", "a", "p", "h", "o"}:
            end += 1
        low = high = minutes % _DAY
        if half == "pm" and minutes < 12 * HOUR:
            low = high = minutes + 12 * HOUR
        elif half == "am" and 12 * HOUR <= minutes < 13 * HOUR:
            low = high = minutes - 12 * HOUR
        elif not half and HOUR <= minutes < 13 * HOUR and not is_spelled:
            high = (minutes + 12 * HOUR) % _DAY  # the two meanings, not a range
        found = Quantity("clock", Decimal(low), Decimal(high), start, end)
        found.bound = "upper" if self.at(start - 1) in {"by", "before"} else ""
        return found

    def _half_of_day(self, position: int) -> str:
        for place in range(position, min(position + 5, self.size)):
            text = self.texts[place]
            if text in {"am", "morning"}:
                return "am"
            if text in {"pm", "afternoon", "evening", "night", "tonight"}:
                return "pm"
            if text not in {"in", "the", "at", "o", "clock", "on", "same"}:
                break
        return ""

    def _is_clock(self, position: int, end: int, value: Decimal) -> bool:
        following, before = self.at(end), self.at(position - 1).rpartition(" ")[2]
        if value != int(value) or not 0 <= value <= 24:  # noqa: PLR2004 - hours
            return False
        if following in {"am", "pm"} or (following == "o" and self.at(end + 1) == "clock"):
            return True
        if before not in {"at", "by", "until", "till", "before", "after", "past", "from"}:
            return False
        if before == "from" and self.at(position - 2) not in {"open", "is", "are", "hours"}:
            return False
        is_ended = (
            end >= self.size or self.tokens[end].kind == "mark" or self.tokens[end].lexeme.is_stop
        )
        return is_ended and following not in {"-", "%"} and following not in UNITS

"""Dates that a question names, from Python: against `datetime`, and on bad input."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemic._core import date_ranges
from mnemic.errors import InvalidArgumentError
from tests.support.clock import EPOCH

NOW = datetime(2023, 10, 18, 11, 40, tzinfo=UTC)

dates = st.dates(date(1900, 1, 1), date(2100, 12, 31))
INT64 = st.integers(-(2**63), 2**63 - 1)
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - `timezones` adds it


def microseconds(moment):
    return (moment - EPOCH) // timedelta(microseconds=1)


def days(text, now=NOW):
    """Return the ranges as pairs of a first and a last date."""
    return [
        (
            (EPOCH + timedelta(microseconds=start)).date(),
            (EPOCH + timedelta(microseconds=end - 1)).date(),
        )
        for start, end in date_ranges(text, microseconds(now))
    ]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What did I paint on 7 May 2023?", date(2023, 5, 7), date(2023, 5, 7)),
        ("What did I paint in May?", date(2023, 5, 1), date(2023, 5, 31)),
        ("What did I paint in 2022?", date(2022, 1, 1), date(2022, 12, 31)),
        ("What did I paint last week?", date(2023, 10, 9), date(2023, 10, 15)),
        ("What did I paint since June?", date(2023, 6, 1), date(2023, 10, 18)),
        ("Was habe ich am 7. Mai 2023 gemalt?", date(2023, 5, 7), date(2023, 5, 7)),
        ("我在5月7号画了什么", date(2023, 5, 7), date(2023, 5, 7)),
        ("上周五我画了什么", date(2023, 10, 13), date(2023, 10, 13)),
        ("先月の5日に何を描いた", date(2023, 9, 5), date(2023, 9, 5)),
        ("지난주에 뭐 그렸어?", date(2023, 10, 9), date(2023, 10, 15)),
    ],
)
def test_a_question_that_names_a_date_gives_its_first_and_last_day(text, first, last):
    assert days(text) == [(first, last)]


ONES = {
    "de": "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "es": "un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve veinte veintiún veintidós veintitrés veinticuatro "
    "veinticinco veintiséis veintisiete veintiocho veintinueve",
    "fr": "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize dix-sept dix-huit dix-neuf",
    "it": "un due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici "
    "quindici sedici diciassette diciotto diciannove",
}
TENS = {
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "fr": "vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
}
JOINED = {
    "de": lambda tens, ones: f"{ones}und{tens}",
    "es": lambda tens, ones: f"{tens} y {ones}",
    "fr": lambda tens, ones: f"{tens}-{ones}",
    "it": lambda tens, ones: tens.rstrip("ai") + ones if ones[0] in "uo" else tens + ones,
}


def written(number, language):
    """Return a number from 1 to 99 in words."""
    ones, tens = ONES[language].split(), TENS[language].split()
    if number <= len(ones):
        return ones[number - 1]
    ten, one = tens[number // 10 - 2], number % 10
    if language == "fr" and number // 10 in (7, 9):
        return f"{ten}-{ones[one + 9]}"
    if language == "fr" and one == 1 and number < 80:
        return f"{ten} et un"
    return JOINED[language](ten, ones[one - 1]) if one else ten


@pytest.mark.parametrize("number", range(1, 100))
@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Was habe ich vor {} Tagen gemalt?"),
        ("es", "¿Qué pinté hace {} días?"),
        ("fr", "Qu'est-ce que j'ai peint il y a {} jours ?"),
        ("it", "Che cosa ho dipinto {} giorni fa?"),
    ],
)
def test_written_numbers_are_read_in_four_languages(language, text, number):
    day = NOW.date() - timedelta(days=number)
    digits, words = text.format(number), text.format(written(number, language))
    assert days(digits) == [(day, day)]
    assert days(words) == [(day, day)]
    assert days(words.upper()) == days(words)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Was habe ich gestern gemalt?", date(2023, 10, 17), date(2023, 10, 17)),
        ("Was habe ich heute gemalt?", date(2023, 10, 18), date(2023, 10, 18)),
        ("vorgestern", date(2023, 10, 16), date(2023, 10, 16)),
        ("¿Qué pinté ayer?", date(2023, 10, 17), date(2023, 10, 17)),
        ("antes de ayer", date(2023, 10, 16), date(2023, 10, 16)),
        ("Che cosa ho dipinto ieri?", date(2023, 10, 17), date(2023, 10, 17)),
        ("l'altro ieri", date(2023, 10, 16), date(2023, 10, 16)),
        ("vor einer Woche", date(2023, 10, 8), date(2023, 10, 14)),
        ("hace dos semanas", date(2023, 10, 1), date(2023, 10, 7)),
        ("il y a un mois", date(2023, 9, 1), date(2023, 9, 30)),
        ("due mesi fa", date(2023, 8, 1), date(2023, 8, 31)),
        ("il y a un an", date(2022, 1, 1), date(2022, 12, 31)),
        ("vor einem halben Jahr", date(2023, 4, 1), date(2023, 4, 30)),
        ("hace un año y medio", date(2022, 4, 1), date(2022, 4, 30)),
        ("il y a un an et demi", date(2022, 4, 1), date(2022, 4, 30)),
        ("vor einem Jahr und zwei Monaten", date(2022, 8, 1), date(2022, 8, 31)),
        ("What is due two weeks ago?", date(2023, 10, 1), date(2023, 10, 7)),
        ("I once sei two days ago", date(2023, 10, 16), date(2023, 10, 16)),
        ("Qu'est-ce que j'ai peint hier ?", date(2023, 10, 17), date(2023, 10, 17)),
        ("Qu\u2019ai-je mangé hier soir ?", date(2023, 10, 17), date(2023, 10, 17)),
        ("avant-hier", date(2023, 10, 16), date(2023, 10, 16)),
        ("Qu'ai-je peint aujourd'hui ?", date(2023, 10, 18), date(2023, 10, 18)),
        ("antier", date(2023, 10, 16), date(2023, 10, 16)),
        ("hace treintaidós días", date(2023, 9, 16), date(2023, 9, 16)),
        ("ventun giorni fa", date(2023, 9, 27), date(2023, 9, 27)),
        ("trentatré giorni fa", date(2023, 9, 15), date(2023, 9, 15)),
    ],
)
def test_days_and_lengths_of_time_are_read_in_four_languages(text, first, last):
    assert days(text) == [(first, last)]


WEEKS = [(date(2023, 10, 2 + 7 * at), date(2023, 10, 8 + 7 * at)) for at in range(4)]
MONTHS = [(date(2023, 9, 1), date(2023, 9, 30)), (date(2023, 10, 1), date(2023, 10, 31))]
YEARS = [(date(year, 1, 1), date(year, 12, 31)) for year in (2022, 2023, 2024)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Was habe ich letzte Woche gemalt?", WEEKS[1]),
        ("vorletzte Woche", WEEKS[0]),
        ("in der vergangenen Woche", WEEKS[1]),
        ("diese Woche", WEEKS[2]),
        ("nächste Woche", WEEKS[3]),
        ("im letzten Monat", MONTHS[0]),
        ("voriges Jahr", YEARS[0]),
        ("letztes Wochenende", (date(2023, 10, 14), date(2023, 10, 15))),
        ("Qu'ai-je peint la semaine dernière ?", WEEKS[1]),
        ("cette semaine", WEEKS[2]),
        ("la semaine prochaine", WEEKS[3]),
        ("le mois dernier", MONTHS[0]),
        ("l'an dernier", YEARS[0]),
        ("l\u2019année passée", YEARS[0]),
        ("¿Qué pinté la semana pasada?", WEEKS[1]),
        ("la próxima semana", WEEKS[3]),
        ("este mes", MONTHS[1]),
        ("el año pasado", YEARS[0]),
        ("Che cosa ho dipinto la settimana scorsa?", WEEKS[1]),
        ("la scorsa settimana", WEEKS[1]),
        ("il mese scorso", MONTHS[0]),
        ("quest'anno", YEARS[1]),
        ("l'anno prossimo", YEARS[2]),
    ],
)
def test_weeks_months_and_years_beside_this_one_are_read_in_four_languages(text, wanted):
    assert days(text) == [wanted]
    assert days(text.upper()) == [wanted]


@pytest.mark.parametrize(
    "text",
    [
        "Was habe ich hier gemalt?",
        "Wer war hier?",
        "Wat heb ik hier gedaan?",
        "hier",
        "letzte Woche vor Ostern",
        "die letzten Wochen",
        "die letzten drei Wochen",
        "letzte Bestellung",
        "les deux dernières semaines",
        "la fin de semaine dernière",
        "une semaine passée à Rome",
        "il a passé la journée",
        "cette a été",
        "questa a",
        "a passé",
        "el fin de semana pasado",
        "el pasado lunes",
        "esta a punto",
        "il fine settimana scorso",
        "trentadue anni",
    ],
)
def test_other_words_of_four_languages_are_no_time(text):
    assert days(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "vor zweieinhalb Jahren",
        "vor ein paar Tagen",
        "vor zwei oder drei Wochen",
        "vor zwei bis drei Wochen",
        "vor tausend Tagen",
        "vor Jahren",
        "drei Tage",
        "hace 1,5 años",
        "hace dos o tres días",
        "hace mil días",
        "hace calor",
        "desde hace tres años",
        "il y a des gens",
        "il y a deux ou trois jours",
        "il y a mille ans",
        "il 3",
        "due o tre giorni fa",
        "mille cinque giorni fa",
        "centoventi giorni fa",
        "ventisei o ventisette giorni fa",
        "fa tre giorni",
        "sei stanco",
        "due in 3 days",
    ],
)
def test_a_length_that_is_not_read_whole_in_four_languages_is_no_time(text):
    assert days(text) == []


@given(
    dates, moments, st.sampled_from(["%d %B %Y", "%B %d, %Y", "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])
)
def test_a_formatted_date_is_found_as_datetime_counts_it(day, now, layout):
    assert days(f"Where was she on {day.strftime(layout)}?", now) == [(day, day)]


@given(moments.filter(lambda moment: moment.year > 1), st.integers(0, 300))
def test_days_ago_are_counted_as_datetime_does(now, count):
    day = now.date() - timedelta(days=count)
    assert days(f"What happened {count} days ago?", now) == [(day, day)]


@given(moments)
def test_on_monday_is_the_latest_monday_up_to_today(now):
    ((day, _),) = days("What happened on Monday?", now.replace(year=max(now.year, 2)))
    assert day.isoweekday() == 1
    assert timedelta(0) <= now.replace(year=max(now.year, 2)).date() - day < timedelta(days=7)


@given(dates.filter(lambda day: (day.month, day.day) != (2, 29)), moments, moments)
def test_a_date_without_a_year_is_the_latest_up_to_the_newest_memory(day, now, newest):
    is_current = timedelta(0) <= now.date() - newest.date() <= timedelta(days=7)
    latest = (now if is_current else newest).date()
    year = latest.year - ((day.month, day.day) > (latest.month, latest.day))
    found = date_ranges(f"on {day:%B %d}", microseconds(now), microseconds(newest))
    assume(year >= 1)
    assert found[0][0] == microseconds(datetime(year, day.month, day.day, tzinfo=UTC))


def test_without_memories_a_date_without_a_year_is_counted_from_now():
    now = microseconds(NOW)
    assert date_ranges("on May 6th", now, None) == date_ranges("on May 6th", now)


WORDS = "hier avant an a la letzte vor Woche semaine dernière passé mes pasado quest anno de 3 il y"


@given(st.lists(st.sampled_from([*WORDS.split(), "'", "-", "\u2019é"])), st.sampled_from(["", " "]))
def test_any_words_of_dates_give_ranges_that_end_after_they_begin(words, between):
    found = date_ranges(between.join(words), microseconds(NOW))
    assert all(start < end for start, end in found)


@given(st.text(), INT64, st.none() | INT64)
def test_any_text_and_times_give_ranges_that_end_after_they_begin(text, now, newest):
    assert all(start < end for start, end in date_ranges(text, now, newest))


def test_a_text_must_be_str_and_the_time_an_int_of_64_bits():
    with pytest.raises(TypeError):
        date_ranges(b"today", 0)
    with pytest.raises(TypeError):
        date_ranges("today", 0.5)
    with pytest.raises(OverflowError):
        date_ranges("today", 2**63)
    with pytest.raises(TypeError):
        date_ranges("today", 0, "today")


def test_a_lone_surrogate_is_refused_with_its_position():
    with pytest.raises(InvalidArgumentError, match="position 3"):
        date_ranges("May\ud800", 0)

"""Amounts that can be the same, and amounts that cannot."""

import decimal

import pytest

from tests.contradictions.test_rule_judge import contradicts, judged


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The orchard has 40 trees.", "There are 55 trees in the orchard."),
        ("The broker listens on port 5671.", "The broker listens on port 5672."),
        ("The orchard tour is on 3 May.", "The orchard tour is on 10 May."),
        ("Choir practice is on Mondays.", "Choir practice is on Thursdays."),
        ("The kiosk opens at 8 am.", "The kiosk opens at half past nine."),
        ("The plank is 2 m long.", "The plank is 150 cm long."),
        ("The plan costs 10 euros a month.", "The plan costs 150 euros a year."),
    ],
)
def test_other_numbers_dates_times_and_amounts_contradict(older, newer):
    assert contradicts(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The kiosk opens at 10 am.", "The kiosk opens at 10:00."),
        ("The plank is 2 m long.", "The plank is 200 cm long."),
        ("The plan costs 10 euros a month.", "The plan costs 120 euros a year."),
        ("The cache holds 2 GB.", "The cache holds 2,000 MB."),
        ("The oven is at 212 °F.", "The oven is at 100 °C."),
        ("The jury has nine members.", "There are 9 members on the jury."),
        ("About 50 people sing.", "The choir: 52 people sing."),
        ("Between 10 and 20 guests are expected.", "15 guests are expected."),
        ("At least 30 guests came.", "42 guests came."),
    ],
)
def test_equal_or_included_amounts_do_not_contradict(older, newer):
    assert not contradicts(older, newer)


LONG_NUMBERS = [
    "9" * 310,
    "9" * 4000,
    "9" * 310 + "th",
    "1." * 300 + "1",
    f"v{'9' * 310}.1",
    f"1.2.{'9' * 400}",
    "1" + ",999" * 200,
    f"2 hours {'9' * 310} minutes",
    f"5 to {'9' * 310}",
    "two " + "billion " * 60,
    "half past " + "9" * 310,
    "half past \u00b2",
    "3 May \u00b2\u00b2\u00b2\u00b2",
    "\u00b2 May",
    "7 km per \u00b2",
    f"{'9' * 310} degrees fahrenheit",
    f"{'9' * 28} years",
    f"1/{'9' * 310} of",
    "0." + "0" * 330 + "1",
]


@pytest.mark.parametrize("number", LONG_NUMBERS)
def test_no_number_makes_a_judgement_fail(number):
    for text in (number, f"The account has {number} euros.", f"The {number} boats are in May."):
        for other in ("The account has 7 euros.", text, f"{text} The account has 7 boats."):
            assert 0 <= judged(text, other).confidence <= 1
            assert 0 <= judged(other, text).confidence <= 1


def test_numbers_are_compared_by_all_their_digits_whatever_the_decimal_context():
    one, other = f"The account number is {10**19 + 1}.", f"The account number is {10**19 + 2}."
    with decimal.localcontext(decimal.Context(prec=3, traps=[decimal.Inexact])):
        assert judged(one, other).confidence > 0.5
        assert judged(one, one.upper()).confidence == 0

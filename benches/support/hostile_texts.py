"""Texts built to be slow to read: each family makes one of about the given length."""

from collections.abc import Callable

Family = Callable[[int], str]


def _runs_of(unit: str) -> Family:
    return lambda length: (unit * (length // len(unit) + 1))[:length]


def _after(start: str, unit: str, end: str = "") -> Family:
    def text(length: int) -> str:
        return start + _runs_of(unit)(max(length - len(start) - len(end), 0)) + end

    return text


def _different_words(length: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    count = length // 5 + 1
    words = (
        "".join(letters[number // 26**place % 26] for place in range(4)) for number in range(count)
    )
    return " ".join(words)[:length]


def _different_names(length: int) -> str:
    return "\n".join(word.title() + ": yes" for word in _different_words(length // 2).split())


def _different_numbers(length: int) -> str:
    return " ".join(str(number) for number in range(1000, 1000 + length // 5 + 1))[:length]


FAMILIES: dict[str, Family] = {
    **{
        f"run of {name}": _runs_of(character)
        for name, character in {
            "hyphens": "-",
            "dots": ".",
            "commas": ",",
            "colons": ":",
            "slashes": "/",
            "at signs": "@",
            "hash signs": "#",
            "underscores": "_",
            "apostrophes": "'",
            "double quotes": '"',
            "question marks": "?",
            "open brackets": "(",
            "open square brackets": "[",
            "close brackets": ")",
            "spaces": " ",
            "tabs": "\t",
            "newlines": "\n",
            "digits": "7",
            "small letters": "a",
            "capitals": "A",
            "sharp s": "\u00df",
            "combining marks": "\u0301",
            "zero width joiners": "\u200d",
            "ideographic spaces": "\u3000",
            "ligatures": "\ufdfa",
            "Han": "\u6c49",
            "Hangul": "\ud55c",
            "conjoining jamo": "\u1100",
            "Thai": "\u0e01",
            "Hebrew": "\u05e9",
            "Arabic": "\u0645",
            "superscript digits": "\u00b2",
        }.items()
    },
    **{
        f"repeated {name}": _runs_of(unit)
        for name, unit in {
            "a and hyphen": "a-",
            "a and dot": "a.",
            "a and apostrophe": "a'",
            "a and at": "a@",
            "a and comma": "a,",
            "digit and dot": "1.",
            "digit and comma": "1,",
            "digit and hyphen": "1-",
            "digit and letter": "1a",
            "groups of thousands": "1,000",
            "question": "a? ",
            "exclamation": "wow! ",
            "label": "Ana: ",
            "label and question": "Ana: ok?\n",
            "list marker": "1. a\n",
            "heading": "# a\n",
            "blank lines with spaces": "a\n \n",
            "sentence end and quotes": '." ',
            "date": "3 May 2023 ",
            "date without year": "3 May and ",
            "Chinese date": "2023年5月3日和",
            "Chinese date that is none": "每年二十",
            "iso date": "2023-05-03 ",
            "weekday": "last Friday and ",
            "between": "between ",
            "since": "since May ",
            "last": "last ",
            "month": "May ",
            "million": "million ",
            "number and to": "9 to ",
            "clock": "at 9 pm ",
            "not": "not ",
            "prefer": "prefer like ",
            "clause": "I like tea but not milk, ",
            "brackets": "()",
            "nested brackets": "[(",
            "name": "Ana ",
            "possessive": "Ana's ",
            "who question": "who is ",
            "url": "http://a/",
            "path": "/a/b",
            "mail": "a.b@c.d ",
            "html": "<a ",
            "json": '{"a":',
            "family emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "flags": "\U0001f1e6",
            "letter and mark": "e\u0301",
            "letter and two marks": "e\u0323\u0301",
            "alternating scripts": "a\u6c49\u05e9\u0e01",
            "Hangul and jamo": "\uac00\u11a8",
            "Latin and Cyrillic": "a\u0436 ",
            "full-width letters": "\uff21 ",
        }.items()
    },
    "one letter, then combining marks": _after("e", "\u0301"),
    "marks of falling classes": _runs_of("\u0301\u0323\u0334"),
    "one mail address without end": _after("a@", "b"),
    "spaces between two words": _after("a", " ", "b"),
    "open quote, then words": _after('"', "word "),
    "open note, then a question": _after("ok? [", "x "),
    "question, then closing marks": _after("ok?", ")"),
    "question, then emoji": _after("ok?", "\U0001f600"),
    "heading, then hash signs": _after("# a", " #"),
    "different words": _different_words,
    "different names": _different_names,
    "different numbers": _different_numbers,
}

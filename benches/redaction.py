"""Redaction of texts: MB/s by kind of text and patterns, beside Python's `re`; hostile patterns.

    python -m benches.redaction

Sizes are UTF-8 bytes; times are medians of `ROUNDS` rounds. Every text has a match in each two
kilobytes or so. `re` does the three documented expressions alone: no check digits, and an
e-mail address or a number beside Chinese is not found.
"""

# ruff: noqa: RUF001 - a Chinese text is the point

import re
import statistics
import time

from mnemic.context.redaction import DEFAULT_PATTERNS, KNOWN_PATTERNS, Redaction, redact
from mnemic.errors import RedactionBudgetError

ROUNDS = 9
SIZE = 1_000_000
HOSTILE_LENGTH = 100_000
PRIVATE = (
    "john.doe@example.com",
    "4111 1111 1111 1111",
    "123-45-6789",
    "+44 20 7946 0958",
    "DE89370400440532013000",
    "192.168.0.1",
    "2001:db8::1",
    "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5",
)
TEXTS = {
    "English": "The ferry leaves at ten past every hour. Take a warm jacket, because the wind on "
    "deck is colder than it looks from the shore, and buy the ticket by 4 May 2023. ",
    "JSON": '{"id": 12345, "time": "2023-10-11T12:00:00Z", "score": 0.2134, "of": "a7f3c2", '
    '"text": "the wind is colder"}, ',
    "Chinese": "渡轮每小时十分发船。带一件暖和的外套，"
    "因为甲板上的风比岸边看起来更冷，2023年上船前先买好票。",
}
EXPRESSIONS = [
    re.compile(r"\b\d{3}-\d{2}-\d{4}\b"),
    re.compile(r"\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b"),
    re.compile(r"\b[A-Z0-9._%+-]+@[A-Z0-9.-]+\.[A-Z]{2,}\b", re.IGNORECASE),
]
HOSTILE = {".*[^A-Z]|[A-Z]": "A", "(a+)+$": "a"}


def sample(sentence):
    """Return a text of about `SIZE` bytes that has each kind of private text in turn."""
    block = sentence * (2_000 // len(sentence.encode()))
    text, number = [], 0
    while sum(map(len, text)) < SIZE // (len(sentence.encode()) // len(sentence)):
        text += [block, PRIVATE[number % len(PRIVATE)], " "]
        number += 1
    return "".join(text)


def seconds(work):
    """Return the median time of a function without arguments."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def by_re(text):
    for expression in EXPRESSIONS:
        text = expression.sub("[REDACTED]", text)
    return text


def throughputs(text):
    """Return MB/s with the documented patterns, with all of them, and with `re`."""
    size = len(text.encode()) / 1e6
    redactions = [
        Redaction(enabled=True, patterns=patterns)
        for patterns in (DEFAULT_PATTERNS, (*KNOWN_PATTERNS,))
    ]
    clean = redact(text, redactions[-1])
    assert not any(private in clean for private in PRIVATE)
    works = [lambda each=each: redact(text, each) for each in redactions] + [lambda: by_re(text)]
    return [size / seconds(work) for work in works]


def answer(pattern, letter):
    """Return the time of a hostile pattern in milliseconds, and its answer."""
    redaction = Redaction(enabled=True, patterns=(pattern,))
    start = time.perf_counter()
    try:
        kind = f"{len(redact(letter * HOSTILE_LENGTH, redaction))} characters"
    except RedactionBudgetError:
        kind = "RedactionBudgetError"
    return (time.perf_counter() - start) * 1e3, kind


def main():
    print("MB/s        documented    all    re")
    for name, sentence in TEXTS.items():
        documented, every, peer = throughputs(sample(sentence))
        print(f"{name:10} {documented:11.0f} {every:6.0f} {peer:5.0f}")
    for pattern, letter in HOSTILE.items():
        took, kind = answer(pattern, letter)
        print(f"{pattern:16} on {HOSTILE_LENGTH} × {letter!r}: {took:.1f} ms, {kind}")
    matches = Redaction(enabled=True, patterns=("email",))
    took = seconds(lambda: redact("a@b.co " * (HOSTILE_LENGTH // 7), matches))
    print(f"{'email':16} on {HOSTILE_LENGTH // 7} × 'a@b.co ': {took * 1e3:.1f} ms")


if __name__ == "__main__":
    main()

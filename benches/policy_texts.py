"""Texts and candidates of a retrieval policy, made with a seed.

A paragraph is English prose of about a length, with the titles, decimals, addresses and quotes that
make splitting hard. A tenth of the candidates repeat an earlier one in other letter case.
"""

from datetime import UTC, datetime, timedelta

import numpy as np

from mnemic.policy import PayloadMemory, Provenance

LENGTH = 2_000
SEED = 19
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = ("message", "fact", "summary")
NOUNS = "ferry harbour kettle bicycle garden letter winter orchard compass museum bridge violin"
VERBS = "reached mended painted forgot carried sold remembered closed described watched"
OTHERS = "slowly again before supper without a map near the old mill for three weeks in the rain"
ASIDES = (
    "Dr. Hale, who was there, agreed",
    "it cost 3.14 euros, i.e. nearly nothing",
    "the page is at https://example.org/a.b?c=1",
    '"Is it far?" asked the U.S. visitor',
    "no. 7 of vol. 2 has it",
)
ENDS = (". ", ". ", ". ", "! ", "? ", "… ")
DUPLICATES = 10
"""Every tenth candidate repeats the one before it."""


def sentence(random):
    """Return one sentence, with the white space after it."""
    words = ["The", random.choice(NOUNS.split()), random.choice(VERBS.split()), "the"]
    words += random.choice(NOUNS.split(), 1).tolist()
    words += random.choice(OTHERS.split(), random.integers(2, 12)).tolist()
    if random.random() < 0.2:
        words[-1] += f"; {random.choice(ASIDES)}"
    return " ".join(words) + random.choice(ENDS)


def paragraph(random, length=LENGTH):
    """Return sentences of a length in characters; the last may be cut."""
    sentences, left = [], length
    while left > 0:
        sentences.append(sentence(random))
        left -= len(sentences[-1])
    return "".join(sentences)[:length].strip()


def paragraphs(count, length=LENGTH, seed=SEED):
    """Return distinct paragraphs."""
    random = np.random.default_rng(seed)
    return [f"{at}: {paragraph(random, length)}" for at in range(count)]


def candidates(count, length=LENGTH, seed=SEED):
    """Return found memories in the order of a search: best first."""
    texts = paragraphs(count, length, seed)
    for at in range(DUPLICATES - 1, count, DUPLICATES):
        texts[at] = texts[at - 1].upper()
    minutes = np.random.default_rng(seed).permutation(count).tolist()
    return [
        candidate(at, text, minute)
        for at, (text, minute) in enumerate(zip(texts, minutes, strict=True))
    ]


def candidate(at, text, minute):
    """Return one found memory; the later it comes, the lower its score."""
    return PayloadMemory(
        id=f"memory-{at}",
        content=text,
        timestamp=BEGIN + timedelta(minutes=minute),
        score=1 / (1 + at / 100),
        type=TYPES[at % len(TYPES)],
        role="user",
        provenance=Provenance(collection="user:alice", search_type="hybrid"),
    )


def distinct(count):
    """Return the number of candidates without those that repeat another."""
    return count - count // DUPLICATES

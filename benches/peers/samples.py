"""Rows and queries for latency and filters: real sentences, users and topics."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np

from benches.peers.base import Query, Row
from benches.support.datasets import HELD_OUT, real_embeddings, real_texts, rows_of

TOPICS = {"rare": 0.001, "few": 0.01, "some": 0.1}
"""Share of the rows that have each topic."""
OTHERS = "rest"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = 20
"""Rows of one user that make a session, one after the other."""


def topics(count, seed=0):
    """Return each row's topic: shares as in `TOPICS`, at least one row each, in random places."""
    labels = np.full(count, OTHERS, dtype=object)
    order = iter(np.random.default_rng(seed).permutation(count))
    for topic, share in TOPICS.items():
        labels[list(islice(order, max(1, round(share * count))))] = topic
    return labels.tolist()


def texts_of(sentences, count):
    """Return `count` different texts: the sentences, then pairs of them."""
    number = len(sentences)
    texts = sentences[:count]
    for at in range(number, count):
        turn = at // number
        texts.append(f"{sentences[at % number]} {sentences[(at + 7919 * turn) % number]}")
    return texts


def sentence_rows(count, users):
    """Return rows of real sentences that belong to the users in turn, in sessions of `TURNS`."""
    texts = texts_of(real_texts()[HELD_OUT:], count)
    places = zip(texts, rows_of("real", count), topics(count), strict=True)
    return [
        Row(
            id=f"m{at}",
            text=text,
            vector=vector,
            user=f"user{at % users}",
            topic=topic,
            created_at=BEGIN + timedelta(minutes=at),
            session=f"user{at % users}-{at // users // TURNS}",
            position=at // users % TURNS,
        )
        for at, (text, vector, topic) in enumerate(places)
    ]


def sentence_queries(count, users, k, topic=None):
    """Return held-out sentences as queries of the users in turn."""
    texts, vectors = real_texts()[:count], real_embeddings()[0][:count]
    return [
        Query(text, vector, f"user{at % users}", k, topic)
        for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]


def matching(rows, query):
    """Return the places of the rows that match a query's user and topic."""
    return [
        at
        for at, row in enumerate(rows)
        if row.user == query.user and query.topic in {None, row.topic}
    ]

"""The three parts: quality of answers, time of a search, and answers under a filter."""

import statistics
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benches.peers.base import SEMANTIC, Query, Row
from benches.peers.samples import OTHERS, TOPICS, matching, sentence_queries, sentence_rows
from benches.peers.vectors import StoredVectors
from benches.quality.measure import DEPTH, Outcome, figures_of, summarise
from benches.quality.vectors import minilm
from benches.support.exact import best_ids
from benches.support.timing import timed

K = 10
QUERIES = 50
ROUNDS = 2
FILTER_QUERIES = 16
UNTIMED = datetime(2026, 1, 1, tzinfo=UTC)  # of the memories of a set without times


@contextmanager
def opened(peers, vectors, rows):
    """Yield each system's store with these rows, and remove its files in the end."""
    stores = []
    with tempfile.TemporaryDirectory(prefix="mnemic-bench-") as name:
        try:
            for at, peer in enumerate(peers):
                folder = Path(name) / str(at)
                folder.mkdir()
                stores.append(peer(folder, vectors))
                stores[-1].add(rows)
            yield stores
        finally:
            for store in stores:
                store.close()


def searches_of(stores):
    """Yield the label of each way to search, its mode, and the search itself."""
    for store in stores:
        for mode in store.modes:
            yield (
                f"{store.name} {mode}",
                mode,
                lambda query, by=store, how=mode: by.search(query, how),
            )


def measure_quality(peers, dataset):
    """Ask every question for `DEPTH` answers; return the mean and error of each figure."""
    outcomes = {}
    texts = sorted({text for one in dataset.collections for text in texts_of(one)})
    vectors = StoredVectors(texts, minilm().embed(texts))
    for collection in dataset.collections:
        rows = rows_of(collection, vectors)
        with opened(peers, vectors, rows) as stores:
            for label, _, search in searches_of(stores):
                found = outcomes.setdefault(label, [])
                found += answered(search, collection, vectors, dataset.relevant_from)
    return {label: summarise(found) for label, found in outcomes.items()}


def texts_of(collection):
    yield from (memory.content for memory in collection.memories)
    yield from (question.text for question in collection.questions)


def rows_of(collection, vectors):
    """Return a collection's memories as those of one user."""
    return [
        Row(
            id=memory.id,
            text=memory.content,
            vector=vectors.vector(memory.content),
            user=collection.name,
            topic=OTHERS,
            created_at=memory.created_at or UNTIMED,
            session=memory.session_id,
            position=memory.position,
            speaker=memory.speaker,
        )
        for memory in collection.memories
    ]


def answered(search, collection, vectors, relevant_from):
    for question in collection.questions:
        vector = vectors.vector(question.text)
        ranking = checked(search(Query(question.text, vector, collection.name, DEPTH)), DEPTH)
        figures = figures_of(ranking, question, relevant_from)
        yield Outcome(collection.name, question.kind, question.id, figures)


def checked(ranking, k):
    """Check that a ranking has no id twice and the right length, and return it."""
    assert len(ranking) == len(set(ranking)) <= k, "an id twice, or more than k"
    return ranking


def measure_latency(peers, count, users):
    """Let all searches answer each query in turn; return p50 and p95 in milliseconds.

    Every query runs once before, so that nothing is embedded or opened while the clock runs.
    """
    able = [peer for peer in peers if count <= peer.most_rows]
    rows = sentence_rows(count, users)
    queries = sentence_queries(QUERIES, users, K)
    vectors = lookup(rows, queries)
    with opened(able, vectors, rows) as stores:
        searches = {label: search for label, _, search in searches_of(stores)}
        for query in queries:
            for search in searches.values():
                checked(search(query), K)
        late = vectors.late
        times = {label: [] for label in searches}
        for query in queries * ROUNDS:
            for label, search in searches.items():
                times[label].append(timed(search, query)[0])
    assert vectors.late == late, "something was embedded while the clock ran"
    return {label: percentiles(seconds) for label, seconds in times.items()}


def lookup(rows, queries):
    """Return an embedder that looks up the vectors of rows and queries."""
    both = [*rows, *queries]
    return StoredVectors([one.text for one in both], [one.vector for one in both])


def percentiles(seconds):
    """Return median and 95th percentile in milliseconds."""
    cuts = statistics.quantiles(seconds, n=20, method="inclusive")
    return {"p50": 1e3 * statistics.median(seconds), "p95": 1e3 * cuts[18]}


def measure_filters(peers, count):
    """Search for one topic each among one user's rows; return shares by label and topic.

    `returned` is the share of the wanted min(k, matches) that came back, all of them matches;
    `exact` that of the answers with the ids of the nearest, where it ranks by meaning alone.
    """
    able = [peer for peer in peers if count <= peer.most_rows]
    rows = sentence_rows(count, users=1)
    shares = {}
    plain = sentence_queries(FILTER_QUERIES, 1, K)
    with opened(able, lookup(rows, plain), rows) as stores:
        for topic in TOPICS:
            queries = [query._replace(topic=topic) for query in plain]
            right = nearest(rows, queries)
            for label, mode, search in searches_of(stores):
                answers = [checked(search(query), K) for query in queries]
                found = filter_figures(answers, right, mode)
                shares.setdefault(label, {})[topic] = found
    return shares


def nearest(rows, queries):
    """Return the ids that brute force finds for each query, and those that match its filter."""
    matrix = np.stack([row.vector for row in rows])
    places = np.array(matching(rows, queries[0]))
    best = best_ids(matrix, np.stack([query.vector for query in queries]), places, K)
    return [[rows[at].id for at in some] for some in best], {rows[at].id for at in places}


def filter_figures(answers, right, mode):
    """Return the share of matches returned, and of exact answers among those by meaning."""
    best, matches = right
    assert all(matches.issuperset(answer) for answer in answers), "an answer outside the filter"
    wanted = min(K, len(matches)) * len(answers)
    exact = [set(answer) == set(ids) for answer, ids in zip(answers, best, strict=True)]
    return {
        "returned": sum(map(len, answers)) / wanted,
        "exact": statistics.fmean(exact) if mode == SEMANTIC else None,
    }

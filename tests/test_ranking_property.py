"""Any ranking of any rows: the core gives the rows of the naive twin, in order, with its scores."""

from datetime import UTC, datetime, timedelta
from threading import Thread
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from ranking_twin import RankingTwin, Row, unit

from mnemic.index import NativeIndex, Wanted
from mnemic.model import (
    HYBRID,
    KEYWORD,
    MOST_IMPORTANT,
    NEWEST,
    RECALL,
    SEMANTIC,
    WEIGHTED_RELEVANCE,
    KeywordFields,
    MemoryEntry,
    Ranking,
    Recency,
    RecencyCurve,
    RowBatch,
    Salience,
    Scope,
    SessionTerms,
    Weights,
)
from mnemic.model.filter import parse_filter
from mnemic.store.records import to_microseconds, to_row

NOON = datetime(2026, 5, 3, 12, tzinfo=UTC)
NOW = to_microseconds(NOON)
DIM = 3
EVERYTHING = 1000
CLOSE = 1e-6
SAME = 1e-9
PROFILE = settings(deadline=None, derandomize=True)

# Few values, so that rows tie. No word here is changed by the English stemmer.

WORDS = ("tea", "cup", "red", "boat", "teacup", "boatman", "lamp", "noon", "the", "of", "with")
CONTENTS = (
    *("tea", "cup", "red tea", "tea cup", "cup tea", "the tea of noon", "tea tea tea", "…"),
    *("red boat with the lamp", "boatman", "teacup", "the red teacup of the boatman", "the", "lamp"),
    *("tea cup?", "Ada: red boat", "Ada: tea?", "Bob: cup", "Bob: is it noon? tea", "lamp? ", "?"),
    *("Ada: the lamp of the boat", "Bob: tea cup tea cup red", "Cleo: noon", "Ada: Bob: tea"),
)
QUERIES = st.lists(st.sampled_from((*WORDS, "zebra")), max_size=6).map(" ".join)
ENDINGS = st.sampled_from(("", "", "", "", "?", " Ada", " Bob", " Ada Bob", " Cleo"))
DATES = st.sampled_from(("", "", "", "", " yesterday", " 2026-05-01", " 2026-02-01 and 2026-04-20"))
TEXTS = st.builds("{}{}{}".format, QUERIES, ENDINGS, DATES)

VECTORS = (
    *((1, 0, 0), (0, 1, 0), (-1, 0, 0), (0.6, 0.8, 0), (0.6, -0.8, 0), (6, -8, 0), (1, 1, 1)),
    *((0.28, 0.96, 0.5), (0, 0, -2), (3, 2, 1), (0, 0, 0)),
)
PARTS = ((), (), *((one,) for one in VECTORS), (VECTORS[0], VECTORS[1]), (VECTORS[2], VECTORS[9]))
USERS = (None, "alice", "bob")
EXPIRIES = (None, None, None, None, NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=1))
AGES = (0, 0, 1, 1, 2.5, 7, 40, 69, 71, 300, 400, -3)  # days

facts = st.fixed_dictionaries(
    {
        "content": st.sampled_from(CONTENTS),
        "user_id": st.sampled_from(USERS),
        "project_id": st.sampled_from((None, "p")),
        "session_id": st.sampled_from((None, "s", "s", "t")),
        "position": st.sampled_from((None, 1, 2, 3, 4, 5, 6)),
        "created_at": st.sampled_from([NOON - timedelta(days=days) for days in AGES]),
        "last_accessed_at": st.sampled_from((None, NOON, NOON - timedelta(days=5))),
        "expires_at": st.sampled_from(EXPIRIES),
        "access_count": st.sampled_from((0, 0, 1, 9, 100, 5000)),
        "importance": st.sampled_from((0.0, 0.25, 0.5, 1.0)),
        "speaker": st.sampled_from((None, None, None, "Ada", "Bob")),
        "tags": st.sampled_from(((), (), ("home",), ("home", "work"))),
    }
)
parts = st.sampled_from(PARTS)


def made(number, given_facts, vectors=()):
    """Return a row whose id is not in the order of its number."""
    entry = MemoryEntry(id=UUID(int=number * 37 % 1009), agent_id="a", **given_facts)
    return Row(number, entry, vectors)


written = st.tuples(facts, parts)
populations = st.lists(written, max_size=60).map(
    lambda all_written: [made(number, *one) for number, one in enumerate(all_written, 1)]
)

shares = st.sampled_from((0.0, 0.0, 0.1, 0.3, 0.5, 0.85, 1.0))
some_weights = st.builds(
    Weights, *[shares] * 6
) if False else None

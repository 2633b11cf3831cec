"""Speakers are named as a naive twin reads a query, and by nothing of other users."""

from random import Random
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mnemic.model import HYBRID, MemoryEntry, Ranking, Scope, SessionTerms
from mnemic.model.timestamps import to_microseconds
from tests.support.clock import NOON
from tests.support.names_twin import NamesTwin, words_of
from tests.support.ranking_index import DIM, batch, index_of
from tests.support.ranking_twin import RankingTwin, Row
from tests.support.rows import Question, rank
from tests.support.tiers import examples

NOW = to_microseconds(NOON)
PROFILE = examples(150)
CLOSE = 1e-9

SPEAKERS = (
    *("Bob", "Bob", "Bob", "Emi", "Emi", "elsa", "Rose", "Will Burt", "Fahim Khan", "Fahim Nur"),
    *("Muhammad", "Muhamad Lee", "The Rose", None),
)
NAMES = (
    *("Bob", "bob", "Emi", "Elsa", "elsa", "Rose", "rose", "Will", "will", "Will Burt", "Fahim"),
    *("Fahim Khan", "fahim", "Muhammad", "Muhhamed", "Muhamat", "muhhamed", "Kate", "kate"),
    *("Mumamad", "The Rose", "the Bob", "the bob", "The", "Khan", "BOB", "Muhamad Lee"),
)
WORDS = ("lamp", "tea", "red", "of", "and")
CONTENTS = (
    "Hey Kate! tea",
    "Hey Kate! lamp",
    "Thanks, Kate.",
    "Hey Kate tea",
    "Hey Bob!",
    "Muhamat",
)


def any_row(chance, number, user, pool):
    speaker = chance.choice(pool)
    kate_is_addressed = speaker != "Emi" or chance.random() < 0.1
    content = chance.choice(CONTENTS if kate_is_addressed else ("Hey Bob!", "tea", "red tea"))
    entry = MemoryEntry(
        id=UUID(int=number),
        agent_id="a",
        user_id=user,
        content=content,
        created_at=NOON,
        session_id=chance.choice([None, "s", "s", "s", "t"]),
        position=number,
        speaker=speaker,
    )
    return Row(number, entry)


def rows_of(seed, count, user, first=1):
    chance = Random(seed)  # noqa: S311 - data for a test
    pool = chance.choice([SPEAKERS, ("Bob", "Emi"), ("Bob", "Emi", "Emi", "Rose")])
    return [any_row(chance, number, user, pool) for number in range(first, first + count)]


def texts_of(seed):
    chance = Random(seed)  # noqa: S311 - data for a test
    pools = [NAMES, NAMES, WORDS]
    return [
        " ".join(chance.choice(chance.choice(pools)) for _ in range(chance.randint(1, 4)))
        for _ in range(12)
    ]


def twin_of(rows):
    return NamesTwin(rows, rows, RankingTwin(rows).neighbours)


def in_first_person(text, mentions):
    words = words_of(text)
    starts = {one.first: one.count for one in mentions}
    out, at = [], 0
    while at < len(words):
        out.append("I" if at in starts else words[at])
        at += starts.get(at, 1)
    return " ".join(out)


def terms_of(index, scope, text):
    """Return the bonus of each row that is of a named speaker."""
    ranking = Ranking(similarity=0.0, session=SessionTerms(speaker=1.0))
    wanted = Question(scope=scope, now=NOW, limit=1000, ranking=ranking, text=text)
    return {hit.row: hit.components.get("speaker", 0.0) for hit in rank(index, wanted).ranked}


seeds = st.integers(0, 2**40)
counts = st.integers(0, 40)


@PROFILE
@given(seeds, counts, seeds)
def test_speakers_are_named_as_the_twin_reads_the_query(seed, count, query):
    rows = rows_of(seed, count, None)
    twin, index = twin_of(rows), index_of(rows)
    for text in texts_of(query):
        mentions = twin.mentions(text)
        event(f"named {min(len(mentions), 2)}")
        assert index.core.in_first_person(text, Scope("a"), NOW) == in_first_person(text, mentions)
        named = {name for one in mentions for name in one.speakers}
        for row, term in terms_of(index, Scope("a"), text).items():
            is_named = named and rows[row - 1].entry.speaker in named
            assert term == pytest.approx(1 - twin.share(named) if is_named else 0.0, abs=CLOSE)


@PROFILE
@given(seeds, counts, counts, seeds)
def test_no_speaker_of_others_changes_who_is_named(seed, mine, theirs, query):
    rows, scope = rows_of(seed, mine, "me"), Scope("a", "me")
    others = rows_of(seed + 1, theirs, "you", 1 + mine)
    alone, beside = index_of(rows), index_of([*others, *rows])
    for text in texts_of(query):
        wanted = alone.core.in_first_person(text, scope, NOW)
        assert beside.core.in_first_person(text, scope, NOW) == wanted
        assert terms_of(beside, scope, text) == terms_of(alone, scope, text)


@PROFILE
@given(seeds, counts, seeds, seeds)
def test_rows_that_change_or_go_leave_no_name_behind(seed, count, changes, query):
    before, after = rows_of(seed, count, None), rows_of(changes, count, None)
    chance = Random(changes)  # noqa: S311 - data for a test
    removed = {row.number for row in before if chance.random() < 0.3}
    changed = {row.number for row in before if chance.random() < 0.3} - removed
    index = index_of(before)
    assert index.apply(
        batch([row for row in after if row.number in changed], since=1, seq=2, removed=removed)
    )
    left = [after[row.number - 1] if row.number in changed else row for row in before]
    left = [row for row in left if row.number not in removed]
    twin = twin_of(left)
    for text in texts_of(query):
        expected = in_first_person(text, twin.mentions(text))
        assert index.core.in_first_person(text, Scope("a"), NOW) == expected


CREW = [f"Crew{chr(ord('a') + number)}" for number in range(20)]


def crew_row(chance, number):
    vector = [chance.gauss(0, 1) for _ in range(DIM)]
    content = " ".join(chance.choices(WORDS, k=chance.randint(1, 3)))
    entry = MemoryEntry(
        id=UUID(int=number),
        agent_id="a",
        content=content,
        created_at=NOON,
        session_id="s",
        position=number,
        speaker=chance.choice(CREW),
    )
    return Row(number, entry, (vector,))


@PROFILE
@given(seeds, st.sampled_from([0.02, 0.3, 1.0]), st.sampled_from([1, 3, 40]))
def test_a_speaker_of_few_turns_is_found_with_any_limit(seed, term, limit):
    chance = Random(seed)  # noqa: S311 - data for a test
    index = index_of([crew_row(chance, number) for number in range(1, 301)])
    session = msgspec.structs.replace(HYBRID.session, speaker=term)
    wanted = Question(
        scope=Scope("a"),
        now=NOW,
        limit=1000,
        ranking=msgspec.structs.replace(HYBRID, session=session),
        text=f"red {chance.choice(CREW)} lamp",
        vectors=np.array([[chance.gauss(0, 1) for _ in range(DIM)]], np.float32),
    )
    whole = rank(index, wanted).ranked
    some = rank(index, msgspec.structs.replace(wanted, limit=limit)).ranked
    assert [(hit.id, hit.score) for hit in some] == [(hit.id, hit.score) for hit in whole[:limit]]

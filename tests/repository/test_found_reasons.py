"""Why a memory was found: parts of its score, words, neighbour, date, role and speaker."""

from datetime import timedelta
from uuid import UUID

from mnemic import MemoryEntry
from tests.support.clock import NOON
from tests.support.doors import opened

TURNS = [
    ("Ana", "Hi Bob, how was the trip?"),
    ("Bob", "Great, I saw the fjords"),
    ("Ana", "I moved to a new flat"),
    ("Bob", "Where is the flat?"),
    ("Ana", "Near the river"),
]


def chat(**options):
    memory = opened(clock=lambda: NOON, **options)
    for at, (speaker, text) in enumerate(TURNS):
        said_at = NOON + timedelta(minutes=at)
        turn = MemoryEntry(text, position=at, speaker=speaker, created_at=said_at)
        memory.add(turn, session_id="s", user_id="u")
    return memory


def test_reasons_name_words_neighbour_date_and_speaker():
    with chat() as memory:
        query = "When did Ana move to the flat on May 1st?"
        found = {hit.content: hit for hit in memory.search(query, explain=True, user_id="u")}
        ids = {content: hit.id for content, hit in found.items()}
        moved = found["I moved to a new flat"].why
        assert ("move", "moved", 0) in {(one.query, one.memory, one.turn) for one in moved.words}
        assert moved.speaker == "Ana"
        assert moved.date == (
            NOON.replace(hour=0, minute=0), NOON.replace(hour=0, minute=0) + timedelta(days=1)
        )  # fmt: skip
        river = found["Near the river"].why
        assert river.neighbour in ids.values()
        assert {(one.memory, one.turn) for one in river.words} >= {("flat", 1)}
        assert found["Where is the flat?"].why.speaker is None


def test_a_role_is_named_where_the_query_is_about_the_other():
    with opened(embedder=None) as memory:
        memory.add("I would like red tea", role="user", session_id="s")
        memory.add("Buy red tea at the harbour", role="assistant", session_id="s")
        hits = {hit.entry.role: hit.why for hit in memory.search("which red tea?", explain=True)}
        assert hits["assistant"].role == "assistant"
        assert hits["user"].role is None
        assert hits["assistant"].parts["role"] < 0


def test_words_are_readable_stems_near_spellings_and_runs_without_spaces():
    with opened(embedder=None) as memory:
        memory.add("Her cats are called Muhammad and Ali")
        memory.add("我去了上海博物馆看青铜器")
        (hit,) = memory.search("Muhhamad's cat", explain=True)
        pairs = {(word.query, word.memory) for word in hit.why.words}
        assert pairs == {("Muhhamad's", "Muhammad"), ("cat", "cats")}
        (hit,) = memory.search("上海博物馆在哪里", explain=True)
        assert [(word.query, word.memory) for word in hit.why.words] == [("上海博物馆",) * 2]


def test_the_id_of_a_neighbour_is_a_uuid():
    with chat() as memory:
        whys = [hit.why for hit in memory.search("flat", explain=True, user_id="u")]
        assert any(isinstance(why.neighbour, UUID) for why in whys)

"""Memories of the time, speaker or role that a query asks for are found without its words."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemic import Memory
from mnemic.policy import RetrievalPolicy, RetrievalRequest

NOW = datetime(2026, 6, 17, 9, tzinfo=UTC)  # a Wednesday
THINGS = ("boat", "lamp", "fence", "kettle", "garden", "ticket", "carpet", "violin", "ladder")
ENDS = ("was sold", "got painted", "came late", "is broken", "looks fine", "went missing")
NOTES = [f"{thing} {end}" for end in ENDS for thing in THINGS]

TIMES = [  # query, days before NOW of a memory of that time
    ("What did I do yesterday?", 1),
    ("yesterday", 1),
    ("What did we talk about last week?", 9),
    ("what happened on June 3", 14),
    ("tell me about last Friday", 5),
    ("What was on 2026-05-20?", 28),
    ("three weeks ago", 21),
    ("Was war am 3. Mai?", 45),
    ("Que s'est-il passé le 3 mai 2026 ?", 45),
    ("¿Qué pasó el 3 de mayo?", 45),
    ("昨天我做了什么", 1),
    ("5月20日", 28),
    ("昨日は何をしましたか", 1),
    ("어제 뭐 했어?", 1),
]


def diary(count, **fields):
    """Return a note for each day before NOW, the newest first; later notes begin again in words."""
    return [
        {
            "content": NOTES[day % len(NOTES)],
            "created_at": NOW - timedelta(days=day + 1),
            **{name: value(day) for name, value in fields.items()},
        }
        for day in range(count)
    ]


def memory_of(rows, embedder="minilm"):
    memory = Memory(":memory:", embedder=embedder, clock=lambda: NOW)
    memory.add_many(rows)
    return memory


@pytest.fixture(scope="module", params=["minilm", None])
def thousand(request):
    with memory_of(diary(1000), request.param) as memory:
        yield memory


@pytest.mark.parametrize(("query", "days"), TIMES)
def test_a_question_about_a_time_has_a_context_of_that_time(thousand, query, days):
    wanted = (NOW - timedelta(days=days)).date()
    assert wanted in {entry.created_at.date() for entry in thousand.context(query).memories}
    assert thousand.search(query, min_score="auto")


@pytest.mark.parametrize(("query", "days"), TIMES)
def test_a_time_that_no_memory_is_of_is_no_evidence(query, days):
    with memory_of(diary(1000), None) as memory:
        kept = {"created_at": {"lt": NOW - timedelta(days=days + 30)}}
        assert not memory.search(query, min_score="auto", filters=kept)


@pytest.mark.parametrize("query", ["yesterday", "昨天", "어제"])
def test_a_block_of_the_policy_has_what_was_at_the_time(query):
    with memory_of(diary(200, user_id=lambda _: "ana"), None) as memory:
        prompt = RetrievalPolicy(memory).run(RetrievalRequest(query, "ana", "today")).prompt
    assert NOTES[0] in prompt


SPOKEN = {
    "speaker": lambda at: ("Ana", "Ben", "Cleo", "Dan", "Eve")[at % 5],
    "session_id": lambda at: f"s{at // 6}",
}


@pytest.mark.parametrize("embedder", ["minilm", None])
@pytest.mark.parametrize(
    ("query", "speaker"), [("What did Ana say?", "Ana"), ("Ben", "Ben"), ("eve", "Eve")]
)
def test_a_named_speaker_is_heard(embedder, query, speaker):
    with memory_of(diary(300, **SPOKEN), embedder) as memory:
        assert memory.search(query, min_score="auto")[0].entry.speaker == speaker
        assert memory.context(query).hits[0].entry.speaker == speaker


@pytest.mark.parametrize("embedder", ["minilm", None])
@pytest.mark.parametrize("query", ["What did you suggest?", "你推荐过什么"])
def test_a_question_about_earlier_answers_has_a_context_of_answers(embedder, query):
    sides = {
        "role": lambda at: ("user", "assistant")[at % 2],
        "session_id": lambda at: f"s{at // 6}",
    }
    with memory_of(diary(300, **sides), embedder) as memory:
        assert memory.context(query).hits[0].entry.role == "assistant"


def test_words_of_nothing_are_no_evidence_beside_speakers_and_roles():
    with memory_of(diary(300, **SPOKEN)) as memory:
        assert not memory.context("xyzzy quux").hits


PRESENT = [  # an older statement, a newer one like it, a question
    ("I live in Oslo", "I live in Bergen", "Where do I live now?"),
    ("My job is at the harbour", "My job is at the museum", "What is my current job?"),
    ("Ich wohne in Köln", "Ich wohne in Bonn", "Wo wohne ich jetzt?"),
    ("J'habite à Lyon", "J'habite à Nice", "Où est-ce que j'habite maintenant ?"),
    ("Vivo en Cádiz", "Vivo en Soria", "¿Dónde vivo ahora?"),
    ("我住在北京", "我住在上海", "我现在住在哪里"),
    ("집은 부산에 있다", "집은 서울에 있다", "지금 집은 어디에 있어?"),
]


@pytest.mark.parametrize("days", [0.001, 40, 400])
@pytest.mark.parametrize(("older", "newer", "question"), PRESENT)
def test_the_newer_of_two_like_statements_is_first_where_the_present_is_asked_for(
    older, newer, question, days
):
    said = [(older, days), (newer, 0)]
    rows = [{"content": text, "created_at": NOW - timedelta(days=1 + age)} for text, age in said]
    with memory_of(rows) as memory:
        assert memory.search(question)[0].content == newer
    turned = [rows[0] | {"content": newer}, rows[1] | {"content": older}]
    with memory_of(turned) as memory:
        assert memory.search(question)[0].content == older


def test_what_is_like_the_question_stays_before_what_is_new():
    rows = [{"content": "I live in Oslo", "created_at": NOW - timedelta(days=900)}, *diary(100)]
    with memory_of(rows) as memory:
        assert memory.search("Where do I live now?")[0].content == "I live in Oslo"

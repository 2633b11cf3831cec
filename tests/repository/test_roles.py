"""Chats with an assistant: the user's turns hold the facts, unless an earlier answer is wanted."""

import pytest

from mnemic import Memory
from tests.support.embedders import WordEmbedder

CHAT = (
    ("user", "I am moving to a boat in the harbour in June, can you help with packing?"),
    ("assistant", "Moving to a boat needs packing by weight: start with winter clothes."),
    ("user", "Thanks, and which ferry sails at noon?"),
    ("assistant", "The noon ferry to the harbour sails from the quay."),
)


def said(fields, **also):
    return [{"session_id": "s", **also, **dict(zip(fields, turn, strict=True))} for turn in CHAT]


def labelled():
    return [{"session_id": "s", "content": f"{role}: {text}"} for role, text in CHAT]


FORMS = {
    "role": said(("role", "content")),
    "speaker": said(("speaker", "content")),
    "label": labelled(),
}


@pytest.fixture(params=FORMS)
def chat(request):
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(FORMS[request.param])
        yield memory


def first(found):
    return found[0].content.removeprefix("user: ").removeprefix("assistant: ")


@pytest.mark.parametrize("search_type", ["hybrid", "keyword"])
def test_a_fact_in_a_users_question_comes_before_the_advice(chat, search_type):
    found = chat.search("moving to a boat packing", search_type=search_type)
    assert first(found) == CHAT[0][1]


@pytest.mark.parametrize("search_type", ["hybrid", "keyword"])
def test_a_query_about_an_earlier_answer_finds_it(chat, search_type):
    found = chat.search("what did you say about packing for a boat?", search_type=search_type)
    assert first(found) == CHAT[1][1]

"""Chats with an assistant: the user's turns hold the facts, unless an earlier answer is wanted."""

import pytest

from mnemic import Memory
from mnemic.model import HYBRID, KEYWORD
from tests.support.embedders import WordEmbedder

CHAT = (
    ("user", "I am moving to a boat in the harbour in June, can you help with packing?"),
    ("assistant", "Moving to a boat needs packing by weight: start with winter clothes."),
    ("user", "Thanks, and which ferry sails at noon?"),
    ("assistant", "The noon ferry to the harbour sails from the quay."),
)


WORDS_SEEN = 12


class ShortSighted(WordEmbedder):
    """Sees the first twelve words of a text."""

    def __init__(self):
        super().__init__()
        self.max_tokens = WORDS_SEEN + 2

    def characters_seen(self, text):
        return len(" ".join(text.split(" ")[:WORDS_SEEN]))


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


def test_the_terms_are_explained(chat):
    found = chat.search("moving to a boat", explain=True)
    roles = {hit.content: hit.components["role"] for hit in found}
    assert min(roles.values()) <= -0.5 * HYBRID.session.role
    by_user = {"I am moving", "Thanks, and"}
    for content, term in roles.items():
        assert (term == 0) == any(start in content for start in by_user)
    assert {hit.components["question"] for hit in found} == {0.0}


def test_the_longer_an_answer_is_the_more_it_loses():
    parts = {1: 0.5, 100: 0.75, 200: 1.0, 300: 1.0}
    contents = {" ".join(["boat"] * words): part for words, part in parts.items()}
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([{"content": text, "role": "assistant"} for text in contents])
        found = memory.search("boat", explain=True)
    for hit in found:
        lost = -hit.components["role"] / KEYWORD.session.role
        assert lost == pytest.approx(contents[hit.content], abs=0.004)


def test_roles_count_only_where_an_assistant_speaks():
    chat = [{"content": f"Bea: {text}", "session_id": "s", "role": "user"} for _, text in CHAT]
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many(chat, user_id="bea")
        memory.add_many(FORMS["role"], user_id="ada")
        between_people = memory.search("moving to a boat", user_id="bea", explain=True)
        with_assistant = memory.search("moving to a boat", user_id="ada", explain=True)
    assert all("role" not in hit.components for hit in between_people)
    assert min(hit.components["question"] for hit in between_people) < 0
    assert all("role" in hit.components for hit in with_assistant)


def test_memories_without_a_role_lose_nothing():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add("the boat in the harbour")
        memory.add("the boat in the harbour", role="user")
        memory.add("the boat in the harbour", role="tool")
        scores = {hit.score for hit in memory.search("boat")}
    assert len(scores) == 1


def test_the_nearest_of_many_chunks_counts_less():
    contents = ["red sofa quay", " ".join(["red sofa quay"] * 40)]
    with Memory(":memory:", embedder=ShortSighted()) as memory:
        memory.add_many(contents)
        found = memory.search("red sofa", explain=True)
    terms = {hit.content: hit.components["chunks"] for hit in found}
    assert terms[contents[0]] == 0.0
    assert terms[contents[1]] < -found.share * HYBRID.chunk_penalty


def test_a_lone_statement_is_lifted_by_its_own_match():
    texts = ["ice and winter", "I prefer quiet red sofas", "dogs and cats"]
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many([{"content": text, "session_id": "s"} for text in texts])
        lone = memory.search("red sofa quiet", explain=True)[0]
    share = lone.components["share"]
    own = share * lone.components["similarity"] + (1 - share) * lone.components["keyword"]
    assert lone.components["neighbours"] >= HYBRID.session.min_lift * own - 1e-9

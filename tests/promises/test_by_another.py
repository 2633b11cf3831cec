"""Answers say where the best memory is not by the one speaker that the question names."""

import pytest

from mnemic import Memory
from mnemic.context.prompt_block import BY_ANOTHER
from mnemic.policy import RetrievalPolicy, RetrievalRequest

TURNS = [
    ("Ana", "I adopted a beagle called Rufus"),
    ("Ben", "My new job is at the harbour"),
    ("Ana", "The tomatoes on my balcony are ripe"),
    ("Ben", "I sold the old violin"),
]
CASES = [  # question, whether its best memory is by another than whom it names
    ("Which beagle did Ben adopt?", True),
    ("What did Ana sell, the violin?", True),
    ("Which beagle did Ana adopt?", False),
    ("Who adopted a beagle?", False),
    ("Did Ana and Ben adopt a beagle?", False),
    ("Does Zoe have a beagle?", False),
]


@pytest.fixture(scope="module")
def memory():
    with Memory(":memory:", embedder=None) as opened:
        opened.add_many(
            [
                {"content": text, "type": "conversation", "speaker": speaker, "session_id": "s"}
                for speaker, text in TURNS
            ],
            user_id="u",
        )
        yield opened


@pytest.mark.parametrize(("question", "is_marked"), CASES)
def test_each_door_says_so(memory, question, is_marked):
    found = memory.search(question, user_id="u")
    assert found.by_another is is_marked
    assert ("by_another=True" in repr(found)) is is_marked
    assert memory.retrieve(question, user_id="u").by_another is is_marked
    text = memory.context(question, user_id="u")
    assert text.by_another is is_marked
    assert text.startswith(f"{BY_ANOTHER}\n\n[1] ") is is_marked
    payload = RetrievalPolicy(memory).run(RetrievalRequest(question, "u", "s"))
    assert payload.metadata.by_another is is_marked
    assert (f"\n\n{BY_ANOTHER}\n\n###" in payload.prompt) is is_marked


def test_the_sentence_counts_within_the_budget(memory):
    whole = memory.context(CASES[0][0], user_id="u", max_tokens=1000)
    least = memory.context(CASES[0][0], user_id="u", max_tokens=whole.tokens - 1)
    assert len(least.hits) < len(whole.hits)
    assert least.tokens < whole.tokens


def test_it_is_the_best_of_all_that_counts_and_not_of_a_later_page(memory):
    assert memory.search(CASES[0][0], user_id="u", offset=1).by_another is False

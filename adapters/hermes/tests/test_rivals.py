"""What stands first before a turn, here and in Hermes's own local provider, which finds words."""

import pytest
from plugins.memory import load_memory_provider

SAID = [
    "I am allergic to peanuts",
    "My daughter starts school in September",
    "We moved to Oslo last winter",
    "I drive an old Volvo",
    "My boss is called Henrik",
    "I gave up smoking two years ago",
    "The dog needs its injections on Friday",
    "I would rather fly in the morning",
    "Our wedding was on a beach in Crete",
    "I studied chemistry in Lund",
]
PARAPHRASES = [
    ("Which foods are dangerous for her?", 0),
    ("When do classes begin for her child?", 1),
    ("Which city is home?", 2),
    ("What car does he own?", 3),
    ("Who is the manager at work?", 4),
    ("Does he use cigarettes?", 5),
    ("When does the puppy see the vet?", 6),
    ("What departure time suits him for flights?", 7),
    ("Where did they get married?", 8),
    ("What was the subject at university?", 9),
]


def firsts(provider):
    """Return of how many questions the first memory is the right one."""
    number = 0
    for query, right in PARAPHRASES:
        lines = provider.prefetch(query).splitlines()
        number += any(SAID[right] in line for line in lines[1:2])
    return number


def test_paraphrases_are_found_first(session):
    told = session("one")
    for text in SAID:
        told.sync_turn(text, "")
    assert firsts(session("two")) >= 9


def test_by_words_alone_they_are_hardly_found(home):
    rival = load_memory_provider("holographic")
    if rival is None:
        pytest.skip("this version of Hermes has no local provider")
    rival.initialize("one", hermes_home=str(home))
    for text in SAID:
        rival.handle_tool_call("fact_store", {"action": "add", "content": text})
    assert "peanuts" in rival.prefetch("peanuts")
    found = firsts(rival)
    rival.shutdown()
    assert found <= 3

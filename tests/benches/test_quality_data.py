"""The labelled benchmark and the example conversation keep the promises made for them."""

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from benches.quality.datasets import LANGUAGES, OWN_DATA, load_languages, load_own, read_lines
from tests.support.paths import DEMO, ROOT

TYPES = {"FACT", "EVENT", "INSIGHT", "PREFERENCE", "CORRECTION", "CONVERSATION", "PROCEDURAL"}


@pytest.fixture(scope="module")
def memories():
    return {line["id"]: line for line in read_lines(OWN_DATA / "memories.jsonl")}


@pytest.fixture(scope="module")
def questions():
    return read_lines(OWN_DATA / "questions.jsonl")


@pytest.fixture(scope="module")
def turns():
    return read_lines(DEMO / "conversation.jsonl")


def words(text):
    return frozenset(re.findall(r"\w+", text.lower()))


def overlap(first, second):
    return len(first & second) / len(first | second)


def test_there_are_enough_memories_topics_and_questions(memories, questions):
    assert len(memories) >= 300
    assert len({memory["topic"] for memory in memories.values()}) >= 30
    assert len(questions) >= 100


def test_ids_are_unique(memories, questions):
    assert len(memories) == len(read_lines(OWN_DATA / "memories.jsonl"))
    assert len({question["id"] for question in questions}) == len(questions)


def test_every_memory_has_a_known_type_a_utc_time_and_tags(memories):
    for memory in memories.values():
        assert memory["type"] in TYPES
        assert datetime.fromisoformat(memory["created_at"]).tzinfo == UTC
        assert memory["tags"]


def test_no_two_memories_say_the_same(memories):
    bags = [(name, words(memory["content"])) for name, memory in memories.items()]
    alike = [
        (first, second)
        for place, (first, bag) in enumerate(bags)
        for second, other in bags[place + 1 :]
        if overlap(bag, other) > 0.6
    ]
    assert alike == []


def test_no_two_questions_are_worded_the_same(questions):
    assert len({words(question["text"]) for question in questions}) == len(questions)


def test_grades_are_one_to_three_and_each_question_has_an_answer(memories, questions):
    for question in questions:
        assert set(question["relevant"]) <= set(memories), question["id"]
        assert set(question["relevant"].values()) <= {1, 2, 3}, question["id"]
        assert 3 in question["relevant"].values(), question["id"]


def test_each_question_has_three_distractors_of_its_own_topic(memories, questions):
    for question in questions:
        topics = {memories[name]["topic"] for name in question["relevant"]}
        near = {name for name in question["distractors"] if memories[name]["topic"] in topics}
        assert len(near) >= 3, question["id"]


def test_distractors_exist_are_listed_once_and_are_not_relevant(memories, questions):
    for question in questions:
        distractors = question["distractors"]
        assert set(distractors) <= set(memories), question["id"]
        assert len(set(distractors)) == len(distractors), question["id"]
        assert not set(distractors) & set(question["relevant"]), question["id"]


def test_a_correction_is_newer_than_what_it_replaces(memories, questions):
    asked = [question for question in questions if question["kind"] == "correction"]
    assert len(asked) >= 20
    for question in asked:
        (new,) = (
            memories[name]
            for name, grade in question["relevant"].items()
            if grade == 3 and memories[name]["type"] == "CORRECTION"
        )
        replaced = [
            memories[name]["created_at"]
            for name, grade in question["relevant"].items()
            if grade < 3 and memories[name]["topic"] == new["topic"]
        ]
        assert replaced, question["id"]
        assert new["created_at"] > min(replaced), question["id"]


def test_every_topic_is_asked_about(memories, questions):
    asked = Counter(
        memories[name]["topic"]
        for question in questions
        for name, grade in question["relevant"].items()
        if grade == 3
    )
    assert set(asked) == {memory["topic"] for memory in memories.values()}


def test_the_documented_hash_is_that_of_the_data():
    documented = re.search(
        r"sha256: `([0-9a-f]{64})`",
        (ROOT / "docs" / "project" / "lab" / "quality.md").read_text(encoding="utf-8"),
    )
    assert documented.group(1) == load_own().sha256


@pytest.fixture(scope="module")
def by_language():
    return {
        code: [read_lines(OWN_DATA / "languages" / code / f"{name}.jsonl") for name in PARALLEL]
        for code in LANGUAGES
    }


PARALLEL = ("memories", "questions")


def test_memories_and_questions_are_the_same_in_all_languages(by_language):
    memories, questions = by_language["en"]
    assert (len(memories), len(questions)) == (60, 50)
    for code, translated in by_language.items():
        for lines, english, text in zip(
            translated, by_language["en"], ("content", "text"), strict=True
        ):
            assert len({line[text] for line in lines}) == len(lines), code
            assert [{**line, text: ""} for line in lines] == [
                {**line, text: ""} for line in english
            ]


def test_parallel_questions_have_an_answer_and_three_distractors_of_its_topic(by_language):
    memories = {line["id"]: line["topic"] for line in by_language["en"][0]}
    for question in by_language["en"][1]:
        (answer,) = question["relevant"]
        assert len(set(question["distractors"]) - {answer}) == 3
        assert {memories[name] for name in question["distractors"]} == {memories[answer]}


def test_the_mixed_store_holds_all_languages_and_the_rest_of_the_set():
    *alone, mixed = load_languages().collections
    assert [one.name for one in alone] == list(LANGUAGES)
    assert len({memory.id for memory in mixed.memories}) == len(mixed.memories) == 397 + 5 * 60
    assert len({question.id for question in mixed.questions}) == 5 * 50
    assert {name for one in mixed.questions for name in one.grades} <= {
        memory.id for memory in mixed.memories
    }


def test_the_documented_hash_of_the_parallel_part_is_that_of_the_data():
    text = (ROOT / "docs" / "project" / "lab" / "quality.md").read_text(encoding="utf-8")
    assert load_languages().sha256 in text


def test_the_conversation_spans_sessions_and_months(turns):
    assert len(turns) >= 150
    assert 10 <= len({turn["session_id"] for turn in turns}) <= 14
    times = [datetime.fromisoformat(turn["created_at"]) for turn in turns]
    assert (max(times) - min(times)).days > 180
    assert all(time.tzinfo == UTC for time in times)


def test_turns_are_in_order_of_time_and_positions_count_within_a_session(turns):
    for before, after in pairwise(turns):
        assert before["created_at"] < after["created_at"]
        same = before["session_id"] == after["session_id"]
        assert after["position"] == (before["position"] + 1 if same else 0)


def test_the_two_speakers_take_turns(turns):
    assert {(turn["role"], turn["speaker"]) for turn in turns} == {
        ("user", "Elin"),
        ("assistant", "Assistant"),
    }
    for before, after in pairwise(turns):
        if before["session_id"] == after["session_id"]:
            assert before["role"] != after["role"]


def test_the_evidence_of_the_example_questions_exists(turns):
    places = {(turn["session_id"], turn["position"]) for turn in turns}
    questions = read_lines(DEMO / "questions.jsonl")
    assert len(questions) >= 12
    for question in questions:
        assert question["evidence"]
        assert {tuple(place) for place in question["evidence"]} <= places
